"""Run one command to its end: its input, output, deadline, and the death of all it started."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from hermes_sandbox.backend import Command, Tree
from hermes_sandbox.errors import SandboxError
from hermes_sandbox.jobs import MARK, Ending, Job, Launcher, Sink
from hermes_sandbox.output import OutputBuffer
from hermes_sandbox.result import ExecResult, Reason, StreamName

OnOutput = Callable[[StreamName, bytes], None]

TERM_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL, where anything is left."""
KILL_PATIENCE = 5.0
"""Seconds for which SIGKILL is repeated while anything is left."""
LONGEST_LAUNCH = 60.0
"""Seconds within which a command has begun, or never will."""
LAST_EVENT = 5.0
"""Seconds within which the end of a command is reported that was killed."""
LOST_PATIENCE = 20.0
"""Seconds to reach a sandbox again, to end a command whose connection broke."""
QUIET = 0.2
"""Seconds without output after which an open stream is taken to be held by a background child alone."""
CHATTY = 10
"""How often such a pause is waited for in vain, after the command's end, from a background child that never pauses."""
SLOWEST_DRAIN = 60.0
"""Seconds for which output that is on its way is waited for, on a machine that stands still."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to run and how.

    Attributes:
        command: The process; its environment holds the mark.
        stdin: Bytes for its standard input; None for an empty one.
        timeout: Seconds until it is killed; None for never.
        limit: How many bytes of each stream to keep; None for all.
        merge: Whether both streams go through one pipe.
        on_output: Called with output as it comes.
    """

    command: Command
    stdin: bytes | None = None
    timeout: float | None = None
    limit: int | None = None
    merge: bool = False
    on_output: OnOutput | None = None


def check_bytes(name: str, data: object) -> None:
    """Refuse what is no bytes before anything begins: it would fail where nobody is told.

    Raises:
        TypeError: It is something else.
    """
    if not isinstance(data, (bytes, bytearray)):
        remedy = ": pass text.encode()" if isinstance(data, str) else ""
        raise TypeError(f"{name} must be bytes, not {type(data).__name__}{remedy}")


def check_input_and_callback(stdin: object, on_output: object) -> None:
    """Refuse an input that is no bytes, and a callback that nobody would await.

    Raises:
        TypeError: There is such a one.
    """
    if stdin is not None:
        check_bytes("stdin", stdin)
    if inspect.iscoroutinefunction(on_output):
        raise TypeError(
            "on_output is called and not awaited: it must be a plain function, not a coroutine one"
        )


async def execute(launcher: Launcher, request: Request) -> ExecResult:
    """Run a command to its end.

    A timeout or a cancellation kills everything it started, also what left its session or process group.
    """
    return await _Execution(launcher, request).run()


class _Execution:
    def __init__(self, launcher: Launcher, request: Request) -> None:
        self.launcher, self.request = launcher, request
        self.out, self.err = OutputBuffer(request.limit), OutputBuffer(request.limit)
        self.job: Job | None = None

    async def run(self) -> ExecResult:
        clock = asyncio.get_running_loop().time
        begin = clock()
        oom_kills = self.launcher.oom_kills()
        deadline = None if self.request.timeout is None else begin + self.request.timeout
        launching = asyncio.ensure_future(self._launch())
        end = functools.partial(_end, self.launcher, self.request.command, launching)
        feeding: asyncio.Future[None] | None = None
        try:
            await asyncio.wait({launching}, timeout=None if deadline is None else max(0, deadline - clock()))
            if launching.done():
                job = launching.result()
                if self.request.stdin is not None:
                    feeding = asyncio.ensure_future(_feed(job, self.request.stdin))
                await asyncio.wait({job.ended}, timeout=None if deadline is None else deadline - clock())
            timed_out = not launching.done() or not launching.result().ended.done()
            if timed_out:
                await uncancelled(end())
            job = launching.result()
            if job.failure is not None:
                raise job.failure
            leftovers = await drain(job)
            if not timed_out and job.ended.result().exit_code is None:
                await self._kill_lost(job)
        except BaseException:
            await uncancelled(end())
            raise
        finally:
            if feeding is not None:
                feeding.cancel()
                await asyncio.gather(feeding, return_exceptions=True)
        oom = job.ended.result().oom or self.launcher.oom_kills() > oom_kills
        return self._result(job, timed_out, oom, leftovers, clock() - begin)

    def _launch(self) -> Coroutine[Any, Any, Job]:
        request = self.request
        return self.launcher.launch(
            request.command, self._take, merge=request.merge, feed=request.stdin is not None
        )

    def _take(self, stream: StreamName, data: bytes) -> None:
        (self.out if stream == "stdout" else self.err).add(data)
        if self.request.on_output is not None:
            self.request.on_output(stream, data)

    async def _kill_lost(self, job: Job) -> None:
        """End a command whose connection broke: it may go on inside, where nobody hears of it any more."""
        with contextlib.suppress(
            SandboxError, OSError
        ):  # TimeoutError is an OSError; the sandbox may be gone too
            async with asyncio.timeout(LOST_PATIENCE):
                tree = Tree(self.request.command.env[MARK], None)
                await kill_tree(self.launcher, tree, user=self.request.command.user)

    def _result(self, job: Job, timed_out: bool, oom: bool, leftovers: bool, duration: float) -> ExecResult:
        ending = job.ended.result()
        reason: Reason = "exit"
        if timed_out:
            reason = "timeout"
        elif ending.exit_code is None:
            reason = "lost"
        elif ending.exit_code == 128 + signal.SIGKILL and oom:
            reason = "oom"
        elif ending.signaled:
            reason = "signal"
        (stdout, stdout_head), (stderr, stderr_head) = self.out.kept(), self.err.kept()
        return ExecResult(
            exit_code=None if timed_out else ending.exit_code,
            reason=reason,
            stdout=stdout,
            stderr=stderr,
            stdout_total=self.out.total,
            stderr_total=self.err.total,
            duration=duration,
            stdout_head=stdout_head,
            stderr_head=stderr_head,
            leftovers=leftovers,
        )


