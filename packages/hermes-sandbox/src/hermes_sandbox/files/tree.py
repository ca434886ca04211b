"""Write archive entries into a folder so that nothing can land outside it.

Every path is walked from the target's own descriptor, component by component and never through a symbolic
link, so neither a link from the archive nor one that was there before can redirect a write.
"""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path

from hermes_sandbox.files.errors import UnsafeEntry
from hermes_sandbox.files.tar_stream import Entry

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
LONGEST_PATH = 4096


@dataclass(slots=True)
class _OpenFile:
    descriptor: int
    mode: int
    mtime: float


class TreeWriter:
    """Creates files, folders and links below `target`; a `Sink` without policy: it raises `UnsafeEntry`."""

    def __init__(self, target: Path) -> None:
        target.mkdir(parents=True, exist_ok=True)
        self._root = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._parent: tuple[tuple[str, ...], int] | None = None  # the folder written last, kept open
        self._file: _OpenFile | None = None
        self._folders: dict[tuple[str, ...], tuple[int, float]] = {}  # modes are set last, children first

    def begin(self, entry: Entry) -> None:
        """Create `entry`; a file is then open for `content`."""
        parts = self._parts(entry.name)
        if entry.kind == "folder":
            if parts:
                self._folder(parts)
            self._folders[parts] = (entry.mode, entry.mtime)
        elif entry.kind == "file":
            descriptor = self._create(parts, entry.name)
            self._file = _OpenFile(descriptor, entry.mode, entry.mtime)
        elif entry.kind == "symlink":
            self._symlink(parts, entry)
        elif entry.kind == "hardlink":
            self._hardlink(parts, entry)
        else:
            raise UnsafeEntry(entry.name, "it is a device or a pipe")

    def content(self, data: memoryview) -> None:
        """Append to the open file."""
        if self._file:
            while data:
                data = data[os.write(self._file.descriptor, data) :]

    def end(self) -> None:
        """Close the open file with its mode and time."""
        file, self._file = self._file, None
        if file:
            try:
                os.fchmod(file.descriptor, file.mode & 0o777)
                _set_time(file.descriptor, file.mtime)
            finally:
                os.close(file.descriptor)

    def finish(self) -> None:
        """Give folders their modes, now that nothing more is to be written into them."""
        for parts in sorted(self._folders, key=len, reverse=True):
            mode, mtime = self._folders[parts]
            folder = self._walk(parts, ".")
            try:
                os.fchmod(folder, mode & 0o777)
                _set_time(folder, mtime)
            finally:
                os.close(folder)
        self._folders.clear()

    def close(self) -> None:
        """Release every descriptor; what was written stays."""
        if self._file:
            os.close(self._file.descriptor)
        if self._parent:
            os.close(self._parent[1])
        if self._root >= 0:
            os.close(self._root)
        self._file, self._parent, self._root = None, None, -1

    def _parts(self, name: str) -> tuple[str, ...]:
        if name.startswith("/"):
            raise UnsafeEntry(name, "its path is absolute")
        if "\0" in name or len(name) > LONGEST_PATH:
            raise UnsafeEntry(name[:100], "its path holds a NUL or is too long")
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if ".." in parts:
            raise UnsafeEntry(name, "its path goes up by `..`")
        return parts

    def _walk(self, parts: tuple[str, ...], name: str, *, make: bool = False) -> int:
        """Open the folder `parts`, which the caller closes."""
        folder = os.dup(self._root)
        for part in parts:
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=folder)
                below = os.open(part, _FOLDER, dir_fd=folder)
            except NotADirectoryError:
                raise UnsafeEntry(name, f"{part!r} in its path is a link or a file") from None
            finally:
                os.close(folder)
            folder = below
        return folder

    def _folder(self, parts: tuple[str, ...]) -> int:
        """A descriptor of the folder `parts`, made where missing and kept until another one is asked for."""
        if self._parent and self._parent[0] == parts:
            return self._parent[1]
        folder = self._walk(parts, "/".join(parts), make=True)
        if self._parent:
            os.close(self._parent[1])
        self._parent = (parts, folder)
        return folder

    def _place(self, parts: tuple[str, ...], name: str) -> tuple[int, str]:
        """Folder and last name for a new file or link, whose name is free afterwards."""
        if not parts:
            raise UnsafeEntry(name, "it would replace the target folder")
        folder = self._folder(parts[:-1])
        with suppress(FileNotFoundError):
            os.unlink(parts[-1], dir_fd=folder)
        return folder, parts[-1]

    def _create(self, parts: tuple[str, ...], name: str) -> int:
        folder, last = self._place(parts, name)
        return os.open(last, _NEW_FILE, 0o600, dir_fd=folder)

    def _symlink(self, parts: tuple[str, ...], entry: Entry) -> None:
        if _leads_out(parts, entry.target):
            raise UnsafeEntry(entry.name, f"its link {entry.target!r} leads out of the folder")
        folder, last = self._place(parts, entry.name)
        os.symlink(entry.target, last, dir_fd=folder)

    def _hardlink(self, parts: tuple[str, ...], entry: Entry) -> None:
        source = self._parts(entry.target)
        if not source or source == parts:
            raise UnsafeEntry(entry.name, f"it cannot be a link to {entry.target!r}")
        holder = self._walk(source[:-1], entry.name)
        try:
            status = os.stat(source[-1], dir_fd=holder, follow_symlinks=False)
            if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                raise UnsafeEntry(entry.name, f"it links to {entry.target!r}, which is no file")
            folder, last = self._place(parts, entry.name)
            os.link(source[-1], last, src_dir_fd=holder, dst_dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(holder)


def _set_time(descriptor: int, mtime: float) -> None:
    with suppress(OSError, OverflowError, ValueError):  # a nonsense date is no reason to lose the file
        os.utime(descriptor, (mtime, mtime))


def _leads_out(link: tuple[str, ...], target: str) -> bool:
    """Whether a symbolic link at `link` may name something outside.

    `..` counts only before the first name: after one it would be relative to wherever that name leads, which
    another link of the archive decides.
    """
    if target.startswith("/") or not target or "\0" in target:
        return True
    parts = [part for part in target.split("/") if part not in ("", ".")]
    names = list(dropwhile(lambda part: part == "..", parts))
    return ".." in names or len(parts) - len(names) > len(link) - 1
