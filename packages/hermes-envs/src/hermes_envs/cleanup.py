"""Clean-up that finishes, whatever happens to the task that does it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from hermes_envs.outcome import is_failure

_Log = logging.Logger | logging.LoggerAdapter[logging.Logger]


async def finish(work: Callable[[], Awaitable[object]], what: str, *, timeout: float, log: _Log) -> None:
    """Run a piece of clean-up to its end, within a deadline.

    Cancelling the caller does not stop it: the cancellation is raised once the clean-up is over. A clean-up that
    fails or takes too long is logged and does not change what came before it; what it leaves behind carries its
    owner's label and is removed by `hermes_sandbox.reap`.

    Args:
        work: Starts the clean-up.
        what: What is cleaned up, for the log.
        timeout: Seconds.
        log: Where to report.
    """

    async def bounded() -> None:
        try:
            async with asyncio.timeout(timeout):
                await work()
        except TimeoutError:
            log.error("%s was not cleaned up within %g s", what, timeout)
        except BaseException as error:
            if not is_failure(error):
                raise
            log.error("%s was not cleaned up: %s: %s", what, type(error).__name__, error)

    task = asyncio.create_task(bounded())
    interrupted: BaseException | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except BaseException as error:
            interrupted = error
    if interrupted is not None:
        raise interrupted
