"""What reports are made of, read from a run's folder alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from hermes_benchmarks.benchmark import Benchmark
from hermes_benchmarks.config import EvaluationConfig
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.evaluation import make_benchmark
from hermes_benchmarks.lookup import load_object
from hermes_benchmarks.plan import Plan, plan_config
from hermes_benchmarks.record import TrialRecord
from hermes_benchmarks.run_folder import RunFolder
from hermes_benchmarks.summary import Summary, summarize


@dataclass(frozen=True)
class RunData:
    """A run, read.

    Attributes:
        folder: Where it is.
        plan: What it set out to do.
        records: The latest result of every planned attempt that has one, in the plan's order.
        summary: Its figures.
        notes: Sentences that a reader should see.
    """

    folder: RunFolder
    plan: Plan
    records: Sequence[TrialRecord]
    summary: Summary
    notes: Sequence[str] = ()

    @property
    def missing(self) -> list[tuple[str, int]]:
        """Planned trials without any result."""
        done = {(record.task, record.attempt) for record in self.records}
        return [trial for trial in self.plan.trials() if trial not in done]


def read_plan(folder: RunFolder) -> Plan:
    """The plan of a run.

    Raises:
        UsageError: There is no run here, or one of another version of this package.
    """
    try:
        return Plan.model_validate(folder.config())
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise UsageError(
            f"{folder.path}/config.json cannot be read: {where}: {error.errors()[0]['msg']}"
        ) from None


def read_run(path: Path) -> RunData:
    """Read a run's folder.

    Raises:
        UsageError: There is no run there.
    """
    folder = RunFolder(path)
    plan = read_plan(folder)
    latest = {(record.task, record.attempt): record for record in folder.latest()}
    records = [latest[trial] for trial in plan.trials() if trial in latest]
    benchmark = benchmark_of(plan)
    own = benchmark.summarize(records) if benchmark else None
    summary = summarize(plan, records, own, folder.earlier())
    return RunData(folder, plan, records, summary, notes_of(benchmark, records))


def notes_of(benchmark: Benchmark | None, records: Sequence[TrialRecord]) -> Sequence[str]:
    """What the benchmark has to say about the results."""
    notes: Callable[[Sequence[TrialRecord]], Sequence[str]] | None = getattr(benchmark, "notes", None)
    return notes(records) if notes else ()


def benchmark_of(plan: Plan) -> Benchmark | None:
    """The benchmark that a plan is for; None where its class is not installed here."""
    try:
        cls = cast("type[Benchmark]", load_object(plan.reference))
        reference = getattr(cls, "config_type", "hermes_benchmarks.config:EvaluationConfig")
        config = plan_config(plan, cast("type[EvaluationConfig]", load_object(reference)))
    except (ImportError, AttributeError, ValidationError):
        return None
    return make_benchmark(cls, config)
