"""The running event loop's clock, which a test puts forward: a deadline then passes exactly when the test says so."""

import asyncio
from collections.abc import Callable


class Clock:
    """`loop.time` of the running loop, for this test's loop alone."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        true, self._ahead = loop.time, 0.0
        loop.time = lambda: true() + self._ahead

    def put_forward(self, seconds: float) -> None:
        """Let so many seconds pass at once."""
        self._ahead += seconds

    async def put_forward_once(self, happened: Callable[[], object], seconds: float) -> None:
        """Let so many seconds pass as soon as something has happened."""
        async with asyncio.timeout(60):
            while not happened():
                await asyncio.sleep(0.01)
        self.put_forward(seconds)
