"""Running many trials: bounded width, retries of what could not be graded, a pause while the provider is down."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hermes_benchmarks.outage import OutageGate
from hermes_benchmarks.verdict import Verdict

if TYPE_CHECKING:
    from hermes_benchmarks.record import TrialRecord
    from hermes_benchmarks.trial import TrialSpec

REFUSALS = frozenset({"AuthenticationFailed", "ModelNotFound"})
"""Causes that no other trial would escape."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How ungraded trials are tried again.

    Attributes:
        retries: Further tries after the first.
        first_wait: Seconds before the first of them.
        factor: How much longer each later wait is.
        max_wait: The longest wait, seconds.
    """

    retries: int = 2
    first_wait: float = 5.0
    factor: float = 3.0
    max_wait: float = 300.0

    def wait(self, retry: int, rng: random.Random) -> float:
        """Seconds before the `retry`-th retry (from 1), with jitter of half to one and a half."""
        return min(self.max_wait, self.first_wait * self.factor ** (retry - 1)) * rng.uniform(0.5, 1.5)


class Observer(Protocol):
    """Told of what happens in a schedule, on its own event loop."""

    def started(self, spec: TrialSpec) -> None:
        """A trial starts."""
        ...

    def finished(self, spec: TrialSpec, record: TrialRecord, retry_in: float | None) -> None:
        """A trial ended; `retry_in` seconds from now it is tried again, None means that it is not."""
        ...

    def paused(self, seconds: float, reason: str) -> None:
        """No trial starts for a while."""
        ...


@dataclass(slots=True)
class Schedule:
    """Runs trials until all are graded, given up, or the run is stopped.

    Attributes:
        run: Runs one trial.
        observer: Told of each start and end.
        concurrency: Trials at once.
        retry: How ungraded trials are tried again.
        gate: Notices a provider that is down.
        patience: Seconds to wait for such a provider before stopping.
        max_cost: US dollars after which nothing more starts, with `spent` counted from the beginning.
        spent: US dollars spent so far.
        stopped: Why the run stopped before its end; empty when it did not.
        refused: Whether it stopped because the provider refuses every request: a wrong key or model.
    """

    run: Callable[[TrialSpec], Awaitable[TrialRecord]]
    observer: Observer
    concurrency: int = 4
    retry: RetryPolicy = RetryPolicy()
    gate: OutageGate = field(default_factory=OutageGate)
    patience: float = 3600.0
    max_cost: float | None = None
    spent: float = 0.0
    stopped: str = ""
    refused: bool = False
    rng: random.Random = field(default_factory=random.Random)
    _ready: deque[TrialSpec] = field(default_factory=deque["TrialSpec"], init=False)
    _waiting: list[tuple[float, int, TrialSpec]] = field(
        default_factory=list[tuple[float, int, "TrialSpec"]], init=False
    )
    _running: dict[asyncio.Task[TrialRecord], TrialSpec] = field(
        default_factory=dict[asyncio.Task["TrialRecord"], "TrialSpec"], init=False
    )
    _retries: dict[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int], init=False)
    _lasted: dict[str, float] = field(default_factory=dict[str, float], init=False)
    _order: itertools.count[int] = field(default_factory=itertools.count, init=False)

    async def execute(self, specs: Sequence[TrialSpec]) -> None:
        """Run `specs` to the end. Cancelling it cancels the running trials and waits for their clean-up."""
        self._ready.extend(specs)
        self._heed_cost()
        try:
            while self._running or (not self.stopped and (self._ready or self._waiting)):
                self._start()
                await self._wait()
        finally:
            await self._cancel()

    def stop(self, reason: str) -> None:
        """Start nothing more; what runs is finished."""
        self.stopped = self.stopped or reason

    def _start(self) -> None:
        now = time.monotonic()
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.append(heapq.heappop(self._waiting)[2])
        while self._ready and not self.stopped and len(self._running) < self.concurrency:
            if not self.gate.admits(len(self._running)):
                break
            spec = self._next()
            self.observer.started(spec)
            self._running[asyncio.create_task(_awaited(self.run(spec)), name=spec.name)] = spec

    def _next(self) -> TrialSpec:
        """The next trial in order; at the end, when no more wait than may run at once, the one that lasts longest.

        What others of its task took says so. Otherwise the last to start could run on alone for its whole length.
        """
        if len(self._ready) > self.concurrency:
            return self._ready.popleft()
        longest = max(self._ready, key=lambda spec: self._lasted.get(spec.task, math.inf))
        self._ready.remove(longest)
        return longest

    async def _wait(self) -> None:
        """Wait until a trial ends, a retry is due or the gate may open."""
        if self.gate.closed and self.gate.down_for > self.patience:
            self.stop(f"the provider has been failing for {self.gate.down_for:.0f} s")
        pause = [self._waiting[0][0] - time.monotonic()] if self._waiting else []
        if self._ready and self.gate.closed and not self._running:  # else nothing may start before one ends
            pause.append(self.gate.next_probe())
        timeout = max(0.01, min(pause)) if pause else None
        if not self._running:
            if not self.stopped and timeout is not None:
                await asyncio.sleep(timeout)
            return
        done, _ = await asyncio.wait(self._running, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            self._finish(self._running.pop(task), task.result())

    def _finish(self, spec: TrialSpec, record: TrialRecord) -> None:
        self.spent += record.usage.cost_usd or 0.0
        self._lasted[spec.task] = record.seconds
        down_before = self.gate.closed
        self._tell_gate(record)
        if self.gate.closed and not down_before:
            self.observer.paused(self.gate.next_probe(), f"the provider keeps failing: {record.message}")
        self.observer.finished(spec, record, self._retry(spec, record))
        if record.cause in REFUSALS:
            self.refused = True
            self.stop(record.message or "the provider refuses")
        self._heed_cost()

    def _tell_gate(self, record: TrialRecord) -> None:
        """Report what the trial says of the provider: it is down, or it answered; or nothing at all."""
        if record.verdict is Verdict.PROVIDER_ERROR:
            if record.retryable:  # else it answered, and refused this very request
                self.gate.report(True)
        elif record.graded:
            self.gate.report(False)

    def _heed_cost(self) -> None:
        if self.max_cost is not None and self.spent >= self.max_cost:
            self.stop(
                f"the run has spent ${self.spent:.2f} of ${self.max_cost:.2f}; raise it with --max-cost"
            )

    def _retry(self, spec: TrialSpec, record: TrialRecord) -> float | None:
        """Queue another try where there should be one, and say in how many seconds."""
        if not record.verdict.retried or not record.retryable or self.stopped:
            return None
        key = (spec.task, spec.attempt)
        outage = self.gate.closed and record.verdict is Verdict.PROVIDER_ERROR
        if not outage:  # an outage is the provider's, and costs no trial one of its retries
            if self._retries.get(key, 0) >= self.retry.retries:
                return None
            self._retries[key] = self._retries.get(key, 0) + 1
        wait = self.gate.next_probe() if outage else self.retry.wait(self._retries[key], self.rng)
        heapq.heappush(self._waiting, (time.monotonic() + wait, next(self._order), spec))
        return wait

    async def _cancel(self) -> None:
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.gather(*self._running, return_exceptions=True)
            self._running.clear()


async def _awaited(record: Awaitable[TrialRecord]) -> TrialRecord:
    return await record
