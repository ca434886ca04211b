"""The small readers that grammars are made of. Each waits for more text where it has to."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

from hermes_parsers.markers import markers
from hermes_parsers.source import Source

_SPACE = re.compile(r"\s*").match


def space(src: Source) -> Generator[None, None, str]:
    """Skip white space; returns the next character without reading it, or "" at the end of the text."""
    while True:
        found = _SPACE(src.text, src.pos)
        src.pos = found.end() if found else src.pos
        if src.pos < len(src.text):
            return src.text[src.pos]
        if src.ended:
            return ""
        yield


def ahead(src: Source) -> str:
    """Skip white space in the text in hand; returns the next character, or "" when `space` must wait for one."""
    text, pos = src.text, src.pos
    if pos < len(text) and text[pos] > " " and text[pos] < "\x7f":
        return text[pos]
    found = _SPACE(text, pos)
    src.pos = pos = found.end() if found else pos
    return text[pos] if pos < len(text) else ""


def literal(src: Source, word: str) -> Generator[None, None, bool]:
    """Read `word` if it comes next."""
    while True:
        text, pos = src.text, src.pos
        if text.startswith(word, pos):
            src.pos = pos + len(word)
            return True
        if src.ended or len(text) - pos >= len(word) or not word.startswith(text[pos:]):
            return False
        yield


def one_of(src: Source, words: tuple[str, ...]) -> Generator[None, None, str]:
    """Read the longest of `words` that comes next; returns it, or "" when none does."""
    known = markers(words)
    while True:
        word = known.here(src)
        if word is not None:
            src.pos += len(word)
            return word
        yield


def peek(src: Source) -> Generator[None, None, str]:
    """The next character without reading it, or "" at the end of the text."""
    while src.pos >= len(src.text):
        if src.ended:
            return ""
        yield
    return src.text[src.pos]


def run(
    src: Source, take: Callable[[str, int, int], re.Match[str] | None], limit: int = 256
) -> Generator[None, None, str]:
    """Read what the pattern takes, which must be a run of characters of one class; one beyond `limit` at most."""
    parts: list[str] = []
    room = limit + 1
    while True:
        found = take(src.text, src.pos, src.pos + room)
        if found:
            parts.append(found.group())
            room -= len(parts[-1])
            src.pos = found.end()
        if src.pos < len(src.text) or src.ended:
            return "".join(parts)
        yield
