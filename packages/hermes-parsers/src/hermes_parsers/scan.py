"""One pass over one text: what was found so far, and how grammars report more of it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from hermes_parsers.source import Source
from hermes_parsers.types import Delta, ParseError, ToolCall, ToolCallDelta

if TYPE_CHECKING:
    from hermes_parsers.format import Format, Options
    from hermes_parsers.schema import Typing

Steps = Generator[None, None, bool]
"""A part of a grammar: yields when it needs more text, and returns whether it read what it was to read."""


class Channel:
    """The text of one kind; white space at its very beginning is held until more follows."""

    __slots__ = ("parts", "started", "waiting")

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.waiting: list[str] = []
        self.started = False

    def add(self, text: str) -> str:
        """Add `text`; returns what may be shown now."""
        if not self.started:
            if not text or text.isspace():
                self.waiting.append(text)
                return ""
            text = "".join((*self.waiting, text))
            self.waiting.clear()
            self.started = True
        self.parts.append(text)
        return text

    def text(self) -> str | None:
        """All of the text, or None when there is none but white space."""
        return "".join(self.parts) or None


class Scan:
    """State of a pass, shared by the text loop and a format's grammar.

    Attributes:
        src: The text being read.
        format: The format being read.
        options: What the caller asked for.
        out: Deltas not yet handed out.
        pieces: Pieces of arguments not yet handed out, of the call with the index `index`.
        reasoning: Whether text goes to the reasoning.
        fresh: Nothing but white space was seen since the start of a line, of the text, or the last block.
        open_blocks: End tags that a block left behind; the text loop drops each once.
        unclosed: A call ended the reasoning block; its end tag may still come.
        block: Pieces of the reasoning block that is open.
        refusal: While set, the kind of error that every complete call is reported as.
        state: What a grammar remembers between its blocks.
        typings: The types of the parameters of the tools called so far.
        spans: Where each of `calls` stands in the whole text.
    """

    __slots__ = (
        "_content",
        "_next_index",
        "_reasoning",
        "_shown",
        "_shown_reasoning",
        "block",
        "calls",
        "errors",
        "format",
        "fresh",
        "index",
        "open_blocks",
        "options",
        "out",
        "pieces",
        "reasoning",
        "recovered",
        "refusal",
        "spans",
        "src",
        "state",
        "typings",
        "unclosed",
    )

    def __init__(self, format: Format, options: Options) -> None:
        self.src = Source()
        self.format = format
        self.options = options
        self.out: list[Delta] = []
        self.calls: list[ToolCall] = []
        self.spans: list[tuple[int, int]] = []
        self.errors: list[ParseError] = []
        self.recovered: list[str] = []
        self.pieces: list[str] = []
        self.index = -1
        self.reasoning = False
        self.fresh = True
        self.open_blocks: set[str] = set()
        self.unclosed = False
        self.refusal = ""
        self.state: dict[str, bool] = {}
        self.typings: dict[str, Typing] = {}
        self.block: list[str] = []
        self._content = Channel()
        self._reasoning = Channel()
        self._next_index = 0
        self._shown: list[str] = []
        self._shown_reasoning = False

    def emit(self, delta: Delta) -> None:
        """Hand out a delta, after the pieces of arguments that are waiting."""
        if self.pieces:
            self._join()
        if self._shown:
            self._show()
        self.out.append(delta)

    def close_arguments(self) -> None:
        """The arguments under way are complete."""
        if self.pieces:
            self._join(closed=True)

    def take(self) -> list[Delta]:
        """What there is to hand out; pieces of one call's arguments come as one delta."""
        if self.pieces:
            self._join()
        if self._shown:
            self._show()
        out, self.out = self.out, []
        return out

    def _show(self) -> None:
        text = "".join(self._shown)
        self._shown.clear()
        self.out.append(Delta(None, text) if self._shown_reasoning else Delta(text))

    def _join(self, *, closed: bool = False) -> None:
        """Hand out the pieces, but for the last character while the call is open.

        So the arguments of a call that breaks never join to valid JSON, whoever overlooks the error.
        """
        piece = "".join(self.pieces)
        self.pieces.clear()
        if not closed:
            self.pieces.append(piece[-1])
            piece = piece[:-1]
        if piece:
            self.out.append(Delta(None, None, ToolCallDelta(self.index, None, None, piece)))

    def text(self, text: str) -> None:
        """Report plain text to the channel that is open."""
        if not text:
            return
        if self.reasoning:
            self.block.append(text)
        shown = (self._reasoning if self.reasoning else self._content).add(text)
        if shown:
            if self.pieces:
                self._join()
            if self._shown and self._shown_reasoning != self.reasoning:
                self._show()
            self._shown.append(shown)
            self._shown_reasoning = self.reasoning
        if self.fresh or "\n" in text:
            _, line_break, line = text.rpartition("\n")
            self.fresh = (not line or line.isspace()) and (bool(line_break) or self.fresh)

    def content(self) -> str | None:
        """The content so far."""
        return self._content.text()

    @property
    def has_content(self) -> bool:
        """Content was reported that is more than white space."""
        return self._content.started

    def reasoning_text(self) -> str | None:
        """The reasoning so far."""
        return self._reasoning.text()

    @property
    def silent(self) -> bool:
        """Nothing but white space was reported so far."""
        return not (self._content.started or self._reasoning.started or self.calls or self.errors)

    def unknown(self) -> list[str]:
        """Called names that are not among the tools; none where no tools were given."""
        tools = self.options.tools
        if tools is None:
            return []
        return list(dict.fromkeys(call.name for call in self.calls if call.name not in tools))

    def recover(self, name: str) -> None:
        """Note that the lenient recovery `name` fired."""
        if name not in self.recovered:
            self.recovered.append(name)

    def take_index(self) -> int:
        """The index of the next streamed call."""
        self._next_index += 1
        return self._next_index - 1

    def call(self) -> Call:
        """Begin to read a call, which starts where the source's capture began."""
        return Call(self, self.src.begun)

    def fail(self, kind: str, message: str, start: int, raw: str, index: int | None = None) -> None:
        """Report a call that could not be read."""
        error = ParseError(kind, message, start, start + len(raw), raw, index)
        self.errors.append(error)
        self.emit(Delta(None, None, None, error))


