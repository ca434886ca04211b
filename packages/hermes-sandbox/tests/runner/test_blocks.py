"""The runner's output, read ahead of the events that say whose it is."""

import asyncio

import pytest
from hermes_sandbox.runner import blocks
from hermes_sandbox.runner.blocks import Blocks
from hermes_sandbox.runner.errors import RunnerLost


class Source:
    """Gives the same piece again and again, then the end."""

    def __init__(self, piece: bytes, count: int) -> None:
        self.piece, self.left = piece, count

    async def read(self, n: int = -1, /) -> bytes:
        await asyncio.sleep(0)
        self.left -= 1
        return self.piece if self.left >= 0 else b""


async def test_events_may_fall_far_behind() -> None:
    """Both come over one connection, so to stop reading would keep the events back for ever."""
    source = Source(b"x" * (1 << 20), 32)
    reading = Blocks(source)
    async with asyncio.timeout(60):
        while source.left >= 0:
            await asyncio.sleep(0)
        taken = 0
        while taken < 32 << 20:
            taken += len(await reading.take(1 << 18))
    with pytest.raises(RunnerLost):
        await reading.take(1)
    await reading.close()


async def test_output_that_no_event_ever_tells_of_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process inside that finds the runner's streams cannot fill this process's memory."""
    monkeypatch.setattr(blocks, "AHEAD", 1000)
    source = Source(b"x" * 100, 1000)
    reading = Blocks(source)
    for _ in range(500):
        await asyncio.sleep(0)
    assert source.left > 900
    taken = [await reading.take(1 << 20) for _ in range(1000 - source.left)]
    assert set(taken) == {b"x" * 100}
    with pytest.raises(RunnerLost):
        await reading.take(1)
    await reading.close()
