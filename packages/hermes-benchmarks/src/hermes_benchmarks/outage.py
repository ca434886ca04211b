"""Noticing that the provider is down, so that a run waits for it instead of burning its trials."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class OutageGate:
    """Closes after several provider errors in a row; then lets one trial through at a time until one succeeds.

    Attributes:
        threshold: Provider errors in a row that close it.
        first_wait: Seconds before the first probe; doubled after each failed one.
        max_wait: The longest wait between probes, seconds.
        clock: Seconds, monotonic.
    """

    threshold: int = 3
    first_wait: float = 15.0
    max_wait: float = 300.0
    clock: Callable[[], float] = time.monotonic
    _errors: int = field(default=0, init=False)
    _closed_at: float | None = field(default=None, init=False)
    _probe_at: float = field(default=0.0, init=False)
    _wait: float = field(default=0.0, init=False)

    @property
    def closed(self) -> bool:
        """Whether the provider is taken to be down."""
        return self._closed_at is not None

    @property
    def down_for(self) -> float:
        """Seconds since it closed; 0 while open."""
        return 0.0 if self._closed_at is None else self.clock() - self._closed_at

    def next_probe(self) -> float:
        """Seconds until one more trial may start; 0 means now."""
        return max(0.0, self._probe_at - self.clock()) if self.closed else 0.0

    def admits(self, running: int) -> bool:
        """Whether a trial may start, with `running` others under way: while closed, one alone."""
        return not self.closed or (running == 0 and self.next_probe() == 0.0)

    def report(self, provider_error: bool) -> None:
        """Take note of how a trial ended."""
        if not provider_error:
            self._errors, self._closed_at = 0, None
            return
        self._errors += 1
        if self._closed_at is None and self._errors >= self.threshold:
            self._closed_at, self._wait = self.clock(), self.first_wait
            self._probe_at = self.clock() + self._wait
        elif self._closed_at is not None and self.clock() >= self._probe_at:
            self._wait = min(self.max_wait, self._wait * 2)
            self._probe_at = self.clock() + self._wait
