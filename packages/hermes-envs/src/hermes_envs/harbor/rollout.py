"""A task as a rollout: its sandbox, its prompt, its limits, how to prepare it, and how to judge it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hermes_sandbox import SandboxSpec
from hermes_sandbox.spec import Allow, Dockerfile, Network

from hermes_envs.harbor.dockerfile import workdir_of
from hermes_envs.harbor.guard import Baseline, take_baseline
from hermes_envs.harbor.prepare import prepare_environment, resolve_env
from hermes_envs.harbor.verdict import Verdict
from hermes_envs.harbor.verifier import DEFAULT_SECONDS, Mode, verify
from hermes_envs.messages import Message
from hermes_envs.result import AgentResult
from hermes_envs.spec import Limits, Reward, RolloutSpec

if TYPE_CHECKING:
    from hermes_tools import Tool

    from hermes_envs.context import ToolContext
    from hermes_envs.harbor.task import Task
    from hermes_envs.session import RolloutSession

LOCAL_WORKDIR = "/app"
"""Where commands start in a local sandbox, under its folder; the sample tasks' images have the same."""
WITHOUT_IMAGES = ("local", "ssh")
"""Backends that run no images: tasks that say `local = true` set themselves up there."""
VERIFIER_MARGIN = 900.0
"""Seconds beyond the tests' own limit for copying, a fresh sandbox, or a second opinion."""


def sandbox_spec(
    task: Task, backend: str, *, force_build: bool = False, storage: bool = False
) -> SandboxSpec:
    """The sandbox that a task asks for.

    Args:
        task: The task.
        backend: The backend's name. A local sandbox has no image, limits or network of its own.
        force_build: Build `environment/Dockerfile` although the task names a ready image.
        storage: Ask for the task's disk limit too; few Docker hosts can enforce one.

    Raises:
        UnsupportedTask: The task needs a container.
    """
    config = task.config
    env = resolve_env(config.env, task)
    if backend in WITHOUT_IMAGES:
        return SandboxSpec(workdir=config.workdir or LOCAL_WORKDIR, env=env)
    image: str | Dockerfile | None = config.docker_image
    if image is None or (force_build and (task.environment_dir / "Dockerfile").is_file()):
        image = Dockerfile(task.environment_dir)
    workdir = config.workdir
    if workdir is None and backend == "singularity":  # apptainer forgets what an image says of it
        workdir = _workdir(task)
    network: Network = "open"
    if config.network != "open":
        network = "none" if config.network == "none" else Allow(config.allowed_hosts)
    return SandboxSpec(
        image=image,
        workdir=workdir,
        env=env,
        user=config.agent_user,
        cpus=config.cpus,
        memory_mb=config.memory_mb,
        disk_mb=config.storage_mb if storage else None,
        gpus=config.gpus or None,
        network=network,
    )


def _workdir(task: Task) -> str | None:
    path = task.environment_dir / "Dockerfile"
    return workdir_of(path.read_text("utf-8", "replace")) if path.is_file() else None


