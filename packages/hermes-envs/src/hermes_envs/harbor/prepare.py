"""What happens in a task's sandbox before anyone acts in it, and playing the author's solution."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hermes_envs.harbor.errors import TaskError, UnsupportedTask
from hermes_envs.harbor.layout import Layout, copy_in, make_folders
from hermes_envs.outcome import InfraFailed

if TYPE_CHECKING:
    from hermes_sandbox import ExecResult, Sandbox

    from hermes_envs.harbor.config import Healthcheck
    from hermes_envs.harbor.task import Task

SETUP_SECONDS = 120.0
_TEMPLATE = re.compile(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*))?\}")


async def prepare_environment(task: Task, sandbox: Sandbox, layout: Layout | None = None) -> Layout:
    """Make a new sandbox ready for the task: in a local one its files, in every one its log folders and health.

    Raises:
        InfraFailed: The environment does not become ready.
    """
    layout = layout or Layout.of(sandbox)
    if not layout.image:
        await _set_up(task, sandbox, layout)
    folders = (f"{layout.logs}/{name}" for name in ("agent", "verifier", "artifacts"))
    await make_folders(sandbox, layout, *folders, early=True)
    if task.config.healthcheck is not None:
        await _wait_until_healthy(sandbox, task.config.healthcheck)
    return layout


async def run_solution(task: Task, sandbox: Sandbox, timeout: float | None = None) -> ExecResult:
    """Play the author's solution, as an agent that knows it would.

    Its exit code says nothing: what counts is the verdict of the tests afterwards.

    Args:
        task: The task.
        sandbox: Its prepared sandbox.
        timeout: Seconds; the agent's own limit by default.

    Raises:
        TaskError: The task has no solution.
    """
    if not task.has_solution:
        raise TaskError("the task has no solution to play", path=task.solution_dir / "solve.sh")
    layout = Layout.of(sandbox)
    await copy_in(sandbox, layout, task.solution_dir, layout.solution)
    return await sandbox.exec(
        ["bash", f"{layout.solution}/solve.sh"],
        env={"DEBIAN_FRONTEND": "noninteractive", **resolve_env(task.config.solution_env, task)},
        timeout=timeout or task.config.agent_timeout,
        merge=True,
    )


def resolve_env(env: Mapping[str, str], task: Task) -> dict[str, str]:
    """Fill in `${NAME}` and `${NAME:-default}` from this process's environment.

    Raises:
        TaskError: A variable is not set and has no default.
    """

    def value(found: re.Match[str]) -> str:
        given = os.environ.get(found["name"]) or found.groupdict()["default"]
        if given is None:
            raise TaskError(f"it needs the variable {found['name']}: set it", path=task.path / "task.toml")
        return given

    return {name: _TEMPLATE.sub(value, text) for name, text in env.items()}


async def _set_up(task: Task, sandbox: Sandbox, layout: Layout) -> None:
    if not task.config.local:
        message = (
            "this task needs a container: its paths are absolute. Use --backend docker, or the sample tasks"
        )
        raise UnsupportedTask(message, path=task.path)
    script = f"{layout.setup}/setup.sh"
    await sandbox.upload(task.environment_dir, layout.setup)
    done = await sandbox.exec(["bash", script], timeout=SETUP_SECONDS, merge=True)
    await sandbox.remove(layout.setup, recursive=True)
    if not done.ok:
        raise InfraFailed(f"environment/setup.sh failed: {done.output.strip()[-500:]}", retryable=False)


async def _wait_until_healthy(sandbox: Sandbox, check: Healthcheck) -> None:
    clock = asyncio.get_running_loop().time
    grace = clock() + check.start_period
    failures = 0
    while True:
        asked = await sandbox.exec(check.command, timeout=check.timeout, merge=True)
        if asked.ok:
            return
        failures += clock() >= grace
        if failures >= max(check.retries, 1):
            message = (
                f"the environment is not healthy: {check.command!r} says {asked.output.strip()[-300:]!r}"
            )
            raise InfraFailed(message)
        await asyncio.sleep(check.interval)
