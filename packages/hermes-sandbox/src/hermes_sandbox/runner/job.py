"""One command that the resident runner forked."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from hermes_sandbox.jobs import Job, Sink

BLOCK = 28672
WINDOW = 2 * BLOCK
"""How much input may be on its way to one command: it fits into a pipe, so that the runner never waits for it."""
STALLED = 20.0
"""Seconds within which the runner must answer what needs no waiting, also on a busy machine."""


class Requests(Protocol):
    """What a command asks of its runner."""

    async def request(self, code: str, data: bytes = b"") -> None:
        """Have the runner do something."""
        ...

    async def ask(self, request: str, arguments: str) -> int:
        """Have the runner do something that it answers with a number."""
        ...

    def forget(self, job: RunnerJob) -> None:
        """Take note that nothing more is expected of a command."""
        ...

    def give_up(self) -> None:
        """Take the runner for lost."""
        ...


class RunnerJob(Job):
    """A command that the runner forked."""

    def __init__(self, runner: Requests, id: int, sink: Sink, streams: int, feed: bool) -> None:
        super().__init__(sink)
        self.id = id
        self.open_streams = streams
        self.pumps: list[int] = []
        self.keeper = 0
        self.started = asyncio.Event()
        self._runner = runner
        self._on_the_way = 0
        self._room = asyncio.Event()
        self._broken = False
        self._input_open = feed
        self._closing: asyncio.Future[None] | None = None

    def passed(self, count: int) -> None:
        """Note that the command's pipe took `count` bytes of input, or -1 that it takes no more."""
        self._broken = self._broken or count < 0
        self._on_the_way -= max(count, 0)
        self._room.set()

    async def write(self, data: bytes) -> None:
        """Pass input on in blocks, no more of it than the command's pipe holds."""
        for begin in range(0, len(data), BLOCK):
            block = data[begin : begin + BLOCK]
            while self._on_the_way + len(block) > WINDOW and not self._closed():
                self._room.clear()
                await self._room.wait()
            if self._closed():
                raise BrokenPipeError("the command does not read its input any more")
            self._on_the_way += len(block)
            await self._runner.request(f"feed {self.id} {len(block)}", block)

    def _closed(self) -> bool:
        return self._broken or self.ended.done() or not self._input_open

    async def close_stdin(self) -> None:
        """End the input."""
        if self._input_open:
            self._input_open = False
            await self._runner.request(f"end_input {self.id}")

    async def busy(self) -> bool:
        """Have the runner look into its pipes."""
        if self.drained.is_set() or not self.pumps:
            return False
        with contextlib.suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(STALLED):
                return await self._pumps("look") > 0
        return False

    async def _pumps(self, how: str) -> int:
        return await self._runner.ask("discard", f"{how} {' '.join(map(str, self.pumps))}")

    async def discard(self, *, force: bool = False) -> bool:
        """Have the runner drop what is still written."""
        if self.drained.is_set() or not self.pumps:
            return await super().discard(force=force)
        try:
            async with asyncio.timeout(STALLED):
                if await self._pumps("force" if force else "''"):
                    return False
        except TimeoutError:
            self._runner.give_up()
        self._runner.forget(self)
        return await super().discard()

    def released(self) -> None:
        """Wake whoever waits for the command: it ended or was lost. What the runner keeps for its input goes."""
        self._room.set()
        self.started.set()
        if self._input_open:
            self._closing = asyncio.ensure_future(self._end_input())

    async def _end_input(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self.close_stdin()
