"""Searches a folder of the workspace with ripgrep, or with find and grep, to the same answers.

Two passes. The first counts the matching lines of every file, which is all that totals, paging and sorting by path need;
the second fetches the lines of the few files on the page. So the order does not depend on the threads of the engine,
and what is transferred does not grow with what is not shown.
"""

import re
import shlex
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.toolsets.file.globs import glob_to_regex

EXCLUDED = (
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "__pycache__",
    ".venv",
    ".tox",
    ".mypy_cache",
    ".pytest_cache",
)
DEADLINE = 100.0
MAX_LISTING = 32 << 20
MAX_PAGE = 16 << 20
MAX_LINE_BYTES = 4_096
NO_FOLDER, BAD_PATTERN, NO_ENGINE = 90, 91, 92
_NEWLINE = re.compile(r"(?<!\\)(?:\\\\)*\\n")
_QUANTIFIER = re.compile(r"\{\d*,?\d*\}")
_COUNT = re.compile(rb"([^\0]+)\0(\d+)\n")
_LINE = re.compile(rb"^([^\0]*)\0(\d+)([:-])(.*)$")

# `P` is the pattern. grep reads Perl patterns where it was built to, with classes for all of Unicode like ripgrep's.
# A pattern without special characters is looked for as plain text, which is faster.
_GREP = r"""command -v find >/dev/null && command -v grep >/dev/null || exit {no_engine}
export LC_ALL=C.UTF-8
if [[ "$P" =~ ^[[:alnum:]_\ =:/,\"\'@#%\<\>-]+$ ]]; then mode=-F; export LC_ALL=C
elif printf x | grep -P -e x >/dev/null 2>&1; then mode=-P; P="(*UCP)$P"
else mode=-E; P=${{P//\\d/[0-9]}}; fi
grep $mode -e "$P" </dev/null >/dev/null; [ $? -le 1 ] || exit {bad_pattern}
"""


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Settings of `search_files`.

    Attributes:
        engine: auto: ripgrep where the workspace has it, else grep.
    """

    engine: Literal["auto", "rg", "grep"] = "auto"


@dataclass(slots=True)
class Line:
    """A matching line and its neighbours.

    Attributes:
        path: Its file, below the folder searched; empty when one file was searched.
        number: Its number, from 1.
        text: The line.
        before: Numbers and texts of the lines before it.
        after: Numbers and texts of the lines after it.
    """

    path: str
    number: int
    text: str
    before: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    after: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


class Searcher:
    """Searches one folder, or one file, of a session's workspace."""

    def __init__(self, session: ToolSession, path: str, file_glob: str | None) -> None:
        self._workspace = session.workspace
        self._engine = session.option(SearchOptions).engine
        self._path = path
        self._glob = checked_glob(file_glob) if file_glob else None

    async def files(self, pattern: str) -> list[str]:
        """Paths of files that match a name pattern, sorted.

        Raises:
            FileNotFoundError: There is nothing to search.
        """
        globs = [checked_glob(pattern), *([self._glob] if self._glob else [])]
        filters = " ".join(f"| {_glob_filter(glob)}" for glob in globs)
        script = (
            f"command -v find >/dev/null && command -v grep >/dev/null || exit {NO_ENGINE}\n{_FIND} {filters}"
        )
        listing = await self._run(f'{self._enter()}\n{script}\nexit "${{PIPESTATUS[0]}}"')
        return [_decode(name) for name in sorted(map(_below, listing.split(b"\0"))) if name]

    async def counts(self, pattern: str) -> dict[str, int]:
        """How many lines match in each file that has any, sorted by path; of a single file searched the path is empty.

        Raises:
            FileNotFoundError: There is nothing to search.
            ToolError: The pattern is no regular expression.
        """
        pattern = checked_pattern(pattern)
        # The last glob that matches decides, so that one such as * does not bring the excluded folders back.
        globs = [f"-g {shlex.quote(self._glob)}"] if self._glob else []
        globs += [f"-g '!{name}/'" for name in EXCLUDED]
        rg = f'{_TEXT} || exit 0; rg {_RG_COMMON} -c {" ".join(globs)} -e "$P" -- "$F"; [ $? -le 1 ] || exit {BAD_PATTERN}'
        files = f'grep -r $mode -IlZ {_LEFT_OUT} -e "$P" -- "$F"'
        if self._glob:
            named = f'{{ if [ "$F" = ./ ]; then {_FIND} | {_glob_filter(self._glob)}; else printf "%s\\0" "$F"; fi; }}'
            files = f'{named} | xargs -0 -r grep $mode -IlZ -e "$P" --'
        grep = f'{files} | xargs -0 -r grep $mode -IcHZ -e "$P" --'
        listing = await self._run(self._enter(pattern) + self._either(rg, grep))
        found: list[tuple[bytes, int]] = []
        for record in _COUNT.finditer(listing):
            if int(record[2]):
                found.append((_below(record[1]), int(record[2])))
        if found and found[0][0] == _encode(self._path):
            return {"": found[0][1]}
        return {_decode(name): count for name, count in sorted(found)}

    async def lines(
        self, pattern: str, counts: Mapping[str, int], offset: int, limit: int, context: int
    ) -> list[Line]:
        """The matching lines from `offset` on, at most `limit`, of the files that `counts` found."""
        names = list(counts)
        ends = list(accumulate(counts.values()))
        first, last = bisect_right(ends, offset), bisect_right(ends, offset + limit - 1)
        page = names[first : last + 1]
        if not page:
            return []
        skipped = offset - (ends[first - 1] if first else 0)
        # Further matches may lie in the context of the last one shown, and must not end it early.
        most = max(skipped + limit, limit) + context + 1
        around = f"-C {context}" if context else ""
        common = f'-a -n -m {most} {around} -e "$P" --'
        rg = f"xargs -0 -r rg {_RG_COMMON} --no-heading {common}"
        grep = f"xargs -0 -r grep $mode -HZ {common}"
        script = self._enter(checked_pattern(pattern)) + self._either(rg, grep, f"| cut -b -{MAX_LINE_BYTES}")
        # The paths go through standard input, in bytes: they may be odd, and many.
        paths = b"\0".join((b"./" + _encode(name) if name else _encode(self._path)) for name in page)
        listing = await self._run(script, stdin=paths, limit=MAX_PAGE)
        for name in filter(_has_line_end, page):
            # Lines are parsed one by one, so no name may span two.
            listing = listing.replace(_encode(name) + b"\0", _encode(name).replace(b"\n", b"\x01") + b"\0")
        found = _parse(listing, context, whole=not page[0])
        shown: list[Line] = []
        for name in page:
            lines = found.get(name.replace("\n", "\x01") if _has_line_end(name) else name, [])
            shown += [replace(line, path=name) for line in lines]
        return shown[skipped : skipped + limit]

    def _enter(self, pattern: str | None = None) -> str:
        path = shlex.quote(self._path)
        words = "" if pattern is None else f"P={shlex.quote(pattern)}\n"
        return (
            f"{words}F={path}\n"
            f'if [ -d "$F" ]; then cd -- "$F" && F=./ || exit {NO_FOLDER}; elif [ ! -f "$F" ]; then exit {NO_FOLDER}; fi\n'
        )

    def _either(self, rg: str, grep: str, after: str = "") -> str:
        fallback = _GREP.format(no_engine=NO_ENGINE, bad_pattern=BAD_PATTERN) + f"{grep} {after}\n"
        if self._engine == "grep":
            return fallback + "exit 0"
        have = "true" if self._engine == "rg" else "command -v rg >/dev/null"
        return f"if {have}; then {rg} {after}\nelse\n{fallback}fi\nexit 0"

    async def _run(self, script: str, stdin: bytes | None = None, limit: int = MAX_LISTING) -> bytes:
        result = await self._workspace.exec(script, stdin=stdin, timeout=DEADLINE, output_limit=limit)
        if result.timed_out:
            raise ToolError(
                f"The search took over {DEADLINE:g} seconds. Search a smaller folder, or use file_glob."
            )
        if result.exit_code == NO_FOLDER:
            raise FileNotFoundError(self._path)
        if result.exit_code == NO_ENGINE:
            raise ToolError("The workspace has neither ripgrep nor find and grep. Use the terminal.")
        errors = result.stderr.decode("utf-8", "replace").strip()
        # Files that cannot be read are passed over; then there is no message.
        if result.exit_code == BAD_PATTERN and errors:
            raise ToolError(
                f"The pattern is no valid regular expression: {errors[:800]}\nEscape special characters with \\."
            )
        if result.truncated and limit == MAX_LISTING:
            raise ToolError("Too many files were found. Search a smaller folder, or use file_glob.")
        return result.stdout


