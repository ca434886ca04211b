"""together: all at once, none left behind."""

import asyncio
import gc

import pytest
from hermes_envs.together import together


async def after(seconds, value, log=None, begun=None):
    try:
        if begun is not None:
            begun.append(value)
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(0.01)
        if log is not None:
            log.append(value)
        raise
    if isinstance(value, Exception):
        raise value
    return value


async def test_results_come_in_the_order_given():
    assert await together([after(0.02, 1), after(0.0, 2), after(0.01, 3)]) == [1, 2, 3]
    assert await together([]) == []


async def test_a_failure_is_raised_as_it_is_when_the_others_have_ended():
    log = []
    with pytest.raises(KeyError, match="first"):
        await together([after(30, 1, log), after(0, KeyError("first")), after(30, 2, log)])
    assert sorted(log) == [1, 2]


async def test_every_failure_is_taken_note_of(caplog):
    async def fail(number):
        raise KeyError(number)

    gc.collect()
    caplog.clear()  # of what tests before this one left
    with pytest.raises(KeyError):
        await together([fail(1), fail(2), fail(3)])
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_cancelling_repeatedly_still_waits_for_all():
    log, begun = [], []
    task = asyncio.create_task(together([after(30, i, log, begun) for i in range(3)]))
    while len(begun) < 3:
        await asyncio.sleep(0)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(log) == [0, 1, 2]
    assert asyncio.all_tasks() == {asyncio.current_task()}
