"""The event-loop monitor."""

import asyncio
import time

from hermes_envs import LagMonitor


def a_function_that_blocks():
    # In steps, so that the monitor's thread has its turn also where the machine stood still.
    for _ in range(30):
        time.sleep(0.05)


def a_function_that_computes():
    until = time.thread_time() + 0.5
    while time.thread_time() < until:
        sum(range(1000))


async def test_says_who_blocked_the_loop_and_for_how_long():
    began, seen = time.perf_counter(), []
    async with LagMonitor(interval=0.01, threshold=0.1) as monitor, asyncio.timeout(60):
        while not seen:  # the machine's own stall just before may have taken the monitor's look
            await asyncio.sleep(0.05)
            a_function_that_blocks()
            await asyncio.sleep(0.1)
            seen = [stall for stall in monitor.stalls if "a_function_that_blocks" in stall.stack]
    (stall,) = seen
    assert 1.4 < stall.seconds < time.perf_counter() - began
    assert stall.computing < 0.5
    assert monitor.worst == max(s.seconds for s in monitor.stalls)


async def test_an_idle_loop_has_no_stalls():
    async with LagMonitor(interval=0.01, threshold=20) as monitor:
        await asyncio.sleep(0.2)
    assert not monitor.stalls
    assert monitor.percentile(0.5) < 20


async def test_tells_computing_from_waiting():
    async with LagMonitor(interval=0.01, threshold=0.3) as monitor:
        await asyncio.sleep(0.05)
        a_function_that_computes()
        await asyncio.sleep(0.05)
    stall = max(monitor.stalls, key=lambda stall: stall.computing)
    assert 0.4 < stall.computing <= stall.seconds
    assert monitor.percentile(1.0, computing=True) == stall.computing
