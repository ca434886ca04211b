"""The seam between this package and a place where sandboxes run.

A backend supplies few primitives: make and delete a machine, and open a process in it with byte streams. Exec,
timeouts, shells, background processes and file transfers are built on those, once, in `hermes_sandbox.sandbox`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hermes_sandbox.result import ExecResult, StreamName
from hermes_sandbox.spec import Dockerfile, Image, SandboxSpec, Snapshot


@dataclass(frozen=True, slots=True)
class Command:
    """A process to open.

    Attributes:
        argv: The program and its arguments.
        cwd: An absolute path inside; None for the machine's `workdir`.
        env: Variables added to the machine's environment, or the whole environment with `clean_env`.
        user: Who runs it; None for the machine's user.
        clean_env: Whether `env` is all the process gets.
        stdin: Whether its standard input will be written; else it may as well be empty from the start.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    user: str | None = None
    clean_env: bool = False
    stdin: bool = True


class ByteReader(Protocol):
    """One direction of a byte stream; `asyncio.StreamReader` is one."""

    async def read(self, n: int = -1, /) -> bytes:
        """Up to `n` bytes, as soon as there are any; `b""` at the end."""
        ...


class ByteProcess(Protocol):
    """A process inside a machine, as the backend reaches it."""

    @property
    def stdout(self) -> ByteReader:
        """What it writes to its standard output."""
        ...

    @property
    def stderr(self) -> ByteReader:
        """What it writes to its standard error, apart from `stdout`."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process id inside the machine, where the backend knows it."""
        ...

    async def write(self, data: bytes) -> None:
        """Send bytes to its standard input, waiting while it does not read.

        Raises:
            BrokenPipeError: It does not read any more.
        """
        ...

    async def close_stdin(self) -> None:
        """End its standard input; harmless when done before."""
        ...

    async def signal(self, signal: int) -> None:
        """Signal the process itself, where the backend can; else do nothing."""
        ...

    async def wait(self) -> int | None:
        """Its exit code once it ended, whoever still holds its output open.

        -n when signal n killed it and the backend can tell; None when nobody knows (the connection was lost).
        """
        ...

    async def close(self) -> None:
        """Let go of the connection (and end the process where that can be done). Idempotent."""
        ...


@dataclass(slots=True)
class Machine:
    """A created sandbox, as its backend sees it.

    Attributes:
        id: The backend's name for it; `attach` and `delete` take it.
        workdir: Where commands start: an absolute path as commands see it.
        env: The environment every command starts from, as far as the backend knows it; `open_process` gives it
            to every process.
        user: Who commands run as; None when the backend's default.
        root: The prefix that paths of files outside `workdir` have in a sandbox without its own root; "" for
            one with its own root.
        resident: Whether opening a process costs so much that one resident runner serves all commands.
        single: Whether processes opened one by one do not see each other, so that shells too must run through
            the resident runner.
        shell: The bash inside; absolute.
        unenforced: The limits accepted under `strict=False` that nothing enforces.
        state: The backend's own data.
    """

    id: str
    workdir: str
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    user: str | None = None
    root: str = ""
    resident: bool = True
    single: bool = False
    shell: str = "/bin/bash"
    unenforced: tuple[str, ...] = ()
    state: Any = None


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """One existing sandbox, as `Backend.list` and `reap` report it.

    Attributes:
        id: What `attach` and `delete` take.
        backend: The backend's name.
        labels: Owner labels (`hermes.*`) and the user's own.
        running: Whether it runs now.
    """

    id: str
    backend: str
    labels: Mapping[str, str]
    running: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """Whether a backend can work here.

    Attributes:
        ok: Whether a sandbox can be created.
        detail: What was found (versions, addresses), or why it cannot work.
        remedy: What to install or set when it cannot.
        notes: What works only in part.
    """

    ok: bool
    detail: str
    remedy: str = ""
    notes: tuple[str, ...] = ()


class Backend(Protocol):
    """A place where sandboxes run. Its constructor takes its `Options` dataclass.

    Errors are those of `hermes_sandbox.errors`; a method that finds its machine missing raises `SandboxGone`.
    """

    name: str

    async def preflight(self) -> Report:
        """Find out whether sandboxes can be created here, without creating one."""
        ...

    async def create(self, spec: SandboxSpec, labels: Mapping[str, str]) -> Machine:
        """Make and start a sandbox; on any error or cancellation nothing is left.

        Args:
            spec: What it should be. Whatever cannot be enforced raises `Unsupported` before anything is made.
            labels: Recorded on everything made: the owner's labels and the user's.
        """
        ...

    async def attach(self, id: str) -> Machine:
        """Find a running sandbox that some process created."""
        ...

    async def list(self, labels: Mapping[str, str]) -> Sequence[SandboxInfo]:
        """Every sandbox of this package that carries all these labels, running or not."""
        ...

    async def delete(self, id: str) -> None:
        """Remove the sandbox and everything made for it. One that is gone is no error."""
        ...

    async def open_process(self, machine: Machine, command: Command) -> ByteProcess:
        """Start a process inside; it has its own session where the backend can arrange that."""
        ...

    async def close(self) -> None:
        """Let go of the backend's connections. Sandboxes stay as they are."""
        ...


