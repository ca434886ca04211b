"""Unified diffs from known replacements, in time linear in the file.

A general diff of two large files is slow; here the places are known.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from hermes_tools.toolsets.file.matching import Edit, Lines

CONTEXT = 3
NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class _Change:
    first: int
    old: list[str]
    new: list[str]


def unified_diff(path: str, text: str, edits: list[Edit], new_path: str | None = None) -> str:
    """The diff of a file for replacements that are in order and do not overlap."""
    old_lines = _Text(text)
    changes = [change for change in _changes(old_lines, edits) if change.old != change.new]
    lines = [f"--- a/{path.lstrip('/')}", f"+++ b/{(new_path or path).lstrip('/')}"]
    shift = 0
    for group in _grouped(changes):
        hunk, shift = _hunk(old_lines, group, shift)
        lines += hunk
    return "\n".join(lines) + "\n"


def created_diff(path: str, text: str) -> str:
    """The diff of a new file."""
    new = _split(text)
    return (
        "\n".join(
            ["--- /dev/null", f"+++ b/{path.lstrip('/')}", f"@@ -0,0 +1,{len(new)} @@", *_marked("+", new)]
        )
        + "\n"
    )


def deleted_diff(path: str, text: str) -> str:
    """The diff of a file that is removed."""
    old = _split(text)
    return (
        "\n".join(
            [f"--- a/{path.lstrip('/')}", "+++ /dev/null", f"@@ -1,{len(old)} +0,0 @@", *_marked("-", old)]
        )
        + "\n"
    )


def _split(text: str) -> list[str]:
    """Lines with their ends, so that a missing last newline shows as a difference."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _marked(mark: str, lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield NO_NEWLINE


class _Text:
    """A text of which a few lines are wanted, with their ends."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = Lines(text)
        self.count = len(self.lines.lines) - (self.lines.lines[-1] == "")

    def between(self, first: int, end: int) -> list[str]:
        starts = self.lines.starts
        return [self.text[starts[index] : starts[index + 1]] for index in range(first, min(end, self.count))]


def _changes(old: _Text, edits: list[Edit]) -> Iterator[_Change]:
    """Whole-line changes; replacements that touch the same line are one change."""
    number = old.lines.number
    index = 0
    while index < len(edits):
        group = [edits[index]]
        first, last = number(edits[index].start), number(edits[index].end)
        index += 1
        while index < len(edits) and number(edits[index].start) <= last:
            group.append(edits[index])
            last = max(last, number(edits[index].end))
            index += 1
        yield _trimmed(first, old.between(first, last + 1), _replaced(old, first, last, group))


def _replaced(old: _Text, first: int, last: int, group: list[Edit]) -> list[str]:
    pieces: list[str] = []
    position = old.lines.starts[first]
    for edit in group:
        pieces += (old.text[position : edit.start], edit.new)
        position = edit.end
    pieces.append(old.text[position : old.lines.starts[last + 1]])
    return _split("".join(pieces))


def _trimmed(first: int, old: list[str], new: list[str]) -> _Change:
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    rest = shorter - head
    tail = next((i for i in range(rest) if old[-1 - i] != new[-1 - i]), rest)
    return _Change(first + head, old[head : len(old) - tail], new[head : len(new) - tail])


def _grouped(changes: list[_Change]) -> Iterator[list[_Change]]:
    group: list[_Change] = []
    for change in changes:
        if group and change.first - (group[-1].first + len(group[-1].old)) > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(old: _Text, group: list[_Change], shift: int) -> tuple[list[str], int]:
    start = max(0, group[0].first - CONTEXT)
    end = min(old.count, group[-1].first + len(group[-1].old) + CONTEXT)
    body: list[str] = []
    position = start
    added = 0
    for change in group:
        body += _marked(" ", old.between(position, change.first))
        body += _marked("-", change.old)
        body += _marked("+", change.new)
        position = change.first + len(change.old)
        added += len(change.new) - len(change.old)
    body += _marked(" ", old.between(position, end))
    count = end - start
    new_count = count + added
    old_start = start + 1 if count else start
    new_start = start + shift + 1 if new_count else start + shift
    return [f"@@ -{old_start},{count} +{new_start},{new_count} @@", *body], shift + added
