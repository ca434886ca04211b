"""Move files and trees between this machine and a sandbox as streamed tar archives."""

from __future__ import annotations

import asyncio
import io
import posixpath
import tarfile
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

from hermes_sandbox.backend import Archives, Backend, ByteProcess, Command, Machine, MovesFiles
from hermes_sandbox.errors import SandboxError, Unavailable, Unsupported
from hermes_sandbox.files import Unpacker, pack
from hermes_sandbox.oneshot import collect, read_all
from hermes_sandbox.paths import os_error
from hermes_sandbox.result import ExecResult
from hermes_sandbox.staging import Staging

_NO_TAR = 119
_CHECK = f"command -v tar >/dev/null || exit {_NO_TAR}\n"
_RECEIVE = f"""{_CHECK}mkdir -p -- "$1" && cd -- "$1" && exec tar -x -p -o -f -"""
_SEND = f"""{_CHECK}case $2 in *\\\\*) # GNU tar takes backslashes in names for escapes
  [[ $(tar --version 2>/dev/null) != *GNU* ]] || set -- "$1" "${{2//\\\\/\\\\\\\\}}" ;;
esac
cd -- "$1" && exec tar -c -f - -- "$2\""""
_BLOCK = 1 << 18
_TAR_OVERHEAD = 1 << 16


class _NoTarError(Exception):
    """There is no tar inside."""


class Transfers:
    """Uploads and downloads of one sandbox; each opens a process of its own, so that nothing else waits.

    Where the sandbox has no tar, the backend's own archives serve, if it has any.
    """

    def __init__(self, backend: Backend, machine: Machine) -> None:
        self._backend, self._machine = backend, machine
        self._staging = Staging(backend, machine) if isinstance(backend, MovesFiles) else None

    async def run(self, argv: tuple[str, ...], stdin: bytes | None) -> ExecResult | None:
        """Run a program with much input or much output; None where the backend has no way of its own for that."""
        if self._staging is None:
            return None
        command = Command(argv, cwd=self._machine.workdir, env={"LC_ALL": "C"})
        if stdin is not None:
            code, out, said = await self._staging.feed(command, _once(stdin))
        else:
            kept = bytearray()

            async def receive(piece: bytes) -> None:
                kept.extend(piece)

            code, said = await self._staging.keep(command, receive)
            out = bytes(kept)
        return ExecResult(code, "lost" if code is None else "exit", out, said, len(out), len(said), 0.0)

    async def upload(self, local: Path, folder: str, name: str | None) -> None:
        """Unpack a local file (as `name`) or a local folder's contents into a folder inside."""
        try:
            async with aclosing(pack(local, name=name)) as archive:
                await self._receive(folder, archive)
        except _NoTarError:
            if not isinstance(self._backend, Archives):
                raise Unsupported("the sandbox has no tar; install it to upload") from None
            await collect(await self._open('exec mkdir -p -- "$1"', folder))
            async with aclosing(pack(local, name=name)) as archive:
                await self._backend.put_archive(self._machine, folder, archive)

    async def _receive(self, folder: str, archive: AsyncIterator[bytes]) -> None:
        if self._staging is not None:
            code, _, said = await self._staging.feed(self._command(_RECEIVE, folder), archive)
            return _judge_upload(code, said, folder)
        process = await self._open(_RECEIVE, folder)
        broken = False
        reading = [asyncio.ensure_future(read_all(each)) for each in (process.stdout, process.stderr)]
        try:
            try:
                async for chunk in archive:
                    for begin in range(0, len(chunk), _BLOCK):
                        await process.write(chunk[begin : begin + _BLOCK])
            except ConnectionError:
                broken = True
            await process.close_stdin()
            code = await process.wait()
            said = (await asyncio.gather(*reading))[1]
        finally:
            for each in reading:
                each.cancel()
            await process.close()
        return _judge_upload(None if broken and code == 0 else code, said, folder)

    async def download(self, folder: str, name: str, unpacker: Unpacker) -> None:
        """Unpack what `name` in a folder inside holds, into where the unpacker puts it."""
        try:
            await self._send(folder, name, unpacker)
        except _NoTarError:
            if not isinstance(self._backend, Archives):
                raise Unsupported("the sandbox has no tar; install it to download") from None
            path = f"{folder}/." if name == "." else posixpath.join(folder, name)
            async for data in self._backend.get_archive(self._machine, path):
                await unpacker.feed(data)
        await unpacker.finish()

    async def _send(self, folder: str, name: str, unpacker: Unpacker) -> None:
        if self._staging is not None:
            code, said = await self._staging.keep(self._command(_SEND, folder, name), unpacker.feed)
            return _judge_download(code, said, posixpath.join(folder, name))
        process = await self._open(_SEND, folder, name)
        saying = asyncio.ensure_future(read_all(process.stderr))
        try:
            await process.close_stdin()
            while data := await process.stdout.read(_BLOCK):
                await unpacker.feed(data)
            code, said = await process.wait(), await saying
        finally:
            saying.cancel()
            await process.close()
        return _judge_download(code, said, posixpath.join(folder, name))

    async def fetch(self, path: str, limit: int) -> bytes | None:
        """A regular file as the backend itself hands it out, past every program inside.

        None where the backend has no way of its own, or there is no such file, or it has more than `limit` bytes.
        """
        if not isinstance(self._backend, Archives):
            return None
        archive = io.BytesIO()
        try:
            async for chunk in self._backend.get_archive(self._machine, path):
                archive.write(chunk)
                if archive.tell() > limit + _TAR_OVERHEAD:
                    return None
        except SandboxError:
            return None
        archive.seek(0)
        with tarfile.open(fileobj=archive) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member is not None and member.isfile() else None
            return None if file is None else file.read()

    async def place(self, path: str, data: bytes, mode: int) -> bool:
        """Put a root-owned file in place by the backend's own means; False where it has none."""
        if not isinstance(self._backend, Archives):
            return False
        folder, name = posixpath.split(path)
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), mode, int(time.time())
            tar.addfile(member, io.BytesIO(data))
        await self._backend.put_archive(self._machine, folder, _once(archive.getvalue()))
        return True

    async def _open(self, program: str, *arguments: str) -> ByteProcess:
        return await self._backend.open_process(self._machine, self._command(program, *arguments))

    def _command(self, program: str, *arguments: str) -> Command:
        argv = (self._machine.shell, "--norc", "--noprofile", "-c", program, "tar", *arguments)
        return Command(argv, cwd=self._machine.workdir, env={"LC_ALL": "C"})


async def _once(data: bytes) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), _BLOCK):
        yield data[begin : begin + _BLOCK]


def _judge_upload(code: int | None, said: bytes, folder: str) -> None:
    if code == _NO_TAR:
        raise _NoTarError
    _refuse_lost(code, folder)
    if code != 0:
        raise os_error(_failed(code, said), folder)


def _judge_download(code: int | None, said: bytes, path: str) -> None:
    if code == _NO_TAR:
        raise _NoTarError
    _refuse_lost(code, path)
    # GNU tar ends with 1 when a file changed while it was read; the archive is whole.
    if code != 0 and not (code == 1 and b"changed as we read it" in said):
        raise os_error(_failed(code, said), path)


def _refuse_lost(code: int | None, path: str) -> None:
    if code is None:
        raise Unavailable(f"the connection broke while {path!r} was moved")


def _failed(code: int | None, said: bytes) -> ExecResult:
    return ExecResult(code, "exit", b"", said, 0, len(said), 0.0)
