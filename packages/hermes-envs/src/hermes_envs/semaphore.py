"""A semaphore whose size can change while it is in use."""

from __future__ import annotations

import asyncio
from collections import deque


class ResizableSemaphore:
    """At most `size` holders at once, first come first served.

    It bounds blocking tools (`tool_pool=`), sandboxes created at once (`sandboxes=`) or anything else that rollouts
    share. Acquire and release it, or use it with `async with`.

    Args:
        size: Places; 1 or more.
    """

    def __init__(self, size: int) -> None:
        self.in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._size = _positive(size)

    @property
    def size(self) -> int:
        """Places."""
        return self._size

    def resize(self, size: int) -> None:
        """Change the number of places; present holders keep theirs."""
        self._size = _positive(size)
        self._hand_on()

    async def acquire(self) -> None:
        """Wait for a place and take it."""
        if self.in_use < self._size and not self._waiting:
            self.in_use += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.release()  # the place was handed over in the step that cancelled us
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def release(self) -> None:
        """Give a place back."""
        self.in_use -= 1
        self._hand_on()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc: object) -> None:
        self.release()

    def _hand_on(self) -> None:
        """Give free places to the longest waiting; who is woken holds its place already."""
        while self._waiting and self.in_use < self._size:
            place = self._waiting.popleft()
            if not place.done():
                self.in_use += 1
                place.set_result(None)


def _positive(size: int) -> int:
    if size < 1:
        raise ValueError(f"need at least one place, got {size}")
    return size
