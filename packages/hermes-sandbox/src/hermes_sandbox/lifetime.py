"""How long a sandbox lives: until it is closed, its lifetime is over, or nobody used it for too long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager

from hermes_sandbox.errors import SandboxError, SandboxGone
from hermes_sandbox.spec import SandboxSpec

logger = logging.getLogger(__name__)


class Lifetime:
    """Closes a sandbox when its time is over."""

    def __init__(self, spec: SandboxSpec, close: Callable[[], Awaitable[None]]) -> None:
        """Count from `start` on."""
        self._spec, self._close = spec, close
        self._ended: str | None = None
        self._users = 0
        self._born = self._last_use = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to count now."""
        loop = asyncio.get_running_loop()
        self._born = self._last_use = loop.time()
        if self._spec.lifetime is not None or self._spec.idle is not None:
            self._task = loop.create_task(self._watch())

    def check(self) -> None:
        """Raise `SandboxGone` when the sandbox's time is over."""
        if self._ended is not None:
            raise SandboxGone(f"the sandbox is gone: {self._ended}; create another")

    @contextmanager
    def use(self) -> Generator[None]:
        """As `busy`, for what needs the sandbox: raises `SandboxGone` when its time is over."""
        self.check()
        with self.busy():
            yield

    @contextmanager
    def busy(self) -> Generator[None]:
        """While something runs the sandbox is not idle."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._last_use = asyncio.get_running_loop().time()

    def end(self, why: str) -> None:
        """Refuse all use from now on."""
        self._ended = self._ended or why
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            waits: list[float] = []
            if self._spec.lifetime is not None:
                waits.append(self._born + self._spec.lifetime - clock())
            if self._spec.idle is not None:
                waits.append(self._spec.idle if self._users else self._last_use + self._spec.idle - clock())
            if min(waits) <= 0:
                break
            await asyncio.sleep(min(waits))
        over = self._spec.lifetime is not None and clock() >= self._born + self._spec.lifetime
        self._ended = "its lifetime was over" if over else "it was idle for too long"
        logger.info("closing a sandbox: %s", self._ended)
        try:
            await self._close()
        except (SandboxError, OSError) as error:
            logger.warning("a sandbox whose time was over could not be removed: %s", error)
