"""Run coroutines at once; the first failure ends them all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Await coroutines at once, each in a task of its own.

    When one fails, or the caller is cancelled, the others are cancelled and awaited; then the first failure is
    raised as it is, not in a group.

    Returns:
        Their results, in the order given.
    """
    tasks = [asyncio.create_task(one) for one in work]
    pending = set(tasks)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
    finally:
        await _end(tasks)
    return [task.result() for task in tasks]


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until all have ended, however often the caller is cancelled meanwhile."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    interrupted: BaseException | None = None
    while any(not task.done() for task in running):
        try:
            await asyncio.wait(running)
        except BaseException as error:
            interrupted = error
    for task in tasks:
        if not task.cancelled():
            task.exception()  # it is said of the first failure only
    if interrupted is not None:
        raise interrupted
