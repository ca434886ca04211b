"""From flags, keys and files to a loaded evaluation."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hermes_envs.config import ConfigError, load_config

from hermes_benchmarks.cli.program import Program
from hermes_benchmarks.config import EvaluationConfig
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.evaluation import Evaluation, make_benchmark
from hermes_benchmarks.lookup import load_object
from hermes_benchmarks.progress import flat
from hermes_benchmarks.selection import Selection, select

if TYPE_CHECKING:
    from hermes_benchmarks.benchmark import Benchmark, BenchmarkTask
    from hermes_benchmarks.run_folder import RunFolder


def load(program: Program, yaml_path: Path | None, flags: Mapping[str, Any]) -> Evaluation:
    """The evaluation that a command line asks for.

    Raises:
        UsageError: A key, a value or a name is wrong.
    """
    return _evaluation(program, yaml_path, flags, None)


def reload(program: Program, folder: RunFolder, flags: Mapping[str, Any]) -> Evaluation:
    """The evaluation of an existing run, with what the command line changes of it.

    Raises:
        UsageError: It is a run of another benchmark, or a key, a value or a name is wrong.
    """
    plan = folder.config()
    if plan.get("benchmark") != program.benchmark().name:
        raise UsageError(f"{folder.path} is a run of {plan.get('benchmark')}, not of {program.name}")
    return _evaluation(program, None, {**flags, "run.name": folder.name}, plan.get("config", {}))


def _evaluation(
    program: Program, yaml_path: Path | None, flags: Mapping[str, Any], defaults: Mapping[str, Any] | None
) -> Evaluation:
    benchmark = program.benchmark()
    yaml_path = shipped(benchmark, yaml_path) if yaml_path else None
    reference = getattr(benchmark, "config_type", "hermes_benchmarks.config:EvaluationConfig")
    cls = cast("type[EvaluationConfig]", load_object(reference))
    try:
        config = load_config(cls, yaml_path, {**flags, **program.dotted}, defaults=defaults)
    except ConfigError as error:
        raise UsageError(_friendly(str(error), flags)) from None
    return Evaluation(make_benchmark(benchmark, config), config)


def choose(program: Program, evaluation: Evaluation, *, playable: bool = True) -> Selection:
    """The tasks of a run, with a warning on standard error for what of them is passed over.

    Raises:
        UsageError: A name or pattern matches no task, or nothing is left.
    """
    selection = select(evaluation, playable=playable)
    warnings: Callable[[Sequence[BenchmarkTask]], Sequence[str]] | None = getattr(
        evaluation.benchmark, "warnings", None
    )
    for warning in warnings(selection.tasks) if warnings else ():
        sys.stderr.write(f"{program.name}: warning: {flat(warning)}\n")
    return selection


def shipped(benchmark: type[Benchmark], path: Path) -> Path:
    """The file, or the configuration of that name that comes with the benchmark.

    Raises:
        UsageError: There is neither.
    """
    folder = Path(inspect.getfile(benchmark)).parent / "configs"
    if path.is_file():
        return path
    if len(path.parts) == 1 and (folder / f"{path.stem}.yaml").is_file():
        return folder / f"{path.stem}.yaml"
    names = sorted(found.stem for found in folder.glob("*.yaml"))
    here = f"; these come with the benchmark: {', '.join(names)}" if names else ""
    raise UsageError(f"there is no configuration file {path}{here}")


def _friendly(message: str, flags: Mapping[str, Any]) -> str:
    """A friendly flag that this benchmark has no use for is named as it was typed."""
    from hermes_benchmarks.cli.options import DOTTED

    for flag, key in DOTTED.items():
        if key in flags and f"unknown key {key!r}" in message:
            return f"this benchmark has no --{flag.replace('_', '-')}"
    return message