# ripgrep would decode UTF-16, which is binary to grep.
_RG_COMMON = "--no-config --no-ignore --hidden --no-messages --color never --engine auto --null --with-filename -E none"
# A file that is named it searches although it is binary.
_TEXT = '{ [ "$F" = ./ ] || ! command -v grep >/dev/null || LC_ALL=C grep -qI -e "" -- "$F"; }'
_LEFT_OUT = " ".join(f"--exclude-dir={name}" for name in EXCLUDED)
_PRUNE = " -o ".join(f"-name {name}" for name in EXCLUDED)
_FIND = rf"find . -mindepth 1 -type d \( {_PRUNE} \) -prune -o -type f -print0"


def _glob_filter(glob: str) -> str:
    """A command that keeps, of paths ended by null bytes, those that match."""
    if glob.startswith("!"):
        pattern = glob_to_regex(glob[1:]).removesuffix("$") + "(/.*)?$"
        return f"LC_ALL=C.UTF-8 grep -zvE -e {shlex.quote(pattern)}"
    return f"LC_ALL=C.UTF-8 grep -zE -e {shlex.quote(glob_to_regex(glob))}"


def checked_glob(glob: str) -> str:
    """A file name pattern without the parts of a path that mean nothing.

    Raises:
        ToolError: Nothing is left.
    """
    mark = "!" if glob.startswith("!") else ""
    body = re.sub(r"/(\./|/)+", "/", glob[len(mark) :].removeprefix("./"))
    if not body.strip("/.") or "\0" in body:
        raise ToolError(f"{glob!r} is no file name pattern. Write one such as *.py or src/**/*.ts.")
    return mark + body


