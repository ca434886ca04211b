"""What a tool needs from the machine it acts on.

The protocols here are met by `hermes_tools.HostWorkspace` and, as it is, by `hermes_sandbox.Sandbox`. Every
member is read-only, so that frozen dataclasses fit. Ordinary file problems are the built-in `OSError`s
(`FileNotFoundError`, `IsADirectoryError`, `PermissionError`); a workspace that is gone raises an error of its
own, which tools let pass.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable


class CommandResult(Protocol):
    """The end of one command."""

    @property
    def exit_code(self) -> int | None:
        """Exit code, 128+n after signal n, None when the command was stopped from outside."""
        ...

    @property
    def reason(self) -> str:
        """Why it ended: exit, signal, timeout, oom, cancelled or lost."""
        ...

    @property
    def stdout(self) -> bytes:
        """Standard output; head and tail of it when `truncated`. Both streams with `merge=True`."""
        ...

    @property
    def stderr(self) -> bytes:
        """Standard error; head and tail of it when `truncated`."""
        ...

    @property
    def output(self) -> str:
        """Text of both streams, with a mark where something was left out."""
        ...

    @property
    def timed_out(self) -> bool:
        """Whether the deadline ended it."""
        ...

    @property
    def truncated(self) -> bool:
        """Whether more was written than was kept."""
        ...


class ProcessOutput(Protocol):
    """A piece of a background process's output."""

    @property
    def data(self) -> bytes:
        """The bytes from the offset asked for: standard output and error, merged."""
        ...

    @property
    def next_offset(self) -> int:
        """Where to read on."""
        ...


class WorkspaceShell(Protocol):
    """A shell whose folder, exported variables and functions last from one command to the next."""

    @property
    def cwd(self) -> str:
        """The folder the next command starts in."""
        ...

    async def run(
        self, command: str, *, timeout: float | None = None, output_limit: int | None = 1 << 20
    ) -> CommandResult:
        """Run a bash command; both streams come merged, in true order.

        Args:
            command: A bash script of any length.
            timeout: Seconds; what runs longer is killed with all it started, the shell stays usable.
            output_limit: Bytes kept.
        """
        ...

    async def close(self) -> None:
        """End the shell and what runs in it. May be called twice."""
        ...


class WorkspaceProcess(Protocol):
    """A process in the background."""

    @property
    def id(self) -> str:
        """Its name within the workspace."""
        ...

    @property
    def pid(self) -> int:
        """Its process number inside the workspace."""
        ...

    @property
    def command(self) -> str:
        """What was run."""
        ...

    async def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        ...

    async def read(self, offset: int = 0, limit: int | None = None) -> ProcessOutput:
        """Output from a byte offset on, what is there now, without waiting."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes to its standard input."""
        ...

    async def close_stdin(self) -> None:
        """End its standard input."""
        ...

    async def signal(self, sig: int | str) -> None:
        """Send a signal, such as 15 or "TERM", to it and its children."""
        ...

    async def wait(self, timeout: float | None = None) -> int | None:
        """The exit code, or None when it still runs after `timeout` seconds."""
        ...


@runtime_checkable
class Workspace(Protocol):
    """A machine, or a folder of one, that tools act on. Relative paths start at `workdir`."""

    @property
    def workdir(self) -> str:
        """The absolute folder that relative paths start from."""
        ...

    async def exec(
        self,
        command: str | Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        merge: bool = False,
        output_limit: int | None = 1 << 20,
    ) -> CommandResult:
        """Run one command in a process of its own.

        Args:
            command: A bash script, or a list of words run as they are.
            cwd: Folder to run in.
            env: Variables added to the workspace's own.
            stdin: What it reads; nothing by default.
            timeout: Seconds until it is killed with all it started.
            merge: Whether both streams are kept together, in true order.
            output_limit: Bytes kept per stream; None keeps all.
        """
        ...

    async def open_shell(
        self, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> WorkspaceShell:
        """Start a shell."""
        ...

    async def spawn(
        self, command: str | Sequence[str], *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> WorkspaceProcess:
        """Start a process in the background."""
        ...

    async def read_bytes(self, path: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        """Bytes of a file."""
        ...

    async def write_bytes(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a file whole and at once, making the folders it needs.

        Args:
            path: The file. A link is followed.
            data: Its new content.
            mode: Permission bits; by default those of the file that was there, else the usual ones.
        """
        ...
