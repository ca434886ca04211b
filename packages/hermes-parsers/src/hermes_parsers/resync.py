"""Finding the place to go on from after a broken call, so that its siblings survive."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Generator, Sequence

from hermes_parsers.markers import markers
from hermes_parsers.reading import peek
from hermes_parsers.scan import Scan

_BUDGET = 1 << 16
_TOKENS = ("\\\\", '\\"', '"', "{", "}", "[", "]", "(", ")", ",")
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_NEXT_PART = re.compile(r"[,:{}\[\]]").search
_PAIRS = {"}": "{", "]": "[", ")": "("}


def skip_broken(
    scan: Scan, start: int, stops: Sequence[str], ends: Sequence[str], opening: str = ""
) -> Generator[None, None, str]:
    """Leave a broken call.

    Args:
        scan: The pass; its capture began at or before `start`, with the read position where the call broke.
        start: Where what was read of the call's body begins, in the whole text.
        stops: Markers that begin something new: reading goes on before them.
        ends: Markers that end the call: reading goes on after them.
        opening: A regular expression for what must follow a stop inside the part that was read already, since
            that part may hold a stop as data. A stop may also stand where the call broke: its beginning was read.

    Returns:
        The marker that was found, or "" at the end of the text.
    """
    src = scan.src
    read = src.captured()
    body = read[len(read) - (src.at - start) :] if src.at > start else ""
    pattern = "|".join(map(re.escape, stops))
    if pattern and src.reread <= _BUDGET + 4 * src.at:
        again = re.search(f"(?:{pattern}){opening}", body)
        if again:
            src.reread += src.at - start
            src.rewind(start + again.start())
            return again.group()
    broke = src.at
    longest = max(map(len, stops), default=1)
    src.rewind(max(min(start, broke), broke - longest + 1))
    found = markers((*stops, *ends))
    while True:
        index, word = found.next(src)
        src.pos = index + len(word)
        if word and src.at > broke:
            src.rewind(src.offset + index if word in stops else src.at)
            return word
        if not word:
            if src.ended:
                return ""
            yield


def doubtful(scan: Scan, start: int) -> int:
    """Where a stop may stand in the broken JSON that was read from `start` on: what its strings hold is data.

    But the last string may have lacked its end quote, when nothing that may follow a string came after it.
    """
    src = scan.src
    read = src.captured()
    begin = max(0, start - src.begun)
    strings = deque(_STRING.finditer(read, begin), maxlen=1)
    if not strings:
        return start
    last = strings[0]
    return src.begun + (last.end() if _NEXT_PART(read, last.end()) else last.start())


def skip_entry(
    scan: Scan, start: int, stops: Sequence[str], ends: Sequence[str], opening: str = ""
) -> Generator[None, None, str]:
    """Leave a broken entry of an array of calls, whose brackets and quotes need not match.

    Goes on before the comma or the object that follows, before the bracket that ends the array, or as `skip_broken`
    does. What is nested in the entry is never taken for the next one, which follows a `}` where no object can stand.
    A string that ends in `}, {` and is followed by a letter is none: its end quote begins a key of the next object.

    Args:
        scan: The pass; its capture began at or before `start`, with the read position where the entry broke.
        start: Where the entry begins, in the whole text.
        stops: Markers that begin something new: reading goes on before them.
        ends: Markers that end the block: reading goes on after them.
        opening: As in `skip_broken`.

    Returns:
        The marker that was found, `,` or `]` where the array goes on there, or "" at the end of the text.
    """
    src = scan.src
    broke = src.at
    if src.reread > _BUDGET + 4 * broke:
        return (yield from skip_broken(scan, start, stops, ends, opening))
    src.reread += broke - start
    src.rewind(start)
    opens = re.compile(opening).match
    found = markers((*stops, *ends, *_TOKENS))
    entry = _Entry()
    next_one = start  # where the comma or the object stands that was read last
    while True:
        index, word = found.next(src)
        if src.text[src.pos : index].strip():
            entry.trail = ""
        here = src.offset + index
        src.pos = index + len(word)
        if not word:
            if src.ended:
                return ""
            yield
        elif word not in _TOKENS:
            entry.trail = ""
            if src.at > broke or (word in stops and opens(src.text, src.pos, broke - src.offset)):
                src.rewind(here if word in stops else src.at)
                return word
        else:
            if word == "," or (word == "{" and entry.trail[-1:] != ","):
                next_one = here
            over = entry.over_at(word)
            if over and (word != '"' or (yield from peek(src)).isalpha()):
                src.rewind(here if word == "]" else next_one)
                return "]" if word == "]" else ","


class _Entry:
    """The brackets and quotes of a broken entry, as far as they can be told.

    Attributes:
        trail: The last tokens that had nothing but white space between them.
    """

    __slots__ = ("_quoted", "_stack", "trail")

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._quoted = False
        self.trail = ""

    def over_at(self, word: str) -> bool:
        """Take the next token; whether the entry was over before it, for a quote only if a letter follows."""
        stack = self._stack
        self.trail = (self.trail + word)[-4:]
        if word == '"':
            self._quoted = not self._quoted
            return not self._quoted and self.trail == '},{"'
        if self._quoted:
            return False
        if word == ",":
            return not stack
        if word == "{" and (not stack or stack[-1] == "{") and self.trail.endswith(("},{", "}{")):
            return True
        if word in "{[(":
            stack.append(word)
        elif _PAIRS.get(word) in stack:
            while stack.pop() != _PAIRS[word]:
                pass
        else:
            return word == "]"
        return False
