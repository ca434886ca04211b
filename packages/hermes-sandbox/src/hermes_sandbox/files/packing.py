"""Pack a local file or tree as a tar stream.

The format is GNU tar's: GNU tar, busybox and bsdtar all read it, and it carries names as raw bytes, so that
a name that is no UTF-8 arrives unchanged (a pax header would need `hdrcharset`, which GNU tar ignores).
"""

import asyncio
import logging
import os
import stat
import tarfile
from collections.abc import AsyncGenerator, Generator, Iterator
from pathlib import Path

logger = logging.getLogger(__name__)

CHUNK = 1 << 20
BLOCK = tarfile.BLOCKSIZE


async def pack(
    local: str | Path, *, name: str | None = None, uid: int = 0, gid: int = 0
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a tar archive of `local`, at most about 1 MiB at a time.

    Args:
        local: A folder gives members `./` and `./…`, to be extracted inside the folder that shall become its
            copy. A file gives one member. `local` itself may be a symbolic link; links inside a tree stay links.
        name: The member name of a file; its own name when None. Not used for a folder.
        uid: Owner of every member, which counts where root extracts without `--no-same-owner`.
        gid: Group of every member.

    Yields:
        Archive bytes, the end-of-archive blocks included. Modes and modification times are kept; sockets,
        pipes and devices are left out with a log line; a file with several hard links is copied once per name.

    Raises:
        FileNotFoundError: `local` does not exist.
        OSError: A file could not be read, or shrank while it was read.
    """
    blocks = _gather(_archive(Path(local), name, uid, gid))
    step: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            step = asyncio.ensure_future(asyncio.to_thread(next, blocks, None))
            chunk = await asyncio.shield(step)
            if chunk is None:
                return
            yield chunk
    finally:
        if step is None or step.done():
            blocks.close()
        else:  # cancelled while a thread is inside the generator: close it when that thread has left
            step.add_done_callback(lambda done: (done.exception(), blocks.close()))


def _archive(local: Path, name: str | None, uid: int, gid: int) -> Iterator[bytes]:
    top = local.stat()
    if stat.S_ISDIR(top.st_mode):
        yield from _folder(local, top, uid, gid)
    elif stat.S_ISREG(top.st_mode):
        yield from _member(os.fspath(local), name or local.name, top, uid, gid)
    else:
        raise OSError(f"{local} is neither a file nor a folder")
    yield bytes(2 * BLOCK)


def _folder(local: Path, top: os.stat_result, uid: int, gid: int) -> Iterator[bytes]:
    """Members of a tree, each folder before what it holds, names in sorted order."""
    yield from _member(os.fspath(local), "./", top, uid, gid)
    waiting = [(os.fspath(local), ".")]
    while waiting:
        folder, prefix = waiting.pop()
        below: list[tuple[str, str]] = []
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            member = f"{prefix}/{entry.name}"
            yield from _member(entry.path, member, entry.stat(follow_symlinks=False), uid, gid)
            if entry.is_dir(follow_symlinks=False):
                below.append((entry.path, member))
        waiting.extend(reversed(below))


def _member(path: str, name: str, status: os.stat_result, uid: int, gid: int) -> Iterator[bytes]:
    header = tarfile.TarInfo(name)
    header.mode, header.mtime = stat.S_IMODE(status.st_mode), int(status.st_mtime)
    header.uid, header.gid = uid, gid
    if stat.S_ISDIR(status.st_mode):
        header.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        header.type, header.linkname = tarfile.SYMTYPE, os.readlink(path)  # noqa: PTH115
    elif stat.S_ISREG(status.st_mode):
        yield from _file(path, header)
        return
    else:
        logger.warning("left out of the archive, being neither file, folder nor link: %s", path)
        return
    yield header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _file(path: str, header: tarfile.TarInfo) -> Iterator[bytes]:
    # O_NONBLOCK: a pipe put there since the look must not hang the thread.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as source:  # noqa: PTH123
        header.size = os.fstat(descriptor).st_size
        yield header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
        left = header.size
        while left:
            data = source.read(min(CHUNK, left))
            if not data:
                raise OSError(f"{path} shrank by {left} bytes while it was read")
            left -= len(data)
            yield data
    yield bytes(-header.size % BLOCK)


def _gather(pieces: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Join small pieces (headers, small files) into chunks worth a thread switch."""
    held = bytearray()
    for piece in pieces:
        if len(piece) >= CHUNK and not held:
            yield piece
            continue
        held += piece
        if len(held) >= CHUNK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)
