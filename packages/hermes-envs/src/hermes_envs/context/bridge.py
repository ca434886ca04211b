"""Synchronous calls inside asynchronous reward functions, on one event loop and without blocking it.

A reward function runs in a greenlet of its own, inside the task that awaits it. A synchronous context call
switches out of that greenlet and hands its awaitable to the task, which awaits it like any other; the loop stays
free. An `await` in the function is passed through to the loop unchanged, so futures, locks and sessions that
belong to the loop keep working. (The idea is that of SQLAlchemy's asyncio extension, extended to functions that
also await.)
"""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

from hermes_envs.outcome import EnvsError

T = TypeVar("T")


class NotBridged(EnvsError, RuntimeError):
    """A synchronous context call was made where it would block the event loop."""


@dataclass(frozen=True, slots=True)
class _Call:
    """A synchronous call that wants its awaitable awaited."""

    awaitable: Awaitable[Any]


@dataclass(frozen=True, slots=True)
class _Yielded:
    """What the function's own `await` yielded, for the event loop."""

    value: Any


class _Bridge(greenlet):
    """The greenlet of one running function; `home` is the task that awaits it."""

    home: greenlet


async def run_bridged(function: Callable[..., Awaitable[T] | T], /, *args: Any, **kwargs: Any) -> T:
    """Call a function, synchronous or not, in which `wait` may be used; and await its result.

    Cancellation and exceptions pass through in both directions.
    """
    home = getcurrent()

    def body() -> Any:
        result = function(*args, **kwargs)
        return _drive(result, home) if inspect.isawaitable(result) else result

    bridge = _Bridge(body, parent=home)
    bridge.home = home
    bridge.gr_context = home.gr_context
    message = bridge.switch()
    while not bridge.dead:
        try:
            if isinstance(message, _Call):
                answer = await message.awaitable
            else:
                answer = await _pass_on(cast("_Yielded", message).value)
        except BaseException as error:
            message = bridge.throw(error)
        else:
            message = bridge.switch(answer)
    return cast("T", message)


def wait(make: Callable[[], Coroutine[Any, Any, T]], loop: asyncio.AbstractEventLoop | None = None) -> T:
    """Await a coroutine from synchronous code.

    Args:
        make: Makes the coroutine; called only when it can be awaited.
        loop: The loop it belongs to, for calls from other threads.

    Raises:
        NotBridged: Called on the loop's thread outside `run_bridged`, where waiting would block the loop.
    """
    current = getcurrent()
    if isinstance(current, _Bridge):
        return cast("T", current.home.switch(_Call(make())))
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        if loop is not None and loop.is_running():
            return asyncio.run_coroutine_threadsafe(make(), loop).result()
    raise NotBridged(
        "a synchronous ToolContext call was made outside a reward function (or in a task it started), where it would "
        "block the event loop: use the awaitable twin `await ctx.aio.…`, or call it through "
        "`hermes_envs.context.run_bridged`"
    )


def _drive(awaitable: Awaitable[T], home: greenlet) -> T:
    """Run an awaitable to its end inside a bridge, handing what it yields to the task at home."""
    steps = awaitable.__await__()
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            yielded = _step(steps, answer, error)
        except StopIteration as stop:
            return stop.value
        try:
            answer, error = home.switch(_Yielded(yielded)), None
        except BaseException as raised:
            answer, error = None, raised


def _step(steps: Any, answer: Any, error: BaseException | None) -> Any:
    if error is not None:
        return steps.throw(error)
    return next(steps) if answer is None else steps.send(answer)


@types.coroutine
def _pass_on(value: Any) -> Generator[Any, Any, Any]:
    """Yield a value to the event loop as if this task's own code had awaited it."""
    return (yield value)
