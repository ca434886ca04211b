"""The `patch` tool."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.shell import SessionShell
from hermes_tools.tool import tool
from hermes_tools.toolsets.file.changes import Changes
from hermes_tools.toolsets.file.diff import unified_diff
from hermes_tools.toolsets.file.matching import Edit, Lines, apply_edits, find_edits, without_overlaps
from hermes_tools.toolsets.file.v4a import FilePatch, hunk_edits, parse_patch


@dataclass(frozen=True, slots=True)
class PatchResult:
    """What a patch changed.

    Attributes:
        success: True; a patch that fails is an error and changes nothing.
        diff: Unified diff of all changes.
        files_modified: Files changed.
        files_created: Files made, and the new paths of files moved.
        files_deleted: Files removed, and the old paths of files moved.
        replacements: How many places were replaced, in mode replace.
        strategy: How the old text was found, in mode replace: exact, trailing_space, indentation, spacing, typography.
    """

    success: bool
    diff: str
    files_modified: list[str] = field(default_factory=list[str])
    files_created: list[str] = field(default_factory=list[str])
    files_deleted: list[str] = field(default_factory=list[str])
    replacements: int | None = None
    strategy: str | None = None


@tool(toolset="file", lane="workspace", deadline=120)
async def patch(
    session: ToolSession,
    mode: Annotated[
        Literal["replace", "patch"],
        "replace: one text by another in one file; patch: a V4A patch of several files.",
    ] = "replace",
    path: Annotated[str | None, "The file, in mode replace."] = None,
    old_string: Annotated[str | None, "The text to replace, with enough around it to be unique."] = None,
    new_string: Annotated[str | None, "The text to put there; empty to delete."] = None,
    replace_all: Annotated[bool, "Replace every occurrence, in mode replace."] = False,
    patch: Annotated[
        str | None,
        "A V4A patch, in mode patch: *** Begin Patch, then for each file *** Update File: PATH (or Add File, Delete File), "
        "@@ and a nearby line, lines beginning with a space (stays), - (goes) or + (comes), then *** End Patch.",
    ] = None,
) -> PatchResult:
    """Change files in place. All of a patch is done, or nothing.

    Mode replace looks for old_string exactly; where it is not found, white space at line ends, indentation and spacing are
    ignored, in this order. It must be found once, unless replace_all is set.
    """
    changes = Changes(session)
    if mode == "patch":
        if not patch:
            raise ToolError("Mode patch needs the parameter patch.")
        for file in parse_patch(patch):
            await _apply(changes, session, file)
        return await _commit(changes)
    if path is None or old_string is None or new_string is None:
        raise ToolError("Mode replace needs path, old_string and new_string.")
    target = await session.state(SessionShell).resolve(path)
    text = await changes.text(target)
    strategy, edits = _edits(target, text, old_string, new_string, replace_all)
    changes.update(target, apply_edits(text, edits), unified_diff(target, text, edits))
    return await _commit(changes, len(edits), strategy)


def _edits(path: str, text: str, old: str, new: str, replace_all: bool) -> tuple[str, list[Edit]]:
    if not old:
        raise ToolError("old_string is empty. Use write_file to make or replace a whole file.")
    if old == new:
        raise ToolError("old_string and new_string are the same: nothing to change.")
    if "\r" not in text:
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    strategy, edits = find_edits(text, old, new)
    if not edits:
        raise ToolError(
            f"old_string was not found in {path}, not even without regard to white space. "
            "Read the file and copy the text as it is."
        )
    if replace_all:
        return strategy, without_overlaps(edits)
    if len(edits) > 1:
        lines = Lines(text)
        numbers = ", ".join(str(lines.number(edit.start) + 1) for edit in edits[:10])
        raise ToolError(
            f"old_string was found {len(edits)} times in {path}, at lines {numbers}{' …' * (len(edits) > 10)}. "
            "Add lines around it until it is unique, or set replace_all."
        )
    return strategy, edits


async def _apply(changes: Changes, session: ToolSession, file: FilePatch) -> None:
    shell = session.state(SessionShell)
    target = await shell.resolve(file.path)
    if file.action == "add":
        await changes.create(target, "\n".join(file.content) + "\n" if file.content else "")
        return
    text = await changes.text(target)
    if file.action == "delete":
        changes.delete(target, text)
        return
    edits = hunk_edits(file.path, text, file.hunks)
    moved = await shell.resolve(file.move_to) if file.move_to else None
    diff = unified_diff(target, text, edits, moved)
    changes.update(target, apply_edits(text, edits), diff)
    if moved and moved != target:
        await changes.move(target, moved)


async def _commit(
    changes: Changes, replacements: int | None = None, strategy: str | None = None
) -> PatchResult:
    await changes.commit()
    return PatchResult(
        True,
        changes.diff,
        changes.modified,
        changes.created,
        changes.deleted,
        replacements,
        strategy,
    )
