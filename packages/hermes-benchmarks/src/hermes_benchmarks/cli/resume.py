"""The verb `resume`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.options import How, Tasks, Who, dotted
from hermes_benchmarks.cli.program import Program


def resume(
    run: Path,
    /,
    *,
    what: Tasks | None = None,
    who: Who | None = None,
    how: How | None = None,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Finish an interrupted run, or add attempts to it; nothing is graded twice.

    The run goes on as it was started. --attempts may be raised; what decides results cannot be changed, and flags that
    would change it are refused with the differences named.

    Args:
        run: The run's folder.
        what: What runs.
        who: Who acts.
        how: How it runs.
        program: The command.
    """
    from hermes_benchmarks.cli.running import run_to_end
    from hermes_benchmarks.cli.setup import choose, reload
    from hermes_benchmarks.run_folder import RunFolder
    from hermes_benchmarks.runner import Run, check_identity

    folder = RunFolder(run)
    evaluation = reload(program, folder, dotted(what, who, how))
    selection = choose(program, evaluation)
    check_identity(folder, evaluation, selection)
    return run_to_end(program, evaluation, lambda: Run.reopen(folder, evaluation, selection))
