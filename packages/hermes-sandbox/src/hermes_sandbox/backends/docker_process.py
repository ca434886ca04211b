"""A process in a container (`docker exec`), as a `ByteProcess`."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

import aiohttp
from aiodocker.exceptions import DockerError
from aiodocker.execs import Exec
from aiodocker.stream import Stream

HIGH_WATER = 1 << 21
SILENCE = 0.15
"""Seconds of silence after which the daemon is asked whether a process still runs, for it costs it some work."""
TALK = 10
"""How many such pauses in a row without a silence let the daemon be asked as well."""


class _Reader:
    """One stream's bytes, of which at most about `HIGH_WATER` wait to be read."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()

    async def put(self, data: bytes) -> None:
        while self._size >= HIGH_WATER:
            self._changed.clear()
            await self._changed.wait()
        self._parts.append(data)
        self._size += len(data)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    async def read(self, n: int = -1, /) -> bytes:
        while not self._parts:
            if self._ended:
                return b""
            self._changed.clear()
            await self._changed.wait()
        data = self._parts.popleft()
        while self._parts and 0 <= len(data) + len(self._parts[0]) <= n:
            data += self._parts.popleft()
        if 0 <= n < len(data):
            self._parts.appendleft(data[n:])
            data = data[:n]
        self._size -= len(data)
        self._changed.set()
        return data


class DockerProcess:
    """A process that the daemon started in a container, and the connection that carries its streams."""

    pid = None  # the daemon knows the host's number only

    def __init__(self, execution: Exec, stream: Stream) -> None:
        self.stdout, self.stderr = _Reader(), _Reader()
        self._execution, self._stream = execution, stream
        self._activity = asyncio.Event()
        self._pumping = asyncio.create_task(self._pump())

    async def _pump(self) -> None:
        try:
            while (message := await self._stream.read_out()) is not None:
                await (self.stderr if message.stream == 2 else self.stdout).put(message.data)
                self._activity.set()
        except (OSError, RuntimeError, aiohttp.ClientError):
            return  # the streams end here; `wait` finds out why
        finally:
            self.stdout.end()
            self.stderr.end()

    async def write(self, data: bytes) -> None:
        """Send bytes to its standard input."""
        try:
            await self._stream.write_in(data)
        except (AssertionError, RuntimeError, aiohttp.ClientError) as error:
            raise BrokenPipeError("the connection to the process is closed") from error
        if self._pumping.done():
            raise BrokenPipeError("the process does not read any more")

    async def close_stdin(self) -> None:
        """End its standard input: the connection is closed in that direction."""
        response = self._stream._resp  # pyright: ignore[reportPrivateUsage]
        transport = response.connection.transport if response and response.connection else None
        if transport is not None and not transport.is_closing():
            with contextlib.suppress(OSError, RuntimeError):
                transport.write_eof()

    async def signal(self, signal: int) -> None:
        """The daemon cannot signal such a process."""

    async def wait(self) -> int | None:
        """Its exit code; None when the daemon cannot be asked, or the container was removed.

        The end of the streams tells of the end. A background child may hold them open, so the daemon is also
        asked from time to time: when it falls silent, and ever more seldom in a long silence.
        """
        pause = SILENCE
        talking = 0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await asyncio.shield(self._pumping)
            ended = self._pumping.done()
            if self._activity.is_set() and not ended and talking < TALK:
                self._activity.clear()
                talking += 1
                pause = SILENCE
                continue
            talking = 0
            try:
                async with asyncio.timeout(30):
                    state = await self._execution.inspect()
            except (DockerError, OSError, aiohttp.ClientError):
                return None
            if not state["Running"] and state["ExitCode"] is not None:
                return int(state["ExitCode"])
            pause = min(1.5 * pause, 3.0)
            if ended:
                await asyncio.sleep(0.02)

    async def close(self) -> None:
        """Close the connection."""
        self._pumping.cancel()
        await asyncio.gather(self._pumping, return_exceptions=True)
        with contextlib.suppress(AssertionError, OSError, RuntimeError):
            await self._stream.close()
