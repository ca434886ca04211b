"""Calls written as Python calls with keyword arguments."""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Literal

from hermes_parsers.grammars.json_block import JsonBlock
from hermes_parsers.grammars.json_object import MESSAGES
from hermes_parsers.python_text import PythonValue
from hermes_parsers.reading import ahead, literal, peek, run, space
from hermes_parsers.scan import Call, Scan, Steps
from hermes_parsers.source import Source

_DOTTED = re.compile(r"[\w.\-]*").match
_WORD = re.compile(r"\w*").match
_BLANKS = re.compile(r"[ \t]*").match
_LONGEST = 128


@dataclass(frozen=True, slots=True)
class Pythonic:
    """Reads calls after `[` or after a start tag.

    Attributes:
        close: The end tag; "" where the format has none.
    """

    close: str = ""

    def __call__(self, scan: Scan, marker: str) -> Steps:
        """Read the calls after `marker`."""
        src = scan.src
        scan.state["unclosed"] = False
        char = ahead(src) or (yield from space(src))
        bracket = marker == "["
        if not bracket and char == "[":
            bracket = True
            start = src.at
            src.pos += 1
            char = ahead(src) or (yield from space(src))
            if char == "{":
                src.rewind(start)
                return (yield from JsonBlock((marker,), self.close)(scan, marker))
        if not (yield from self._call(scan)):
            return False
        yield from self._rest(scan, bracket=bracket)
        return True

    def _rest(self, scan: Scan, *, bracket: bool) -> Generator[None, None, None]:
        """Read the further calls and the end; other text is left to the text loop."""
        src = scan.src
        while True:
            after = src.at
            src.capture(src.pos)
            char = ahead(src) or (yield from space(src))
            if char and char in ",;":
                src.pos += 1
                char = ahead(src) or (yield from space(src))
            if char == "]" and bracket:
                src.pos += 1
                bracket = False
                after = src.at
                yield from space(src)
            elif char and (bracket or self.close) and (char.isalpha() or char == "_"):
                start = src.at
                src.capture(src.pos)
                if (yield from self._call(scan)):
                    continue
                src.rewind(start)
                after = start
            if self.close and not (yield from literal(src, self.close)):
                scan.open_blocks.add(self.close)
                src.rewind(after)
            elif not self.close:
                src.rewind(after)
            return

    def _call(self, scan: Scan) -> Steps:
        """Read one call; False, with nothing shown, when it is none."""
        src = scan.src
        name = yield from run(src, _DOTTED, _LONGEST)
        if not name or len(name) > _LONGEST or not (name[0].isalpha() or name[0] == "_"):
            return False
        if (ahead(src) or (yield from space(src))) != "(":
            return False
        src.pos += 1
        tools, known_only = scan.options.tools, scan.options.known_only
        if known_only and not self.close and tools is not None and name not in tools:
            return False
        call = scan.call()
        fault = yield from self._arguments(scan, call, name)
        if fault == "text":
            return False
        if fault == "malformed":
            scan.state["unclosed"] = yield from _sibling_follows(src)
            if not scan.state["unclosed"]:
                yield from _skip_call(src)
        if fault:
            call.fail(fault, MESSAGES[fault], src.captured())
        else:
            call.close()
        return True

    def _arguments(self, scan: Scan, call: Call, name: str) -> Generator[None, None, str]:
        """Read the arguments; returns "", `text` before anything shows that this is a call, or the kind of error."""
        src = scan.src
        count = 0
        after = src.at
        while True:
            char = ahead(src) or (yield from space(src))
            if char == ")":
                src.pos += 1
                if scan.state.get("unclosed") and (yield from peek(src)) == ")":
                    return "malformed"  # it stands inside the call before, whose bracket this is
                if not call.opened:
                    call.open(name)
                call.add("}" if count else "{}")
                return ""
            if not char:
                return "truncated" if call.opened else "text"
            key = yield from run(src, _WORD, _LONGEST)
            char = ahead(src) or (yield from space(src))
            if char != "=" or not key:
                if char and call.opened:
                    src.rewind(after)
                return ("malformed" if char else "truncated") if call.opened else "text"
            src.pos += 1
            if not call.opened:
                call.open(name)
            call.add(("{" if not count else ", ") + encode_basestring(key) + ": ")
            count += 1
            bare = (lambda: scan.recover("bare_word")) if scan.options.lenient else None
            verdict = yield from PythonValue(src, call.add, _closes, bare).read()
            if verdict != "ok":
                return "malformed" if verdict == "invalid" else verdict
            after = src.at
            char = ahead(src) or (yield from space(src))
            if char == ",":
                src.pos += 1
            elif char != ")":
                if char:
                    src.rewind(after)
                return "malformed" if char else "truncated"


def _closes(src: Source) -> Generator[None, None, Literal["closed", "broken", ""]]:
    """Whether a quote ends an argument: a further argument or the end of the call follows.

    It is `broken` where the next argument or call follows, but not what must stand between.
    """
    start = src.at
    found = yield from _after_quote(src)
    src.rewind(start)
    return found


def _after_quote(src: Source) -> Generator[None, None, Literal["closed", "broken", ""]]:
    separator = yield from _separator(src)
    char = yield from peek(src)
    if not char:
        return "closed"
    if char == ")":
        src.pos += 1
        return "closed" if (yield from _call_ends(src)) else ""
    if separator == "," and char in ("'", '"'):
        return "broken"
    word = yield from run(src, _DOTTED, _LONGEST)
    tight = yield from peek(src)
    char = yield from space(src)
    if not word or (tight != "(" and ("." in word or "-" in word)):
        return ""
    if separator == "," and char in ("=", ""):
        return "closed"
    begins = tight == "(" and separator in (",", "\n") and not word[0].isdigit()
    return "broken" if begins or (tight == "=" and separator) else ""


def _separator(src: Source) -> Generator[None, None, str]:
    """Skip white space and at most one comma; returns the comma, or a line break, or a blank, where there was one."""
    blanks = yield from run(src, _BLANKS, 1 << 62)
    line = (yield from peek(src)) in ("\n", "\r")
    if (ahead(src) or (yield from space(src))) != ",":
        return "\n" if line else blanks[:1]
    src.pos += 1
    yield from space(src)
    return ","


def _sibling_follows(src: Source) -> Generator[None, None, bool]:
    """Whether the next call begins here, so that the one before it lacks no more than its bracket."""
    start = src.at
    separator = yield from _separator(src)
    word = yield from run(src, _DOTTED, _LONGEST)
    found = (
        separator in (",", "\n") and word != "" and not word[0].isdigit() and (yield from peek(src)) == "("
    )
    src.rewind(start)
    return found


def _call_ends(src: Source) -> Generator[None, None, bool]:
    """Whether what follows a bracket makes sense after a call."""
    yield from run(src, _BLANKS, 1 << 62)
    char = yield from peek(src)
    return char in ("", "\n", "\r", "]", ",", ";", "<")


def _skip_call(src: Source) -> Generator[None, None, None]:
    """Go on after the next bracket that may end a call."""
    while True:
        index = src.text.find(")", src.pos)
        if index < 0:
            src.pos = len(src.text)
            if src.ended:
                return
            yield
            continue
        src.pos = index + 1
        after = src.at
        ends = yield from _call_ends(src)
        src.rewind(after)
        if ends:
            return