@runtime_checkable
class Builds(Protocol):
    """A backend that builds images."""

    async def build(self, dockerfile: Dockerfile) -> Image:
        """Build, or find what an equal context gave before; equal builds at once happen once."""
        ...


@runtime_checkable
class Snapshots(Protocol):
    """A backend that can save a sandbox's state."""

    async def snapshot(self, machine: Machine, labels: Mapping[str, str]) -> Snapshot:
        """Save the file system. Running processes are not part of it.

        Args:
            machine: What to save.
            labels: Recorded on the snapshot where the backend can (see `Leftovers`): its owner's labels, or none
                for one that is kept whoever dies.
        """
        ...


@runtime_checkable
class ForgetsSnapshots(Protocol):
    """A backend whose snapshots take room until they are removed."""

    async def forget(self, snapshot: Snapshot) -> None:
        """Remove a snapshot. One that is gone is no error."""
        ...


@runtime_checkable
class Leftovers(Protocol):
    """A backend that makes more than sandboxes (snapshots, images in the making) and can find it again.

    All of it carries its owner's labels, so that `reap` can tell what a dead process left.
    """

    async def leftovers(self) -> Sequence[SandboxInfo]:
        """Everything labelled that is no sandbox."""
        ...

    async def remove_leftover(self, id: str) -> None:
        """Remove one of them. One that is gone is no error."""
        ...


@runtime_checkable
class CountsOomKills(Protocol):
    """A backend whose machines cannot see inside how often the kernel killed something for want of memory."""

    def oom_kills(self, machine: Machine) -> int:
        """How often that happened by now. Must not block."""
        ...


@runtime_checkable
class Archives(Protocol):
    """A backend with a faster way to move tar archives than a `tar` process inside."""

    async def put_archive(self, machine: Machine, folder: str, tar: AsyncIterator[bytes]) -> None:
        """Unpack a tar stream into an existing folder."""
        ...

    def get_archive(self, machine: Machine, path: str) -> AsyncIterator[bytes]:
        """A tar stream of a file or folder, its entries starting with the path's last name."""
        ...


@runtime_checkable
class MovesFiles(Protocol):
    """A service with a file interface of its own, which moves much data faster than a process's streams do."""

    async def put_file(self, machine: Machine, path: str, data: AsyncIterator[bytes]) -> None:
        """Write a file, byte for byte, at an absolute path whose folder is there."""
        ...

    def get_file(self, machine: Machine, path: str) -> AsyncGenerator[bytes]:
        """The bytes of a file at an absolute path."""
        ...

    async def remove_file(self, machine: Machine, path: str) -> None:
        """Remove a file. One that is gone is no error."""
        ...


@runtime_checkable
class RunsOnce(Protocol):
    """A service without byte streams: it runs one command and hands back its output."""

    async def run_once(
        self,
        machine: Machine,
        command: Command,
        *,
        stdin: bytes | None,
        timeout: float | None,
        output_limit: int | None,
        on_output: Callable[[StreamName, bytes], None] | None,
    ) -> ExecResult:
        """Run to the end, or kill the whole tree at the timeout or when cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Tree:
    """The processes that belong to one command.

    Attributes:
        mark: The value of `HERMES_MARK` in the environment of everything it started.
        root: Its first process, with whose group, session and descendants it is taken together; None when unknown.
        shell: For a command of a shell whose process is `root`: the prefix of that shell's marks, which numbers
            follow. The shell itself is spared, and so are children with another number than its first, 0.
        spare: Children of a shell that are spared too: its jobs from before the command.
    """

    mark: str
    root: int | None = None
    shell: str = ""
    spare: tuple[int, ...] = ()


@runtime_checkable
class KillsTrees(Protocol):
    """A backend that can find and signal processes itself, without a process inside."""

    async def signal_tree(self, machine: Machine, tree: Tree, signal: int) -> int:
        """Signal every living process of a command.

        Returns:
            How many were found.
        """
        ...
