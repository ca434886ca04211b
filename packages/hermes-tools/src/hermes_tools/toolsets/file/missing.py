"""Errors for paths that are not there, with what is there instead."""

import difflib
import posixpath
import shlex

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession

_LIST = 'd={folder}; while [ ! -d "$d" ]; do d=${{d%/*}}; d=${{d:-/}}; done; printf "%s\\n" "$d"; ls -1Ap -- "$d" | head -n 2000'


async def not_found(session: ToolSession, path: str) -> ToolError:
    """The error for a file that is missing: it names similar files, or how far the path exists."""
    parent, name = posixpath.split(path)
    listing = await session.workspace.exec(_LIST.format(folder=shlex.quote(parent)), timeout=30)
    lines = listing.stdout.decode("utf-8", "replace").splitlines()
    if not lines:
        return ToolError(f"File not found: {path}")
    if lines[0] != parent:
        return ToolError(f"File not found: {path}. The folder {parent} does not exist; {lines[0]} does.")
    similar = similar_names(name, [line.rstrip("/") for line in lines[1:]])
    if not similar:
        return ToolError(f"File not found: {path}")
    return ToolError(
        f"File not found: {path}", similar_files=[posixpath.join(parent, item) for item in similar]
    )


def similar_names(name: str, present: list[str]) -> list[str]:
    """Up to five names like this one, the nearest first; case does not count."""
    folded: dict[str, str] = {}
    for item in present:
        folded.setdefault(item.casefold(), item)
    close = difflib.get_close_matches(name.casefold(), folded, n=5, cutoff=0.6)
    stem = posixpath.splitext(name.casefold())[0]
    same_stem = [key for key in folded if stem and posixpath.splitext(key)[0] == stem]
    return [folded[key] for key in dict.fromkeys([*close, *same_stem])][:5]
