"""`metrics.json` and `samples.jsonl`, as Atropos' `evaluate_log` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from hermes_benchmarks.config import EvaluationConfig
from hermes_benchmarks.files import write_json, write_lines
from hermes_benchmarks.plan import Plan
from hermes_benchmarks.record import TrialRecord
from hermes_benchmarks.summary import Summary
from hermes_benchmarks.verdict import Verdict


def metrics_of(records: Sequence[TrialRecord], summary: Summary) -> dict[str, float]:
    """The figures under the names that Atropos' environments log."""
    metrics: dict[str, float] = {
        "eval/pass_rate": summary.pass_at_1.mean,
        "eval/pass_rate_errors_as_failures": summary.pass_rate_all,
        "eval/total_tasks": summary.tasks,
        "eval/total_trials": summary.planned,
        "eval/graded_trials": summary.graded,
        "eval/passed_tasks": len({r.task for r in records if r.verdict is Verdict.PASSED}),
        "eval/passed_trials": summary.passed,
        "eval/coverage": summary.coverage,
        "eval/mean_reward": summary.mean_reward.mean,
        "eval/evaluation_time_seconds": wall_seconds(records),
    }
    metrics |= {f"eval/pass_rate_{group.name}": group.estimate.mean for group in summary.by_category}
    metrics |= {f"eval/pass_rate_{group.name}": group.estimate.mean for group in summary.by_difficulty}
    if summary.usage.cost_usd is not None:
        metrics["eval/cost_usd"] = summary.usage.cost_usd
    return {**metrics, **{f"eval/{name}": value for name, value in summary.own.items()}}


def wall_seconds(records: Sequence[TrialRecord]) -> float:
    """From the first trial's start to the last one's end."""
    starts = [datetime.fromisoformat(record.started).timestamp() for record in records]
    ends = [start + record.seconds for start, record in zip(starts, records, strict=True)]
    return round(max(ends) - min(starts), 3) if starts else 0.0


def write_metrics(
    run: Path, plan: Plan, records: Sequence[TrialRecord], summary: Summary, config: EvaluationConfig
) -> dict[str, float]:
    """Write both files to the run folder, and to `data_dir_to_save_evals` where that is set; return the metrics."""
    metrics = metrics_of(records, summary)
    result = {
        "config_general": {
            "model_name": plan.model or plan.agent,
            "total_evaluation_time_seconds": str(metrics["eval/evaluation_time_seconds"]),
            "generation_parameters": {
                "max_new_tokens": config.env.max_token_length,
                "temperature": config.env.agent_temperature,
            },
        },
        "results": {f"atropos|{plan.benchmark}_eval|0": metrics, "all": metrics},
    }
    samples = [_sample(record) for record in records]
    for folder in {run, config.env.data_dir_to_save_evals or run}:
        write_json(folder / "metrics.json", result)
        write_lines(folder / "samples.jsonl", samples)
    return metrics


def _sample(record: TrialRecord) -> dict[str, Any]:
    return {
        "task_name": record.task,
        "category": record.category,
        "passed": record.verdict is Verdict.PASSED if record.graded else None,
        "reward": record.reward,
        "verdict": str(record.verdict),
        "attempt": record.attempt,
        "turns_used": record.turns,
        "finished_naturally": record.stop_reason == "finished",
        "seconds": record.seconds,
        "error": record.message or None,
    }
