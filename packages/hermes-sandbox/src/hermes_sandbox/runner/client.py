"""The side of the resident runner that is outside the sandbox. The protocol is described in `runner.bash`."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Mapping, Sequence

from hermes_sandbox.backend import ByteProcess, Tree
from hermes_sandbox.jobs import Ending, Sink
from hermes_sandbox.programs import with_env
from hermes_sandbox.runner.blocks import Blocks
from hermes_sandbox.runner.errors import RunnerLost
from hermes_sandbox.runner.job import RunnerJob
from hermes_sandbox.runner.programs import encode, quote

logger = logging.getLogger(__name__)

SLOW_START = 5.0
"""Seconds after which a command that has no process yet makes one ask whether the runner still runs."""


class Runner:
    """One resident runner and the commands it runs."""

    def __init__(self, process: ByteProcess) -> None:
        """Speak to a runner that was just opened; `ready` tells when it answers."""
        self._process = process
        self._ids = itertools.count(1)
        self._jobs: dict[int, RunnerJob] = {}
        self._answers: dict[int, asyncio.Future[int]] = {}
        self._sending = asyncio.Lock()
        self._ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._complaint = b""
        self._ended = False
        self._blocks = Blocks(process.stdout)
        self._reading = asyncio.create_task(self._read_events())

    async def ready(self) -> int:
        """Wait until it answers; its process id inside.

        Raises:
            RunnerLost: It ended before it answered; the message is what it said.
        """
        return await asyncio.shield(self._ready)

    @property
    def lost(self) -> bool:
        """Whether it cannot run anything any more."""
        return self._ended or self._reading.done()

    async def start(
        self, argv: Sequence[str], cwd: str, env: Mapping[str, str], sink: Sink, *, merge: bool, feed: bool
    ) -> RunnerJob:
        """Fork a command; returns when it has a process.

        Raises:
            RunnerLost: The runner is gone.
        """
        id = next(self._ids)
        job = RunnerJob(self, id, sink, 1 if merge else 2, feed)
        env, argv = with_env(env, argv)
        words = [str(id), quote(cwd), "merge" if merge else "''", *map(quote, argv)]
        code = f"{'start_fed' if feed else 'start'} {' '.join(words)}"
        if env:
            code = f"variables=({' '.join(quote(f'{key}={value}') for key, value in env.items())})\n{code}"
        self._jobs[id] = job
        job.ended.add_done_callback(lambda _: job.released())
        await self.request(code)
        while not job.started.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SLOW_START):
                    await job.started.wait()
            if not job.started.is_set() and await self._exited():
                raise RunnerLost("the runner inside the sandbox was killed")
        if job.pid is None:
            raise RunnerLost("the runner inside the sandbox ended before the command began")
        return job

    async def _exited(self) -> bool:
        """Whether the runner itself ended, which goes unnoticed while a command of its holds the streams."""
        waiting = asyncio.ensure_future(self._process.wait())
        await asyncio.wait({waiting}, timeout=1)
        ended = waiting.done()
        waiting.cancel()
        self._ended = self._ended or ended
        return ended

    async def signal_tree(self, tree: Tree, signal: int) -> int:
        """Signal every living process of a command; how many were found."""
        return await self.ask(
            "slay",
            f"{signal} {quote(tree.mark)} {tree.root or 0} {quote(tree.shell)} "
            f"{quote(' '.join(map(str, tree.spare)))}",
        )

    async def ask(self, request: str, arguments: str) -> int:
        """Have the runner do something that it answers with a number.

        Raises:
            RunnerLost: It is gone.
        """
        id = next(self._ids)
        answer = self._answers[id] = asyncio.get_running_loop().create_future()
        try:
            await self.request(f"{request} {id} {arguments}")
            return await answer
        finally:
            self._answers.pop(id, None)

    async def request(self, code: str, data: bytes = b"") -> None:
        """Have the runner do something.

        Raises:
            RunnerLost: It is gone.
        """
        if self.lost:
            raise RunnerLost("the runner inside the sandbox has ended")
        message = encode(code)
        async with self._sending:
            # Once begun, a request is sent whole: half of one would make nonsense of all that follow.
            sending = asyncio.ensure_future(self._process.write(b"%d\n" % len(message) + message + data))
            try:
                await asyncio.shield(sending)
            except asyncio.CancelledError:
                with contextlib.suppress(Exception):
                    await sending
                raise
            except (OSError, RuntimeError) as error:
                raise RunnerLost(f"the runner inside the sandbox cannot be reached: {error}") from error

    def forget(self, job: RunnerJob) -> None:
        """Take note that nothing more is expected of a command."""
        self._jobs.pop(job.id, None)

    def give_up(self) -> None:
        """Take the runner for lost: something of it was killed inside, and it does not get on."""
        self._reading.cancel()

    async def close(self) -> None:
        """End the runner; what its commands left running is not touched."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        await self._blocks.close()
        await self._process.close()

    async def _read_events(self) -> None:
        held = b""
        try:
            while data := await self._process.stderr.read(65536):
                *lines, held = (held + data).split(b"\n")
                for line in lines:
                    await self._event(line)
        except (OSError, RuntimeError, ValueError) as error:
            logger.debug("the connection to a runner broke: %s", error)
        finally:
            self._lose(held)

    def _lose(self, complaint: bytes) -> None:
        lost = RunnerLost(
            (self._complaint + complaint).decode(errors="replace").strip() or "the runner ended"
        )
        if not self._ready.done():
            self._ready.set_exception(lost)
            self._ready.exception()  # read here too, in case nobody waits for it
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(lost)
                answer.exception()  # read, in case its caller was cancelled at this moment
        for job in list(self._jobs.values()):
            job.finish(Ending(None))
            job.drained.set()
        self._jobs.clear()

    async def _event(self, line: bytes) -> None:
        kind, *fields = line.split()
        if kind == b"R" and not self._ready.done():
            self._ready.set_result(int(fields[0]))
            return
        if kind == b"B":
            raise RunnerLost("a part of the runner was killed inside the sandbox")
        if not self._ready.done() or kind not in b"DPEXAK":
            self._complaint += line + b"\n"
            return
        id, *numbers = map(int, fields)
        if kind == b"K":
            if (answer := self._answers.get(id)) and not answer.done():
                answer.set_result(numbers[0])
            return
        job = self._jobs.get(id)
        if kind == b"D":
            await self._block(job, "stdout" if numbers[0] == 1 else "stderr", numbers[1])
        elif job is not None:
            self._progress(job, kind, numbers)

    async def _block(self, job: RunnerJob | None, stream: str, count: int) -> None:
        while count:
            data = await self._blocks.take(count)
            count -= len(data)
            if job is not None:
                job.deliver("stdout" if stream == "stdout" else "stderr", data)

    async def _watch(self, job: RunnerJob) -> None:
        """A command whose output ended either closed it, or took with it who should report its end."""
        pause = 0.5
        with contextlib.suppress(ConnectionError):
            while True:
                await asyncio.sleep(pause)
                pause = min(2 * pause, 10)
                if not await self.ask("probe", str(job.keeper)):
                    job.finish(Ending(None))
                    self.forget(job)
                    return

    def _progress(self, job: RunnerJob, kind: bytes, numbers: list[int]) -> None:
        if kind == b"P":
            job.pid, job.keeper, *job.pumps = numbers
            job.started.set()
        elif kind == b"A":
            job.passed(numbers[0])
        elif kind == b"E":
            job.open_streams -= 1
            if not job.open_streams:
                job.drained.set()
                if not job.ended.done():
                    watch = asyncio.create_task(self._watch(job))
                    job.ended.add_done_callback(lambda _: watch.cancel())
        elif kind == b"X":
            status, signaled, oom = numbers
            job.finish(Ending(status, bool(signaled), oom > 0))
        if job.ended.done() and job.drained.is_set():
            self.forget(job)
