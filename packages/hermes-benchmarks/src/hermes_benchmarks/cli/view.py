"""The verb `view`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hermes_benchmarks.cli.program import Program


def view(
    run: Path,
    /,
    *,
    port: int = 8765,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """Serve a run's report on this machine, live while it runs.

    Args:
        run: The run's folder.
        port: The port on 127.0.0.1; 0 takes a free one.
        program: The command.
    """
    from hermes_benchmarks.cli.printing import say
    from hermes_benchmarks.errors import UsageError
    from hermes_benchmarks.report import read_run
    from hermes_benchmarks.report.view import make_server

    read_run(run)
    try:
        server = make_server(run, port)
    except OSError as error:
        raise UsageError(
            f"cannot listen on port {port} ({error.strerror}); give another with --port"
        ) from None
    say(f"http://127.0.0.1:{server.server_address[1]}/   (Ctrl-C ends it)")
    with server:
        server.serve_forever()
    return 0
