"""The verb `score`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.program import Program

if TYPE_CHECKING:
    from hermes_benchmarks.evaluation import Evaluation
    from hermes_benchmarks.record import TrialRecord
    from hermes_benchmarks.rescore import Change, Rescore
    from hermes_benchmarks.run_folder import RunFolder


def score(
    run: Path,
    /,
    *,
    tests: bool = True,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Read the verdicts of a run again, without the model.

    The tests run again too, each in a new sandbox, for the trials whose state a run with --keep-state kept.
    Exits with 3 when a trial could not be judged again, as when its snapshot is gone; its result stays as it is.

    Args:
        run: The run's folder.
        tests: Run the tests again where there is a snapshot; else only the files that were kept are read.
        program: The command.
    """
    from hermes_benchmarks.cli.app import EXIT_INCOMPLETE
    from hermes_benchmarks.cli.printing import say, summary_lines
    from hermes_benchmarks.cli.setup import reload
    from hermes_benchmarks.errors import UsageError
    from hermes_benchmarks.metrics import write_metrics
    from hermes_benchmarks.report import read_run
    from hermes_benchmarks.run_folder import RunFolder

    folder = RunFolder(run)
    evaluation = reload(program, folder, {})
    from_files: Rescore | None = getattr(evaluation.benchmark, "rescore", None)
    again: Rescore | None = getattr(evaluation.benchmark, "rescore_tests", from_files)
    judge_again = again if tests else from_files
    if judge_again is None:
        raise UsageError(f"{program.name} has no way to score a finished run again")
    with folder.locked():
        changes, troubles = asyncio.run(_score_all(folder, evaluation, judge_again))
        folder.rebuild_lines()
    for line in (*map(str, changes), *troubles):
        say(line)
    say(f"{len(changes)} verdicts changed")
    data = read_run(run)
    write_metrics(run, data.plan, data.records, data.summary, evaluation.config)
    for line in summary_lines(data.plan, data.summary):
        say(line)
    return EXIT_INCOMPLETE if troubles else 0


async def _score_all(
    folder: RunFolder, evaluation: Evaluation, judge_again: Rescore
) -> tuple[list[Change], list[str]]:
    """The verdicts that changed, and a line for each trial that could not be judged."""
    from hermes_sandbox import SandboxError

    from hermes_benchmarks.rescore import rescore

    width = asyncio.Semaphore(evaluation.config.run.concurrency)
    troubles: list[str] = []

    async def one(record: TrialRecord) -> Change | None:
        trial, task = folder.trial(record.task, record.attempt), evaluation.task(record.task)
        async with width:
            try:
                return await rescore(trial, task, judge_again)
            except SandboxError as error:
                troubles.append(
                    f"{record.name}: not judged again: {error} (--no-tests reads its files alone)"
                )
                return None

    known = [record for record in folder.latest() if record.task in evaluation.tasks]
    changes = await asyncio.gather(*map(one, known))
    return [change for change in changes if change is not None], troubles
