"""What is kept of a trial: its record made, and everything of it written."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from hermes_envs import Rollout
from hermes_envs.trajectory import to_atif

from hermes_benchmarks.files import write_json
from hermes_benchmarks.record import Consumption, TestDetail, TrialRecord
from hermes_benchmarks.verdict import Judgement

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.evaluation import Evaluation
    from hermes_benchmarks.run_folder import TrialFolder

MESSAGE_LIMIT = 2000


@dataclass(frozen=True, slots=True)
class Clock:
    """When a try began: its number, the date, and the monotonic clock's seconds."""

    number: int
    started: datetime
    began: float


def make_record(
    evaluation: Evaluation,
    task: BenchmarkTask,
    attempt: int,
    clock: Clock,
    rollout: Rollout,
    judgement: Judgement,
    limits: Mapping[str, Any],
) -> TrialRecord:
    """The record of a try that ends now."""
    result, details = rollout.result, rollout.reward_details
    return TrialRecord(
        task=task.name,
        attempt=attempt,
        try_=clock.number,
        verdict=judgement.verdict,
        graded=judgement.verdict.graded,
        retryable=judgement.retryable,
        reward=judgement.reward,
        cause=judgement.cause,
        phase=judgement.phase,
        message=judgement.message[:MESSAGE_LIMIT],
        started=clock.started.isoformat(timespec="milliseconds"),
        seconds=round(time.monotonic() - clock.began, 3),
        timings={phase: round(seconds, 3) for phase, seconds in rollout.timings.items()},
        agent=evaluation.agent_name,
        model=evaluation.agent.model,
        backend=evaluation.backend,
        stop_reason=str(result.stop_reason) if result else None,
        turns=result.turns_used if result else 0,
        tool_errors=len(result.tool_errors) if result else 0,
        usage=Consumption.model_validate(result.usage, from_attributes=True) if result else Consumption(),
        category=task.category,
        difficulty=task.difficulty,
        checksum=task.checksum,
        tests=[TestDetail.model_validate(test) for test in details.get("tests", [])],
        limits={"requested": dict(task.limits), "effective": dict(limits)},
        load_average=os.getloadavg()[0],
        info=dict(details.get("info") or {}),
    )


def write_trial(folder: TrialFolder, rollout: Rollout, record: TrialRecord) -> None:
    """Write everything of a trial, its result last: that is what finishes it."""
    verifier = folder.path / "verifier"
    files: Mapping[str, bytes | str] = rollout.reward_details.get("files") or {}
    for name, content in files.items():
        path = verifier / name
        if not path.resolve().is_relative_to(verifier.resolve()):
            continue  # a name that a task or an agent chose
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
    if rollout.result is not None and rollout.result.messages:
        trajectory = to_atif(
            rollout.result,
            agent_name=record.agent,
            agent_version=version("hermes-benchmarks"),
            session_id=record.name,
        )
        write_json(folder.path / "trajectory.json", trajectory)
    folder.finish(record)
