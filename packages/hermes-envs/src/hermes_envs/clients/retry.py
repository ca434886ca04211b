"""Retries of model calls: the only place where a model is asked twice."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from hermes_envs.clients.errors import ProviderError

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how patiently to ask again. Times are seconds.

    Attributes:
        max_retries: Further tries after the first.
        first_wait: The first wait; each further one doubles, with up to a quarter of jitter taken off.
        longest_wait: Where doubling stops.
        longest_retry_after: A server that asks for a longer wait than this is not waited for.
    """

    max_retries: int = 4
    first_wait: float = 0.5
    longest_wait: float = 30.0
    longest_retry_after: float = 120.0

    def wait(self, error: ProviderError, retry: int) -> float | None:
        """Seconds to wait before retry number `retry` (from 0), None to give up."""
        if retry >= self.max_retries or not error.retryable:
            return None
        if error.retry_after is not None:
            if error.retry_after > self.longest_retry_after:
                return None
            return error.retry_after * random.uniform(1.0, 1.1)
        doubled = min(self.longest_wait, self.first_wait * 2.0**retry)
        return doubled * random.uniform(0.75, 1.0)


async def retried(call: Callable[[], Awaitable[T]], policy: RetryPolicy) -> T:
    """Await `call()` until it succeeds, fails for good, or the policy gives up.

    Raises:
        ProviderError: The last error.
    """
    retry = 0
    while True:
        try:
            return await call()
        except ProviderError as error:
            wait = policy.wait(error, retry)
            if wait is None:
                raise
            retry += 1
            _log.warning(
                "model call failed (%s); retry %d of %d in %.1f s", error, retry, policy.max_retries, wait
            )
        await asyncio.sleep(wait)
