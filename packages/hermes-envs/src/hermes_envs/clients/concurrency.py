"""Adaptive concurrency: as many model calls at once as the provider bears."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from hermes_envs.clients.errors import ProviderTimeout, RateLimited
from hermes_envs.semaphore import ResizableSemaphore


class AdaptiveConcurrency:
    """Bounds the calls in flight: additive increase, multiplicative decrease (Chiu and Jain, 1989).

    A 429 or a timeout halves the limit, at most once per `cooldown` since calls already in flight fail together; a
    limit's worth of successes raises it by one.

    Args:
        maximum: The limit it starts from and never exceeds.
        minimum: The limit it never falls below.
        cooldown: Seconds in which one decrease counts for all failures.
    """

    def __init__(self, maximum: int = 512, *, minimum: int = 1, cooldown: float = 2.0) -> None:
        if not 1 <= minimum <= maximum:
            raise ValueError(f"need 1 <= minimum <= maximum, got {minimum} and {maximum}")
        self.maximum = maximum
        self.minimum = minimum
        self.cooldown = cooldown
        self._limit = float(maximum)
        self._reduced = float("-inf")
        self._slots = ResizableSemaphore(maximum)

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return self._slots.size

    @property
    def in_flight(self) -> int:
        """Calls in flight now."""
        return self._slots.in_use

    @asynccontextmanager
    async def slot(self) -> AsyncGenerator[None, None]:
        """Hold one slot; what the block raises moves the limit."""
        async with self._slots:
            try:
                yield
            except (RateLimited, ProviderTimeout):
                self._shrink()
                raise
        self._set(min(float(self.maximum), self._limit + 1.0 / self._limit))

    def _shrink(self) -> None:
        now = time.monotonic()
        if now - self._reduced >= self.cooldown:
            self._reduced = now
            self._set(max(float(self.minimum), self._limit / 2))

    def _set(self, limit: float) -> None:
        self._limit = limit
        if int(limit) != self._slots.size:
            self._slots.resize(int(limit))
