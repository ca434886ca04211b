"""Reading one text in many ways, and what must hold for the deltas of every one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from hermes_parsers.types import Delta, ParseResult, ToolCall, ToolCallDelta


class StreamLike(Protocol):
    """A stream as `Parser.stream` gives it."""

    def feed(self, chunk: str) -> Iterable[Delta]:
        """Take a piece of the text."""
        ...

    def finish(self) -> Iterable[Delta]:
        """The text is complete."""
        ...

    def result(self) -> ParseResult:
        """All that was read."""
        ...


class ParserLike(Protocol):
    """What `check_parser` asks of a parser."""

    def parse(self, text: str) -> ParseResult:
        """Read a whole text."""
        ...

    def stream(self) -> StreamLike:
        """Begin to read a text that arrives in pieces."""
        ...


def result_of(found: Any) -> ParseResult:
    """What a parser found as a result of ours: anyone's may give a plain pair of content and calls."""
    if isinstance(found, ParseResult):
        return found
    content, calls = found
    return ParseResult(
        content, [ToolCall(getattr(call, "id", ""), call.name, call.arguments) for call in calls]
    )


def read_in_pieces(parser: ParserLike, pieces: Iterable[str]) -> tuple[ParseResult, list[Delta]]:
    """The result and the deltas of a text that arrives in `pieces`."""
    stream = parser.stream()
    deltas = [delta for piece in pieces for delta in stream.feed(piece)]
    deltas += stream.finish()
    return result_of(stream.result()), deltas


def comparable(result: ParseResult) -> tuple[Any, ...]:
    """A result without the ids, which may be invented."""
    return (
        result.content,
        result.reasoning,
        [(call.name, call.arguments) for call in result.tool_calls],
        result.errors,
        result.recovered,
    )


def check_stream(parser: ParserLike, text: str, pieces: Iterable[str]) -> str | None:
    """Read `text` in `pieces`; what is wrong with the outcome, or None.

    The result must be that of the whole text. Joined, the deltas must give exactly the result, so that none is empty and
    nothing that was shown is taken back, save a call that an error voids.
    """
    found: Any = parser.parse(text)
    whole, pair = result_of(found), not isinstance(found, ParseResult)
    result, deltas = read_in_pieces(parser, pieces)
    if comparable(result) != comparable(whole):
        return f"the stream found {result!r} where the whole text gives {whole!r}"
    for kind in ("content",) if pair else ("content", "reasoning"):
        shown = "".join(getattr(delta, kind) or "" for delta in deltas)
        if shown != (getattr(result, kind) or ""):
            return f"the deltas' {kind} is {shown!r}, the result's {getattr(result, kind)!r}"
    wrong = _check_calls(deltas, result)
    if (
        not wrong
        and not pair
        and [delta.error for delta in deltas if delta.error is not None] != result.errors
    ):
        return "the deltas' errors are not the result's"
    return wrong


def _check_calls(deltas: list[Delta], result: ParseResult) -> str | None:
    calls: dict[int, list[str]] = {}
    void: set[int] = set()
    for delta in deltas:
        if delta.tool_call is not None:
            wrong = _add(calls, void, delta.tool_call)
            if wrong:
                return wrong
        if delta.error is not None and delta.error.index is not None:
            void.add(delta.error.index)
    joined = [tuple(call) for index, call in calls.items() if index not in void]
    found = [(call.id, call.name, call.arguments) for call in result.tool_calls]
    if joined != found:
        return f"the deltas join to the calls {joined!r}, the result has {found!r}"
    return None


def _add(calls: dict[int, list[str]], void: set[int], piece: ToolCallDelta) -> str | None:
    if piece.name is not None:
        if piece.index != len(calls):
            return f"call {piece.index} begins where {len(calls)} was due"
        calls[piece.index] = [piece.id or "", piece.name, piece.arguments]
    elif piece.index not in calls or piece.index in void:
        return f"a piece of call {piece.index}, which has not begun or is void"
    else:
        calls[piece.index][2] += piece.arguments
    return None


def chunkings(text: str, known: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """Ways to cut `text`: fixed sizes, and for short texts every cut in two."""
    size = len(text)
    for step in (1, 2, 3, 4, 7, 16, 64) if size <= 1 << 14 else (257, 65536):
        yield [text[start : start + step] for start in range(0, size, step)]
    if size <= 160:
        for cut in range(1, size):
            yield [text[:cut], text[cut:]]
    if known and "".join(known) == text:
        yield list(known)
