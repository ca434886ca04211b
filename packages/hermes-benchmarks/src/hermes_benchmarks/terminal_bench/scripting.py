"""Terminal-Bench from a program: one task, or all of them, without the command line."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hermes_envs.harbor import Task

from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.files import read_json
from hermes_benchmarks.lookup import reference_of
from hermes_benchmarks.metrics import metrics_of, write_metrics
from hermes_benchmarks.progress import Tally, make_progress
from hermes_benchmarks.runner import Run
from hermes_benchmarks.selection import select
from hermes_benchmarks.trial import TrialSpec, run_trial
from hermes_benchmarks.verdict import Verdict

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import BenchmarkTask
    from hermes_benchmarks.terminal_bench.benchmark import TerminalBench2


async def score_one(benchmark: TerminalBench2, item: BenchmarkTask | Task | str) -> dict[str, Any]:
    """Run and grade one task in a folder that is deleted again."""
    name = item if isinstance(item, str) else item.name
    evaluation = Evaluation(benchmark, benchmark.config)
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
