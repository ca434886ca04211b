"""What a person sees while a run goes on: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from hermes_benchmarks.statistics import wilson
from hermes_benchmarks.verdict import Verdict

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from hermes_benchmarks.record import TrialRecord
    from hermes_benchmarks.trial import TrialSpec


@dataclass(slots=True)
class Tally:
    """Counts of a run under way.

    Attributes:
        planned: Trials of the run.
        done: Trials graded before this process started, then also those since.
        passed: Of `done`, those that passed.
        concurrency: Trials at once, for the time left.
    """

    planned: int
    done: int = 0
    passed: int = 0
    given_up: int = 0
    concurrency: int = 1
    cost: float = 0.0
    running: dict[str, float] = field(default_factory=dict[str, float])
    errors: Counter[str] = field(default_factory=Counter[str])
    seconds: list[float] = field(default_factory=list[float])
    paused_until: float = 0.0
    pause_reason: str = ""

    def start(self, spec: TrialSpec) -> None:
        """A trial starts."""
        self.running[spec.name] = time.monotonic()

    def finish(self, spec: TrialSpec, record: TrialRecord, retry_in: float | None) -> None:
        """A trial ended."""
        self.running.pop(spec.name, None)
        self.cost += record.usage.cost_usd or 0.0
        if record.graded:
            self.done += 1
            self.passed += record.verdict is Verdict.PASSED
            self.seconds.append(record.seconds)
        else:
            self.errors[f"{record.verdict}: {record.cause}"] += 1
            self.given_up += retry_in is None

    @property
    def queued(self) -> int:
        """Trials not started, or waiting for another try."""
        return max(0, self.planned - self.done - self.given_up - len(self.running))

    def time_left(self) -> float | None:
        """Seconds until the end if trials go on taking what they took so far; None before the first."""
        if not self.seconds:
            return None
        mean = sum(self.seconds) / len(self.seconds)
        return mean * (self.queued + len(self.running) / 2) / self.concurrency

    def line(self) -> str:
        """Everything on one line."""
        parts = [f"{self.done}/{self.planned} graded"]
        if self.done:
            parts.append(f"pass rate {wilson(self.passed, self.done)}")
        parts.append(f"{len(self.running)} running, {self.queued} queued")
        if self.errors:
            parts.append("errors: " + ", ".join(f"{name} x{n}" for name, n in self.errors.most_common(3)))
        if self.cost:
            parts.append(f"${self.cost:.2f}")
        if (left := self.time_left()) is not None and (self.queued or self.running):
            parts.append(f"about {duration(left)} left")
        return " · ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as a person says them: 8 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def flat(text: str) -> str:
    """Text of whatever origin on one line, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(text.split()))


def outcome(record: TrialRecord, retry_in: float | None) -> str:
    """One line about a trial that ended."""
    mark = "✓" if record.verdict is Verdict.PASSED else "✗" if record.graded else "!"
    reward = f" {record.reward:g}" if record.reward is not None else ""
    line = f"{mark} {record.name}: {record.verdict}{reward}"
    notes = [f"{record.turns} turns"] if record.turns else []
    notes.append(f"{record.seconds:.1f} s")
    if not record.graded:
        notes.append(f"{record.cause}: {record.message}" if record.message else record.cause)
    if retry_in is not None:
        notes.append(f"again in {duration(retry_in)}")
    return flat(f"{line} ({', '.join(notes)})")


class PlainProgress:
    """One line for each trial, for logs and pipes."""

    def __init__(self, tally: Tally, out: TextIO | None = None, every: int = 10) -> None:
        self.tally, self._out, self._every = tally, out or sys.stdout, every

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def started(self, spec: TrialSpec) -> None:
        """A trial starts: no line."""
        self.tally.start(spec)

    def finished(self, spec: TrialSpec, record: TrialRecord, retry_in: float | None) -> None:
        """Print how it ended, and now and then where the run stands."""
        self.tally.finish(spec, record, retry_in)
        self._print(outcome(record, retry_in))
        if self.tally.done and self.tally.done % self._every == 0:
            self._print(self.tally.line())

    def paused(self, seconds: float, reason: str) -> None:
        """Print why nothing starts."""
        self._print(f"paused for {duration(seconds)}: {flat(reason)}")

    def _print(self, line: str) -> None:
        self._out.write(line + "\n")
        self._out.flush()


class LiveProgress:
    """Finished trials scroll by above a display that stays: a bar, the running trials, the figures."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self._live: Live | None = None

    def __enter__(self) -> LiveProgress:
        from rich.live import Live

        self._live = Live(get_renderable=self._render, refresh_per_second=4, transient=True)
        self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def started(self, spec: TrialSpec) -> None:
        """A trial starts."""
        self.tally.start(spec)

    def finished(self, spec: TrialSpec, record: TrialRecord, retry_in: float | None) -> None:
        """Print how it ended above the display."""
        from rich.text import Text

        self.tally.finish(spec, record, retry_in)
        style = "green" if record.verdict is Verdict.PASSED else "red" if record.graded else "yellow"
        if self._live is not None:
            self._live.console.print(Text(outcome(record, retry_in), style=style), soft_wrap=True)

    def paused(self, seconds: float, reason: str) -> None:
        """Show why nothing starts."""
        self.tally.paused_until, self.tally.pause_reason = time.monotonic() + seconds, reason

    def _render(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        tally, now = self.tally, time.monotonic()
        grid = Table.grid(padding=(0, 1))
        grid.add_row(
            ProgressBar(total=max(1, tally.planned), completed=tally.done + tally.given_up, width=50)
        )
        grid.add_row(Text(tally.line()))
        if tally.paused_until > now:
            grid.add_row(
                Text(f"paused for {duration(tally.paused_until - now)}: {tally.pause_reason}", "yellow")
            )
        for name, began in list(tally.running.items())[:12]:
            grid.add_row(Text(f"  {name}  {duration(now - began)}", "dim"))
        if len(tally.running) > 12:
            grid.add_row(Text(f"  and {len(tally.running) - 12} more", "dim"))
        return grid


class NoProgress(PlainProgress):
    """Nothing is printed."""

    def _print(self, line: str) -> None:
        return None


def make_progress(kind: str, tally: Tally) -> PlainProgress | LiveProgress:
    """The display asked for; `auto` is live where standard output is a terminal."""
    if kind == "none":
        return NoProgress(tally)
    if kind == "live" or (kind == "auto" and sys.stdout.isatty()):
        return LiveProgress(tally)
    return PlainProgress(tally)
