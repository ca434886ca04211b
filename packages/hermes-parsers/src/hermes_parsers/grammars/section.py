"""Calls between special tokens inside a section: a header, a separator, JSON arguments (DeepSeek, Kimi)."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from functools import lru_cache

from hermes_parsers.grammars.arguments import read_arguments, settle
from hermes_parsers.grammars.json_object import MESSAGES
from hermes_parsers.grammars.spelling import Spelling
from hermes_parsers.markers import Markers, markers
from hermes_parsers.reading import ahead, one_of, run, space
from hermes_parsers.scan import Scan, Steps

_HEADER = 512
_UNTIL_TAG = re.compile(r"[^<]*").match
_V3_NAME = re.compile(r"[^\n{`<]*").match
_KIMI_ID = re.compile(r"(?:functions\.)?(.+?):(\d+)\Z", re.DOTALL).match
_BRACKETS = re.compile(r"[\s}\]]*").match
_FENCE = ("```json", "```JSON", "```")


@dataclass(frozen=True, slots=True)
class Section:
    """Reads one section, call by call.

    Attributes:
        begin: Starts of a section.
        call: Start of a call.
        separator: What stands between a call's header and its arguments.
        call_end: End of a call.
        end: Ends of a section.
        numbered: The header is an id such as `functions.NAME:0`.
    """

    begin: Spelling
    call: Spelling
    separator: Spelling
    call_end: Spelling
    end: Spelling
    numbered: bool = False

    def __call__(self, scan: Scan, marker: str) -> Steps:
        """Read what follows the start of a section, or of a call that stands without one."""
        src = scan.src
        if marker in self.begin.every:
            if not (yield from self._noise(scan)):
                return False
            self.begin.note(scan, marker)
        elif not (yield from self._call(scan, marker)):
            return False
        yield from self._rest(scan)
        src.release()
        return True

    def _noise(self, scan: Scan) -> Steps:
        """Skip to the first call of the section; reports what is a call that lacks its start."""
        src = scan.src
        found = _section_markers(self, scan.options.lenient)
        broken = False
        while True:
            src.pos, word = found.next(src)
            if word in self.separator.every:
                broken = True
                src.pos += len(word)
            elif word:
                if broken and word in self.call.every:
                    scan.call().fail("malformed", MESSAGES["malformed"], src.captured())
                    src.capture(src.pos)
                return word in self.call.every
            elif src.ended:
                return False
            else:
                yield

    def _rest(self, scan: Scan) -> Generator[None, None, None]:
        """Read the further calls and the end of the section; other text is left to the text loop."""
        src = scan.src
        while True:
            after = src.at
            src.capture(src.pos)
            yield from space(src)
            start = src.at
            word = yield from one_of(src, (*self.call.of(scan), *self.end.of(scan)))
            if word in self.end.every:
                return
            if word:
                src.capture(src.pos - len(word))
                if (yield from self._call(scan, word)):
                    continue
                src.rewind(start)
            elif src.pos < len(src.text):
                src.rewind(after)
            scan.open_blocks.update(self.end.of(scan))
            return

    def _call(self, scan: Scan, marker: str) -> Steps:
        """Read one call; False, with nothing shown, when its header is none."""
        src = scan.src
        header = yield from run(src, _UNTIL_TAG, _HEADER)
        separator = yield from one_of(src, self.separator.of(scan))
        if not separator:
            return False
        self.call.note(scan, marker)
        self.separator.note(scan, separator)
        call = scan.call()
        name = yield from self._name(scan, header)
        if name:
            call.open(name, header.strip() if self.numbered else None)
        yield from space(src)
        if (yield from one_of(src, self.call_end.of(scan))):
            call.add("{}")
            yield from settle(scan, call, "" if name else "missing_name", (), ())
            return True
        fault = yield from read_arguments(scan, call)
        if fault not in ("invalid_json", "truncated"):
            fault = fault or ("" if name else "missing_name")
            yield from self._end(scan)
        stops = (*self.call.of(scan), *self.end.of(scan))
        yield from settle(scan, call, fault, stops, self.call_end.of(scan))
        return True

    def _name(self, scan: Scan, header: str) -> Generator[None, None, str]:
        """The name of the tool; "" where the header does not give one."""
        src = scan.src
        header = header.strip()
        if self.numbered:
            return _numbered_name(scan, header)
        char = ahead(src) or (yield from space(src))
        if header == "function" and char not in ("{", ""):
            header = (yield from run(src, _V3_NAME, _HEADER)).strip()
        if (ahead(src) or (yield from space(src))) == "`":
            yield from one_of(src, _FENCE)
        return header

    def _end(self, scan: Scan) -> Generator[None, None, None]:
        """Read the end of a call, over a closing fence and brackets too many; else leave the text as it is."""
        src = scan.src
        after = src.at
        yield from run(src, _BRACKETS, 1 << 62)
        if (yield from one_of(src, ("```",))):
            after = src.at
            yield from space(src)
        word = yield from one_of(src, self.call_end.of(scan))
        self.call_end.note(scan, word)
        if not word:
            src.rewind(after)
            scan.open_blocks.update(self.call_end.of(scan))


@lru_cache(maxsize=16)
def _section_markers(section: Section, lenient: bool) -> Markers:
    tags = (section.call, section.separator, section.end, section.begin)
    return markers(tuple(word for tag in tags for word in (tag.every if lenient else tag.strict)))


def _numbered_name(scan: Scan, header: str) -> str:
    found = _KIMI_ID(header)
    if not found:
        if not scan.options.lenient or not header:
            return ""
        scan.recover("missing_call_number")
    name = (found.group(1) if found else header).removeprefix("functions.").strip()
    tools = scan.options.tools
    last = name.rpartition(".")[2]
    return last if tools is not None and name not in tools and last in tools else name