async def launch(launcher: Launcher, command: Command, sink: Sink, *, merge: bool, feed: bool) -> Job:
    """Start a command; when cancelled meanwhile, end what was begun."""
    launching = asyncio.ensure_future(launcher.launch(command, sink, merge=merge, feed=feed))
    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        await uncancelled(_end(launcher, command, launching, release=True))
        raise


async def _end(
    launcher: Launcher, command: Command, launching: asyncio.Future[Job], *, release: bool = False
) -> None:
    """End everything of a command. A launch under way is awaited: what it starts must be known."""
    await asyncio.wait({launching}, timeout=LONGEST_LAUNCH)
    if not launching.done():
        launching.cancel()
        await asyncio.gather(launching, return_exceptions=True)
    if launching.cancelled() or launching.exception() is not None:
        return
    job = launching.result()
    await kill_tree(launcher, Tree(command.env[MARK], job.pid), user=command.user)
    await asyncio.wait({job.ended}, timeout=LAST_EVENT)
    job.finish(Ending(None))
    if release:
        await launcher.release(job)


async def _feed(job: Job, data: bytes) -> None:
    try:
        if data:
            await job.write(data)
        await job.close_stdin()
    except ConnectionError:  # BrokenPipeError: it need not read its input
        return
    except Exception as error:  # it would wait for the rest for ever
        job.fail(error)


async def drain(job: Job) -> bool:
    """Wait for the rest of an ended command's output; whether background children hold it open."""
    clock = asyncio.get_running_loop().time
    begin, in_vain = clock(), 0
    while not job.drained.is_set():
        before = job.received
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUIET):
                await job.drained.wait()
        chatty = job.received != before
        in_vain += chatty
        if job.drained.is_set() or (chatty and in_vain < CHATTY):
            continue
        with contextlib.suppress(ConnectionError):
            if not await job.discard(force=chatty or clock() - begin > SLOWEST_DRAIN):
                continue
        return True
    return False


async def settle(job: Job) -> None:
    """Wait for what an ended command wrote last. A background child that holds its output open is not waited for."""
    clock = asyncio.get_running_loop().time
    begin = clock()
    while not job.drained.is_set() and clock() - begin < SLOWEST_DRAIN:
        before = job.received
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(QUIET):
                await job.drained.wait()
        if job.received == before and not await job.busy():
            return


async def kill_tree(
    launcher: Launcher, tree: Tree, *, user: str | None = None, grace: float = TERM_GRACE
) -> None:
    """SIGTERM everything of a command, and after `grace` seconds SIGKILL what is left, until nothing is.

    The seconds are those spent waiting: on a machine that stands still a command has no use of those of the clock.
    Where a look takes long, at all processes of a host, there are fewer of them.
    """
    clock = asyncio.get_running_loop().time
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, KILL_PATIENCE)):
        waited, pause = 0.0, 0.01
        alive = await launcher.signal_tree(tree, number, user=user)
        while alive and waited < patience:
            await asyncio.sleep(pause)
            waited += pause
            repeated = 0 if number == signal.SIGTERM else number
            begun = clock()
            alive = await launcher.signal_tree(tree, repeated, user=user)
            took = clock() - begun
            pause = min(max(2 * pause, took), max(0.1, 3 * took))
        if not alive:
            return


async def uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Finish some cleaning up whatever is cancelled meanwhile; a cancellation then takes effect."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.done() and task.cancelled():
                raise
            cancelled = error
    if cancelled is not None:
        task.exception()
        raise cancelled
    task.result()
