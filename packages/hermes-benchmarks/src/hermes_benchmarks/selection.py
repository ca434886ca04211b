"""Which of a benchmark's tasks a run takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from hermes_benchmarks.benchmark import BenchmarkTask, Skipped
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.lookup import nearest

if TYPE_CHECKING:
    from hermes_benchmarks.evaluation import Evaluation

NAMED = "named in skip_tasks"
"""Why a task is left out that the configuration says to leave out."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The tasks of a run, and those left out that would otherwise be in it."""

    tasks: Sequence[BenchmarkTask]
    skipped: Sequence[Skipped]


def select(evaluation: Evaluation, *, playable: bool = True) -> Selection:
    """Apply the filters of the configuration.

    Args:
        evaluation: What is to run.
        playable: Leave out what the agent cannot play.

    Raises:
        UsageError: A name or pattern matches no task, or nothing is left.
    """
    env, known = evaluation.config.env, list(evaluation.tasks.values())
    tasks = matching(known, env.task_filter) if env.task_filter else known
    for field in ("category", "difficulty"):
        tasks = _of(tasks, field, getattr(env, field, None))
    if not tasks:
        raise UsageError("no task matches the filters")
    reasons = {task.name: task.reason for task in evaluation.skipped()}
    patterns = env.skip_tasks
    if env.task_filter:  # then a name to skip may be one that the filter leaves out anyhow
        patterns = [pattern for pattern in patterns if any(fnmatchcase(task.name, pattern) for task in known)]
    if playable:
        reasons = {**_unplayable(evaluation, tasks), **reasons}
    reasons |= {task.name: NAMED for task in matching(known, patterns)}
    skipped = [Skipped(task.name, reasons[task.name]) for task in tasks if task.name in reasons]
    kept = [task for task in tasks if task.name not in reasons]
    if not kept:
        raise UsageError(f"no task is left: all {len(skipped)} are skipped ({skipped[0].reason})")
    return Selection(kept, skipped)


def _unplayable(evaluation: Evaluation, tasks: Sequence[BenchmarkTask]) -> dict[str, str]:
    """What tasks lack that the agent needs, by name."""
    try:
        lacks = evaluation.agent.lacks
    except UsageError:  # no endpoint, say: for whoever lets the agent act
        return {}
    return {task.name: reason for task in tasks if (reason := lacks(task))}


def matching(tasks: Iterable[BenchmarkTask], patterns: Sequence[str]) -> list[BenchmarkTask]:
    """The tasks that a name or glob names, in the tasks' order.

    Raises:
        UsageError: A pattern matches none.
    """
    tasks = list(tasks)
    for pattern in patterns:
        if not any(fnmatchcase(task.name, pattern) for task in tasks):
            hint = nearest(pattern, (task.name for task in tasks))
            raise UsageError(f"there is no task {pattern!r}{hint}; `ls` lists all {len(tasks)}")
    return [task for task in tasks if any(fnmatchcase(task.name, pattern) for pattern in patterns)]


def _of(tasks: list[BenchmarkTask], field: str, wanted: Sequence[str] | None) -> list[BenchmarkTask]:
    if not wanted:
        return tasks
    known = {str(getattr(task, field)) for task in tasks} - {""}
    for value in wanted:
        if value not in known:
            listed = ", ".join(sorted(known))
            raise UsageError(f"no task has the {field} {value!r}{nearest(value, known)}; there are: {listed}")
    return [task for task in tasks if getattr(task, field) in wanted]
