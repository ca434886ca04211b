"""A command on its way: what the resident runner and a directly opened process have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hermes_sandbox.backend import Command, Tree
from hermes_sandbox.result import StreamName

MARK = "HERMES_MARK"
"""The environment variable by which everything that a command started is found again."""

Sink = Callable[[StreamName, bytes], None]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended.

    Attributes:
        exit_code: As `ExecResult.exit_code`; None when nobody knows.
        signaled: Whether a signal killed it.
        oom: Whether the kernel killed something of the sandbox for want of memory meanwhile.
    """

    exit_code: int | None
    signaled: bool = False
    oom: bool = False


class Job:
    """One started command: where its output goes and how it ends. Subclasses know how to reach it.

    Attributes:
        pid: Its process id inside the sandbox; None when unknown.
        ended: Its ending, once the command itself (not its background children) ended.
        drained: Set when all of its output was passed on and nothing holds it open.
        failure: What the sink raised, or the passing on of input, if it did.
    """

    def __init__(self, sink: Sink) -> None:
        self.pid: int | None = None
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.drained = asyncio.Event()
        self.failure: BaseException | None = None
        self.received = 0
        self._sink: Sink | None = sink

    def deliver(self, stream: StreamName, data: bytes) -> None:
        """Pass output on, unless it is of no interest any more."""
        self.received += len(data)
        if self._sink is None:
            return
        try:
            self._sink(stream, data)
        except Exception as error:  # the caller's own
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """End the command, not the transport shared by others, and have `error` raised for it."""
        self._sink, self.failure = None, error
        self.finish(Ending(None))

    def finish(self, ending: Ending) -> None:
        """Record the ending; only the first counts."""
        if not self.ended.done():
            self.ended.set_result(ending)

    async def write(self, data: bytes) -> None:
        """Send bytes to its standard input, at its pace.

        Raises:
            BrokenPipeError: It does not read any more.
        """
        raise NotImplementedError

    async def close_stdin(self) -> None:
        """End its standard input."""
        raise NotImplementedError

    async def busy(self) -> bool:
        """Whether something is left of its output that has not been passed on yet, or its end."""
        return False

    async def discard(self, *, force: bool = False) -> bool:
        """Drop what background children still write, unless output is on its way now and `force` is not given.

        Returns:
            Whether it is dropped from now on.
        """
        self._sink = None
        return True


class FailedJob(Job):
    """What stands for a command that could not be started: a message and an exit code, as a shell gives them."""

    def __init__(self, sink: Sink, message: str, code: int, *, merge: bool) -> None:
        super().__init__(sink)
        self.deliver("stdout" if merge else "stderr", message.encode(errors="surrogateescape") + b"\n")
        self.finish(Ending(code))
        self.drained.set()

    async def write(self, data: bytes) -> None:
        """Nothing reads."""
        raise BrokenPipeError("the command was not started")

    async def close_stdin(self) -> None:
        """Nothing to close."""


class Launcher(Protocol):
    """Starts commands in one machine."""

    async def launch(self, command: Command, sink: Sink, *, merge: bool, feed: bool) -> Job:
        """Start a command.

        Args:
            command: What to run.
            sink: Receives its output, in order.
            merge: Both streams through one pipe, as stdout.
            feed: Whether standard input follows by `Job.write`; else it is empty.
        """
        ...

    async def signal_tree(self, tree: Tree, signal: int, *, user: str | None = None) -> int:
        """Signal every living process of a command that `user` ran; how many were found. Signal 0 only counts."""
        ...

    async def signal_one(self, job: Job, pid: int, signal: int, *, user: str | None = None) -> None:
        """Signal one process: `pid` inside the sandbox, which is the job's own where that is known."""
        ...

    async def holds(self, job: Job, pid: int, descriptor: int, *, user: str | None = None) -> bool:
        """Whether a process that `user` runs has a descriptor open; `pid` as for `signal_one`."""
        ...

    def oom_kills(self) -> int:
        """How often the kernel killed something for want of memory, where that is known outside the sandbox alone."""
        ...

    async def release(self, job: Job) -> None:
        """Let go of a job that ended, or that is of no interest any more."""
        ...

    async def close(self) -> None:
        """End what serves commands. The commands' own processes are not touched."""
        ...
