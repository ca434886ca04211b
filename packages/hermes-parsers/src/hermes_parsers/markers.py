"""Finding any of a few literal markers in a text that arrives in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from hermes_parsers.source import Source


class Markers:
    """A set of literal strings to look for.

    Args:
        words: The markers. Of two that begin at one place the longer is found.
    """

    __slots__ = ("_begun", "_longer", "_longest", "_match", "_partial", "_search", "words")

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(sorted(set(words), key=lambda word: (-len(word), word)))
        self._longest = max(map(len, self.words), default=0)
        whole = re.compile("|".join(map(re.escape, self.words)) or r"(?!)")
        begun = re.compile(_prefixes(self.words) or r"(?!)")
        self._search, self._match = whole.search, whole.match
        self._partial, self._begun = begun.search, begun.match
        self._longer = {
            word: longer
            for word in self.words
            if (longer := tuple(each for each in self.words if each != word and each.startswith(word)))
        }

    def next(self, src: Source) -> tuple[int, str]:
        """The first marker in the text in hand.

        Returns:
            Its index and itself; or, with "", the index up to which the text holds none whatever follows.
        """
        text, start = src.text, src.pos
        found = self._search(text, start)
        if found is None:
            if src.ended:
                return len(text), ""
            tail = self._partial(text, max(start, len(text) - self._longest + 1))
            return (tail.start() if tail else len(text)), ""
        index, word = found.start(), found.group()
        if word in self._longer and not src.ended:
            rest = text[index : index + self._longest]
            if any(len(rest) < len(each) and each.startswith(rest) for each in self._longer[word]):
                return index, ""
        return index, word

    def here(self, src: Source) -> str | None:
        """The marker that stands at the read position, "" for none, None when that needs more text."""
        text, pos = src.text, src.pos
        found = self._match(text, pos)
        word = found.group() if found else ""
        if src.ended or (found and word not in self._longer):
            return word
        return None if self._begun(text, pos) or pos == len(text) else word


def _prefixes(words: Iterable[str]) -> str:
    """A pattern for every proper prefix of a word at the end of a text."""
    tails = _branches([word[:-1] for word in words])
    return rf"(?:{tails})\Z" if tails else ""


def _branches(words: Iterable[str]) -> str:
    """A pattern for every prefix of `words` but the empty one, as alternatives by first character."""
    below: dict[str, list[str]] = {}
    for word in words:
        if word:
            below.setdefault(word[0], []).append(word[1:])
    parts: list[str] = []
    for char, rest in below.items():
        tail = _branches(rest)
        parts.append(re.escape(char) + (f"(?:{tail})?" if tail else ""))
    return "|".join(parts)


@lru_cache(maxsize=512)
def markers(words: tuple[str, ...]) -> Markers:
    """The compiled set of `words`; compiled once."""
    return Markers(words)
