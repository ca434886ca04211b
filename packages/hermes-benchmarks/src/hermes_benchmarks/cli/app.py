"""From a command line to a verb. Nothing heavy is loaded before the verb is known."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App, CycloptsError, Group

from hermes_benchmarks.cli.program import Program, split_dotted
from hermes_benchmarks.errors import BenchmarkError, UsageError

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import Benchmark

EXIT_USAGE, EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_PIPE = 2, 3, 130, 141

VERBS = {
    "evaluate": "Run the benchmark, or the packaged sample of it.",
    "resume": "Finish an interrupted run, or add attempts to it; nothing is graded twice.",
    "score": "Read the verdicts of a run again, without the model.",
    "report": "Write Markdown, JSON, JUnit and one HTML file with plots and trajectories.",
    "view": "Serve a run's report, live while it runs.",
    "compare": "Compare two runs task by task, with an interval.",
    "merge": "Put the shards of a run together.",
    "validate": "Check the tasks themselves: the oracle must pass, doing nothing must not.",
    "ls": "List the tasks with category, difficulty and limits.",
    "doctor": "Say which sandbox backends and which endpoint work here.",
}


def make_app(name: str, description: str) -> App:
    """The command with its verbs, each loaded when it is called."""
    app = App(
        name=name,
        help=description,
        version=_version,
        version_flags=["--version"],
        result_action="return_value",
        help_format="plaintext",
        group_commands=Group("Verbs", sort_key=0),
    )
    app["--help"].group = app["--version"].group = "Other"
    for order, (verb, summary) in enumerate(VERBS.items()):
        app.command(f"hermes_benchmarks.cli.{verb}:{verb}", name=verb, help=summary, sort_key=order)
    return app


def _version() -> str:
    return f"hermes-benchmarks {version('hermes-benchmarks')}"


def run_cli(
    name: str,
    reference: str,
    argv: Sequence[str] | None = None,
    *,
    description: str = "",
    cls: type[Benchmark] | None = None,
) -> int:
    """Run a command line and return its exit code: 0 done, 2 usage, 3 incomplete, 130 interrupted."""
    open_streams()
    tokens = list(sys.argv[1:] if argv is None else argv)
    rest, dotted = split_dotted(tokens)
    program = Program(name, reference, dotted, tokens, cls)
    app = make_app(name, description)
    if not rest:
        rest = ["--help"]
    try:
        return _run(program, app, rest)
    except CycloptsError as error:
        return _refuse(name, _sentence(error))
    except BenchmarkError as error:
        return _refuse(name, str(error))
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:  # who read our output has gone, as in `tb2 ls | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except OSError as error:
        return _refuse(name, file_trouble(error))


def file_trouble(error: OSError) -> str:
    """What a file, a folder or the disk refuses, in one sentence."""
    reason = error.strerror or str(error) or type(error).__name__
    return f"cannot use {error.filename}: {reason}" if error.filename else f"cannot read or write: {reason}"


def open_streams() -> None:
    """Let printing never fail: a stream that is closed (`>&-`) swallows, one that cannot show a character escapes it."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - it lives as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(program: Program, app: App, rest: Sequence[str]) -> int:
    command, bound, ignored = app.parse_args(rest, exit_on_error=False, print_error=False)
    injected: dict[str, Any] = dict.fromkeys(ignored, program)
    with logged():
        return int(command(*bound.args, **{**bound.kwargs, **injected}) or 0)


@contextmanager
def logged() -> Generator[None]:
    """Log nothing, for what matters is in the results; or what HERMES_LOG says (debug, info, …), on standard error.

    Raises:
        UsageError: HERMES_LOG is no level.
    """
    if level := os.environ.get("HERMES_LOG", "").upper():
        if level not in logging.getLevelNamesMapping():
            raise UsageError(f"HERMES_LOG is debug, info, warning or error, not {level.lower()!r}")
        logging.basicConfig(level=level, format="%(asctime)s %(name)s %(levelname)s %(message)s")
        yield
        return
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _sentence(error: CycloptsError) -> str:
    """What the parser has to say, on one line."""
    return " ".join(str(error).split()) or "the command line cannot be read"


def _refuse(name: str, message: str) -> int:
    sys.stderr.write(f"{name}: {message}\n")
    return EXIT_USAGE
