"""Notice who blocks the event loop: every rollout of a process shares it."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass

_log = logging.getLogger(__name__)
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class Stall:
    """A time in which the loop did not run.

    Attributes:
        seconds: How long.
        computing: Seconds of it in which the loop's thread computed; the rest it was blocked, or had no CPU.
        stack: Where the loop's thread was while it lasted, innermost frame last; empty if it ended before the look.
    """

    seconds: float
    computing: float
    stack: str


class LagMonitor:
    """Measures how late the loop wakes, and catches what blocks it in the act.

    A heartbeat on the loop measures; a thread beside it looks at the loop's stack when the heartbeat is overdue.
    Use it as an async context manager.

    Args:
        interval: Seconds between heartbeats.
        threshold: Lateness in seconds that counts as a stall and is logged.
        keep_stalls: Stalls remembered, the latest.
    """

    def __init__(self, *, interval: float = 0.02, threshold: float = 0.1, keep_stalls: int = 100) -> None:
        self.interval = interval
        self.threshold = threshold
        self.stalls: deque[Stall] = deque(maxlen=keep_stalls)
        self._lags: deque[float] = deque(maxlen=_KEPT)
        self._computing: deque[float] = deque(maxlen=_KEPT)
        self._beat = 0.0
        self._seen = (0.0, "")
        """The heartbeat that was overdue when the watcher looked, and what it saw."""
        self._stop = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None

    async def __aenter__(self) -> LagMonitor:
        self._beat = time.perf_counter()
        self._task = asyncio.create_task(self._heartbeat())
        self._thread = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), name="loop-lag", daemon=True
        )
        self._thread.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._stop.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def percentile(self, share: float, *, computing: bool = False) -> float:
        """The lateness in seconds that a share (0 to 1) of the recent heartbeats kept below.

        Args:
            share: 0.99 for the 99th percentile.
            computing: Count only what the loop's own computing took, not waiting for a CPU on a busy machine.
        """
        ordered = sorted(self._computing if computing else self._lags)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0

    @property
    def worst(self) -> float:
        """The largest recent lateness, seconds."""
        return max(self._lags, default=0.0)

    async def _heartbeat(self) -> None:
        while True:
            self._beat, cpu = time.perf_counter(), time.thread_time()
            await asyncio.sleep(self.interval)
            late = max(0.0, time.perf_counter() - self._beat - self.interval)
            computing = min(late, time.thread_time() - cpu)
            self._lags.append(late)
            self._computing.append(computing)
            seen, stack = self._seen
            stack = stack if seen == self._beat else ""  # else it is that of an earlier stall, seen too late
            if late >= self.threshold:
                self.stalls.append(Stall(late, computing, stack))
                _log.warning(
                    "the event loop stood still for %.2f s, computing for %.2f s of it\n%s",
                    late,
                    computing,
                    stack,
                )

    def _watch(self, loop_thread: int) -> None:
        while not self._stop.wait(self.threshold / 2):
            beat = self._beat
            overdue = time.perf_counter() - beat - self.interval
            if overdue >= self.threshold / 2 and self._seen[0] != beat:
                frame = sys._current_frames().get(loop_thread)  # pyright: ignore[reportPrivateUsage] - documented
                if frame is not None:
                    self._seen = (beat, "".join(traceback.format_stack(frame, limit=12)))
