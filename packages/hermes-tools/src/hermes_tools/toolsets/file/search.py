"""The `search_files` tool."""

import posixpath
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from hermes_tools.session import ToolSession
from hermes_tools.shell import SessionShell
from hermes_tools.tool import tool
from hermes_tools.toolsets.file.missing import not_found
from hermes_tools.toolsets.file.search_engine import EXCLUDED, Line, Searcher

MAX_TEXT = 500
MAX_RESULTS = 1_000
MAX_CONTEXT = 20


@dataclass(frozen=True, slots=True)
class Match:
    """One line that matches.

    Attributes:
        path: Its file.
        line: Its number, from 1.
        content: Its text, cut when it is long.
        before: Lines before it, as `number|text`.
        after: Lines after it, as `number|text`.
    """

    path: str
    line: int
    content: str
    before: list[str] | None = None
    after: list[str] | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What was found.

    Attributes:
        total_count: How many there are in all: matching lines, or files for files_only, count and target files.
        matches: Matching lines, by path and line.
        files: Paths, sorted.
        counts: Matching lines per file.
        truncated: Whether there are more than shown.
        next_offset: The offset to go on with, when there are.
        note: What else to know.
    """

    total_count: int
    matches: list[Match] | None = None
    files: list[str] | None = None
    counts: dict[str, int] | None = None
    truncated: bool = False
    next_offset: int | None = None
    note: str | None = None


@tool(toolset="file", lane="workspace", read_only=True, deadline=120)
async def search_files(
    session: ToolSession,
    pattern: Annotated[
        str, "A regular expression for target content; a file name pattern such as *.py for target files."
    ],
    target: Annotated[Literal["content", "files"], "Whether to search in files or for files."] = "content",
    path: Annotated[str, "The folder, or the one file, to search."] = ".",
    file_glob: Annotated[str | None, "Only files like this, such as *.py, src/**/*.ts or !*.min.js."] = None,
    limit: Annotated[int, Field(ge=1, description=f"Most results to show; {MAX_RESULTS} at most.")] = 50,
    offset: Annotated[int, Field(ge=0, description="How many results to leave out first.")] = 0,
    output_mode: Annotated[
        Literal["content", "files_only", "count"],
        "Matching lines, names of files that match, or matches per file.",
    ] = "content",
    context: Annotated[int, Field(ge=0, description="Lines to show before and after each match.")] = 0,
) -> SearchResult:
    """Search file contents by regular expression, or find files by name.

    Hidden files are searched, binary files are not. Folders of version control and of installed packages are left out
    unless path is inside one. Results are sorted by path.
    """
    limit, context = min(limit, MAX_RESULTS), min(context, MAX_CONTEXT)
    target_path = await session.state(SessionShell).resolve(path)
    searcher = Searcher(session, target_path, file_glob)
    try:
        if target == "files":
            return _files_page(path, await searcher.files(pattern), pattern, offset, limit)
        counts = await searcher.counts(pattern)
    except FileNotFoundError:
        raise await not_found(session, target_path) from None
    if output_mode != "content":
        return _counts_page(path, counts, output_mode, offset, limit)
    lines = await searcher.lines(pattern, counts, offset, limit, context)
    total = sum(counts.values())
    matches = [_match(path, line, context) for line in lines]
    return _page(SearchResult(total, matches=matches, note=_hint(total)), total, offset, limit)


def _files_page(path: str, files: list[str], pattern: str, offset: int, limit: int) -> SearchResult:
    shown = [_shown(path, name) for name in files[offset : offset + limit]]
    plain = not files and not any(char in pattern for char in "*?[{")
    note = f"No wildcard in the pattern: try *{pattern}*." if plain else None
    return _page(SearchResult(len(files), files=shown, note=note), len(files), offset, limit)


def _counts_page(path: str, counts: dict[str, int], mode: str, offset: int, limit: int) -> SearchResult:
    names = list(counts)[offset : offset + limit]
    by_file = {_shown(path, name): counts[name] for name in names}
    files, numbers = (None, by_file) if mode == "count" else (list(by_file), None)
    result = SearchResult(len(counts), files=files, counts=numbers, note=_hint(len(counts)))
    return _page(result, len(counts), offset, limit)


def _hint(total: int) -> str | None:
    return (
        None if total else f"Nothing found. Left out are binary files and the folders {', '.join(EXCLUDED)}."
    )


def _page(result: SearchResult, total: int, offset: int, limit: int) -> SearchResult:
    more = offset + limit < total
    return replace(result, truncated=more, next_offset=offset + limit) if more else result


def _shown(base: str, name: str) -> str:
    return base if name == "" else posixpath.normpath(posixpath.join(base, name))


def _match(base: str, line: Line, context: int) -> Match:
    before = [f"{number}|{_cut(text)}" for number, text in line.before] if context else None
    after = [f"{number}|{_cut(text)}" for number, text in line.after] if context else None
    return Match(_shown(base, line.path), line.number, _cut(line.text), before, after)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} [... line cut]"
