"""Finding where a value ends that is written as plain text between tags, with no escaping."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Literal

from hermes_parsers.grammars.argument_writer import ArgumentWriter
from hermes_parsers.reading import ahead, one_of, space
from hermes_parsers.scan import Scan

if TYPE_CHECKING:
    from hermes_parsers.grammars.tagged import Tagged

End = Literal["closed", "implicit", "truncated"]


class ValueReader:
    """Reads one value into `writer`.

    A tag inside the value is data unless it makes sense where it stands. The value's own end tag ends it when a further
    parameter, or the end of the call, follows. The end of the call ends it too, if the value's own end tag is
    not found before the next call. So does the start of a parameter that the tool has, at the start of a line.
    A call that begins inside the value, with a parameter or an end after its name, is part of it up to its end.

    Args:
        scan: The pass; its capture is on.
        tags: The format's tags.
        writer: Takes the text.
    """

    __slots__ = ("_candidate", "_pending", "_scan", "_tags", "_writer")

    def __init__(self, scan: Scan, tags: Tagged, writer: ArgumentWriter) -> None:
        self._scan = scan
        self._tags = tags
        self._writer = writer
        self._candidate = -1
        self._pending: list[str] = []

    def read(self) -> Generator[None, None, End]:
        """Read the value; the read position is after its end tag, or where the next tag begins."""
        scan, src, tags = self._scan, self._scan.src, self._tags
        found = tags.inside(scan)
        inner, after_inner = (
            0,
            False,
        )  # calls inside the value that are open, and whether the last has just ended
        while True:
            index, word = found.next(src)
            self._put(src.text[src.pos : index])
            here = src.offset + index
            src.pos = index + len(word)
            if not word:
                if src.ended:
                    return self._implicit("truncated")
                yield
                continue
            ends_block = after_inner and word in tags.block_end.every
            after_inner = False
            if word in tags.call.every:
                if self._candidate >= 0:
                    return self._implicit("implicit")
                inner += yield from tags.is_call(scan)
            elif inner:
                inner -= word in tags.call_end.every
                after_inner = not inner
            elif word in tags.param_end.every:
                if (yield from self._followed(tags.after_value(scan))):
                    src.rewind(here + len(word))
                    self._flush()
                    return "closed"
            elif ends_block or self._candidate >= 0:
                pass
            elif word in tags.param.every:
                if (yield from self._new_parameter()):
                    src.rewind(here)
                    return "implicit"
            elif (yield from self._followed(tags.after_call(scan))):
                self._candidate = here
            src.rewind(here + len(word))
            self._put(word)

    def _put(self, text: str) -> None:
        if self._candidate >= 0:
            self._pending.append(text)
        else:
            self._writer.add(text)

    def _flush(self) -> None:
        self._writer.add("".join(self._pending))
        self._pending.clear()

    def _implicit(self, otherwise: End) -> End:
        if self._candidate < 0:
            return otherwise
        self._scan.src.rewind(self._candidate)
        return "implicit"

    def _followed(self, words: tuple[str, ...]) -> Generator[None, None, bool]:
        """Whether one of `words`, the start of one at the end of the text, or that end itself comes next."""
        scan, src = self._scan, self._scan.src
        if not (ahead(src) or (yield from space(src))):
            return True
        if (yield from one_of(src, words)):
            return True
        rest = src.text[src.pos : src.pos + 64] if src.ended else ""
        if rest and any(word.startswith(rest) for word in words):
            return True
        while (yield from one_of(src, scan.format.end_of_turn)):
            if not (ahead(src) or (yield from space(src))):
                return True
        return False

    def _new_parameter(self) -> Generator[None, None, bool]:
        writer = self._writer
        at_line_start = writer.last == "\n"
        header = yield from self._tags.key(self._scan)
        if header is None:
            return False
        known = writer.typing.known
        if known is None:
            return at_line_start
        return header[0] in known and (at_line_start or header[0] not in writer.keys)
