"""The `read_file` tool."""

import shlex
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.shell import SessionShell
from hermes_tools.tool import tool
from hermes_tools.toolsets.file.missing import not_found
from hermes_tools.toolsets.file.text import SAMPLE, binary_kind, decode

MAX_WHOLE = 4 << 20
MAX_LINE = 2_000
MAX_LINES = 2_000
# A part of a file too large to hold: its lines and bytes, whether its last line is complete, then the lines.
_PART = "wc -lc < {file} && tail -c 1 -- {file} | wc -l && tail -n +{first} -- {file} | head -n {count} | head -c {bytes}"


@dataclass(frozen=True, slots=True)
class ReadFileResult:
    """Lines of a file.

    Attributes:
        content: The lines, each as `number|text`; a long line is cut and says so.
        total_lines: How many lines the file has.
        file_size: Its bytes.
        truncated: Whether there is more after these lines.
        next_offset: The line to read on from, when there is more.
        encoding: The encoding, when it is not UTF-8.
        note: What else to know.
    """

    content: str
    total_lines: int
    file_size: int
    truncated: bool = False
    next_offset: int | None = None
    encoding: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class _Lines:
    lines: list[str]
    total: int
    size: int
    encoding: str


@tool(toolset="file", lane="workspace", read_only=True, deadline=120)
async def read_file(
    session: ToolSession,
    path: Annotated[str, "The file: absolute, or relative to the shell's folder; ~ is the home folder."],
    offset: Annotated[int, Field(ge=0, description="First line to read, from 1.")] = 1,
    limit: Annotated[int, Field(ge=1, description=f"Most lines to read; {MAX_LINES} at most.")] = 500,
) -> ReadFileResult:
    """Read a text file with line numbers.

    Lines come as `number|text`. Read a long file in parts with offset and limit. Binary files are refused.
    """
    target = await session.state(SessionShell).resolve(path)
    offset, limit = max(1, offset), min(limit, MAX_LINES)
    part = await _load(session, target, offset, limit)
    budget = session.budget.limit("read_file") - 1_000
    numbered: list[str] = []
    for number, line in enumerate(part.lines, offset):
        text = f"{number}|{_cut(line)}"
        budget -= len(text) + 2
        if budget < 0 and numbered:
            break
        numbered.append(text)
    after = offset + len(numbered)
    more = after <= part.total
    note = None
    if part.total == 0:
        note = "The file is empty."
    elif offset > part.total:
        note = f"The file has only {part.total} lines."
    encoding = None if part.encoding == "utf-8" else part.encoding
    return ReadFileResult(
        "\n".join(numbered), part.total, part.size, more, after if more else None, encoding, note
    )


async def _load(session: ToolSession, path: str, offset: int, limit: int) -> _Lines:
    try:
        data = await session.workspace.read_bytes(path, limit=MAX_WHOLE + 1)
    except FileNotFoundError:
        raise await not_found(session, path) from None
    except IsADirectoryError:
        raise ToolError(
            f"{path} is a folder. List it with search_files(target='files', pattern='*') or the terminal."
        ) from None
    if kind := binary_kind(data):
        size = f"{len(data):,}" if len(data) <= MAX_WHOLE else f"over {MAX_WHOLE:,}"
        hint = "; look at it with vision_analyze" if "image" in kind else ""
        raise ToolError(f"{path} is no text: {kind}, {size} bytes{hint}. Use the terminal to inspect it.")
    if len(data) > MAX_WHOLE:
        return await _load_part(session, path, offset, limit)
    file = decode(data)
    lines = file.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return _Lines(lines[offset - 1 : offset - 1 + limit], len(lines), len(data), file.encoding)


async def _load_part(session: ToolSession, path: str, offset: int, limit: int) -> _Lines:
    command = _PART.format(file=shlex.quote(path), first=offset, count=limit, bytes=MAX_WHOLE)
    result = await session.workspace.exec(command, timeout=100, output_limit=2 * MAX_WHOLE + SAMPLE)
    head, _, rest = result.stdout.partition(b"\n")
    complete, _, body = rest.partition(b"\n")
    try:
        newlines, size = map(int, head.split())
    except ValueError:
        raise ToolError(f"{path} could not be read: {result.output.strip()[:500]}") from None
    file = decode(body)
    lines = file.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return _Lines(lines, newlines + (complete.strip() == b"0"), size, file.encoding)


def _cut(line: str) -> str:
    line = line.removesuffix("\r")
    return line if len(line) <= MAX_LINE else f"{line[:MAX_LINE]} [... line cut: {len(line):,} characters]"
