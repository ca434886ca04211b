"""Driving a run from the command line: progress, the summary, the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from hermes_benchmarks.cli.app import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_USAGE, file_trouble
from hermes_benchmarks.cli.printing import say, summary_lines
from hermes_benchmarks.cli.program import Program
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.metrics import write_metrics
from hermes_benchmarks.progress import Tally, flat, make_progress
from hermes_benchmarks.report import read_run, write_report
from hermes_benchmarks.report.data import notes_of
from hermes_benchmarks.runner import Run, RunEnd
from hermes_benchmarks.tracking import log_metrics
from hermes_benchmarks.verdict import Verdict


def run_to_end(program: Program, evaluation: Evaluation, make: Callable[[], Run]) -> int:
    """Check the surroundings, run, and say what came of it."""
    return asyncio.run(_run_to_end(program, evaluation, make))


async def _run_to_end(program: Program, evaluation: Evaluation, make: Callable[[], Run]) -> int:
    try:
        await evaluation.preflight()
        run = make()
    except BaseException:
        await evaluation.close()
        raise
    say(_heading(run))
    try:
        with make_progress(evaluation.config.run.progress, _tally(run)) as progress:
            end = await run.execute(progress)
        return _close(program, run, end)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk, as a rule: what is graded stays, so that the run can go on
        sys.stderr.write(f"{program.name}: {file_trouble(error)}\n")
        say(f"incomplete: what is graded is kept; go on with: {program.resume(run.folder.path)}")
        return EXIT_INCOMPLETE


def _heading(run: Run) -> str:
    plan, owed = run.plan, len(run.owed())
    model = f", model {plan.model}" if plan.model else ""
    todo = f"{owed} trials" if owed == len(plan.trials()) else f"{owed} of {len(plan.trials())} trials owed"
    return f"{plan.benchmark}: {len(plan.tasks)} tasks, {todo}, agent {plan.agent}{model}, backend {plan.backend}"


def _tally(run: Run) -> Tally:
    graded = [record for record in run.records() if record.graded]
    passed = sum(record.verdict is Verdict.PASSED for record in graded)
    return Tally(
        len(run.plan.trials()), len(graded), passed, concurrency=run.evaluation.config.run.concurrency
    )


def _close(program: Program, run: Run, end: RunEnd) -> int:
    path, again = run.folder.path, program.resume(run.folder.path)
    records = run.records()
    metrics = write_metrics(path, run.plan, records, end.summary, run.evaluation.config)
    env = run.evaluation.config.env
    if env.use_wandb and not end.interrupted:
        say(log_metrics(run.plan, run.folder.name, env.wandb_name, metrics))
    if end.interrupted:
        say(
            f"interrupted: {end.summary.graded} of {end.summary.planned} trials are graded and kept in {path}"
        )
        say(f"go on with: {again}")
        return EXIT_INTERRUPTED
    for line in summary_lines(run.plan, end.summary):
        say(line)
    for note in notes_of(run.evaluation.benchmark, records):
        say(note)
    (page,) = write_report(read_run(path), ["html"])
    say(f"results: {path}   (open {page}; {program.name} report {path} writes Markdown, JSON and JUnit too)")
    if end.refused:
        sys.stderr.write(f"{program.name}: {flat(end.stopped).rstrip('.')}; then go on with: {again}\n")
        return EXIT_USAGE
    if end.stopped:
        say(f"stopped: {flat(end.stopped)}")
    if not end.complete:
        say(
            f"incomplete: {end.summary.planned - end.summary.graded} trials are not graded; go on with: {again}"
        )
        return EXIT_INCOMPLETE
    advice = getattr(run.evaluation.benchmark, "advice", None)
    if advice is not None and (line := advice()):
        say(line)
    return 0
