"""The V4A patch format: several files in one patch, places found by their lines and not by numbers.

*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py            (optional)
@@ class Reader:                 (optional: look below this line; may be repeated to go deeper)
 a line that stays
-a line that goes
+a line that comes
*** End of File                  (optional: the lines above are the file's last)
*** Add File: docs/new.md
+its lines
*** Delete File: old.txt
*** End Patch
"""

from dataclasses import dataclass, field
from typing import Literal

from hermes_tools.errors import ToolError
from hermes_tools.toolsets.file.indentation import reindent
from hermes_tools.toolsets.file.matching import FALLBACKS, Edit, Lines

Action = Literal["update", "add", "delete"]
BEGIN, END, END_OF_FILE = "*** Begin Patch", "*** End Patch", "*** End of File"
_HEADERS: tuple[tuple[str, Action], ...] = (
    ("*** Update File:", "update"),
    ("*** Add File:", "add"),
    ("*** Delete File:", "delete"),
)
_MOVE = "*** Move to:"


@dataclass(slots=True)
class Hunk:
    """One place of a file.

    Attributes:
        anchors: Lines to go to first, in this order.
        lines: Pairs of ` `, `-` or `+` and the line's text.
        at_end: Whether the lines end the file.
    """

    anchors: list[str] = field(default_factory=list[str])
    lines: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that must be there."""
        return [text for mark, text in self.lines if mark != "+"]


@dataclass(slots=True)
class FilePatch:
    """What happens to one file.

    Attributes:
        action: update, add or delete.
        path: The file, as written in the patch.
        move_to: Its new path, for an update that moves it.
        hunks: Places to change, for update.
        content: Its lines, for add.
    """

    action: Action
    path: str
    move_to: str | None = None
    hunks: list[Hunk] = field(default_factory=list[Hunk])
    content: list[str] = field(default_factory=list[str])


def parse_patch(patch: str) -> list[FilePatch]:
    """Read a patch. The begin and end marks may be missing.

    Raises:
        ToolError: It says which line cannot be read.
    """
    files: list[FilePatch] = []
    lines = patch.replace("\r\n", "\n").strip("\n").split("\n")
    for number, line in enumerate(lines, 1):
        mark = line.strip()
        if mark in (BEGIN, "") and not files:
            continue
        if mark == END:
            break
        header = next((item for item in _HEADERS if line.startswith(item[0])), None)
        if header is not None:
            files.append(FilePatch(header[1], _path(line.removeprefix(header[0]), number)))
        elif not files:
            raise ToolError(
                f"Line {number} of the patch stands before any `*** Update File: PATH`: {line[:100]!r}"
            )
        else:
            _read_line(files[-1], line, number)
    _check(files)
    return files


def _path(text: str, number: int) -> str:
    if not text.strip():
        raise ToolError(f"Line {number} of the patch names no file.")
    return text.strip()


def _read_line(file: FilePatch, line: str, number: int) -> None:
    if file.action == "add" and line.startswith("+"):
        file.content.append(line[1:])
    elif file.action == "update" and line.startswith(_MOVE) and not file.hunks:
        file.move_to = _path(line.removeprefix(_MOVE), number)
    elif file.action == "update":
        _read_hunk_line(file, line, number)
    elif line.strip():
        raise ToolError(
            f"Line {number} of the patch does not belong to `{file.action}`: {line[:100]!r}. "
            + ("Every line of a new file begins with +." if file.action == "add" else "")
        )


def _read_hunk_line(file: FilePatch, line: str, number: int) -> None:
    if line.startswith("@@"):
        # Anchors that follow each other belong together.
        if not file.hunks or file.hunks[-1].lines:
            file.hunks.append(Hunk())
        anchor = line[2:].strip().removesuffix("@@").strip()
        if anchor and not _is_range(anchor):
            file.hunks[-1].anchors.append(anchor)
        return
    if not file.hunks or file.hunks[-1].at_end:
        file.hunks.append(Hunk())
    hunk = file.hunks[-1]
    if line.strip() == END_OF_FILE:
        hunk.at_end = True
    elif line[:1] in ("+", "-", " "):
        hunk.lines.append((line[0], line[1:]))
    elif not line:
        hunk.lines.append((" ", ""))
    else:
        raise ToolError(
            f"Line {number} of the patch begins with neither a space, + nor -: {line[:100]!r}. "
            "Lines that stay begin with one space."
        )


def _is_range(anchor: str) -> bool:
    """Whether this is the `-1,3 +1,4` of a unified diff, which says nothing reliable."""
    parts = anchor.split("@@")[0].split()
    return len(parts) >= 2 and parts[0][:1] == "-" and parts[1][:1] == "+" and parts[0][1:2].isdigit()


def _check(files: list[FilePatch]) -> None:
    if not files:
        raise ToolError(
            "The patch names no file. Write `*** Update File: PATH` and below it the changed lines."
        )
    for file in files:
        for hunk in file.hunks:
            # An empty line before the next header is a separator, not a line of the file.
            while hunk.lines and hunk.lines[-1] == (" ", "") and not hunk.at_end:
                hunk.lines.pop()
        file.hunks = [hunk for hunk in file.hunks if hunk.lines]
        if file.action == "update" and not file.hunks and file.move_to is None:
            raise ToolError(f"The patch changes nothing in {file.path}.")


def hunk_edits(path: str, text: str, hunks: list[Hunk]) -> list[Edit]:
    """The replacements that hunks mean in a file's text, each looked for below the one before.

    Raises:
        ToolError: A hunk is not found; it shows what was looked for.
    """
    lines = Lines(text)
    edits: list[Edit] = []
    position = 0
    for number, hunk in enumerate(hunks, 1):
        position = _below_anchors(path, lines, hunk, number, position)
        old = hunk.old
        if not old:
            at = position if hunk.anchors and not hunk.at_end else _end(lines)
            edits.append(_insertion(lines, at, [line for _, line in hunk.lines]))
            position = at
            continue
        at, tolerant = _place(path, lines, hunk, number, position)
        edits += _hunk_edits(lines, at, hunk, tolerant)
        position = at + len(old)
    return edits


def _below_anchors(path: str, lines: Lines, hunk: Hunk, number: int, position: int) -> int:
    for anchor in hunk.anchors:
        found = next((i for i in range(position, len(lines.lines)) if lines.lines[i].strip() == anchor), None)
        if found is None:
            found = next((i for i in range(position, len(lines.lines)) if anchor in lines.lines[i]), None)
        if found is None:
            raise ToolError(f"{path}: hunk {number}: there is no line {anchor!r} after line {position}.")
        # The anchor may itself be the first line of the hunk.
        same = (
            bool(hunk.old)
            and anchor == hunk.anchors[-1]
            and hunk.old[0].strip() == lines.lines[found].strip()
        )
        position = found if same else found + 1
    return position


def _place(path: str, lines: Lines, hunk: Hunk, number: int, position: int) -> tuple[int, bool]:
    """The index of the hunk's first line, and whether indentation was ignored to find it."""
    old = hunk.old
    for name, key in (("exact", str), *FALLBACKS):
        places = lines.find(old, key, position)
        if hunk.at_end:
            places = (place for place in places if place + len(old) >= _end(lines))
        place = next(places, None)
        if place is not None:
            return place, name not in ("exact", "trailing_space")
    shown = "\n".join(old[:8])
    raise ToolError(
        f"{path}: hunk {number} was not found after line {position}; nothing was changed. Looked for:\n{shown}"
    )


