"""What every verb knows: which benchmark it is for, and the dotted keys of the command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from hermes_benchmarks.lookup import load_object

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_benchmarks.benchmark import Benchmark

NAMESPACES = ("env", "openai", "run")


@dataclass(frozen=True)
class Program:
    """One command for one benchmark.

    Attributes:
        name: The command.
        reference: The benchmark's class as module:name; loaded only when a verb needs it.
        dotted: The `--env.x`, `--openai.x` and `--run.x` of the command line.
        argv: The whole command line.
        cls: The benchmark's class, where it is at hand already.
    """

    name: str
    reference: str
    dotted: Mapping[str, str] = field(default_factory=dict[str, str])
    argv: Sequence[str] = ()
    cls: type[Benchmark] | None = None

    def benchmark(self) -> type[Benchmark]:
        """The benchmark's class."""
        return self.cls or cast("type[Benchmark]", load_object(self.reference))

    @property
    def command(self) -> str:
        """The command line as typed."""
        return " ".join([self.name, *self.argv])

    def resume(self, run: Path) -> str:
        """The command that goes on with a run, as a shell reads it."""
        return f"{self.name} resume {shlex.quote(str(run))}"


def split_dotted(argv: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Take `--env.key value` and `--env.key=value` out of a command line.

    A key without a value, such as a last `--env.use_wandb`, means true. A value may start with a dash only in the
    form with `=`, or when it is a number.
    """
    rest: list[str] = []
    dotted: dict[str, str] = {}
    tokens = list(argv)
    while tokens:
        token = tokens.pop(0)
        if token == "--":
            return [*rest, token, *tokens], dotted
        key, equals, value = token.partition("=")
        name = key[2:].replace("-", "_")
        if not (key.startswith("--") and name.split(".")[0] in NAMESPACES and "." in name):
            rest.append(token)
        elif equals:
            dotted[name] = value
        elif tokens and (not tokens[0].startswith("-") or _is_number(tokens[0])):
            dotted[name] = tokens.pop(0)
        else:
            dotted[name] = "true"
    return rest, dotted


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
