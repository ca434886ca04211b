"""The bridge: synchronous waits inside asynchronous functions, on one loop."""

import asyncio
import contextvars

import pytest
from hermes_envs.context import NotBridged, run_bridged
from hermes_envs.context.bridge import wait


async def echo(value, seconds=0.0):
    await asyncio.sleep(seconds)
    return value


async def test_sync_waits_and_awaits_work_side_by_side():
    queue: asyncio.Queue[int] = asyncio.Queue()  # belongs to this loop

    async def reward(first):
        second = wait(lambda: echo(2, 0.01))
        asyncio.get_running_loop().call_later(0.01, queue.put_nowait, 3)
        third = await queue.get()
        async with asyncio.timeout(60):
            fourth = wait(lambda: echo(4))
        return first + second + third + fourth

    assert await run_bridged(reward, 1) == 10


async def test_plain_functions_may_wait_too():
    def reward(value, *, scale):
        return wait(lambda: echo(value)) * scale

    assert await run_bridged(reward, 2, scale=5) == 10


async def test_two_hundred_wait_at_once():
    all_there = asyncio.Barrier(200)

    async def meet():
        await all_there.wait()
        return 1

    async def reward():
        return wait(meet)

    async with asyncio.timeout(60):  # one after another, the first would wait for ever
        assert sum(await asyncio.gather(*(run_bridged(reward) for _ in range(200)))) == 200


async def test_exceptions_pass_in_both_directions():
    async def fail():
        await asyncio.sleep(0)
        raise ValueError("inside")

    async def reward():
        try:
            wait(fail)
        except ValueError as error:
            raise KeyError(str(error)) from error

    with pytest.raises(KeyError, match="inside"):
        await run_bridged(reward)


async def test_cancelling_reaches_the_wait_and_runs_the_functions_clean_up():
    events, begun = [], asyncio.Event()

    async def slow():
        begun.set()
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            events.append("wait cancelled")
            raise

    async def reward():
        try:
            wait(slow)
        finally:
            await asyncio.sleep(0)
            events.append("cleaned up")

    task = asyncio.create_task(run_bridged(reward))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["wait cancelled", "cleaned up"]


async def test_a_timeout_around_a_wait():
    async def reward():
        try:
            async with asyncio.timeout(0.05):
                wait(lambda: echo(1, 30))
        except TimeoutError:
            return "late"

    assert await run_bridged(reward) == "late"


async def test_context_variables_are_the_tasks_own():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(1)

    async def reward():
        assert variable.get() == 1
        variable.set(2)
        wait(lambda: echo(None))
        return variable.get()

    assert await run_bridged(reward) == 2
    assert variable.get() == 2


async def test_bridges_nest():
    async def inner():
        return wait(lambda: echo(1))

    async def outer():
        return wait(lambda: run_bridged(inner)) + await run_bridged(inner)

    assert await run_bridged(outer) == 2


async def test_outside_a_bridge_it_says_what_to_do():
    made = []
    with pytest.raises(NotBridged, match=r"ctx\.aio"):
        wait(lambda: made.append(1))
    assert made == []


async def test_a_task_started_by_the_function_is_outside():
    async def reward():
        async def child():
            return wait(lambda: echo(1))

        with pytest.raises(NotBridged):
            await asyncio.gather(child())
        return "told"

    assert await run_bridged(reward) == "told"


async def test_other_threads_may_wait_for_the_loop():
    loop = asyncio.get_running_loop()
    assert await asyncio.to_thread(wait, lambda: echo(7, 0.01), loop) == 7
