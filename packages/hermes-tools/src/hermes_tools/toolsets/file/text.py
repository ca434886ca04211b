"""Text files: which encoding they have, and whether they are text at all."""

import codecs
from dataclasses import dataclass

from hermes_tools.errors import ToolError

SAMPLE = 8192
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\b\x1b")
_SIGNATURES = (
    (b"\x89PNG", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"RIFF", "RIFF file (WebP image, sound or video)"),
    (b"%PDF", "PDF document"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"\x7fELF", "ELF program"),
    (b"SQLite format 3", "SQLite database"),
)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A decoded file, which encodes back to the same bytes.

    Attributes:
        text: Its text, line ends as they are.
        encoding: utf-8, utf-16-le, utf-16-be or latin-1 (for bytes that are nothing else).
        bom: The byte order mark it begins with, or nothing.
    """

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    def encode(self, text: str) -> bytes:
        """A changed text as bytes in this file's encoding.

        Raises:
            ToolError: A character does not exist in it.
        """
        try:
            return self.bom + text.encode(self.encoding)
        except UnicodeEncodeError as error:
            wrong = text[error.start : error.start + 1]
            raise ToolError(
                f"The file is encoded as {self.encoding}, which has no character {wrong!r}."
            ) from None


def binary_kind(data: bytes) -> str | None:
    """What kind of binary file these first bytes begin, or None for text."""
    if any(data.startswith(bom) for bom, _ in _BOMS):
        return None
    for signature, name in _SIGNATURES:
        if data.startswith(signature):
            return name
    sample = data[:SAMPLE]
    if b"\0" in sample:
        return "binary file"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        controls = sum(byte in _CONTROLS for byte in sample)
        return "binary file" if controls * 10 > len(sample) else None
    return None


def decode(data: bytes) -> TextFile:
    """The text of a file that is not binary."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            try:
                return TextFile(data[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                break
    try:
        return TextFile(data.decode("utf-8"))
    except UnicodeDecodeError:
        return TextFile(data.decode("latin-1"), "latin-1")
