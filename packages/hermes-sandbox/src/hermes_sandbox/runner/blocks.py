"""The runner's standard output, read ahead."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from hermes_sandbox.backend import ByteReader
from hermes_sandbox.runner.errors import RunnerLost

logger = logging.getLogger(__name__)

AHEAD = 64 << 20
"""How many bytes may be read before the event that says whose they are.

A block has at most 2 MiB, but blocks and events travel apart, and on a busy machine the events fall behind. They could not
catch up if reading stopped then, where both share one connection. So only what no runner would send is too much.
"""


class Blocks:
    """Reads ahead what the runner writes: a block may come before the event that says whose it is."""

    def __init__(self, reader: ByteReader) -> None:
        """Begin to read."""
        self._reader = reader
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._changed = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(1 << 18):
                self._parts.append(data)
                self._size += len(data)
                self._changed.set()
                if self._size > AHEAD:
                    raise RunnerLost("the runner's output comes without events")
        except (OSError, RuntimeError) as error:
            logger.debug("the connection to a runner broke: %s", error)
        finally:
            self._ended = True
            self._changed.set()

    async def take(self, most: int) -> bytes:
        """The next bytes, at most so many."""
        while not self._parts:
            if self._ended:
                raise RunnerLost("the runner's output ended within a block")
            self._changed.clear()
            await self._changed.wait()
        data = self._parts.popleft()
        if len(data) > most:
            self._parts.appendleft(data[most:])
            data = data[:most]
        self._size -= len(data)
        return data

    async def close(self) -> None:
        """Stop reading."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
