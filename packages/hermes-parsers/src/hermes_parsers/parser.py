"""A parser of one format, and its streams."""

from __future__ import annotations

from collections.abc import Generator

from hermes_parsers.format import Format, Options
from hermes_parsers.scan import Scan
from hermes_parsers.text_loop import read_text
from hermes_parsers.types import Delta, ParseResult, ToolCall


class Parser:
    """Reads the text of one format. Immutable and cheap: make one per request.

    Args:
        format: The format to read.
        options: What to read, and how.
    """

    __slots__ = ("_format", "_options")

    def __init__(self, format: Format, options: Options | None = None) -> None:
        self._format = format
        self._options = options or Options()

    @property
    def format(self) -> Format:
        """The format it reads."""
        return self._format

    @property
    def options(self) -> Options:
        """What it reads, and how."""
        return self._options

    @property
    def name(self) -> str:
        """Name of the format."""
        return self.format.name

    def parse(self, text: str) -> ParseResult:
        """Read a whole text. Any text gives a result; it unpacks to `(content, tool_calls)`."""
        stream = self.stream()
        stream.feed(text)
        stream.finish()
        return stream.result()

    def extract_tool_calls(self, text: str) -> list[ToolCall]:
        """The complete calls of a whole text, in order."""
        return self.parse(text).tool_calls

    def stream(self) -> ParserStream:
        """Begin to read a text that arrives in pieces."""
        return ParserStream(self.format, self.options)

    def __repr__(self) -> str:
        return f"Parser({self.name!r})"


class ParserStream:
    """One text as it arrives.

    Args:
        format: The format to read.
        options: What to read, and how.
    """

    __slots__ = ("_scan", "_steps")

    def __init__(self, format: Format, options: Options) -> None:
        self._scan = Scan(format, options)
        steps: Generator[None, None, None] = (format.run or read_text)(self._scan)
        self._steps = steps
        next(steps, None)

    def feed(self, chunk: str) -> list[Delta]:
        """Take the next piece of the text; returns what became known.

        Raises:
            ValueError: The stream is finished.
        """
        scan = self._scan
        if scan.src.ended:
            raise ValueError("this stream is finished; begin another with Parser.stream()")
        if not chunk:
            return []
        scan.src.push(chunk)
        next(self._steps, None)
        return scan.take()

    def finish(self) -> list[Delta]:
        """The text is complete; returns what remained. Calling it again returns nothing."""
        scan = self._scan
        if not scan.src.ended:
            scan.src.ended = True
            next(self._steps, None)
        return scan.take()

    def result(self) -> ParseResult:
        """All that was read; complete once `finish` was called."""
        scan = self._scan
        return ParseResult(
            scan.content(),
            list(scan.calls),
            scan.reasoning_text(),
            list(scan.errors),
            list(scan.recovered),
            scan.unknown(),
        )
