"""A scanner that finds where a JSON value ends, however the text is cut.

It knows strings, escapes and nesting, and that certain characters cannot stand outside a string. Whether the
value is valid JSON is decided once it is complete, by Python's own decoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Literal

from hermes_parsers.json_text import MAX_DEPTH
from hermes_parsers.source import Source

Verdict = Literal["ok", "invalid", "truncated", "too_deep"]

_BETWEEN = re.compile(r"[ \t\n\r,:0-9.eE+\-truefalsn]*").match
_SCALAR = re.compile(r"[0-9A-Za-z.+\-]*").match


def json_value(src: Source, emit: Callable[[str], None]) -> Generator[None, None, Verdict]:
    """Read the value that starts at the read position, where a character is at hand.

    Args:
        src: The text.
        emit: Takes the value's text in pieces as it becomes known.

    Returns:
        `ok` when the value is complete; `invalid` at a character that cannot be part of one, which is not
        read; `truncated` at the end of the text; `too_deep` after a complete value nested too deeply.
    """
    first = src.text[src.pos]
    if first == '"':
        return (yield from _string(src, emit))
    if first in "{[":
        return (yield from _container(src, emit))
    if first not in "-0123456789tfn":
        return "invalid"
    while True:
        found = _SCALAR(src.text, src.pos)
        end = found.end() if found else src.pos
        if end > src.pos:
            emit(src.text[src.pos : end])
            src.pos = end
        if end < len(src.text):
            return "ok"
        if src.ended:
            return "truncated"
        yield


def _string(src: Source, emit: Callable[[str], None]) -> Generator[None, None, Verdict]:
    emit('"')
    src.pos += 1
    while True:
        text, start = src.text, src.pos
        end = string_end(text, start)
        src.pos = end if end >= 0 else open_end(text, start)
        if src.pos > start:
            emit(text[start : src.pos])
        if end >= 0:
            return "ok"
        if src.ended:
            return "truncated"
        yield


def _container(src: Source, emit: Callable[[str], None]) -> Generator[None, None, Verdict]:
    depth, deepest, in_string = 0, 0, False
    while True:
        text, start = src.text, src.pos
        pos, size = start, len(text)
        verdict: Verdict | None = None
        while pos < size:
            if in_string:
                end = string_end(text, pos)
                if end < 0:
                    pos = open_end(text, pos)
                    break
                in_string, pos = False, end
            pos = _BETWEEN(text, pos).end()  # pyright: ignore[reportOptionalMemberAccess]  # matches ""
            if pos == size:
                break
            char = text[pos]
            if char == '"':
                in_string = True
            elif char in "{[":
                depth += 1
                deepest = max(deepest, depth)
            elif char in "}]":
                depth -= 1
            else:
                verdict = "invalid"
                break
            pos += 1
            if depth == 0:
                verdict = "too_deep" if deepest > MAX_DEPTH else "ok"
                break
        if pos > start:
            emit(text[start:pos])
            src.pos = pos
        if verdict is not None:
            return verdict
        if src.ended:
            return "truncated"
        yield


def string_in_hand(src: Source) -> str:
    """Read the string that comes next when all of it is in hand; "" when it is not, or none comes."""
    text, pos = src.text, src.pos
    end = string_end(text, pos + 1) if text[pos : pos + 1] == '"' else -1
    if end < 0:
        return ""
    src.pos = end
    return text[pos:end]


def string_end(text: str, start: int) -> int:
    """Index after the quote that ends the string whose inside continues at `start`; -1 when it is not there."""
    pos = start
    while True:
        quote = text.find('"', pos)
        if quote < 0:
            return -1
        if quote == pos or text[quote - 1] != "\\":
            return quote + 1
        inside = text[pos:quote]
        if (len(inside) - len(inside.rstrip("\\"))) % 2 == 0:
            return quote + 1
        pos = quote + 1


def open_end(text: str, start: int) -> int:
    """Where reading may stop inside a string that is not over: not between a backslash and what it escapes."""
    if text[-1:] != "\\":
        return len(text)
    inside = text[start:]
    return len(text) - (len(inside) - len(inside.rstrip("\\"))) % 2