def checked_pattern(pattern: str) -> str:
    """A content pattern as every engine takes it.

    A `{` that begins no quantifier is meant as a brace; some engines would refuse it.

    Raises:
        ToolError: It is empty, or looks for line ends.
    """
    if not pattern or "\0" in pattern:
        raise ToolError("The pattern is empty." if not pattern else "A pattern cannot contain a null byte.")
    if "\n" in pattern or _NEWLINE.search(pattern):
        raise ToolError("A pattern is matched within single lines and cannot contain a line end.")
    pieces: list[str] = []
    position = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            # \p{…}, \x{…} and their kin keep their braces.
            end = pattern.find("}", position) + 1 if pattern[position + 2 : position + 3] == "{" else 0
            end = end or position + 2
            pieces.append(pattern[position:end])
            position = end
            continue
        if char == "{" and (position == 0 or not _QUANTIFIER.match(pattern, position)):
            char = "\\{"
        pieces.append(char)
        position += 1
    return "".join(pieces)


def _parse(listing: bytes, context: int, *, whole: bool) -> dict[str, list[Line]]:
    """Matching lines by file, with the lines around them."""
    texts: dict[str, dict[int, tuple[bool, str]]] = {}
    for record in listing.split(b"\n"):
        if found := _LINE.match(record):
            name = "" if whole else _decode(_below(found[1]))
            texts.setdefault(name, {})[int(found[2])] = (
                found[3] == b":",
                found[4].decode("utf-8", "replace"),
            )
    matches: dict[str, list[Line]] = {}
    for name, lines in texts.items():
        for number, (hit, text) in sorted(lines.items()):
            if hit:
                before = [(n, lines[n][1]) for n in range(number - context, number) if n in lines]
                after = [(n, lines[n][1]) for n in range(number + 1, number + context + 1) if n in lines]
                matches.setdefault(name, []).append(Line(name, number, text, before, after))
    return matches


def _has_line_end(name: str) -> bool:
    return "\n" in name


def _below(path: bytes) -> bytes:
    return path.removeprefix(b"./")


def _decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _encode(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
