"""The verb `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.program import Program


def compare(
    a: Path,
    b: Path,
    /,
    *,
    json: Annotated[bool, Parameter(negative="")] = False,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Compare two runs task by task, with an interval.

    Args:
        a: The folder of run A.
        b: The folder of run B.
        json: Print JSON.
        program: The command.
    """
    from hermes_benchmarks.cli.printing import say
    from hermes_benchmarks.compare import compare, comparison_lines
    from hermes_benchmarks.files import to_json
    from hermes_benchmarks.report import read_run

    run_a, run_b = read_run(a), read_run(b)
    found = compare(run_a, run_b)
    if json:
        say(to_json(found.to_dict()).decode().rstrip())
        return 0
    for line in comparison_lines(run_a, run_b, found):
        say(line)
    return 0
