"""Waiting for what comes about in its own time, on a machine of any speed."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

PATIENCE = 60.0
LIMITS = (1, 30)
"""Seconds for a command that is to begin and to be stopped then: should the machine stand still during the first, the second."""


async def until(look: Callable[[], Any | Awaitable[Any]]) -> Any:
    """The first answer that is not empty or false."""
    found: Any = None
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                found = look()
                if inspect.isawaitable(found):
                    found = await found
                if found:
                    return found
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"not within {PATIENCE:g} seconds; the last answer was {found!r}") from None


def takes_less(seconds: float, work: Callable[[], object]) -> bool:
    """Whether some work takes less processor time than that, once in three times.

    A machine that stood still may count that as work.
    """

    def spent() -> float:
        begun = time.process_time()
        work()
        return time.process_time() - begun

    return any(spent() < seconds for _ in range(3))


async def numbers(path: Path) -> list[int]:
    """Process numbers that something writes into a file, in one line."""
    text = await until(lambda: path.exists() and "\n" in (text := path.read_text()) and text)
    return list(map(int, text.split()))


async def ended(pids: list[int]) -> None:
    """Wait until none of these processes runs."""
    await until(lambda: not any(map(_runs, pids)))


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"  # a zombie only waits for whoever buries it
