"""Harbor task folders: reading them, running them, and judging what an agent left behind.

`load_tasks` reads a folder of tasks, `task_rollout_spec` makes a rollout of one, `run_solution` plays its
author's solution, and `verify` runs its tests in the sandbox where an agent worked.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_envs.harbor.config import Healthcheck, TaskConfig, read_config
    from hermes_envs.harbor.errors import TaskError, UnknownTask, UnsupportedTask
    from hermes_envs.harbor.guard import Baseline, repair, take_baseline
    from hermes_envs.harbor.layout import Layout
    from hermes_envs.harbor.prepare import prepare_environment, run_solution
    from hermes_envs.harbor.report import Summary, TestResult
    from hermes_envs.harbor.rollout import TaskPlay, reward_of, sandbox_spec, task_rollout_spec
    from hermes_envs.harbor.task import Task, load_task, load_tasks, tree_checksum, unknown_task_message
    from hermes_envs.harbor.verdict import Evidence, Status, Verdict
    from hermes_envs.harbor.verifier import verify, verify_snapshot

__all__ = [
    "Baseline",
    "Evidence",
    "Healthcheck",
    "Layout",
    "Status",
    "Summary",
    "Task",
    "TaskConfig",
    "TaskError",
    "TaskPlay",
    "TestResult",
    "UnknownTask",
    "UnsupportedTask",
    "Verdict",
    "load_task",
    "load_tasks",
    "prepare_environment",
    "read_config",
    "repair",
    "reward_of",
    "run_solution",
    "sandbox_spec",
    "take_baseline",
    "task_rollout_spec",
    "tree_checksum",
    "unknown_task_message",
    "verify",
    "verify_snapshot",
]

# Names are imported when first used: reading tasks then costs nothing of what running them needs.
_HOMES = {
    "Baseline": "guard",
    "Evidence": "verdict",
    "Healthcheck": "config",
    "Layout": "layout",
    "Status": "verdict",
    "Summary": "report",
    "Task": "task",
    "TaskConfig": "config",
    "TaskError": "errors",
    "TaskPlay": "rollout",
    "TestResult": "report",
    "UnknownTask": "errors",
    "UnsupportedTask": "errors",
    "Verdict": "verdict",
    "load_task": "task",
    "load_tasks": "task",
    "prepare_environment": "prepare",
    "read_config": "config",
    "repair": "guard",
    "reward_of": "rollout",
    "run_solution": "prepare",
    "sandbox_spec": "rollout",
    "take_baseline": "guard",
    "task_rollout_spec": "rollout",
    "tree_checksum": "task",
    "unknown_task_message": "task",
    "verify": "verifier",
    "verify_snapshot": "verifier",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
