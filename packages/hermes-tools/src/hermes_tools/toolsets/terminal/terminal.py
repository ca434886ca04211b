"""The `terminal` tool."""

import re
import shlex
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from hermes_tools.errors import ToolError
from hermes_tools.results import cut_middle
from hermes_tools.session import ToolSession
from hermes_tools.shell import SessionShell
from hermes_tools.tool import tool
from hermes_tools.toolsets.terminal.processes import Processes
from hermes_tools.workspace import CommandResult

MAX_OUTPUT = 50_000
CAPTURED_BYTES = 8 << 20
MAX_TIMEOUT = 24 * 3600
TIMED_OUT = 124
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78cDEHMNOZ])"
)
_IN_A_TERMINAL = """(
command -v script >/dev/null || {{ echo "A terminal needs the program script (package bsdutils or util-linux)." >&2; exit 127; }}
SHELL=$BASH TERM=${{TERM:-xterm}} exec script -qefc {command} /dev/null
)"""


@dataclass(frozen=True, slots=True)
class TerminalResult:
    """What became of a command.

    Attributes:
        output: Standard output and error together, in true order, colours left out; head and tail when it is long.
        exit_code: The exit code, 128+n after signal n, 124 after a timeout.
        error: What went wrong beside the command's own failure.
        full_output: File in the workspace with all of a long output.
        session_id: Name of the background process for the process tool.
        pid: Process number of the background process.
    """

    output: str
    exit_code: int
    error: str | None = None
    full_output: str | None = None
    session_id: str | None = None
    pid: int | None = None


@tool(toolset="terminal", deadline=None, lane="workspace", ignored=("notify_on_complete", "watch_patterns"))
async def terminal(
    session: ToolSession,
    command: Annotated[str, "The bash command or script to run."],
    background: Annotated[
        bool, "Start it in the background and return at once; use for servers and long jobs."
    ] = False,
    timeout: Annotated[
        float | None, Field(gt=0, description="Seconds a foreground command may take; then it is killed.")
    ] = None,
    workdir: Annotated[
        str | None, "Folder to run this one command in; by default where the shell is."
    ] = None,
    pty: Annotated[
        bool,
        "Give the command a terminal of its own, for programs that want one; it cannot change the shell.",
    ] = False,
) -> TerminalResult:
    """Run a command in a bash shell.

    The folder, exported variables and functions last from one call to the next. Output is standard output and error
    together. A command that needs input gets none: pass flags that make it not ask. With background=true the
    result has a session_id; look after the process with the process tool.
    """
    if "\0" in command:
        raise ToolError("A command cannot contain a null byte.")
    shell = session.state(SessionShell)
    folder = await shell.resolve(workdir) if workdir is not None else None
    if pty:
        command = _IN_A_TERMINAL.format(command=shlex.quote(command))
    if background:
        started = await session.state(Processes).start(command, folder or shell.cwd)
        text = f"Started in the background as {started.session_id}. The process tool's wait tells when it has ended."
        return TerminalResult(text, 0, session_id=started.session_id, pid=started.handle.pid)
    seconds = min(timeout or session.terminal_timeout, MAX_TIMEOUT)
    result = await shell.run(command, timeout=seconds, workdir=folder, output_limit=CAPTURED_BYTES)
    text = result.output.replace("\r\n", "\n") if pty else result.output
    return await _finished(session, text, result, seconds)


async def _finished(
    session: ToolSession, output: str, result: CommandResult, seconds: float
) -> TerminalResult:
    text = strip_escapes(output)
    error, code = None, result.exit_code
    if result.timed_out:
        error = f"The command was killed after {seconds:g} seconds; the shell is still usable."
        code = TIMED_OUT
    elif result.reason == "oom":
        error, code = "The command was killed because memory ran out.", 137
    elif code is None:
        error, code = f"The command did not end by itself ({result.reason}).", -1
    text, path = await cut_middle(session, text, output_limit(session, "terminal"))
    return TerminalResult(text, code, error, path)


def output_limit(session: ToolSession, tool_name: str) -> int:
    """Most characters of a command's output that are shown."""
    return min(MAX_OUTPUT, max(1_000, session.budget.limit(tool_name) - 1_000))


def strip_escapes(text: str) -> str:
    """A text without terminal control sequences."""
    return _ESCAPES.sub("", text) if "\x1b" in text else text
