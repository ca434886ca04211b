"""The `process` tool."""

import asyncio
import time
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from hermes_tools.errors import ToolError
from hermes_tools.session import ToolSession
from hermes_tools.tool import tool
from hermes_tools.toolsets.terminal.processes import Background, Processes
from hermes_tools.toolsets.terminal.terminal import strip_escapes

PREVIEW = 1_000
WAIT_PREVIEW = 2_000
DEFAULT_LINES = 200
Action = Literal["list", "poll", "log", "wait", "kill", "write", "submit", "close"]


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One background process in a list.

    Attributes:
        session_id: Its name.
        command: What was started.
        pid: Its process number.
        status: running or exited.
        uptime_seconds: Seconds since it was started.
        exit_code: The exit code of one that exited.
    """

    session_id: str
    command: str
    pid: int
    status: str
    uptime_seconds: int
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """What became of an action on a background process.

    Attributes:
        session_id: Its name.
        status: running or exited; for wait also timeout, for kill killed.
        exit_code: The exit code of one that exited.
        output_preview: The end of its output.
        output: Lines of its output, for log.
        total_lines: How many lines are kept, for log.
        next_offset: Where the log goes on, when it does.
        bytes_written: How much was sent to it, for write and submit.
        processes: All processes, for list.
    """

    session_id: str | None = None
    status: str | None = None
    exit_code: int | None = None
    output_preview: str | None = None
    output: str | None = None
    total_lines: int | None = None
    next_offset: int | None = None
    bytes_written: int | None = None
    processes: list[ProcessEntry] | None = None


@tool(toolset="terminal", deadline=None)
async def process(
    session: ToolSession,
    action: Annotated[
        Action,
        "list: all processes; poll: state and newest output; log: output by lines; wait: until it exits; kill: end it; "
        "write: send data to its input; submit: send data and Enter; close: end its input.",
    ],
    session_id: Annotated[
        str | None, "The process, as the terminal tool named it; all actions but list need it."
    ] = None,
    data: Annotated[str | None, "Text to send, for write and submit."] = None,
    timeout: Annotated[float | None, Field(gt=0, description="Seconds to wait at most, for wait.")] = None,
    offset: Annotated[int | None, "First line (from 0) for log; by default the last lines are given."] = None,
    limit: Annotated[int, Field(ge=1, description="Most lines for log.")] = DEFAULT_LINES,
) -> ProcessResult:
    """Look after background processes started with terminal(background=true)."""
    processes = session.state(Processes)
    if action == "list":
        return ProcessResult(processes=[await _entry(item) for item in processes.all()])
    item = processes.get(session_id)
    if action == "poll":
        return await _report(item, PREVIEW)
    if action == "log":
        return await _log(item, offset, limit)
    if action == "wait":
        seconds = min(timeout or session.terminal_timeout, session.terminal_timeout)
        code = await item.handle.wait(seconds)
        return await _report(item, WAIT_PREVIEW, "timeout" if code is None else None)
    if action == "kill":
        ran = await item.handle.poll() is None
        await item.kill()
        return await _report(item, PREVIEW, "killed" if ran else None)
    return await _send(session, item, action, data)


async def _send(session: ToolSession, item: Background, action: str, data: str | None) -> ProcessResult:
    if action == "close":
        await item.handle.close_stdin()
        return await _report(item, PREVIEW)
    if data is None:
        raise ToolError(f"The action {action} needs data.")
    if await item.handle.poll() is not None:
        raise ToolError(f"{item.session_id} has exited and takes no input.")
    raw = (data + "\n" * (action == "submit")).encode("utf-8", "replace")
    seconds = session.terminal_timeout
    try:
        async with asyncio.timeout(seconds):
            await item.handle.write(raw)
    except TimeoutError:
        raise ToolError(
            f"{item.session_id} did not read all of its input within {seconds:g} seconds; a part may have reached it."
        ) from None
    status, _ = await item.status()
    return ProcessResult(item.session_id, status, bytes_written=len(raw))


async def _report(item: Background, preview: int, status: str | None = None) -> ProcessResult:
    now, code = await item.status()
    await item.update()
    return ProcessResult(item.session_id, status or now, code, strip_escapes(item.text)[-preview:])


async def _log(item: Background, offset: int | None, limit: int) -> ProcessResult:
    now, code = await item.status()
    await item.update()
    lines = strip_escapes(item.text).splitlines()
    first = max(0, len(lines) - limit) if offset is None else max(0, offset)
    shown = lines[first : first + limit]
    after = first + len(shown) if first + len(shown) < len(lines) else None
    return ProcessResult(
        item.session_id, now, code, output="\n".join(shown), total_lines=len(lines), next_offset=after
    )


async def _entry(item: Background) -> ProcessEntry:
    status, code = await item.status()
    uptime = int(time.monotonic() - item.started)
    return ProcessEntry(item.session_id, item.handle.command, item.handle.pid, status, uptime, code)
