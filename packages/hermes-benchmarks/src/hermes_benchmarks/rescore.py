"""Verdicts read again from what a run kept, without the model."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hermes_envs import AgentResult, Outcome, Reward, Rollout, StopReason

from hermes_benchmarks.judge import judge
from hermes_benchmarks.record import TestDetail, TrialRecord

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.run_folder import TrialFolder

Rescore: TypeAlias = "Callable[[BenchmarkTask, Path, TrialRecord], Awaitable[Reward | None]]"
"""A benchmark's way to judge a trial's folder again; None where nothing in it can be judged."""


@dataclass(frozen=True, slots=True)
class Change:
    """A trial whose verdict or reward came out differently."""

    before: TrialRecord
    after: TrialRecord

    def __str__(self) -> str:
        def shown(record: TrialRecord) -> str:
            reward = "" if record.reward is None else f" {record.reward:g}"
            return f"{record.verdict}{reward}"

        return f"{self.before.name}: {shown(self.before)} → {shown(self.after)} ({self.after.cause})"


async def rescore(folder: TrialFolder, task: BenchmarkTask, judge_again: Rescore) -> Change | None:
    """Judge a trial again and write its result anew where that changes it.

    Returns:
        The change, or None where there is none or nothing can be judged.
    """
    record = folder.record()
    if record is None:
        return None
    reward = await judge_again(task, folder.path, record)
    if reward is None:
        return None
    after = updated(record, reward)
    if (after.verdict, after.reward) == (record.verdict, record.reward):
        return None
    folder.finish(after)
    return Change(record, after)


def updated(record: TrialRecord, reward: Reward) -> TrialRecord:
    """The record with the verdict that follows from another reward for the same agent's work."""
    stop = StopReason(record.stop_reason) if record.stop_reason else StopReason.finished
    failed = reward.failure is not None and not reward.failure.by_policy
    rollout = Rollout(
        id=record.name,
        outcome=Outcome.infra_failed if failed else Outcome.completed,
        reward=None if failed else reward.value,
        result=AgentResult(messages=[], stop_reason=stop),
        failure=reward.failure if failed else None,
        reward_details=reward.details,
    )
    judgement = judge(rollout)
    before = {"verdict": str(record.verdict), "reward": record.reward, "cause": record.cause}
    return record.model_copy(
        update={
            "verdict": judgement.verdict,
            "graded": judgement.verdict.graded,
            "retryable": judgement.retryable,
            "reward": judgement.reward,
            "cause": judgement.cause,
            "phase": judgement.phase,
            "message": judgement.message[:2000],
            "tests": [TestDetail.model_validate(test) for test in reward.details.get("tests", [])],
            "info": {**record.info, "before_score": before},
        }
    )
