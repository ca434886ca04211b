"""Look at, read, write and remove files inside a sandbox, by small programs that run in it."""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from hermes_sandbox.errors import Unavailable
from hermes_sandbox.result import ExecResult

Kind = Literal["file", "folder", "link", "other"]

RemotePath: TypeAlias = "str | os.PathLike[str]"
"""A path inside: text, or a `PurePosixPath`."""

RunProgram = Callable[[str, tuple[str, ...], bytes | None, bool], Awaitable[ExecResult]]
"""Runs a bash program with arguments and standard input, whether much or little data passes; keeps all output."""

MUCH = 1 << 18
"""From here on a process of its own moves data faster than the resident runner."""

_STAT = 'stat -c "%f %s %Y %u %g" --'

_READ = """
[ ! -d "$1" ] || { echo "$1: Is a directory" >&2; exit 1; }
if [ "$2" = 0 ] && [ -z "$3" ]; then exec cat -- "$1"; fi
[ -r "$1" ] || exec cat -- "$1"
if [ -z "$3" ]; then exec tail -c "+$(($2 + 1))" -- "$1"; fi
tail -c "+$(($2 + 1))" -- "$1" 2>/dev/null | head -c "$3"
"""

_WRITE = """
target=$1 mode=$2
[ ! -d "$target" ] || { echo "$target: Is a directory" >&2; exit 1; }
[ ! -L "$target" ] || target=$(readlink -f -- "$target") || exit 1
case $target in */*) folder=${target%/*}/ ;; *) folder=./ ;; esac
mkdir -p -- "$folder" || exit 1
if [ -e "$target" ] && [ ! -w "$target" ]; then echo "$target: Permission denied" >&2; exit 1; fi
if [ ! -w "$folder" ] && [ -e "$target" ]; then exec cat >"$target"; fi
draft=$folder.hermes-$$-$RANDOM
trap 'rm -f -- "$draft"' EXIT
set -C
exec 3>"$draft" && cat >&3 && exec 3>&- || exit 1
if [ -z "$mode" ] && [ -e "$target" ]; then mode=$(stat -c %a -- "$target"); fi
[ -z "$mode" ] || chmod "$mode" -- "$draft" || exit 1
mv -fT -- "$draft" "$target" 2>/dev/null || mv -f -- "$draft" "$target" || cat -- "$draft" >|"$target"
"""

_LIST = """
cd -- "$1" || exit 1
ls -- . >/dev/null || exit 1
shopt -s nullglob dotglob
names=(./*)
[ ${#names[@]} -gt 0 ] || exit 0
printf '%s\\0' "${names[@]}"
printf '%s\\0' "${names[@]}" | xargs -0 stat -c '%f %s %Y %u %g' --
"""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """What `stat` and `list_dir` tell of one entry.

    Attributes:
        name: Its name without the folder.
        path: Its path as it was asked for.
        kind: file, folder, link, or other (a pipe, socket or device).
        size: Bytes.
        mode: Permission bits.
        modified: Seconds since 1970.
        uid: Owner.
        gid: Group.
    """

    name: str
    path: str
    kind: Kind
    size: int
    mode: int
    modified: float
    uid: int
    gid: int


