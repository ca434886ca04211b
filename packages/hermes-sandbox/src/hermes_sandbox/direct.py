"""Launch every command as a process of its own, without a runner: where that is cheap, or to be trusted."""

from __future__ import annotations

import asyncio
import posixpath
from dataclasses import replace
from pathlib import Path

from hermes_sandbox.backend import (
    Backend,
    ByteProcess,
    ByteReader,
    Command,
    CountsOomKills,
    KillsTrees,
    Machine,
    Tree,
)
from hermes_sandbox.jobs import Ending, Job, Sink
from hermes_sandbox.oneshot import signal_once
from hermes_sandbox.result import StreamName


class DirectJob(Job):
    """A process that the backend opened for one command."""

    def __init__(self, process: ByteProcess, sink: Sink) -> None:
        super().__init__(sink)
        self.pid = process.pid
        self._process = process
        self._open_streams = 2
        self._tasks = [
            asyncio.create_task(self._read("stdout", process.stdout)),
            asyncio.create_task(self._read("stderr", process.stderr)),
            asyncio.create_task(self._wait()),
        ]

    async def _read(self, stream: StreamName, reader: ByteReader) -> None:
        try:
            while data := await reader.read(1 << 16):
                self.deliver(stream, data)
        except OSError:  # the connection broke: `_wait` learns of it and reports the command lost
            return
        finally:
            self._open_streams -= 1
            if not self._open_streams:
                self.drained.set()

    async def _wait(self) -> None:
        try:
            code = await self._process.wait()
        except OSError:
            code = None
        self.finish(Ending(None if code is None else code if code >= 0 else 128 - code, (code or 0) < 0))

    async def write(self, data: bytes) -> None:
        """Write to the process."""
        await self._process.write(data)

    async def close_stdin(self) -> None:
        """End the process's input."""
        await self._process.close_stdin()

    async def signal(self, number: int) -> None:
        """Signal the process itself."""
        await self._process.signal(number)

    async def close(self) -> None:
        """Stop reading and let go of the process."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._process.close()


class DirectLauncher:
    """Starts commands by `Backend.open_process`."""

    def __init__(self, backend: Backend, machine: Machine) -> None:
        self._backend, self._machine = backend, machine
        self._jobs: set[DirectJob] = set()
        self._closing: set[asyncio.Task[None]] = set()

    async def launch(self, command: Command, sink: Sink, *, merge: bool, feed: bool) -> Job:
        """Open the process and begin to read from it."""
        if merge:
            argv = (self._machine.shell, "--norc", "-c", 'exec "$@" 2>&1', "bash", *command.argv)
            command = replace(command, argv=argv)
        if command.cwd is not None:
            command = replace(command, cwd=posixpath.join(self._machine.workdir, command.cwd))
        command = replace(command, stdin=feed)
        job = DirectJob(await self._backend.open_process(self._machine, command), sink)
        self._jobs.add(job)
        job.ended.add_done_callback(lambda _: self._ended(job))
        return job

    def _ended(self, job: DirectJob) -> None:
        """Let go of the process once a background child that holds its output has ended too."""

        async def close() -> None:
            await job.drained.wait()
            await job.close()
            self._jobs.discard(job)

        task = asyncio.get_running_loop().create_task(close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def signal_tree(self, tree: Tree, signal: int, *, user: str | None = None) -> int:
        """Signal by the backend's own means, else by a process inside."""
        if isinstance(self._backend, KillsTrees):
            return await self._backend.signal_tree(self._machine, tree, signal)
        return await signal_once(self._backend, self._machine, tree, signal, user)

    async def signal_one(self, job: Job, pid: int, signal: int, *, user: str | None = None) -> None:
        """Signal the job's own process."""
        if isinstance(job, DirectJob):
            await job.signal(signal)

    async def holds(self, job: Job, pid: int, descriptor: int, *, user: str | None = None) -> bool:
        """Look here, for the processes of such jobs are this machine's."""
        return _holds(pid, descriptor)

    def oom_kills(self) -> int:
        """Ask the backend."""
        return self._backend.oom_kills(self._machine) if isinstance(self._backend, CountsOomKills) else 0

    async def release(self, job: Job) -> None:
        """Close the job's streams and end its process."""
        if isinstance(job, DirectJob):
            await job.close()
            self._jobs.discard(job)

    async def close(self) -> None:
        """Stop reading from all processes."""
        closing = list(self._closing)
        for task in closing:
            task.cancel()
        await asyncio.gather(*closing, return_exceptions=True)
        await asyncio.gather(*(job.close() for job in list(self._jobs)))
        self._jobs.clear()


def _holds(pid: int, descriptor: int) -> bool:
    return Path(f"/proc/{pid}/fd/{descriptor}").is_symlink()
