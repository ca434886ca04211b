"""Slots that all processes of a user share."""

import asyncio
import secrets

from hermes_sandbox.gate import slot
from hermes_sandbox.owned_folders import base_folder


async def test_no_more_than_the_slots_are_held_at_once() -> None:
    name = f"test-{secrets.token_hex(4)}"
    inside = most = 0

    async def work() -> None:
        nonlocal inside, most
        async with slot(name, 2):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.01)
            inside -= 1

    await asyncio.gather(*(work() for _ in range(8)))
    assert most == 2
    assert not list(base_folder("locks").glob(f"{name}-*"))


async def test_a_cancelled_holder_lets_go() -> None:
    name = f"test-{secrets.token_hex(4)}"

    held = asyncio.Event()

    async def hold() -> None:
        async with slot(name):
            held.set()
            await asyncio.sleep(600)

    holder = asyncio.create_task(hold())
    await held.wait()
    holder.cancel()
    await asyncio.gather(holder, return_exceptions=True)
    assert holder.cancelled()
    async with asyncio.timeout(60), slot(name):
        assert list(base_folder("locks").glob(f"{name}-*"))
    assert not list(base_folder("locks").glob(f"{name}-*"))
