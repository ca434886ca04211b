"""Which calls of a session may run at the same time."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Lane:
    """A fair lock for many readers or one writer; who came first goes first.

    Calls of one turn are started together, in order. Going through a lane, a `write_file` is done before the
    `terminal` call behind it starts, while reads next to each other run at once.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()
        self._readers = 0
        self._writing = False

    @asynccontextmanager
    async def enter(self, *, shared: bool) -> AsyncGenerator[None]:
        """Hold the lane, beside other shared holders or alone."""
        if self._waiting or not self._free(shared):
            await self._wait(shared)
        else:
            self._take(shared)
        try:
            yield
        finally:
            self._leave(shared)

    def _free(self, shared: bool) -> bool:
        return not self._writing and (shared or self._readers == 0)

    def _take(self, shared: bool) -> None:
        if shared:
            self._readers += 1
        else:
            self._writing = True

    def _leave(self, shared: bool) -> None:
        if shared:
            self._readers -= 1
        else:
            self._writing = False
        self._wake()

    async def _wait(self, shared: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((shared, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(shared)
            else:
                self._waiting.remove((shared, turn))
                self._wake()
            raise

    def _wake(self) -> None:
        while self._waiting and self._free(self._waiting[0][0]):
            shared, turn = self._waiting.popleft()
            if not turn.cancelled():
                self._take(shared)
                turn.set_result(None)
