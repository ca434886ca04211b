"""Background processes: started, watched, fed and signalled while other commands run."""

from __future__ import annotations

import asyncio
import signal as signals
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from hermes_sandbox.backend import Command, Tree
from hermes_sandbox.execute import check_bytes, launch, settle
from hermes_sandbox.jobs import MARK, Job, Launcher
from hermes_sandbox.output import RecentOutput
from hermes_sandbox.result import StreamName

KEPT = 8 << 20
"""How many of its newest bytes of output a process keeps, at least."""


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """A piece of a process's output.

    Attributes:
        data: Both streams as they were written.
        offset: Where `data` begins; later than asked for when older output was dropped.
        next_offset: What to ask for next time.
    """

    data: bytes
    offset: int
    next_offset: int


class Process:
    """A command that runs in the background.

    Attributes:
        id: Its name in this sandbox.
        command: What was started.
    """

    def __init__(
        self,
        id: str,
        text: str,
        launcher: Launcher,
        command: Command,
        busy: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`Sandbox.spawn` makes these. The sandbox is not idle while a call is `busy`."""
        self.id = id
        self.command = text
        self._launcher = launcher
        self._request = command
        self._busy = busy
        self._output = RecentOutput(KEPT)
        self._job: Job

    async def start(self) -> Process:
        """Start it."""
        self._job = await launch(self._launcher, self._request, self._take, merge=True, feed=True)
        return self

    def _take(self, _: StreamName, data: bytes) -> None:
        self._output.add(data)

    @property
    def pid(self) -> int:
        """Its process id inside the sandbox; 0 where the backend cannot tell."""
        return self._job.pid or 0

    @property
    def ended(self) -> bool:
        """Whether it ended."""
        return self._job.ended.done()

    async def poll(self) -> int | None:
        """Its exit code, 128+n when signal n killed it, -1 when it was lost; None while it runs."""
        with self._busy():
            return self._code() if self._job.ended.done() else None

    def _code(self) -> int:
        code = self._job.ended.result().exit_code
        return -1 if code is None else code

    async def read(self, offset: int = 0, limit: int | None = None) -> ProcessOutput:
        """Output from an offset on; all there is by now, or at most `limit` bytes of it."""
        with self._busy():
            begin, data = self._output.read(offset, limit)
        return ProcessOutput(data, begin, begin + len(data))

    async def write(self, data: bytes) -> None:
        """Send bytes to its standard input, waiting while it does not read.

        Raises:
            BrokenPipeError: It does not read any more.
        """
        check_bytes("data", data)
        with self._busy():
            await self._job.write(data)

    async def close_stdin(self) -> None:
        """End its standard input."""
        with self._busy():
            await self._job.close_stdin()

    async def signal(self, sig: int | str) -> None:
        """Signal it and everything it started: a number, "TERM" or "SIGTERM"."""
        if isinstance(sig, str):
            name = sig.upper()
            sig = signals.Signals[name if name.startswith("SIG") else f"SIG{name}"]
        tree = Tree(self._request.env[MARK], self._job.pid)
        with self._busy():
            await self._launcher.signal_tree(tree, int(sig), user=self._request.user)

    async def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end; its exit code as in `poll`, None when it still runs after `timeout` seconds.

        Output written before the end can then be read.
        """
        with self._busy():
            await asyncio.wait({self._job.ended}, timeout=timeout)
            if not self._job.ended.done():
                return None
            await settle(self._job)
            return self._code()
