"""Train on a folder of Harbor tasks: each brings its image, its instruction and its tests."""

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn, cast

from hermes_sandbox import SandboxSpec
from pydantic import Field

from hermes_envs.atropos.base_env import HermesAgentBaseEnv
from hermes_envs.atropos.cli import default_server
from hermes_envs.atropos.config import HermesAgentEnvConfig, Names
from hermes_envs.atropos.library import APIServerConfig
from hermes_envs.config import ConfigError
from hermes_envs.context import ToolContext
from hermes_envs.harbor import Task, TaskError, UnknownTask, load_tasks, task_rollout_spec
from hermes_envs.result import AgentResult
from hermes_envs.session import RolloutSession
from hermes_envs.spec import Reward, RewardFunction, RolloutSpec

_OF_THE_TASK = ("image", "workdir", "cpus", "memory_mb", "network")
"""What a task says of its sandbox, unless the configuration does."""


@dataclass(frozen=True, kw_only=True)
class _TaskSpec(RolloutSpec):
    """A rollout of a task, with the task's own judge."""

    judge: RewardFunction


class HarborEnvConfig(HermesAgentEnvConfig):
    """What a folder of Harbor tasks needs besides."""

    task_filter: Names | None = Field(default=None, description="Names of the tasks to use; unset is all")
    skip_tasks: Names = Field(default_factory=list, description="Names of tasks to leave out")
    eval_tasks: Names = Field(default_factory=list, description="Tasks kept for evaluation, never trained on")
    verifier: Literal["shared", "fresh"] = Field(
        default="shared", description="Run the tests in the agent's sandbox, or in a fresh one"
    )
    timeout_multiplier: float = Field(default=1.0, gt=0, description="Times every time limit of the tasks")
    shuffle: bool = Field(default=True, description="Draw tasks in a random order, anew each epoch")


class HarborEnv(HermesAgentBaseEnv[HarborEnvConfig]):
    """Any folder of Harbor tasks, such as Terminal-Bench's, judged by each task's own tests."""

    name = "harbor-env"
    env_config_cls = HarborEnvConfig

    @classmethod
    def config_init(cls) -> tuple[HermesAgentEnvConfig, list[APIServerConfig]]:
        """Docker, terminal and file tools, as many turns as such tasks take."""
        config = HarborEnvConfig(
            enabled_toolsets=["terminal", "file"],
            terminal_backend="docker",
            max_agent_turns=60,
            max_token_length=8192,
            max_sandboxes=16,
        )
        return config, [default_server()]

    async def setup(self) -> None:
        """Read the tasks."""
        config = self.config
        if config.dataset_name is None:
            raise ConfigError("harbor-env needs a folder of tasks: --env.dataset_name FOLDER")
        only = None if config.task_filter is None else [*config.task_filter, *config.eval_tasks]
        try:
            tasks = load_tasks(Path(config.dataset_name), only=only, skip=config.skip_tasks)
        except (TaskError, UnknownTask, OSError) as error:
            raise ConfigError(str(error)) from error
        kept = set(config.eval_tasks)
        self.train_tasks = [task for task in tasks if task.name not in kept]
        self.eval_tasks = [task for task in tasks if task.name in kept] or tasks
        if not self.train_tasks:
            raise ConfigError(f"{config.dataset_name} has no task left to train on")
        self.iter = 0

    async def get_next_item(self) -> Task:
        """The next task; every task once before any comes again."""
        epoch, place = divmod(self.iter, len(self.train_tasks))
        self.iter += 1
        order = list(range(len(self.train_tasks)))
        if self.config.shuffle:
            random.Random(f"{self.config.seed}/{epoch}").shuffle(order)
        return self.train_tasks[order[place]]

    def format_prompt(self, item: Task) -> str:
        """The task's instruction."""
        return item.instruction

    def sandbox_spec(self, item: Task) -> SandboxSpec:
        """The task's own sandbox, with what the configuration says of sandboxes over it.

        It lives as long as the task's own limits may take, unless `terminal_lifetime` is set.
        """
        plan, said = self._plan(item), super().sandbox_spec(item)
        chosen = {name: getattr(said, name) for name in _OF_THE_TASK if getattr(said, name) is not None}
        lifetime, limits = self.config.terminal_lifetime, plan.limits
        if "terminal_lifetime" not in self.config.model_fields_set:
            needed = limits.prepare_timeout + (limits.deadline or 0.0) + limits.reward_timeout
            lifetime = max(lifetime, needed)
        env = {**plan.sandbox.env, **said.env}
        return replace(plan.sandbox, **chosen, env=env, lifetime=lifetime, strict=said.strict)

    def rollout_spec(self, item: Task) -> RolloutSpec:
        """The task's limits, preparation and verifier; `prepare` comes after the task's own."""
        spec, plan = super().rollout_spec(item), self._plan(item)

        async def prepare(session: RolloutSession) -> None:
            for one in (plan.prepare, spec.prepare):
                if one is not None:
                    await one(session)

        fields: dict[str, Any] = dict(vars(spec))
        fields |= {"limits": plan.limits, "labels": plan.labels, "prepare": prepare, "judge": plan.reward}
        return _TaskSpec(**fields)

    async def compute_reward(self, item: Task, result: AgentResult, ctx: ToolContext) -> float | Reward:
        """The verdict of the task's own tests."""
        given: Any = cast("_TaskSpec", ctx.session.spec).judge(result, ctx)
        return await given

    def _plan(self, item: Task) -> RolloutSpec:
        config = self.config
        return task_rollout_spec(
            item,
            backend=config.terminal_backend,
            limits=self.rolling.limits(),
            mode=config.verifier,
            timeout_multiplier=config.timeout_multiplier,
            agent_timeout=config.rollout_timeout,
            backend_options=config.backend_options,
        )

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """The tasks kept for evaluation; all of them where none are named."""
        await self.evaluate_items(self.eval_tasks)


def main() -> NoReturn:
    """The command `harbor-env`."""
    HarborEnv.cli()


if __name__ == "__main__":
    main()
