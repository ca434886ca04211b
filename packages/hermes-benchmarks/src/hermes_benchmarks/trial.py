"""One trial: a task, an agent and a verifier, from nothing to a `result.json`."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_envs import Outcome, Rollout

from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.judge import judge
from hermes_benchmarks.outcome import Clock, make_record, write_trial
from hermes_benchmarks.play import play
from hermes_benchmarks.record import TrialRecord, trial_name
from hermes_benchmarks.run_folder import RunFolder, TrialFolder
from hermes_benchmarks.verdict import Judgement, Verdict

if TYPE_CHECKING:
    from hermes_benchmarks.config import EvaluationConfig


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One attempt at one task of one run. Picklable: a worker process or another machine can run it.

    Attributes:
        run: The run's folder.
        benchmark: The benchmark's class, as `module:name`.
        config: The evaluation's configuration, key included.
        task: The task's name.
        attempt: Which of the task's attempts, from 1.
    """

    run: str
    benchmark: str
    config: EvaluationConfig
    task: str
    attempt: int

    @property
    def name(self) -> str:
        """The name of the trial's folder."""
        return trial_name(self.task, self.attempt)


async def run_trial(spec: TrialSpec, evaluation: Evaluation | None = None) -> TrialRecord:
    """Run one trial and write its folder, and nothing else.

    Running it again changes nothing once the trial is graded; an ungraded trial gets another try, and what a
    killed one left behind is dropped.

    Args:
        spec: The trial.
        evaluation: The loaded benchmark and agent, shared by the trials of a process; loaded from the
            spec for this trial alone when None.
    """
    folder = RunFolder(Path(spec.run)).trial(spec.task, spec.attempt)
    finished = await asyncio.to_thread(folder.record)
    if finished is not None and finished.graded:
        return finished
    if evaluation is not None:
        return await _run(spec, evaluation, folder)
    async with Evaluation.load(spec.benchmark, spec.config) as own:
        return await _run(spec, own, folder)


async def _run(spec: TrialSpec, evaluation: Evaluation, folder: TrialFolder) -> TrialRecord:
    number = await asyncio.to_thread(folder.begin)
    clock = Clock(number, datetime.now(UTC), time.monotonic())
    task = evaluation.task(spec.task)
    try:
        rollout, limits = await play(spec, evaluation, task)
    except asyncio.CancelledError:
        rollout = Rollout(id=spec.name, outcome=Outcome.infra_failed)
        judgement = Judgement(Verdict.CANCELLED, None, "cancelled", "agent", "the run was interrupted", True)
        write_trial(
            folder, rollout, make_record(evaluation, task, spec.attempt, clock, rollout, judgement, {})
        )
        raise
    record = make_record(evaluation, task, spec.attempt, clock, rollout, judge(rollout), limits)
    writing = asyncio.ensure_future(asyncio.to_thread(write_trial, folder, rollout, record))
    try:
        await asyncio.shield(writing)
    finally:
        await writing  # an interrupt must not count the run's results while one of them is being written
    return record