def _end(lines: Lines) -> int:
    """The index behind the last line."""
    return len(lines.lines) - (lines.lines[-1] == "")


def _hunk_edits(lines: Lines, at: int, hunk: Hunk, tolerant: bool) -> list[Edit]:
    """One replacement per run of changed lines; lines that stay keep the file's own white space."""
    edits: list[Edit] = []
    found = lines.lines[at : at + len(hunk.old)]
    index = at
    removed = 0
    added: list[str] = []

    def flush() -> None:
        nonlocal removed
        if removed or added:
            instead = index - at - removed if removed else None
            moved = reindent(added, hunk.old, found, instead) if tolerant else added
            edits.append(_replacement(lines, index - removed, removed, list(moved)))
        removed = 0
        added.clear()

    for mark, text in hunk.lines:
        if mark == "+":
            added.append(text)
            continue
        if mark == " ":
            flush()
        else:
            removed += 1
        index += 1
    flush()
    return edits


def _replacement(lines: Lines, first: int, count: int, new: list[str]) -> Edit:
    if count == 0:
        return _insertion(lines, first, new)
    start, end = lines.starts[first], lines.starts[first + count] - 1
    if new:
        return Edit(start, end, "\n".join(new))
    # Whole lines go: with the line end behind them or, at the end of the file, the one before.
    last = first + count >= len(lines.lines)
    return Edit(max(0, start - 1), end, "") if last else Edit(start, end + 1, "")


def _insertion(lines: Lines, at: int, new: list[str]) -> Edit:
    if at >= len(lines.lines):
        start = lines.starts[-1] - 1
        return Edit(start, start, "\n" + "\n".join(new))
    start = lines.starts[at]
    return Edit(start, start, "\n".join(new) + "\n")
