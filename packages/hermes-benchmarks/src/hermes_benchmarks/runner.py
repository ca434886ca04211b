"""A run from its first trial to its last: started, interrupted, resumed."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.plan import Plan, identity_of, make_plan
from hermes_benchmarks.run_folder import RunFolder
from hermes_benchmarks.schedule import Observer, RetryPolicy, Schedule
from hermes_benchmarks.selection import Selection
from hermes_benchmarks.summary import Summary, summarize
from hermes_benchmarks.trial import TrialSpec, run_trial

if TYPE_CHECKING:
    from hermes_benchmarks.record import TrialRecord


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended.

    Attributes:
        summary: Its figures.
        stopped: Why it stopped before its end; empty when it did not.
        refused: Whether it stopped because the provider refuses every request.
        interrupted: Whether a person or the system asked it to stop.
    """

    summary: Summary
    stopped: str = ""
    refused: bool = False
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every planned trial is graded."""
        return self.summary.graded == self.summary.planned


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder with what is to happen in it."""

    folder: RunFolder
    plan: Plan
    evaluation: Evaluation

    @classmethod
    def start(cls, evaluation: Evaluation, selection: Selection) -> Run:
        """Make the folder of a new run.

        Raises:
            UsageError: There is a run of that name.
        """
        plan = make_plan(evaluation, selection)
        folder = RunFolder(_fresh_path(evaluation, plan))
        folder.create(plan.model_dump(mode="json"))
        return cls(folder, plan, evaluation)

    @classmethod
    def reopen(cls, folder: RunFolder, evaluation: Evaluation, selection: Selection) -> Run:
        """Go on with a run, under what may be a changed configuration.

        Raises:
            UsageError: The configuration or the tasks changed in what decides results, and the differences are named; or
                another process is working on the run.
        """
        old = check_identity(folder, evaluation, selection)
        plan = make_plan(evaluation, selection)
        if plan.attempts < old.attempts:
            raise UsageError(f"{folder.path} has {old.attempts} attempts a task; that can only be raised")
        if plan.shard != old.shard:
            part = f"shard {old.shard} of a run" if old.shard else "a whole run"
            raise UsageError(f"{folder.path} is {part}; that cannot be changed: start another with --shard")
        plan = plan.model_copy(update={"created": old.created})
        with folder.locked():
            folder.create(plan.model_dump(mode="json"))
        return cls(folder, plan, evaluation)

    def owed(self) -> list[TrialSpec]:
        """The trials that are not graded yet."""
        done = {(record.task, record.attempt) for record in self.folder.latest() if record.graded}
        return [self.trial(task, n) for task, n in self.plan.trials() if (task, n) not in done]

    def trial(self, task: str, attempt: int) -> TrialSpec:
        """One trial of the run."""
        config = self.evaluation.config
        return TrialSpec(str(self.folder.path), self.plan.reference, config, task, attempt)

    def records(self) -> list[TrialRecord]:
        """The latest result of each planned trial that has one."""
        planned = set(self.plan.trials())
        return [record for record in self.folder.latest() if (record.task, record.attempt) in planned]

    def summary(self) -> Summary:
        """The figures so far."""
        records = self.records()
        own = self.evaluation.benchmark.summarize(records)
        return summarize(self.plan, records, own, self.folder.earlier())

    async def execute(self, observer: Observer) -> RunEnd:
        """Run what is owed. An interrupt stops it in good order: what is finished is kept."""
        with self.folder.locked():
            self.folder.rebuild_lines()
            schedule = self._schedule(observer)
            task = asyncio.ensure_future(schedule.execute(self.owed()))
            interrupted = False
            try:
                with terminable(task):
                    await task
            except asyncio.CancelledError:
                interrupted = True
                if (current := asyncio.current_task()) is not None:
                    current.uncancel()
            finally:
                await self.evaluation.close()
            self.folder.rebuild_lines()
            return RunEnd(self.summary(), schedule.stopped, schedule.refused, interrupted)

    def _schedule(self, observer: Observer) -> Schedule:
        run = self.evaluation.config.run
        spent = sum(r.usage.cost_usd or 0.0 for r in (*self.folder.latest(), *self.folder.earlier()))

        async def one(spec: TrialSpec) -> TrialRecord:
            record = await run_trial(spec, self.evaluation)
            self.folder.append(record)
            return record

        return Schedule(
            run=one,
            observer=observer,
            concurrency=run.concurrency,
            retry=RetryPolicy(run.retries, run.retry_wait),
            patience=run.outage_patience,
            max_cost=run.max_cost,
            spent=spent,
        )


def check_identity(folder: RunFolder, evaluation: Evaluation, selection: Selection) -> Plan:
    """The plan of a run that this evaluation may go on with.

    Raises:
        UsageError: The configuration or the tasks changed in what decides results; the differences are named.
    """
    old = Plan.model_validate(folder.config())
    identity = identity_of(evaluation, selection)
    if old.identity.hash != identity.hash:
        changes = "; ".join(old.identity.differences(identity))
        raise UsageError(f"{folder.path} was run under other conditions ({changes}); start a new run instead")
    return old


@contextmanager
def terminable(task: asyncio.Future[None]) -> Generator[None]:
    """Let SIGTERM cancel a task, as Ctrl-C does; only the main thread may."""
    loop = asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _fresh_path(evaluation: Evaluation, plan: Plan) -> Path:
    """The folder of a new run: as named, or named after benchmark, agent, model and time."""
    run = evaluation.config.run
    if run.name:
        path = run.output / run.name
        if (path / "config.json").exists():
            raise UsageError(
                f"there is a run in {path} already; finish it with `resume {path}`, or name another"
            )
        return path
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    words = [plan.benchmark, plan.agent, (plan.model or "").rpartition("/")[2], stamp]
    if plan.shard:
        words.append(f"shard{plan.shard.replace('/', 'of')}")
    name = "--".join(re.sub(r"[^\w.+-]+", "-", word) for word in words if word)
    path, n = run.output / name, 1
    while path.exists():
        n += 1
        path = run.output / f"{name}-{n}"
    return path
