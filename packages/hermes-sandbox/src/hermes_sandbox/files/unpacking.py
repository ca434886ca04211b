"""Unpack a tar stream that comes from a sandbox, and so from something that may be hostile."""

import asyncio
import os
import shutil
import tempfile
import threading
from collections.abc import AsyncIterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from hermes_sandbox.execute import uncancelled
from hermes_sandbox.files.errors import ArchiveError, UnsafeEntry
from hermes_sandbox.files.tar_stream import Entry, TarReader
from hermes_sandbox.files.tree import TreeWriter
from hermes_sandbox.ownership import Owner

BATCH = 1 << 20
STAGED = "file"
STAGING = ".unpack-"


class Unpacker:
    """Takes archive bytes as they come and writes the tree they describe, inside `target` only.

    An asynchronous context manager: `async with Unpacker(target) as unpacker: await unpacker.feed(data) …
    await unpacker.finish()`. Writing happens on threads. A tree that is not finished stays as far as it came;
    a single file appears whole or not at all.

    Attributes:
        written: Bytes of file content written so far.
        entries: Entries seen so far.
        skipped: Names left out as unsafe, with `unsafe="skip"`.
    """

    def __init__(
        self,
        target: str | Path,
        *,
        single: bool = False,
        unsafe: Literal["refuse", "skip"] = "refuse",
        max_bytes: int | None = None,
        max_entries: int | None = None,
    ) -> None:
        """Prepare to unpack; nothing is touched before the first bytes.

        Args:
            target: The folder that receives the archive's members; made with its parents where missing.
                Existing files in it are replaced, never followed if they are links.
            single: The archive holds exactly one file, which becomes `target` itself, by an atomic rename.
            unsafe: What to do about an entry that would leave `target` or is a device: raise `UnsafeEntry`,
                or leave it out and note it in `skipped`.
            max_bytes: Most bytes of file content to accept; no limit when None.
            max_entries: Most entries to accept; no limit when None.
        """
        self.written = 0
        self.entries = 0
        self.skipped: list[str] = []
        self._target = Path(target)
        self._single = single
        self._unsafe = unsafe
        self._max_bytes = max_bytes
        self._max_entries = max_entries
        self._reader = TarReader(self)
        self._tree: TreeWriter | None = None
        self._staging: Path | None = None
        self._skipping = False
        self._closed = False
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._lock = threading.Lock()  # a cancelled feed leaves its thread at work; close waits for it

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def feed(self, data: bytes) -> None:
        """Take more of the archive; every megabyte or so this waits for the disk.

        Raises:
            ArchiveError: The bytes are no tar archive, or pass a limit.
            UnsafeEntry: An entry was refused.
            OSError: The disk refused.
        """
        self._pending.append(data)
        self._pending_size += len(data)
        if self._pending_size >= BATCH:
            await self._flush()

    async def finish(self) -> None:
        """Write what is left and check that the archive was whole.

        Raises:
            ArchiveError: The archive was cut short, or held no file where a single one was expected.
        """
        await self._flush()
        await asyncio.to_thread(self._finish)

    async def close(self) -> None:
        """Release everything; without `finish`, a single file is dropped."""
        await uncancelled(asyncio.to_thread(self._close))

    async def _flush(self) -> None:
        data = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        self._pending, self._pending_size = [], 0
        await asyncio.to_thread(self._feed, data)

    def begin(self, entry: Entry) -> None:
        """Called by the reader for each entry."""
        self.entries += 1
        if self._max_entries is not None and self.entries > self._max_entries:
            raise ArchiveError(f"the archive has more than {self._max_entries} entries")
        if self._max_bytes is not None and self.written + entry.size > self._max_bytes:
            raise ArchiveError(f"the archive holds more than {self._max_bytes} bytes")
        self._skipping = False
        try:
            if self._single and (entry.kind != "file" or self.entries > 1):
                raise ArchiveError(f"expected one file, the archive holds {entry.kind} {entry.name!r}")
            self._open_tree().begin(replace(entry, name=STAGED) if self._single else entry)
        except UnsafeEntry as refused:
            if self._unsafe == "refuse":
                raise
            self._skipping = True
            self.skipped.append(refused.name)

    def content(self, data: memoryview) -> None:
        """Called by the reader for each piece of a file."""
        if not self._skipping:
            self._open_tree().content(data)
            self.written += len(data)

    def end(self) -> None:
        """Called by the reader at the end of an entry."""
        if not self._skipping:
            self._open_tree().end()

    def _open_tree(self) -> TreeWriter:
        if self._tree is None:
            folder = self._target
            if self._single:
                self._target.parent.mkdir(parents=True, exist_ok=True)
                folder = self._staging = _make_staging(self._target.parent)
            self._tree = TreeWriter(folder)
        return self._tree

    def _feed(self, data: bytes) -> None:
        with self._lock:
            if not self._closed:  # a cancelled feed may reach its thread only after close
                self._reader.feed(data)

    def _finish(self) -> None:
        with self._lock:
            self._reader.finish()
            if self._single and not self.entries:
                raise ArchiveError("expected one file, the archive is empty")
            tree = self._open_tree()
            tree.finish()
            if self._staging:
                os.replace(self._staging / STAGED, self._target)  # noqa: PTH105

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            if self._tree:
                self._tree.close()
            if self._staging:
                shutil.rmtree(self._staging, ignore_errors=True)
            self._tree = self._staging = None


def _make_staging(parent: Path) -> Path:
    """A folder beside the target, named after this process: so what a killed process left there is known, and removed."""
    for left in parent.glob(f"{STAGING}*"):
        owner = Owner.parse(left.name.removeprefix(STAGING).rpartition("-")[0].replace("~", "/"))
        if owner is not None and owner.life() == "dead":
            shutil.rmtree(left, ignore_errors=True)
    name = str(Owner.current()).replace("/", "~")
    return Path(tempfile.mkdtemp(prefix=f"{STAGING}{name}-", dir=parent))


async def unpack(
    stream: AsyncIterable[bytes],
    target: str | Path,
    *,
    single: bool = False,
    unsafe: Literal["refuse", "skip"] = "refuse",
    max_bytes: int | None = None,
    max_entries: int | None = None,
) -> Unpacker:
    """Unpack a whole stream into `target`; the arguments are those of `Unpacker`.

    Returns:
        The closed unpacker, for its counts and `skipped`.
    """
    unpacker = Unpacker(target, single=single, unsafe=unsafe, max_bytes=max_bytes, max_entries=max_entries)
    async with unpacker:
        async for data in stream:
            await unpacker.feed(data)
        await unpacker.finish()
    return unpacker
