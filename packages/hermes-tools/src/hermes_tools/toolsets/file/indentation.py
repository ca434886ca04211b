"""Gives new lines the indentation of a file, where the text looked for was indented otherwise than the file's.

Each indentation of the text looked for stands for that of the line it was found at. Deeper and shallower ones follow from the
steps between those, or else from what a tab stands for: four columns in the text and one tab in the file make four more columns
one more tab. Where the same indentation was found as two, only lines that stay, and the first, have one.
"""

from collections.abc import Iterable
from functools import reduce
from itertools import pairwise
from math import gcd

from hermes_tools.errors import ToolError


def reindent(new: list[str], wanted: list[str], found: list[str], at: int | None = 0) -> list[str]:
    """New lines as the file would indent them.

    Args:
        new: The lines to put there.
        wanted: The lines looked for.
        found: The file's lines at that place, as many.
        at: The index of the line that the first new one takes the place of, or None if they come between lines.

    Raises:
        ToolError: The lines found do not tell how a new line is to be indented.
    """
    levels = _Levels(wanted, found, new)
    if at is None or not new or not wanted[at].strip() or indent_of(new[0]) != indent_of(wanted[at]):
        return [levels.moved(line) for line in new]
    return [indent_of(found[at]) + new[0].lstrip(), *(levels.moved(line) for line in new[1:])]


class _Levels:
    def __init__(self, wanted: list[str], found: list[str], new: list[str]) -> None:
        pairs = [(line, indent_of(at)) for line, at in zip(wanted, found, strict=True) if line.strip()]
        self._lines = _certain(pairs)
        self._levels = _certain((indent_of(line), indent) for line, indent in pairs)
        self._styles = set("".join(indent for _, indent in pairs))
        self._steps = sorted({*self._differences(), *self._whole(new)}, key=lambda step: len(step[0]))

    def moved(self, line: str) -> str:
        """A line with the file's indentation."""
        if not line.strip():
            return line
        indent = indent_of(line)
        known = self._lines.get(line, self._levels.get(indent))
        if known is None:
            known = self._derived(indent)
        if known is None:
            raise ToolError(
                "The text was found only without regard to its indentation, and the file's lines there do not tell how "
                f"{line.strip()[:80]!r} is to be indented. Nothing was changed. Read the file and copy the lines as they are."
            )
        return known + line[len(indent) :]

    def _derived(self, indent: str) -> str | None:
        """An indentation by the nearest one that is known."""
        near = [level for level in self._levels if indent.startswith(level) or level.startswith(indent)]
        for level in sorted(near, key=lambda level: (abs(len(level) - len(indent)), len(level))):
            if indent.startswith(level):
                return self._levels[level] + self._converted(indent[len(level) :])
            less = self._converted(level[len(indent) :])
            if self._levels[level].endswith(less):
                return self._levels[level].removesuffix(less)
        return None

    def _converted(self, columns: str) -> str:
        """What a difference of indentation is in the file."""
        for step, in_file in self._steps:
            if columns == step * (len(columns) // len(step)):
                return in_file * (len(columns) // len(step))
        if self._steps and self._styles and not self._styles.issuperset(columns):
            step, in_file = self._steps[0]
            return in_file * (len(columns) // len(step)) + columns[: len(columns) % len(step)]
        return columns

    def _differences(self) -> Iterable[tuple[str, str]]:
        """The steps from one known indentation to the next deeper one."""
        for (a, a_in_file), (b, b_in_file) in pairwise(sorted(self._levels.items())):
            if b.startswith(a) and b_in_file.startswith(a_in_file) and len(b_in_file) > len(a_in_file):
                yield b[len(a) :], b_in_file[len(a_in_file) :]

    def _whole(self, new: list[str]) -> Iterable[tuple[str, str]]:
        """What one tab stands for, where the text has spaces and the file tabs, or the other way round."""
        for indent, in_file in self._levels.items():
            tabs, spaces = sorted((indent, in_file), reverse=True, key=lambda text: text[:1] == "\t")
            if {*tabs} == {"\t"} and {*spaces} == {" "} and len(spaces) % len(tabs) == 0:
                width = " " * (len(spaces) // len(tabs))
                yield (width, "\t") if tabs is in_file else ("\t", width)
            elif not indent and {*in_file} == {"\t"}:
                depths = [len(indent_of(line)) for line in new if line.startswith(" ") and line.strip()]
                if unit := reduce(gcd, depths, 0):
                    yield " " * unit, "\t"


def _certain(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The keys that always come with the same value, and it."""
    values: dict[str, set[str]] = {}
    for key, value in pairs:
        values.setdefault(key, set()).add(value)
    return {key: each.pop() for key, each in values.items() if len(each) == 1}


def indent_of(line: str) -> str:
    """The white space a line begins with."""
    return line[: len(line) - len(line.lstrip())]
