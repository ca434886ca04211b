"""AdaptiveConcurrency."""

import asyncio

import pytest
from hermes_envs.clients import AdaptiveConcurrency, RateLimited


async def test_never_more_in_flight_than_the_limit():
    limiter = AdaptiveConcurrency(5)
    seen = 0

    async def call():
        nonlocal seen
        async with limiter.slot():
            seen = max(seen, limiter.in_flight)
            await asyncio.sleep(0.001)

    await asyncio.gather(*(call() for _ in range(50)))
    assert seen == 5
    assert limiter.in_flight == 0


async def test_backs_off_once_for_failures_in_flight_together_and_recovers():
    limiter = AdaptiveConcurrency(16, cooldown=1000)

    async def refused():
        with pytest.raises(RateLimited):
            async with limiter.slot():
                await asyncio.sleep(0)
                raise RateLimited("429")

    await asyncio.gather(*(refused() for _ in range(8)))
    assert limiter.limit == 8
    for _ in range(200):
        async with limiter.slot():
            pass
    assert limiter.limit == 16


async def test_never_below_the_minimum():
    limiter = AdaptiveConcurrency(4, minimum=2, cooldown=0)
    for _ in range(5):
        with pytest.raises(RateLimited):
            async with limiter.slot():
                raise RateLimited("429")
    assert limiter.limit == 2


async def test_cancelled_waiters_leave_no_hole():
    limiter = AdaptiveConcurrency(1)

    async def hold(seconds):
        async with limiter.slot():
            await asyncio.sleep(seconds)

    first = asyncio.create_task(hold(0.02))
    waiters = [asyncio.create_task(hold(0)) for _ in range(10)]
    await asyncio.sleep(0.001)
    for task in waiters[::2]:
        task.cancel()
    # One more is cancelled in the very step in which the slot is handed to it.
    first.add_done_callback(lambda _: waiters[1].cancel())
    await asyncio.gather(first, *waiters, return_exceptions=True)
    await asyncio.wait_for(hold(0), 60)
    assert limiter.in_flight == 0
