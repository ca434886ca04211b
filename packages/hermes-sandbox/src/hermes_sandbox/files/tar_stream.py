"""An incremental tar reader: bytes are pushed in as they come, entries and their contents come out.

The standard library's reader pulls from a file and reads whole extended headers into memory whatever size
they claim. This one takes chunks of any size, holds at most one header, and bounds what a hostile sender
can make it keep. Formats: v7, ustar, GNU (long names, large numbers) and pax, as in POSIX.1-2008 `pax` and
the GNU tar manual's "Basic Tar Format". Sparse members are refused: `tar -c` writes them only with `-S`.
"""

import tarfile
from dataclasses import dataclass
from typing import Literal, Protocol

from hermes_sandbox.files.errors import ArchiveError

BLOCK = tarfile.BLOCKSIZE
LONGEST_HEADER = 1 << 20

Kind = Literal["file", "folder", "symlink", "hardlink", "other"]
_KINDS: dict[bytes, Kind] = {
    tarfile.REGTYPE: "file",
    tarfile.AREGTYPE: "file",
    tarfile.CONTTYPE: "file",
    tarfile.DIRTYPE: "folder",
    tarfile.SYMTYPE: "symlink",
    tarfile.LNKTYPE: "hardlink",
    tarfile.CHRTYPE: "other",
    tarfile.BLKTYPE: "other",
    tarfile.FIFOTYPE: "other",
}
_EXTENDED = {tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE}


@dataclass(frozen=True, slots=True)
class Entry:
    """One member: its name and link target as written (undecodable bytes as surrogate escapes)."""

    name: str
    kind: Kind
    size: int
    mode: int
    mtime: float
    target: str


class Sink(Protocol):
    """Where the entries of an archive go, in order."""

    def begin(self, entry: Entry) -> None:
        """Start `entry`; `size` bytes of content follow for a file, none for the other kinds."""
        ...

    def content(self, data: memoryview) -> None:
        """Take the next bytes of the current file."""
        ...

    def end(self) -> None:
        """The current entry is complete."""
        ...


class TarReader:
    """Splits pushed bytes into entries for a sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._held = bytearray()  # an incomplete header block or extended header
        self._wanted = BLOCK
        self._left = 0  # bytes of content still to come
        self._padding = 0
        self._open = False
        self._extended: tuple[bytes, int] | None = None  # kind and size of the extended header being read
        self._overrides: dict[str, str] = {}
        self._zero_blocks = 0
        self.ended = False

    def feed(self, data: bytes) -> None:
        """Take more of the archive.

        Raises:
            ArchiveError: The bytes are no tar archive; nothing after them can be read.
        """
        view = memoryview(data)
        while view and not self.ended:  # what follows the end of the archive is padding of its records
            if self._left:
                piece = view[: self._left]
                self._left -= len(piece)
                self._sink.content(piece)
                view = view[len(piece) :]
                self._end_entry()
            elif self._padding:
                skipped = min(self._padding, len(view))
                self._padding -= skipped
                view = view[skipped:]
            else:
                piece = view[: self._wanted - len(self._held)]
                self._held += piece
                view = view[len(piece) :]
                if len(self._held) == self._wanted:
                    block, self._held = bytes(self._held), bytearray()
                    self._block(block)

    def finish(self) -> None:
        """Check that the archive came to its end.

        Raises:
            ArchiveError: It was cut short.
        """
        if not self.ended:
            raise ArchiveError("the archive was cut short: its sender stopped before the end-of-archive mark")

    def _block(self, block: bytes) -> None:
        if self._extended:
            kind, size = self._extended
            self._extended, self._wanted = None, BLOCK
            self._padding = -size % BLOCK
            self._override(kind, block)
        elif block.count(0) == BLOCK:
            self._zero_blocks += 1
            self.ended = self._zero_blocks == 2
        else:
            self._zero_blocks = 0
            self._header(block)

    def _header(self, block: bytes) -> None:
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise ArchiveError(f"not a tar archive: {error}") from None
        if info.type in _EXTENDED:
            if not 0 <= info.size <= LONGEST_HEADER:
                raise ArchiveError(f"an extended header of {info.size} bytes")
            if info.size:
                self._extended, self._wanted = (info.type, info.size), info.size
            return
        if info.type not in _KINDS:
            raise ArchiveError(f"{info.name!r} has the unsupported type {info.type!r}")
        self._begin(info)

    def _begin(self, info: tarfile.TarInfo) -> None:
        overrides, self._overrides = self._overrides, {}
        try:
            size = int(overrides.get("size", info.size))
            mtime = float(overrides.get("mtime", info.mtime))
        except ValueError as error:
            raise ArchiveError(f"a malformed extended header: {error}") from None
        name = overrides.get("path", info.name)
        # v7 archives mark a folder only by its trailing slash
        kind = "folder" if info.type == tarfile.AREGTYPE and name.endswith("/") else _KINDS[info.type]
        if size < 0:
            raise ArchiveError(f"{name!r} claims a size of {size} bytes")
        size = size if kind == "file" else 0
        self._left, self._padding, self._open = size, -size % BLOCK, True
        self._sink.begin(Entry(name, kind, size, info.mode, mtime, overrides.get("linkpath", info.linkname)))
        self._end_entry()

    def _end_entry(self) -> None:
        if self._open and not self._left:
            self._open = False
            self._sink.end()

    def _override(self, kind: bytes, data: bytes) -> None:
        if kind == tarfile.GNUTYPE_LONGNAME:
            self._overrides["path"] = _text(data)
        elif kind == tarfile.GNUTYPE_LONGLINK:
            self._overrides["linkpath"] = _text(data)
        elif kind == tarfile.XHDTYPE:
            records = _pax_records(data)
            if any(key.startswith("GNU.sparse") for key in records):
                raise ArchiveError("sparse members are not supported: pack without `tar --sparse`")
            self._overrides.update(records)


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _pax_records(data: bytes) -> dict[str, str]:
    """Records `LENGTH KEY=VALUE`, newline-ended, where LENGTH counts the whole record in decimal."""
    records: dict[str, str] = {}
    position = 0
    while position < len(data) and data[position]:
        space = data.find(b" ", position, position + 12)
        length = data[position:space] if space > position else b""
        end = position + int(length) if length.isdigit() else 0
        if end <= space or end > len(data) or data[end - 1 : end] != b"\n":
            raise ArchiveError("a malformed pax header")
        key, _, value = data[space + 1 : end - 1].partition(b"=")
        records[_text(key)] = value.decode("utf-8", "surrogateescape")
        position = end
    return records