class Paths:
    """The file operations of a sandbox."""

    def __init__(self, run: RunProgram) -> None:
        self._run = run

    async def _program(
        self, program: str, *arguments: str, stdin: bytes | None = None, much: bool = False
    ) -> bytes:
        result = await self._result(program, *arguments, stdin=stdin, much=much)
        if result.exit_code != 0:
            raise os_error(result, arguments[0])
        return result.stdout

    async def _result(
        self, program: str, *arguments: str, stdin: bytes | None = None, much: bool = False
    ) -> ExecResult:
        """What became of a program, which says something about the file only where it was not lost."""
        path, *others = arguments
        if path and not path.startswith("/"):
            path = f"./{path}"  # "-" alone would mean standard input to some programs, or a folder of before
        result = await self._run(program, (path, *others), stdin, much)
        if result.reason == "lost":
            raise Unavailable(f"the connection broke while {arguments[0]!r} was looked at, read or written")
        return result

    async def read(self, path: str, offset: int, limit: int | None) -> bytes:
        """The bytes of a file, or of a part of it."""
        if offset < 0 or (limit is not None and limit < 0):
            raise ValueError("offset and limit must not be negative")
        first = MUCH if limit is None else min(limit, MUCH)
        data = await self._program(_READ, path, str(offset), str(first))
        if len(data) < MUCH or limit == MUCH:
            return data
        rest = "" if limit is None else str(limit - MUCH)
        return data + await self._program(_READ, path, str(offset + MUCH), rest, much=True)

    async def write(self, path: str, data: bytes, mode: int | None) -> None:
        """Put a file in place at once, with its parent folders."""
        await self._program(
            _WRITE, path, "" if mode is None else f"{mode:o}", stdin=data, much=len(data) > MUCH
        )

    async def exists(self, path: str) -> bool:
        """Whether there is anything, a broken link included."""
        result = await self._result('[ -e "$1" ] || [ -L "$1" ]', path)
        return result.exit_code == 0

    async def stat(self, path: str, *, follow: bool) -> FileInfo:
        """One entry's data."""
        option = " -L" if follow else ""
        line = await self._program(_STAT.replace("stat", f"stat{option}", 1) + ' "$1"', path)
        return _info(path, line)

    async def list(self, path: str) -> list[FileInfo]:
        """A folder's entries, sorted by name; links are not followed."""
        output = await self._program(_LIST, path)
        if not output:
            return []
        names, _, lines = output.rpartition(b"\0")
        entries = [os.fsdecode(name[2:]) for name in names.split(b"\0")]
        return [
            _info(posixpath.join(path, name), line)
            for name, line in zip(entries, lines.splitlines(), strict=True)
        ]

    async def mkdir(self, path: str, *, parents: bool, exist_ok: bool) -> None:
        """Make a folder."""
        if parents or exist_ok:
            check = "" if exist_ok else '[ ! -e "$1" ] || { echo "$1: File exists" >&2; exit 1; }\n'
            program = f'{check}mkdir {"-p " if parents else ""}-- "$1"'
            if exist_ok and not parents:
                program = '[ -d "$1" ] || mkdir -- "$1"'
        else:
            program = 'mkdir -- "$1"'
        await self._program(program, path)

    async def remove(self, path: str, *, recursive: bool) -> None:
        """Remove a file, a link, or an empty folder; with `recursive` a tree."""
        check = '[ -e "$1" ] || [ -L "$1" ] || { echo "$1: No such file or directory" >&2; exit 1; }\n'
        folder = 'if [ -d "$1" ] && [ ! -L "$1" ]; then exec rmdir -- "$1"; fi; exec rm -f -- "$1"'
        await self._program(check + ('exec rm -rf -- "$1"' if recursive else folder), path)


def _info(path: str, line: bytes) -> FileInfo:
    mode, size, modified, uid, gid = line.split()
    bits = int(mode, 16)
    kind: Kind = "other"
    if stat.S_ISREG(bits):
        kind = "file"
    elif stat.S_ISDIR(bits):
        kind = "folder"
    elif stat.S_ISLNK(bits):
        kind = "link"
    name = posixpath.basename(path.rstrip("/")) or path
    return FileInfo(name, path, kind, int(size), stat.S_IMODE(bits), float(modified), int(uid), int(gid))


_CAUSES = (
    ("No such file or directory", errno.ENOENT),
    ("Is a directory", errno.EISDIR),
    ("Not a directory", errno.ENOTDIR),
    ("Permission denied", errno.EACCES),
    ("Operation not permitted", errno.EPERM),
    ("Read-only file system", errno.EROFS),
    ("No space left on device", errno.ENOSPC),
    ("Disk quota exceeded", errno.EDQUOT),
    ("Directory not empty", errno.ENOTEMPTY),
    ("File exists", errno.EEXIST),
    ("File name too long", errno.ENAMETOOLONG),
    ("Too many levels of symbolic links", errno.ELOOP),
)


def os_error(result: ExecResult, path: str) -> OSError:
    """The built-in error that what a program said stands for."""
    said = result.stderr.decode(errors="replace").strip()
    for text, number in _CAUSES:
        if text.lower() in said.lower():
            return OSError(number, os.strerror(number), path)
    return OSError(errno.EIO, f"{said or result.reason} (exit code {result.exit_code})", path)
