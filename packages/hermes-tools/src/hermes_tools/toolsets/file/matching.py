"""Finds a text in a file, exactly or, failing that, with ever more tolerance for white space.

The fallbacks compare whole lines, and are tried in this order until one finds something:

1. `exact`: the text as it is, anywhere, also within a line.
2. `trailing_space`: white space at the ends of lines does not count.
3. `indentation`: white space at both ends of lines does not count; the new text is moved to the file's indentation.
4. `spacing`: runs of white space are like one space; indentation as before.
5. `typography`: curly quotes, dashes and unusual spaces count as their plain forms; the rest as before.

Each is linear in the size of the file. An old text of nothing but white space is only looked for exactly.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from hermes_tools.toolsets.file.indentation import reindent

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u202f\u3000", " "),
        "…": "...",
    }
)


def _spacing(line: str) -> str:
    return " ".join(line.split())


def _typography(line: str) -> str:
    return " ".join(line.translate(_PLAIN).split())


LineKey = Callable[[str], str]
FALLBACKS: tuple[tuple[str, LineKey], ...] = (
    ("trailing_space", str.rstrip),
    ("indentation", str.strip),
    ("spacing", _spacing),
    ("typography", _typography),
)


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of `text[start:end]` by `new`."""

    start: int
    end: int
    new: str


def _starts(lines: list[str]) -> list[int]:
    return list(accumulate((len(line) + 1 for line in lines), initial=0))


class _Keyed:
    """Lines made comparable, as one text in which a sequence of them is found by plain search."""

    def __init__(self, lines: list[str], key: LineKey) -> None:
        self._keys = list(map(key, lines))
        # Each line has a line end on both sides, so that only whole lines are found.
        self.text = "\n".join(("", *self._keys, ""))

    @cached_property
    def starts(self) -> list[int]:
        """Where in the text the line end before each line is."""
        return _starts(self._keys)


class Lines:
    """A text by lines, and where each begins."""

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self._keyed: dict[LineKey, _Keyed] = {}

    @cached_property
    def starts(self) -> list[int]:
        """Where each line begins; at last, where one after the text would."""
        return _starts(self.lines)

    def number(self, position: int) -> int:
        """The index of the line that holds a character position."""
        return bisect_right(self.starts, position, hi=len(self.lines)) - 1

    def find(self, wanted: list[str], key: LineKey, first: int = 0) -> Iterator[int]:
        """Indexes of lines from `first` on at which all `wanted` lines follow each other, compared by `key`."""
        if key not in self._keyed:
            self._keyed[key] = _Keyed(self.lines, key)
        keyed = self._keyed[key]
        needle = "\n".join(("", *map(key, wanted), ""))
        position = keyed.text.find(needle, keyed.starts[first] if first else 0)
        while position >= 0:
            yield bisect_right(keyed.starts, position) - 1
            position = keyed.text.find(needle, position + 1)


def find_exact(text: str, old: str) -> list[int]:
    """All positions of a text, overlapping ones too."""
    found: list[int] = []
    position = text.find(old)
    while position >= 0:
        found.append(position)
        position = text.find(old, position + 1)
    return found


def find_edits(text: str, old: str, new: str) -> tuple[str, list[Edit]]:
    """The first strategy that finds `old`, and a replacement for each place it was found at."""
    exact = find_exact(text, old)
    if exact:
        return "exact", [Edit(position, position + len(old), new) for position in exact]
    if not old.strip():
        return "exact", []
    lines = Lines(text)
    whole = old.endswith("\n")
    wanted = old.removesuffix("\n").split("\n")
    plain = text.isascii() and old.isascii()
    for name, key in FALLBACKS:
        if plain and key is _typography:
            continue
        edits = [
            _edit(lines, index, wanted, new, whole, name != "trailing_space")
            for index in lines.find(wanted, key)
        ]
        if edits:
            return name, edits
    return "none", []


def _edit(lines: Lines, index: int, wanted: list[str], new: str, whole: bool, move: bool) -> Edit:
    after = index + len(wanted)
    start = lines.starts[index]
    end = lines.starts[after] - 1
    if whole and after < len(lines.lines):
        end += 1
    elif whole:
        new = new.removesuffix("\n")
    if move:
        new = "\n".join(reindent(new.split("\n"), wanted, lines.lines[index:after]))
    return Edit(start, end, new)


def apply_edits(text: str, edits: list[Edit]) -> str:
    """The text with replacements made; they are in order and do not overlap."""
    pieces: list[str] = []
    position = 0
    for edit in edits:
        pieces += (text[position : edit.start], edit.new)
        position = edit.end
    return "".join((*pieces, text[position:]))


def without_overlaps(edits: list[Edit]) -> list[Edit]:
    """The replacements from the first on, leaving out those that begin inside an earlier one."""
    kept: list[Edit] = []
    for edit in edits:
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept
