"""Creating sandboxes at a service: few at once, again while it is full, and to an end once begun."""

from __future__ import annotations

import asyncio
import functools
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from hermes_sandbox.errors import QuotaError, SandboxError, Unavailable

T = TypeVar("T")

SETTLE = 5.0
"""Seconds that a creation may still take once it was cancelled, so that what it makes can be found and removed."""
START = 60.0
"""Seconds by which a service's own limit outlasts a sandbox's lifetime, which begins only once it is ready."""
TRIES = 3
FIRST_PAUSE = 0.4
FIRST_PAUSE_WHEN_FULL = 1.0
LONGEST_PAUSE = 30.0


@functools.lru_cache(maxsize=8)
def creation_slots(loop: asyncio.AbstractEventLoop, service: str, creations: int) -> asyncio.Semaphore:
    """Bounds the creations of all sandboxes that one event loop makes at a service, which limits an account's rate."""
    return asyncio.Semaphore(creations)


async def to_the_end(making: Coroutine[Any, Any, T]) -> T:
    """Await a request that makes something; when cancelled, let the request end first, for a while."""
    task = asyncio.ensure_future(making)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            await asyncio.wait({task}, timeout=SETTLE)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        raise


async def patiently(make: Callable[[], Coroutine[Any, Any, T]], seconds: float) -> T:
    """Create, again and again while the service refuses for a quota or a rate.

    Args:
        make: Makes one attempt.
        seconds: How long to go on.

    Raises:
        QuotaError: It refused all the time.
        Unavailable: An attempt was not done in time.
    """
    pause, deadline = FIRST_PAUSE_WHEN_FULL, time.monotonic() + seconds
    while True:
        try:
            async with asyncio.timeout(max(1.0, deadline - time.monotonic())):
                return await to_the_end(make())
        except TimeoutError as error:
            raise Unavailable(f"there was no sandbox within {seconds:g} s (start_timeout)") from error
        except QuotaError:
            wait = pause * random.uniform(0.5, 1.5)
            if time.monotonic() + wait > deadline:
                raise
        await asyncio.sleep(wait)
        pause = min(pause * 2, LONGEST_PAUSE)


async def again(
    call: Callable[[], Awaitable[T]], after: tuple[type[SandboxError], ...] = (Unavailable, QuotaError)
) -> T:
    """Make a call that may be repeated, a few times where the service does not answer or asks to wait.

    Args:
        call: The call.
        after: The errors after which to repeat it.
    """
    pause = FIRST_PAUSE
    for _ in range(TRIES - 1):
        try:
            return await call()
        except after:
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause *= 2
    return await call()