def task_rollout_spec(
    task: Task,
    *,
    backend: str = "docker",
    tools: Sequence[str | Tool] | None = ("terminal", "file"),
    system: str | None = None,
    limits: Limits | None = None,
    mode: Mode = "shared",
    timeout_multiplier: float = 1.0,
    agent_timeout: float | None = None,
    verifier_timeout: float | None = None,
    force_build: bool = False,
    backend_options: Mapping[str, Any] | None = None,
    sandbox: SandboxSpec | None = None,
) -> RolloutSpec:
    """A rollout of a task: its instruction as the user's message, its limits, its tests as the reward.

    Args:
        task: The task.
        backend: The sandbox backend.
        tools: What the agent may use.
        system: A system message before the instruction.
        limits: Bounds beside the task's own; its `deadline` counts only for a task without one.
        mode: Where the tests run.
        timeout_multiplier: Times the agent's, the verifier's and the build's time.
        agent_timeout: Seconds for the agent where the task does not say.
        verifier_timeout: Seconds for the tests, likewise; 600 by default.
        force_build: See `sandbox_spec`.
        backend_options: Options of the backend.
        sandbox: The sandbox, in place of the one that the task asks for.
    """
    config = task.config
    limits = limits or Limits()
    given = config.agent_timeout if config.agent_timeout is not None else agent_timeout
    deadline = limits.deadline if given is None else given * timeout_multiplier
    said = (config.verifier_timeout, verifier_timeout, DEFAULT_SECONDS)
    for_tests = next(seconds for seconds in said if seconds is not None) * timeout_multiplier
    runs = 4 if mode == "both" else 2  # each may need a second opinion
    play = TaskPlay(task, mode, for_tests, dict(backend_options or {}))
    messages: list[Message] = [{"role": "user", "content": task.instruction}]
    return RolloutSpec(
        messages=[{"role": "system", "content": system}, *messages] if system else messages,
        tools=tools,
        backend=backend,
        sandbox=sandbox or sandbox_spec(task, backend, force_build=force_build),
        limits=replace(
            limits,
            deadline=deadline,
            sandbox_start_timeout=max(
                limits.sandbox_start_timeout, config.build_timeout * timeout_multiplier
            ),
            reward_timeout=for_tests * runs + VERIFIER_MARGIN,
        ),
        prepare=play.prepare,
        reward=play.reward,
        backend_options=dict(backend_options or {}),
        labels={"task": task.name},
    )


@dataclass
class TaskPlay:
    """The two ends of one rollout of a task: what it prepares is what it judges with.

    Attributes:
        task: The task.
        mode: Where the tests run.
        timeout: Seconds for the tests.
        options: Options of the backend.
        baseline: The judge's machinery, recorded before the agent acts.
        verdict: The verdict, once there is one.
    """

    task: Task
    mode: Mode = "shared"
    timeout: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    baseline: Baseline | None = None
    verdict: Verdict | None = None

    async def prepare(self, session: RolloutSession) -> None:
        """Make the sandbox ready and record the judge's machinery."""
        layout = await prepare_environment(self.task, session.sandbox)
        self.baseline = await take_baseline(session.sandbox, layout)

    async def reward(self, result: AgentResult, context: ToolContext) -> Reward:
        """Run the verifier."""
        verdict = await verify(
            self.task,
            context.session.sandbox,
            mode=self.mode,
            timeout=self.timeout,
            baseline=self.baseline,
            backend_options=self.options,
        )
        self.verdict = verdict
        return reward_of(verdict)


def reward_of(verdict: Verdict) -> Reward:
    """The verdict as the rollout engine takes it; `details` is JSON but for the contents of `files`."""
    details: dict[str, Any] = {
        "status": str(verdict.status),
        "cause": verdict.cause,
        "message": verdict.message,
        "tests": [
            {"name": test.name, "status": test.status, "message": test.message} for test in verdict.tests
        ],
        "files": dict(verdict.files),
        "info": {"verifier": _info(verdict)},
    }
    failure = verdict.failure
    if failure is not None and not failure.by_policy:
        return Reward(None, details, failure)
    return Reward(verdict.reward, details)


def _info(verdict: Verdict) -> dict[str, Any]:
    info: dict[str, Any] = {"mode": verdict.mode, "seconds": dict(verdict.seconds)}
    if verdict.repaired:
        info["repaired"] = list(verdict.repaired)
    if verdict.rewards:
        info["rewards"] = dict(verdict.rewards)
    if verdict.summary:
        counts = verdict.summary
        info["summary"] = {"passed": counts.passed, "failed": counts.failed, "skipped": counts.skipped}
    if verdict.fresh is not None:
        info["fresh"] = {
            "status": str(verdict.fresh.status),
            "reward": verdict.fresh.reward,
            "cause": verdict.fresh.cause,
        }
        info["disagreement"] = verdict.disagreement
    return info
