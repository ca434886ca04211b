"""Running one agent over all tasks, and showing what that says of them, for `validate`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hermes_benchmarks.cli.printing import columns, say
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.progress import Tally, make_progress
from hermes_benchmarks.runner import Run, RunEnd
from hermes_benchmarks.selection import Selection
from hermes_benchmarks.validate import Validity


async def run_agent(evaluation: Evaluation, selection: Selection) -> tuple[Run, RunEnd]:
    """Run an agent to the end in a new run folder."""
    await evaluation.preflight()
    run = Run.start(evaluation, selection)
    say(f"{evaluation.agent_name}: {len(run.plan.trials())} trials")
    tally = Tally(len(run.plan.trials()), concurrency=evaluation.config.run.concurrency)
    with make_progress(evaluation.config.run.progress, tally) as progress:
        return run, await run.execute(progress)


def validity_lines(found: Sequence[Validity]) -> Iterable[str]:
    """The findings, for a person."""
    rows = [
        (one.task, one.finding, _rewards(one.oracle), _rewards(one.nop), "; ".join(one.errors)[:120])
        for one in found
    ]
    yield from columns(("task", "finding", "oracle", "nop", "errors"), rows)
    yield f"{sum(one.finding == 'valid' for one in found)} of {len(found)} tasks are valid"


def _rewards(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values) or "-"
