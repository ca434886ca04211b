"""The verb `merge`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.program import Program


def merge(
    runs: list[Path],
    /,
    *,
    output: Annotated[Path, Parameter(alias="-o")],
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Put the shards of a run together.

    Args:
        runs: The folders of the shards.
        output: The folder of the whole run, to be made.
        program: The command.
    """
    from hermes_benchmarks.cli.app import EXIT_INCOMPLETE
    from hermes_benchmarks.cli.printing import say, summary_lines
    from hermes_benchmarks.merge import merge
    from hermes_benchmarks.report import read_run

    run = read_run(merge(runs, output).path)
    for line in summary_lines(run.plan, run.summary):
        say(line)
    say(f"results: {output}   ({program.name} report {output})")
    missing = run.summary.planned - run.summary.graded
    if missing:
        say(f"incomplete: {missing} trials are not graded; go on with: {program.resume(output)}")
    return EXIT_INCOMPLETE if missing else 0
