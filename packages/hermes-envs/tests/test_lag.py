"""The event-loop monitor."""

import asyncio
import time

from hermes_envs import LagMonitor


def a_function_that_blocks():
    time.sleep(1.5)


def a_function_that_computes():
    until = time.thread_time() + 0.5
    while time.thread_time() < until:
        sum(range(1000))


async def test_says_who_blocked_the_loop_and_for_how_long():
    async with LagMonitor(interval=0.01, threshold=0.1) as monitor:
        await asyncio.sleep(0.05)
        a_function_that_blocks()
        await asyncio.sleep(0.1)
    stall = max(monitor.stalls, key=lambda stall: stall.seconds)
    assert 1.4 < stall.seconds < 30
    assert "a_function_that_blocks" in stall.stack
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
