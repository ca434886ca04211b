"""Environments that a test made are closed when it ends."""

import atropos_world
import pytest


@pytest.fixture(autouse=True)
async def closed_environments():
    yield
    while atropos_world.MADE:
        await atropos_world.MADE.pop().aclose()
