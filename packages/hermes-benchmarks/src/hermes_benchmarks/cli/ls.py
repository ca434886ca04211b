"""The verb `ls`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from cyclopts import Parameter

from hermes_benchmarks.cli.options import What, dotted
from hermes_benchmarks.cli.program import Program


def ls(
    *,
    what: What | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    program: Annotated[Program, Parameter(parse=False)],
) -> int:
    """List the tasks with category, difficulty and limits.

    Args:
        what: What to list.
        json: Print JSON.
        program: The command.
    """
    from hermes_benchmarks.cli.printing import columns, say
    from hermes_benchmarks.cli.setup import choose, load
    from hermes_benchmarks.files import to_json

    evaluation = load(program, what.config if what else None, dotted(what))
    selection = choose(program, evaluation, playable=False)
    if json:
        listed = [
            {
                "name": task.name,
                "category": task.category,
                "difficulty": task.difficulty,
                "tags": list(task.tags),
            }
            | {"checksum": task.checksum, "limits": dict(task.limits)}
            for task in selection.tasks
        ]
        skipped = [{"name": task.name, "reason": task.reason} for task in selection.skipped]
        say(to_json({"tasks": listed, "skipped": skipped}).decode().rstrip())
        return 0
    rows = [(task.name, task.category, task.difficulty, limits_of(task.limits)) for task in selection.tasks]
    for line in columns(("task", "category", "difficulty", "limits"), rows):
        say(line)
    for task in selection.skipped:
        say(f"skipped: {task.name} ({task.reason})")
    say(f"{len(selection.tasks)} tasks")
    return 0


def limits_of(limits: Mapping[str, Any]) -> str:
    """A task's limits in a few words."""
    shown = {
        "agent_timeout": "agent {:g} s",
        "verifier_timeout": "tests {:g} s",
        "cpus": "{:g} cpus",
        "memory_mb": "{:g} MB",
        "gpus": "{:g} gpus",
        "max_turns": "{} turns",
        "network": "network {}",
    }
    parts = [words.format(limits[key]) for key, words in shown.items() if limits.get(key)]
    return ", ".join(parts)
