"""Terminal-Bench from a program: one task, or all of them, without the command line."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hermes_envs.harbor import Task

from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.files import read_json
from hermes_benchmarks.lookup import nearest, reference_of
from hermes_benchmarks.metrics import metrics_of, write_metrics
from hermes_benchmarks.progress import Tally, make_progress
from hermes_benchmarks.runner import Run
from hermes_benchmarks.selection import select
from hermes_benchmarks.trial import TrialSpec, run_trial
from hermes_benchmarks.verdict import Verdict

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.terminal_bench.benchmark import TerminalBench2


async def score_one(
    benchmark: TerminalBench2, item: BenchmarkTask | Task | Mapping[str, Any] | str
) -> dict[str, Any]:
    """Run and grade one task in a folder that is deleted again."""
    evaluation = Evaluation(benchmark, benchmark.config)
    name = _runnable(evaluation, item)
    with TemporaryDirectory(prefix="hermes-trial-") as folder:
        spec = TrialSpec(folder, reference_of(type(benchmark)), benchmark.config, name, 1)
        try:
            record = await run_trial(spec, evaluation)
        finally:
            await evaluation.close()
        trajectory = read_json(Path(folder) / "trials" / spec.name / "trajectory.json")
    return {
        "passed": record.verdict is Verdict.PASSED,
        "reward": record.reward,
        "verdict": str(record.verdict),
        "task_name": record.task,
        "category": record.category,
        "turns_used": record.turns,
        "error": record.message or None,
        "trajectory": trajectory,
    }


def _runnable(evaluation: Evaluation, item: BenchmarkTask | Task | Mapping[str, Any] | str) -> str:
    """The name of the task that is meant."""
    if isinstance(item, Mapping):
        item = str(item.get("task_name"))
    name = item if isinstance(item, str) else item.name
    if name not in evaluation.tasks:
        raise UsageError(f"there is no task {name!r}{nearest(name, evaluation.tasks)}")
    for task in evaluation.skipped():
        if task.name == name:
            raise UsageError(f"{name} cannot run: {task.reason}")
    return name


async def evaluate_all(benchmark: TerminalBench2) -> dict[str, float]:
    """Run the benchmark in a new run folder, and return the metrics."""
    evaluation = Evaluation(benchmark, benchmark.config)
    await evaluation.preflight()
    run = Run.start(evaluation, select(evaluation))
    tally = Tally(len(run.plan.trials()), concurrency=benchmark.config.run.concurrency)
    with make_progress(benchmark.config.run.progress, tally) as progress:
        end = await run.execute(progress)
    if end.interrupted:
        raise asyncio.CancelledError
    records = run.records()
    write_metrics(run.folder.path, run.plan, records, end.summary, benchmark.config)
    return metrics_of(records, end.summary)