class Call:
    """A call under way: its id and name are streamed first, then pieces of its arguments.

    Attributes:
        name: The name once it is known.
        parts: The pieces of the arguments so far.
    """

    __slots__ = ("_id", "_index", "_scan", "_start", "name", "parts")

    def __init__(self, scan: Scan, start: int) -> None:
        self._scan = scan
        self._start = start
        self._index = -1
        self._id = ""
        self.name: str | None = None
        self.parts: list[str] = []

    def open(self, name: str, id: str | None = None) -> None:
        """The name is known: stream it, and whatever arguments came before it."""
        scan = self._scan
        self.name = name
        if scan.reasoning:
            scan.reasoning = False
            scan.unclosed = True
        scan.fresh = True
        if scan.refusal:
            return
        self._index = scan.take_index()
        self._id = id or scan.options.new_id()
        scan.emit(Delta(None, None, ToolCallDelta(self._index, self._id, name)))
        scan.pieces.extend(self.parts)
        scan.index = self._index

    @property
    def opened(self) -> bool:
        """The name was given."""
        return self.name is not None

    def add(self, piece: str) -> None:
        """The next piece of the arguments' JSON text."""
        self.parts.append(piece)
        if self._index >= 0:
            self._scan.pieces.append(piece)
            self._scan.index = self._index

    def text(self) -> str:
        """The arguments so far."""
        return "".join(self.parts)

    def close(self) -> None:
        """The call is complete and its arguments are valid."""
        scan = self._scan
        if scan.refusal:
            self.fail(scan.refusal, f"a call of {self.name} is not expected here", scan.src.captured())
            return
        scan.close_arguments()
        scan.calls.append(ToolCall(self._id, self.name or "", "".join(self.parts)))
        scan.spans.append((self._start, scan.src.at))

    def fail(self, kind: str, message: str, raw: str) -> None:
        """The call cannot be read; what was streamed of it is void."""
        self._scan.pieces.clear()
        self._scan.fail(kind, message, self._start, raw, self._index if self._index >= 0 else None)
