"""The verb `validate`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.options import How, What, dotted
from hermes_benchmarks.cli.program import Program

if TYPE_CHECKING:
    from hermes_benchmarks.record import TrialRecord

EXIT_INVALID = 1


def validate(
    *,
    what: What | None = None,
    how: How | None = None,
    repeats: Annotated[int, Parameter(alias="-r")] = 1,
    allow_list: Path | None = None,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Check the tasks themselves: the oracle must pass, doing nothing must not.

    Exits with 1 when a task is found wanting.

    Args:
        what: What is checked.
        how: How it runs.
        repeats: How often each agent tries each task; more than once finds flaky ones.
        allow_list: Write the names of the valid tasks here, one a line, for --tasks.
        program: The command.
    """
    from hermes_benchmarks.cli.app import EXIT_INTERRUPTED
    from hermes_benchmarks.cli.printing import say
    from hermes_benchmarks.cli.setup import choose, load
    from hermes_benchmarks.cli.validating import run_agent, validity_lines
    from hermes_benchmarks.errors import UsageError
    from hermes_benchmarks.files import write_atomic
    from hermes_benchmarks.selection import select
    from hermes_benchmarks.validate import validity

    flags = {**dotted(what, how), **program.dotted}
    if "run.attempts" in flags or repeats < 1:
        raise UsageError("give the attempts of validate with --repeats, 1 or more")
    flags["run.attempts"] = str(repeats)
    records: dict[str, list[TrialRecord]] = {}
    tasks: list[str] = []
    lacking: dict[str, str] = {}
    for agent in ("oracle", "nop"):
        named = {"run.name": f"{how.name}-{agent}"} if how and how.name else {}
        evaluation = load(program, what.config if what else None, {**flags, **named, "run.agent": agent})
        # The same tasks again are no reason to warn again.
        selection = choose(program, evaluation) if agent == "oracle" else select(evaluation)
        run, end = asyncio.run(run_agent(evaluation, selection))
        if end.interrupted:
            return EXIT_INTERRUPTED
        records[agent] = run.records()
        tasks = [task.name for task in run.plan.tasks]
        lacking |= {task.name: task.reason for task in run.plan.skipped}
        say(f"{agent}: {run.folder.path}")
    found = validity(records["oracle"], records["nop"], tasks, repeats, lacking)
    for line in validity_lines(found):
        say(line)
    valid = [one.task for one in found if one.finding == "valid"]
    if allow_list is not None:
        write_atomic(allow_list, "".join(f"{name}\n" for name in valid).encode())
    return 0 if len(valid) == len(found) else EXIT_INVALID
