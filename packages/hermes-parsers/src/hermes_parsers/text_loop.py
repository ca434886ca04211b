"""The loop over plain text: it tells content from reasoning and hands blocks of calls to the format's grammar."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

from hermes_parsers.markers import Markers, markers
from hermes_parsers.reading import literal, one_of, space
from hermes_parsers.scan import Scan

_SPACES = " \t\r\n"


def read_text(scan: Scan) -> Generator[None, None, None]:
    """Read a whole text."""
    loop = _Loop(scan)
    if scan.options.reasoning == "open" and scan.format.thinking:
        yield from loop.start_open()
    yield from loop.run()
    if scan.reasoning and not loop.calls_in_reasoning:
        report_calls_in_reasoning(scan, loop.block_start)


class _Loop:
    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        format, options = scan.format, scan.options
        self.pairs = dict(format.thinking) if options.reasoning != "off" else {}
        self.ends = set(self.pairs.values())
        self.end = ""
        self.block_start = 0
        self.openers = set(format.openers)
        if options.lenient:
            self.openers.update(format.lenient_openers)
        self.calls_in_reasoning = format.think_ends_at_call or options.lenient
        rest = (*format.closers, *format.dropped, *self.pairs, *self.ends, *format.end_of_turn)
        if options.lenient and format.bare_names:
            names = {f"{name}{{" for name in options.tools or ()}
            known = {*self.openers, *rest, *names}
            # A marker that hides inside another is found or not as the text is cut.
            self.openers.update(name for name in names if not any(word in name[1:-1] for word in known))
        self.in_content = markers((*self.openers, *rest))

    def start_open(self) -> Generator[None, None, None]:
        start, end = self.scan.format.thinking[0]
        src = self.scan.src
        self._enter(end)
        src.capture(src.pos)
        yield from space(src)
        if not (yield from literal(src, start)):
            src.rewind(0)
        src.release()
        self.block_start = src.at

    def _enter(self, end: str) -> None:
        self.scan.reasoning = True
        self.scan.block.clear()
        self.end = end
        self.block_start = self.scan.src.at

    def _markers(self) -> Markers:
        if not self.scan.reasoning:
            return self.in_content
        calls = self.openers if self.calls_in_reasoning else ()
        return markers((self.end, *calls, *self.scan.format.end_of_turn))

    def run(self) -> Generator[None, None, None]:
        scan, src = self.scan, self.scan.src
        known, reasoning = self._markers(), scan.reasoning
        while True:
            if scan.reasoning != reasoning:
                known, reasoning = self._markers(), scan.reasoning
            index, word = known.next(src)
            if index > src.pos:
                scan.text(src.text[src.pos : index])
                src.pos = index
            if not word:
                if src.ended:
                    return
                yield
            elif self._begins_nothing(word):
                src.pos += len(word)
                scan.text(word)
            else:
                yield from self._marker(word)

    def _marker(self, word: str) -> Generator[None, None, None]:
        scan, src = self.scan, self.scan.src
        if word in self.openers:
            yield from self._block(word)
            return
        if word in scan.format.end_of_turn:
            yield from self._end_of_turn()
            return
        src.pos += len(word)
        if scan.reasoning:
            scan.reasoning = False
            scan.fresh = True
        elif word in self.pairs and scan.fresh:
            self._enter(self.pairs[word])
        elif word in scan.open_blocks:
            scan.open_blocks.discard(word)
        elif word in scan.format.dropped:
            return
        elif not (word in self.ends and (scan.unclosed or scan.silent)):
            scan.text(word)
        else:
            scan.unclosed = False

    def _block(self, word: str) -> Generator[None, None, None]:
        scan, src = self.scan, self.scan.src
        src.capture(src.pos)
        start = src.at
        src.pos += len(word)
        read, inside = scan.format.read, scan.reasoning
        if read is None or not (yield from read(scan, word)):
            src.rewind(start + len(word))
            scan.text(word)
        elif inside and not scan.reasoning and not scan.format.think_ends_at_call:
            scan.recover("call_in_reasoning")
        src.release()

    def _begins_nothing(self, word: str) -> bool:
        """Whether the text in hand already shows that an opener leads to no call; a flood of them passes quickly."""
        format, src = self.scan.format, self.scan.src
        if word not in format.openers:
            return False
        after = src.pos + len(word)
        if format.begins:
            return src.text[after : after + 1].strip(format.begins + _SPACES) != ""
        return format.never_twice and src.text.startswith(word, after)

    def _end_of_turn(self) -> Generator[None, None, None]:
        scan, src = self.scan, self.scan.src
        src.capture(src.pos)
        while (yield from one_of(src, scan.format.end_of_turn)):
            yield from space(src)
        if src.pos < len(src.text):
            scan.text(src.captured())
        src.release()


def report_calls_in_reasoning(scan: Scan, start: int) -> None:
    """Report the calls inside a reasoning block that never ended, which began at `start`."""
    text = "".join(scan.block)
    if not any(word in text for word in scan.format.openers):
        return
    inner = Scan(scan.format, replace(scan.options, reasoning="off"))
    inner.src.push(text)
    inner.src.ended = True
    for _ in read_text(inner):
        pass
    for call, (begin, end) in zip(inner.calls, inner.spans, strict=True):
        scan.fail(
            "in_reasoning",
            f"the call of {call.name} stands inside a reasoning block that was not closed",
            start + begin,
            text[begin:end],
        )
