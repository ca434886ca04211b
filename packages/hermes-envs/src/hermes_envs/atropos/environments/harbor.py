"""Train on a folder of Harbor tasks: each brings its image, its instruction and its tests."""

import random
from pathlib import Path
from typing import Any, Literal, NoReturn

from pydantic import Field

from hermes_envs.atropos.base_env import HermesAgentBaseEnv
from hermes_envs.atropos.cli import default_server
from hermes_envs.atropos.config import HermesAgentEnvConfig, Names
from hermes_envs.atropos.library import APIServerConfig
from hermes_envs.config import ConfigError
from hermes_envs.harbor import Task, TaskError, UnknownTask, load_tasks, task_rollout_spec
from hermes_envs.spec import RolloutSpec


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

    def rollout_spec(self, item: Task) -> RolloutSpec:
        """The task's own sandbox, limits, preparation and verifier."""
        config = self.config
        return task_rollout_spec(
            item,
            backend=config.terminal_backend,
            tools=self.tools(),
            system=config.system_prompt,
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
