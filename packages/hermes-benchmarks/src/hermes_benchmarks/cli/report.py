"""The verb `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.program import Program


def report(
    run: Path,
    /,
    *,
    format: Annotated[str, Parameter(alias="-f")] = "html,md,json,junit",
    output: Annotated[Path | None, Parameter(alias="-o")] = None,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Write Markdown, JSON, JUnit and one HTML file with plots and trajectories.

    Args:
        run: The run's folder.
        format: Which of html, md, json, junit, with commas between.
        output: Where to write; the run's folder by default.
        program: The command.
    """
    from hermes_benchmarks.cli.printing import say, summary_lines
    from hermes_benchmarks.report import read_run, write_report

    data = read_run(run)
    for path in write_report(data, [name.strip() for name in format.split(",")], output):
        say(f"wrote {path}")
    for line in summary_lines(data.plan, data.summary):
        say(line)
    return 0
