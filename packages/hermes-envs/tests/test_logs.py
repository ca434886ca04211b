"""Logging with the rollout's id."""

import asyncio
import logging

from hermes_envs import RolloutFilter
from hermes_envs.logs import RolloutLogger, current_rollout, in_rollout


async def test_every_record_of_a_rollout_carries_its_id(caplog):
    caplog.handler.addFilter(RolloutFilter())
    caplog.set_level(logging.INFO)

    async def rollout(name):
        with in_rollout(name):
            await asyncio.sleep(0)
            logging.getLogger("another.library").info("hello")
            RolloutLogger(name).info("from %s", "us")
            await asyncio.create_task(child())

    async def child():
        logging.getLogger("a.child.task").info("hello")

    await asyncio.gather(rollout("r1"), rollout("r2"))
    logging.getLogger("outside").info("hello")
    inside = ("another.library", "hermes_envs.rollout", "a.child.task")
    # Others may speak meanwhile: asyncio, of what a test before this one left.
    records = [record for record in caplog.records if record.name in (*inside, "outside")]
    assert {(record.name, record.rollout) for record in records} == {
        *((logger, name) for name in ("r1", "r2") for logger in inside),
        ("outside", ""),
    }
    assert "[r1] from us" in caplog.messages
    assert current_rollout() == ""
