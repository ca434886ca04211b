"""The verb `doctor`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.options import What, Who, dotted
from hermes_benchmarks.cli.program import Program


def doctor(
    *,
    what: What | None = None,
    who: Who | None = None,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Say which sandbox backends and which model endpoint work here.

    Exits with 1 when the backend in effect does not work.

    Args:
        what: The backend to look at, among other things.
        who: The model.
        program: The command.
    """
    from hermes_benchmarks.agents.hermes import check_endpoint, endpoint
    from hermes_benchmarks.backends import backend_reports
    from hermes_benchmarks.cli.printing import say
    from hermes_benchmarks.cli.setup import load
    from hermes_benchmarks.errors import UsageError

    evaluation = load(program, what.config if what else None, dotted(what, who))
    reports = asyncio.run(backend_reports(evaluation.config.env.backend_options, evaluation.backend))
    for name, report in reports.items():
        mark = "✓" if report.ok else "✗"
        remedy = f" → {report.remedy}" if report.remedy and not report.ok else ""
        say(
            f"{mark} {name:<12} {report.detail}{remedy}{' (in effect)' if name == evaluation.backend else ''}"
        )
        for note in report.notes:
            say(f"  {'':<12} {note}")
    try:
        where = endpoint(evaluation.config.openai)
        asyncio.run(check_endpoint(where))
        say(f"✓ endpoint     {where.base_url}{', with a key' if where.api_key else ', without a key'}")
    except UsageError as error:
        say(f"✗ endpoint     {error}")
    return 0 if reports[evaluation.backend].ok else 1
