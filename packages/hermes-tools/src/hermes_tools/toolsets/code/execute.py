"""The `execute_code` tool."""

import asyncio
import secrets
import shlex
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from hermes_tools.errors import ToolError
from hermes_tools.results import cut_middle
from hermes_tools.session import ToolSession
from hermes_tools.shell import SessionShell
from hermes_tools.tool import tool
from hermes_tools.toolsets.code.bridge import Bridge
from hermes_tools.toolsets.code.script import script_files
from hermes_tools.toolsets.terminal.terminal import output_limit, strip_escapes

DEFAULT_TIMEOUT = 300.0
MAX_CALLS = 100
NO_PYTHON = 90
KILL_SECONDS = 20.0
_RUN = 'P=$(command -v python3 || command -v python) || exit {no_python}; exec "$P" -u {main}'


@dataclass(frozen=True, slots=True)
class ExecuteCodeResult:
    """What became of a script.

    Attributes:
        status: success, error (it failed) or timeout.
        output: What it wrote to standard output and error; head and tail when it is long.
        exit_code: Its exit code.
        tool_calls_made: How many times it called a tool.
        duration_seconds: How long it ran.
        error: What went wrong beside the script's own failure.
        full_output: File in the workspace with all of a long output.
    """

    status: Literal["success", "error", "timeout"]
    output: str
    exit_code: int | None
    tool_calls_made: int
    duration_seconds: float
    error: str | None = None
    full_output: str | None = None


@tool(toolset="code", deadline=None)
async def execute_code(
    session: ToolSession,
    code: Annotated[str, "The Python script. It prints what you want to see."],
    timeout: Annotated[float, Field(gt=0, le=24 * 3600, description="Seconds it may run.")] = DEFAULT_TIMEOUT,
) -> ExecuteCodeResult:
    """Run a Python script that can call your other tools.

    `from hermes_tools import read_file, terminal` and so on gives the tools as functions with the same parameters; each returns
    its result as a dictionary, with the key "error" when it failed. Use it for loops over many calls, and to filter large
    results before you see them. It starts in the shell's folder; each call is a new process.
    """
    if "\0" in code:
        raise ToolError("A script cannot contain a null byte.")
    started = time.perf_counter()
    mark = secrets.token_hex(8)
    allowed = [item for name, item in session.tools.items() if name != "execute_code"]
    async with _folder(session, script_files(code, allowed, mark)) as folder:
        command = _RUN.format(no_python=NO_PYTHON, main=shlex.quote(f"{folder}/main.py"))
        process = await session.workspace.spawn(command, cwd=session.state(SessionShell).cwd)
        bridge = Bridge(session, process, folder, mark, frozenset(item.name for item in allowed), MAX_CALLS)
        exit_code: int | None = None
        limit = asyncio.timeout(timeout)
        try:
            async with limit:
                exit_code = await bridge.run()
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            if await process.poll() is None:
                await process.signal("KILL")
                await process.wait(KILL_SECONDS)  # else it may still write into the folder that goes now
        if exit_code is None:
            await bridge.take_rest()
    if exit_code == NO_PYTHON and not bridge.output.total:
        raise ToolError("There is no Python in the workspace. Use the terminal.")
    seconds = round(time.perf_counter() - started, 3)
    text, path = await cut_middle(
        session, strip_escapes(bridge.output.text), output_limit(session, "execute_code")
    )
    error = f"The script was killed after {timeout:g} seconds." if exit_code is None else None
    status = "timeout" if exit_code is None else "error" if exit_code else "success"
    return ExecuteCodeResult(status, text, exit_code, bridge.calls, seconds, error, path)


@asynccontextmanager
async def _folder(session: ToolSession, files: Mapping[str, bytes]) -> AsyncGenerator[str]:
    """A folder of the workspace that holds some files for a while; made and filled by one command."""
    fill = " && ".join(f"head -c {len(data)} > {name}" for name, data in files.items())
    # Named here, so that one that was cancelled while it was made is removed too.
    place = f'"${{TMPDIR:-/tmp}}/hermes-code.{secrets.token_hex(8)}"'
    script = f'd={place} && mkdir -m 700 "$d" && cd "$d" && {fill} && printf %s "$d"'
    try:
        made = await session.workspace.exec(script, stdin=b"".join(files.values()), timeout=60)
        if made.exit_code != 0:
            raise ToolError(f"cannot make a folder for the script: {made.output.strip()}")
        yield made.stdout.decode("utf-8", "surrogateescape")
    finally:
        removing = asyncio.ensure_future(session.workspace.exec(f"rm -rf -- {place}", timeout=30))
        try:
            await asyncio.shield(removing)
        except asyncio.CancelledError:
            await removing
            raise
