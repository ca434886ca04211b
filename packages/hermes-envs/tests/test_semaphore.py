"""ResizableSemaphore."""

import asyncio

import pytest
from envs_tools import call
from hermes_envs import HermesAgentLoop, ResizableSemaphore
from hermes_envs.clients import ScriptedClient
from hermes_tools import HostWorkspace, ToolRegistry, ToolSession, tool


async def settled():
    """Let every task that can run do so."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_grows_and_shrinks_while_in_use():
    semaphore = ResizableSemaphore(1)
    leave = asyncio.Semaphore(0)
    order = []

    async def hold(name):
        async with semaphore:
            order.append(name)
            await leave.acquire()

    tasks = [asyncio.create_task(hold(name)) for name in range(8)]
    await settled()
    assert order == [0]
    semaphore.resize(4)
    await settled()
    assert order == [0, 1, 2, 3]
    semaphore.resize(1)
    for _ in range(3):
        leave.release()
    await settled()
    assert order == [0, 1, 2, 3]  # three left, one still holds the only place
    leave.release()
    await settled()
    assert order == [0, 1, 2, 3, 4]
    for _ in range(4):
        leave.release()
    await asyncio.gather(*tasks)
    assert semaphore.in_use == 0


async def test_a_place_handed_to_a_cancelled_waiter_is_not_lost():
    semaphore = ResizableSemaphore(1)
    await semaphore.acquire()
    waiter = asyncio.create_task(semaphore.acquire())
    await settled()
    semaphore.release()  # hands the place to the waiter, which is cancelled before it can run
    waiter.cancel()
    await settled()
    assert semaphore.in_use == 0


async def test_needs_a_place():
    with pytest.raises(ValueError, match="at least one"):
        ResizableSemaphore(0)


async def test_bounds_blocking_tools_over_sessions(tmp_path):
    import threading
    import time

    lock = threading.Lock()
    running = most = 0
    three = threading.Barrier(3)

    @tool
    def block() -> str:
        """Block a thread until two others do."""
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        three.wait(60)
        time.sleep(0.05)  # a fourth would come now
        with lock:
            running -= 1
        return "done"

    pool = ResizableSemaphore(3)
    registry = ToolRegistry().with_tools(block)

    async def rollout():
        async with ToolSession(registry, [block], HostWorkspace(tmp_path), max_blocking=pool) as session:
            client = ScriptedClient([[call("block", "{}", f"c{i}") for i in range(3)], "ok"])
            return await HermesAgentLoop(client, session).run([{"role": "user", "content": "x"}])

    results = await asyncio.gather(*(rollout() for _ in range(4)))
    assert all(result.finished_naturally and not result.tool_errors for result in results)
    assert most == 3
