"""Remove what dead processes left behind, on every backend that can be reached."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermes_sandbox.backend import Backend, Leftovers, SandboxInfo
from hermes_sandbox.errors import SandboxError
from hermes_sandbox.ownership import abandoned
from hermes_sandbox.registry import get_backend, list_backends

logger = logging.getLogger(__name__)

DELETIONS_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class Reaped:
    """One thing that was abandoned.

    Attributes:
        backend: The backend's name.
        id: The backend's name for it.
        reason: Why it was taken for abandoned.
        error: Why it could not be removed; "" when it is gone.
    """

    backend: str
    id: str
    reason: str
    error: str = ""


async def reap_backend(backend: Backend, *, dry_run: bool = False, timeout: float = 120.0) -> list[Reaped]:
    """Remove the backend's sandboxes, snapshots and other leftovers whose owner is dead or whose deadline has passed.

    Args:
        backend: Where to look.
        dry_run: Only report.
        timeout: Seconds for the whole of it; what is not removed by then stays for the next time.

    Returns:
        What was abandoned, removed or not.

    Raises:
        SandboxError: The backend could not be asked.
        TimeoutError: It did not answer in time.
    """
    async with asyncio.timeout(timeout):
        limit = asyncio.Semaphore(DELETIONS_AT_ONCE)

        async def remove(id: str, reason: str, how: Callable[[str], Awaitable[None]]) -> Reaped:
            if dry_run:
                return Reaped(backend.name, id, reason)
            async with limit:
                try:
                    await how(id)
                except (SandboxError, OSError) as error:
                    return Reaped(backend.name, id, reason, str(error) or type(error).__name__)
            logger.info("removed %s of the %s backend: %s", id, backend.name, reason)
            return Reaped(backend.name, id, reason)

        async def remove_abandoned(
            found: Sequence[SandboxInfo], how: Callable[[str], Awaitable[None]]
        ) -> list[Reaped]:
            reasons = [(info.id, abandoned(info.labels)) for info in found]
            return list(
                await asyncio.gather(*(remove(id, why, how) for id, why in reasons if why is not None))
            )

        reaped = await remove_abandoned(await backend.list({}), backend.delete)
        if isinstance(backend, Leftovers):  # after the sandboxes: one of a snapshot holds it
            reaped += await remove_abandoned(await backend.leftovers(), backend.remove_leftover)
        return reaped


@functools.cache
def _begun(pid: int, backend: str, options: str) -> threading.Event:
    """Set once the process `pid` has looked for leftovers there."""
    return threading.Event()


async def reap_once(backend: Backend, options: Mapping[str, Any], *, timeout: float = 20.0) -> None:
    """Remove leftovers before a process makes its first sandbox on a backend; failing to is no error."""
    begun = _begun(os.getpid(), backend.name, repr(sorted(options.items())))
    if begun.is_set():
        return
    begun.set()
    try:
        await reap_backend(backend, timeout=timeout)
    except (SandboxError, OSError) as error:  # TimeoutError is an OSError
        logger.debug("could not look for leftovers on %s: %s", backend.name, error)


async def reap(
    backends: Mapping[str, Mapping[str, Any]] | None = None, *, dry_run: bool = False, timeout: float = 120.0
) -> list[Reaped]:
    """Remove abandoned sandboxes and leftovers on every backend that works here.

    Args:
        backends: Names and options of the backends to look on. When None: all that need no options.
        dry_run: Only report.
        timeout: Seconds for each backend.

    Returns:
        What was abandoned, removed or not. A backend that does not answer is passed over with a log line.
    """
    found: list[Backend] = []
    given = backends or {}
    for name in list_backends() if backends is None else given:
        try:
            found.append(await asyncio.to_thread(get_backend, name, **given.get(name, {})))
        except (SandboxError, TypeError, ImportError) as error:  # not installed, or it needs options
            if backends is not None:
                raise
            logger.debug("not looking for leftovers on %s: %s", name, error)
    try:
        return await reap_each(found, dry_run=dry_run, timeout=timeout)
    finally:
        await asyncio.gather(*(backend.close() for backend in found))


async def reap_each(
    backends: Iterable[Backend], *, dry_run: bool = False, timeout: float = 120.0
) -> list[Reaped]:
    """`reap_backend` for each of these that works here; one that does not answer is passed over with a log line."""

    async def one(backend: Backend) -> list[Reaped]:
        try:
            if not (await backend.preflight()).ok:
                return []
            return await reap_backend(backend, dry_run=dry_run, timeout=timeout)
        except (SandboxError, OSError) as error:  # TimeoutError is an OSError
            logger.warning("could not look for leftovers on %s: %s", backend.name, error)
            return []

    return [reaped for each in await asyncio.gather(*map(one, backends)) for reaped in each]
