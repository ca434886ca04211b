"""A tag and the ways in which damaged text spells it."""

from __future__ import annotations

from hermes_parsers.scan import Scan


class Spelling:
    """A tag.

    Args:
        strict: Its spellings on the wire.
        loose: Further ones, read under `lenient`.
    """

    __slots__ = ("every", "loose", "strict")

    def __init__(self, strict: tuple[str, ...], loose: tuple[str, ...] = ()) -> None:
        self.strict = strict
        self.loose = loose
        self.every = (*strict, *loose)

    def of(self, scan: Scan) -> tuple[str, ...]:
        """The spellings to look for."""
        return self.every if scan.options.lenient else self.strict

    def note(self, scan: Scan, word: str) -> None:
        """Report the recovery when `word` is a spelling that only damage explains."""
        if word in self.loose:
            scan.recover("ascii_pipes" if "|" in word else "skipped_special_tokens")


def tag(*words: str) -> Spelling:
    """A tag with its ASCII spellings: `|` for the wide bar and `_` for the low block."""
    loose: list[str] = []
    for word in words:
        for each in (
            word.replace("｜", "|"),
            word.replace("▁", "_"),
            word.replace("｜", "|").replace("▁", "_"),
        ):
            if each not in words and each not in loose:
                loose.append(each)
    return Spelling(words, tuple(loose))
