"""Break a rollout at every await it makes."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import hermes_envs.phases
from hermes_sandbox import create_sandbox

SEAMS = (
    "exec", "open_shell", "spawn", "processes", "read_bytes", "write_bytes", "upload", "download", "close"
)  # fmt: skip


class Faults:
    """Counts the calls that cross a seam and breaks one of them.

    Args:
        at: Which call to break, from 0; None breaks none.
        error: Makes the exception to raise; None makes the call hang.
        after: Break it after the work instead of before.
    """

    def __init__(self, at: int | None = None, error=None, *, after: bool = False) -> None:
        self.at = at
        self.error = error
        self.after = after
        self.crossed: list[str] = []
        self.broke: str | None = None
        self.sandboxes: list[Any] = []

    async def cross(self, name, work):
        number = len(self.crossed)
        self.crossed.append(name)
        if number == self.at and not self.after:
            work.close()
            await self._break(name)
        result = await work
        if number == self.at:
            if name == "create":
                await result.close()  # a create that fails leaves nothing
            await self._break(name)
        return result

    async def _break(self, name):
        self.broke = name
        if self.error is None:
            await asyncio.sleep(3600)
        raise self.error()

    def broken(self):
        """Whether it was broken by now."""
        return self.broke is not None

    def client(self, inner):
        return _Client(inner, self)

    def function(self, name, inner):
        async def crossing(*args):
            return await self.cross(name, inner(*args))

        return crossing

    @contextmanager
    def sandbox(self):
        """Within the block, rollouts get sandboxes whose calls cross this."""

        async def faulty(*args, **kwargs):
            return await self.cross("create", self._create(*args, **kwargs))

        hermes_envs.phases.create_sandbox, real = faulty, hermes_envs.phases.create_sandbox
        try:
            yield self
        finally:
            hermes_envs.phases.create_sandbox = real

    async def _create(self, *args, **kwargs):
        sandbox = await create_sandbox(*args, **kwargs)
        self.sandboxes.append(sandbox)
        return _Proxy(sandbox, self, SEAMS)


class _Proxy:
    """A sandbox or shell whose awaitable methods cross the faults."""

    def __init__(self, inner, faults, seams) -> None:
        self._inner = inner
        self._faults = faults
        self._seams = seams

    def __getattr__(self, name):
        value = getattr(self._inner, name)
        if name not in self._seams:
            return value

        async def crossing(*args, **kwargs):
            work = value(*args, **kwargs)
            result = await self._faults.cross(name, work)
            return _Proxy(result, self._faults, ("run", "close")) if name == "open_shell" else result

        return crossing


class _Client:
    def __init__(self, inner, faults) -> None:
        self._inner = inner
        self._faults = faults
        self.model = inner.model

    async def complete(self, *args, **kwargs):
        return await self._faults.cross("model", self._inner.complete(*args, **kwargs))


class Thrown:
    """Awaits a coroutine and throws an exception into it, or cancels the task, at its suspension number `at`.

    Every `await` that really waits is a suspension, in our code or below it.
    """

    def __init__(self, coroutine, at: int | None, error: BaseException | None) -> None:
        self._coroutine = coroutine
        self._at = at
        self._error = error
        self.suspensions = 0
        self.thrown = False

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        value: Any = None
        while True:
            try:
                future = self._coroutine.throw(error) if error else self._coroutine.send(value)
            except StopIteration as stop:
                return stop.value
            number, error = self.suspensions, None
            self.suspensions += 1
            if number == self._at:
                self.thrown = True
                error = self._error
                if error is None:
                    asyncio.current_task().cancel()
            if error is not None:
                # What it waited for goes on alone, as it does when a task is woken by an error of its own.
                if future is not None:
                    future._asyncio_future_blocking = False
                continue
            try:
                value = yield future
            except BaseException as raised:
                error = raised
