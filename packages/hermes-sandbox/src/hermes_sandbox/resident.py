"""Launch commands through resident runners, one for each user."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath

from hermes_sandbox.backend import Backend, Command, CountsOomKills, Machine, Tree
from hermes_sandbox.errors import ImageError, SandboxError
from hermes_sandbox.jobs import MARK, FailedJob, Job, Sink
from hermes_sandbox.oneshot import signal_once
from hermes_sandbox.result import StreamName
from hermes_sandbox.runner import Runner, runner_program
from hermes_sandbox.runner.errors import RunnerLost

NEEDS_BASH = "its image needs bash 4.4 or later (Alpine: `RUN apk add --no-cache bash coreutils tar`)"

READY = 60.0
"""Seconds within which a runner must answer."""
ANSWER = 15.0
"""Seconds within which it must carry out a round of signals; else another process does, and it is given up."""


DYING = (0.1, 0.3, 1.0, 3.0, None)
"""Seconds between attempts to open a runner where one served before."""


def _drop_output(_: StreamName, __: bytes) -> None: ...


class _NoSuchUserError(SandboxError):
    """Nobody inside has that name."""


class ResidentLauncher:
    """Starts commands in a machine where opening a process is dear."""

    def __init__(self, backend: Backend, machine: Machine) -> None:
        self._backend, self._machine = backend, machine
        self._runners: dict[str | None, asyncio.Task[Runner]] = {}
        self._served: set[str | None] = set()

    async def prepare(self) -> None:
        """Open the runner of the machine's own user, so that the first command finds it."""
        await self._runner(None)

    async def launch(self, command: Command, sink: Sink, *, merge: bool, feed: bool) -> Job:
        """Start a command, opening a runner or another one where the last was lost."""
        workdir = self._machine.workdir
        cwd = posixpath.join(workdir, command.cwd) if command.cwd else workdir
        for attempt in range(2):
            try:
                runner = await self._runner(command.user)
            except _NoSuchUserError as error:
                return FailedJob(sink, str(error), 126, merge=merge)
            try:
                return await runner.start(command.argv, cwd, command.env, sink, merge=merge, feed=feed)
            except RunnerLost:
                await self._backend.attach(self._machine.id)  # SandboxGone, if that is why
                if attempt:
                    raise
        raise AssertionError("unreachable")

    async def signal_tree(self, tree: Tree, signal: int, *, user: str | None = None) -> int:
        """Signal through the runner; through a process of its own when the runner does not answer."""
        opening = self._runners.get(user)
        if opening is not None and opening.done() and not opening.exception():
            runner = opening.result()
            try:
                async with asyncio.timeout(ANSWER):
                    return await runner.signal_tree(tree, signal)
            except (RunnerLost, TimeoutError):
                await self._drop(user, opening)
        return await signal_once(self._backend, self._machine, tree, signal, user)

    async def signal_one(self, job: Job, pid: int, signal: int, *, user: str | None = None) -> None:
        """Signal one process through the runner of its user."""
        runner = await self._runner(user)
        await runner.request(f"kill -s {int(signal)} {pid}")

    async def holds(self, job: Job, pid: int, descriptor: int, *, user: str | None = None) -> bool:
        """Have the runner of its user look."""
        runner = await self._runner(user)
        async with asyncio.timeout(ANSWER):
            return await runner.ask("holds", f"{pid} {descriptor}") > 0

    def oom_kills(self) -> int:
        """Ask the backend."""
        return self._backend.oom_kills(self._machine) if isinstance(self._backend, CountsOomKills) else 0

    async def release(self, job: Job) -> None:
        """Drop what the job's background children still write."""
        with contextlib.suppress(ConnectionError):
            await job.close_stdin()
            await job.discard(force=True)

    async def close(self) -> None:
        """End all runners."""
        await asyncio.gather(*(self._drop(*item) for item in list(self._runners.items())))

    async def _runner(self, user: str | None) -> Runner:
        opening = self._runners.get(user)
        if opening is not None and opening.done():
            if not opening.cancelled() and not opening.exception() and not opening.result().lost:
                return opening.result()
            await self._drop(user, opening)
            opening = self._runners.get(user)
        if opening is None:
            opening = self._runners[user] = asyncio.create_task(self._open(user))
        return await asyncio.shield(opening)

    async def _drop(self, user: str | None, opening: asyncio.Task[Runner]) -> None:
        if self._runners.get(user) is opening:
            del self._runners[user]
        if not opening.done():
            opening.cancel()
        runner = (await asyncio.gather(opening, return_exceptions=True))[0]
        if isinstance(runner, Runner):
            await runner.close()

    async def _open(self, user: str | None) -> Runner:
        for pause in DYING:
            try:
                return await self._try_to_open(user)
            except RunnerLost as error:
                await self._backend.attach(self._machine.id)
                if user is not None and user not in self._served and not await self._knows(user):
                    raise _NoSuchUserError(f"there is no user {user!r}") from None
                if user not in self._served or pause is None:
                    raise self._unusable(str(error), user) from None
                await asyncio.sleep(pause)  # it served before: all in it was killed, and it may just be going
        raise AssertionError("the last pause is None")

    async def _knows(self, user: str) -> bool:
        """Whether there is such a user inside, for all that can be told."""
        runner = await self._runner(None)
        argv = ("id", "-u", "--", user.partition(":")[0])
        job = await runner.start(argv, "/", {}, _drop_output, merge=True, feed=False)
        return (await job.ended).exit_code != 1

    async def _try_to_open(self, user: str | None) -> Runner:
        argv = (self._machine.shell, "--norc", "--noprofile", "-c", runner_program())
        command = Command(argv, cwd="/", env={MARK: f"{self._machine.id}/runner"}, user=user)
        process = await self._backend.open_process(self._machine, command)
        runner = Runner(process)
        try:
            async with asyncio.timeout(READY):
                await runner.ready()
        except BaseException:
            await runner.close()
            raise
        self._served.add(user)
        return runner

    def _unusable(self, said: str, user: str | None) -> SandboxError:
        if user in self._served:
            return SandboxError(f"no command can be run in the sandbox any more: {said}")
        if user is not None:
            return SandboxError(f"no command can be run as user {user!r}: {said}")
        return ImageError(f"no command can be run in the sandbox ({said}); {NEEDS_BASH}")
