"""The base of every environment: five methods to write, and rollouts by the core engine underneath."""

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, Generic, NoReturn, cast

from hermes_sandbox import SandboxSpec
from typing_extensions import TypeVar

from hermes_envs.config import ConfigError
from hermes_envs.context import ToolContext
from hermes_envs.messages import Message
from hermes_envs.result import AgentResult
from hermes_envs.rollout import Rollout
from hermes_envs.spec import Reward, RolloutSpec
from hermes_envs.tokens import MASKED_LABEL, Tokenizer, load_tokenizer

from . import cli
from .config import HermesAgentEnvConfig
from .errors import uncancelled
from .evaluating import EvaluationRecord, evaluate_items, report_evaluation
from .library import APIServerConfig, BaseEnv, ScoredDataGroup, ScoredDataItem, ServerBaseline
from .metrics import Metrics, readable
from .processing import process_groups
from .redaction import redacted
from .rolling import Rolling
from .rows import as_item, is_scored
from .scoring import Scoring, failures_of
from .servers import PolicyServers
from .serving import Serving

ConfigT = TypeVar("ConfigT", bound=HermesAgentEnvConfig, default=HermesAgentEnvConfig)
_log = logging.getLogger(__name__)
_NAMES = ("task_name", "task_id", "id", "name")


class HermesAgentBaseEnv(BaseEnv, Generic[ConfigT]):
    """An environment in which an agent works with tools in a sandbox of its own.

    Write `setup`, `get_next_item`, `format_prompt`, `compute_reward` and, where there is something to evaluate,
    `evaluate`; `config_init` gives the defaults, and `MyEnv.cli()` is the program. `sandbox_spec`, `prepare` and
    `tools` may be overridden.

    Args:
        config: The environment's configuration.
        server_configs: The policy's servers, all of one kind.
        slurm: As in Atropos.
        testing: As in Atropos.

    Attributes:
        policy: The policy's servers.
        chat_tokenizer: The policy's tokenizer with its chat template.
        metrics: What is counted.
        rolling: Runs tasks.
        scoring: Makes groups of rollouts.
    """

    name: str | None = None
    env_config_cls: Any = HermesAgentEnvConfig
    config: ConfigT
    tokenizer: Any
    backlog: list[Any]
    completion_lengths: list[int]
    rollouts_for_wandb: list[list[tuple[str, float]]]
    running_items: dict[str, dict[str, Any]]
    task_duration: list[float]
    task_successful: list[int]
    succeeded_task_duration: list[float]
    failed_task_duration: list[float]
    workers: set[asyncio.Task[None]]

    def __init__(
        self,
        config: ConfigT,
        server_configs: ServerBaseline | APIServerConfig | Sequence[APIServerConfig],
        slurm: bool = False,
        testing: bool = False,
    ) -> None:
        servers = _server_list(server_configs, config)
        output = config.data_path_to_save_groups
        # The base class would open this file, or another beside it; process writes exactly the one that was named.
        config.data_path_to_save_groups = None
        try:
            super().__init__(config, servers, slurm=slurm, testing=testing)
        except Exception as error:
            # All that can fail there is loading the tokenizer, and its libraries raise whatever they like.
            why = str(error).strip().partition("\n")[0]
            raise ConfigError(
                f"cannot load the tokenizer {config.tokenizer_name}: {why} (set --env.tokenizer_name to the policy's "
                "own folder or hub name)"
            ) from error
        config.data_path_to_save_groups = output
        if config.wandb_name is None:
            config.wandb_name = self.name or type(self).__name__
        self.chat_tokenizer: Tokenizer = load_tokenizer(self.tokenizer)
        self.policy = PolicyServers(servers, config, self.chat_tokenizer)
        self.metrics = Metrics()
        self.rolling = Rolling(self)
        self.scoring = Scoring(self, self.metrics)
        self._serving: Serving | None = None
        self._evaluated_step: int | None = None

    # What an environment says of itself.

    @classmethod
    def config_init(cls) -> tuple[HermesAgentEnvConfig, list[APIServerConfig]]:
        """The defaults: a configuration, and a list of servers."""
        return cls.env_config_cls(), [cli.default_server()]

    async def setup(self) -> None:
        """Load what the environment needs, once."""

    async def get_next_item(self) -> Any:
        """The next task; None when there are no more."""
        raise NotImplementedError(f"{type(self).__name__} needs get_next_item()")

    def format_prompt(self, item: Any) -> str | Sequence[Message]:
        """The user's message of a task, or a whole conversation to start from."""
        return cast("str", item[self.config.prompt_field])

    async def compute_reward(self, item: Any, result: AgentResult, ctx: ToolContext) -> float | Reward:
        """Judge what the agent left: 0 to 1. The context's calls need no await and block nobody."""
        raise NotImplementedError(f"{type(self).__name__} needs compute_reward()")

    async def evaluate(self, *args: Any, **kwargs: Any) -> None:
        """Evaluate the policy; runs every `steps_per_eval` steps, and for the verb `evaluate`."""
        _log.warning("%s has no evaluate(): nothing is evaluated", type(self).__name__)

    def sandbox_spec(self, item: Any) -> SandboxSpec:
        """The sandbox of a task; by default what the configuration says."""
        config = self.config
        return SandboxSpec(
            image=config.terminal_image,
            workdir=config.terminal_workdir,
            env=dict(config.terminal_env),
            cpus=config.terminal_cpus,
            memory_mb=config.terminal_memory_mb,
            network=config.terminal_network,
            lifetime=config.terminal_lifetime,
            strict=config.terminal_strict,
        )

    async def prepare(self, item: Any, ctx: ToolContext) -> None:
        """Bring a fresh sandbox into the task's state, before the agent starts."""

    def tools(self) -> Sequence[Any] | None:
        """Toolset names, or tools, that every group gets unless the configuration names a distribution.

        From these, as from a draw, `disabled_toolsets` are left out.
        """
        return self.config.enabled_toolsets

    def rollout_spec(self, item: Any) -> RolloutSpec:
        """A task as the core engine runs it; override it for tasks that bring their own sandbox and verifier."""
        return self.rolling.spec(item)

    def item_name(self, item: Any, index: int) -> str:
        """A short name of a task for files and logs."""
        if not isinstance(item, Mapping):
            return str(getattr(item, "name", index))
        fields = cast("Mapping[str, Any]", item)
        return str(next((fields[key] for key in _NAMES if key in fields), index))

    # Rollouts.

    async def collect_trajectory(self, item: Any) -> tuple[ScoredDataItem | None, list[Any]]:
        """One rollout of a task as a scored item; None where the infrastructure failed.

        Groups are made of rollouts without it, unless a subclass overrides it: then it is called for each member, and
        the members still share a draw of tools.
        """
        rollout = await self.rolling.run_member(item)
        self.metrics.count([rollout])
        if self.config.use_wandb:
            self._keep_for_wandb([rollout])
        if not is_scored(rollout):
            _log.warning("a rollout is lost: %s", failures_of([rollout]))
            return None, []
        return as_item(self.scoring.rows(rollout)[0], with_messages=self.config.include_messages), []

    async def collect_trajectories(self, item: Any) -> tuple[Any, list[Any]]:
        """A group of rollouts of a task as one scored group, or a list of them; None where it is dropped."""
        backlog: list[Any] = []
        if self._overrides("collect_trajectory"):
            collected = await self.rolling.as_members(lambda: self.collect_trajectory(item))
            groups = self.scoring.collected([member for member, _ in collected])
            backlog = [more for _, found in collected for more in found]
        else:
            rollouts = await self.rolling.run_group(item, self.rolling.group())
            groups = await self.scoring.sendable(rollouts)
            if self.config.use_wandb:
                self._keep_for_wandb(rollouts)
        return (groups[0] if len(groups) == 1 else groups or None), backlog

    @property
    def makes_groups(self) -> bool:
        """Whether a subclass makes or changes groups itself, by one of Atropos' own hooks."""
        return self._overrides("collect_trajectory", "collect_trajectories", "postprocess_histories")

    def _overrides(self, *names: str) -> bool:
        return any(getattr(type(self), name) is not getattr(HermesAgentBaseEnv, name) for name in names)

    def resize_tool_pool(self, size: int) -> None:
        """Bound how many blocking tools run at once."""
        self.config.tool_pool_size = size
        self.rolling.tool_pool.resize(size)

    # The three jobs.

    async def env_manager(self) -> None:
        """Serve rollouts to a trainer until it has had enough."""
        if not self.policy.exact and not self.config.allow_placeholder:
            raise ConfigError(
                'serve needs token ids, and servers of server_type "openai" give none: use a vllm or sglang server, '
                "or --env.allow_placeholder true to run without anything that can be trained on"
            )
        try:
            await self.setup()
            self._serving = Serving(self)
            await self._serving.run()
        finally:
            await self._close()

    async def process_manager(self) -> None:
        """Run groups and write them to a file."""
        self.config.ensure_scores_are_not_same = False  # equal scores are worth writing, if not comparing
        try:
            self._start_wandb("process")
            await self.setup()
            await process_groups(self)
        finally:
            await self._close()

    async def evaluate_manager(self) -> None:
        """Evaluate once."""
        if self.config.data_dir_to_save_evals is None:
            self.config.data_dir_to_save_evals = f"evals/{self.name or type(self).__name__}"
        try:
            self._start_wandb("evaluate")
            await self.setup()
            await self.evaluate()
        finally:
            await self._close()

    async def registered(self, answer: Mapping[str, Any], info: Mapping[str, Any]) -> None:
        """Take what the API says when it accepts this environment."""
        config = self.config
        first = self.wandb_prepend is None
        self.env_id = answer["env_id"]
        self.wandb_prepend = answer["wandb_name"]
        self.curr_step = answer["starting_step"]
        self.checkpoint_dir = answer["checkpoint_dir"]
        self.checkpoint_interval = answer["checkpoint_interval"]
        if config.total_steps == -1:
            config.total_steps = answer["num_steps"]
        if info["batch_size"] != -1:
            config.batch_size = info["batch_size"]
        if info["max_token_len"] > 0:
            self.max_token_len = info["max_token_len"]
            self.policy.limit_context(self.max_token_len - 1)
        if first and self.curr_step > 0:
            self.load_checkpoint()
        self.wandb_group, self.wandb_project = info["group"], info["project"]
        self._start_wandb("serve")

    async def handle_env(self, item_uuid: str) -> Any:
        """Run the group of a running item and send it; what goes wrong is raised, not logged and forgotten."""
        began = time.time()
        made: Any = None
        item = self.running_items[item_uuid]["item"]
        try:
            made, backlog = await self.collect_trajectories(item)
            self.backlog.extend(backlog)
            made = await self.postprocess_histories(made) if made else None
        finally:
            self.running_items.pop(item_uuid, None)
            self._count_group(bool(made), time.time() - began)
        if made:
            await self.handle_send_to_api(made, item)
        await self.cleanup()
        return made

    def _count_group(self, succeeded: bool, seconds: float) -> None:
        """What the base class's `perf_stats` reports."""
        self.task_duration.append(seconds)
        self.task_successful.append(int(succeeded))
        (self.succeeded_task_duration if succeeded else self.failed_task_duration).append(seconds)

    async def handle_send_to_api(
        self,
        scored_data: ScoredDataGroup | list[ScoredDataGroup],
        item: Any = None,
        do_send_to_api: bool = True,
        abort_on_any_max_length_exceeded: bool = True,
    ) -> None:
        """Send finished groups to the trainer, whole and aligned, however long the API takes."""
        groups = scored_data if isinstance(scored_data, list) else [scored_data]
        sendable = [group for group in groups if self.scoring.fits(group, self.max_token_len - 1)]
        for group in sendable:
            self.completion_lengths += [len(mask) - mask.count(MASKED_LABEL) for mask in group["masks"]]
        if sendable and do_send_to_api and self._serving is not None:
            await self._serving.post(sendable)
            self.items_sent_this_step += len(sendable)
            self.metrics.sent_groups += len(sendable)

    def save_checkpoint(self, step: int, data: dict[str, Any] | None = None) -> None:
        """Save the environment's place in its data, if it keeps one as `iter`, and whatever `data` adds."""
        place = getattr(self, "iter", None)
        saved = {**({"iter": place} if isinstance(place, int) else {}), **(data or {})}
        super().save_checkpoint(step, saved or None)  # pyright: ignore[reportUnknownMemberType]

    # Evaluation and logs.

    async def evaluate_items(self, items: Sequence[Any], *, task_name: str | None = None) -> dict[str, Any]:
        """Run each task once, write and log the results.

        Args:
            items: The tasks.
            task_name: The key of the results; None is the environment's name.

        Returns:
            The metrics.
        """
        return await evaluate_items(self, items, task_name)

    async def evaluate_log(
        self,
        metrics: dict[str, Any],
        task_name: str | None = None,
        model_name: str | None = None,
        start_time: float | None = None,
        end_time: float | None = None,
        generation_parameters: dict[str, Any] | None = None,
        samples: list[dict[str, Any]] | None = None,
        verbose: bool = True,
    ) -> None:
        """Print an evaluation's results, write them into a folder of their own, log them to wandb if asked."""
        now = time.time()
        record = EvaluationRecord(
            task=task_name or self.name or type(self).__name__,
            model=model_name or self.policy.model,
            metrics=metrics,
            samples=samples or [],
            seconds=(now if end_time is None else end_time) - (now if start_time is None else start_time),
            generation_parameters=generation_parameters or {},
        )
        report_evaluation(self, record, verbose=verbose)

    async def evaluate_while_serving(self) -> None:
        """Evaluate; a failure is logged and does not stop the serving."""
        self._evaluated_step = step = self.curr_step
        try:
            with uncancelled():
                await self.evaluate()
        except Exception:
            _log.exception("the evaluation at step %d failed", step)
        finally:
            self._evaluated_step = None

    @property
    def evaluated_step(self) -> int:
        """The step whose policy is evaluated: training goes on meanwhile."""
        return self.curr_step if self._evaluated_step is None else self._evaluated_step

    async def log_processed(self, rollouts: Sequence[Rollout]) -> None:
        """Log a group that `process` has written."""
        if self.config.use_wandb:
            self._keep_for_wandb(rollouts)
            await self.wandb_log({})  # pyright: ignore[reportUnknownMemberType]
            self.curr_step += 1

    async def create_rollout_table(self, wandb_metrics: dict[str, Any]) -> dict[str, Any]:
        """Tables of the kept conversations and of tool errors."""
        from .wandb_log import rollout_table, tool_error_table

        wandb_metrics |= self.metrics.take()
        if self.config.use_wandb and self.rollouts_for_wandb:
            wandb_metrics["train/rollouts"] = rollout_table(self.rollouts_for_wandb)
        if self.config.use_wandb and (errors := self.metrics.take_tool_errors()):
            wandb_metrics["train/tool_errors"] = tool_error_table(errors)
        return wandb_metrics

    def _keep_for_wandb(self, rollouts: Sequence[Rollout]) -> None:
        wanted = self.config.num_rollouts_per_group_for_logging
        kept = [rollout for rollout in rollouts if rollout.result is not None and rollout.reward is not None]
        shown = kept if wanted < 0 else kept[:wanted]
        self.rollouts_for_wandb.append(
            [
                (readable(rollout.result.messages if rollout.result else []), rollout.reward or 0.0)
                for rollout in shown
            ]
        )
        del self.rollouts_for_wandb[: -self.config.num_rollouts_to_keep]

    def _start_wandb(self, verb: str) -> None:
        if self.config.use_wandb:
            from .wandb_log import start_run

            start_run(
                name=f"{self.config.wandb_name}-{verb}",
                project=self.wandb_project,
                group=self.wandb_group,
                config=redacted(self.config),
            )

    async def aclose(self) -> None:
        """Close what the environment has open; extend it for connections of your own."""
        await self.policy.aclose()

    async def _close(self) -> None:
        self._serving = None
        await self.aclose()
        if self.config.use_wandb:
            from .wandb_log import end_run

            end_run()

    @classmethod
    def cli(cls) -> NoReturn:
        """The program: `serve`, `process` or `evaluate`, with YAML and dotted flags."""
        cli.main(cls)


def _server_list(given: Any, config: HermesAgentEnvConfig) -> list[APIServerConfig]:
    """Atropos' accepted forms as one list, completed so that nothing asks a hub or fails on an empty key."""
    if isinstance(given, APIServerConfig):
        given = [given]
    elif isinstance(given, ServerBaseline):
        given = [APIServerConfig(**given.model_dump())]
    servers = [server.model_copy() for server in cast("Sequence[APIServerConfig]", given)]
    for server in servers:
        server.api_key = server.api_key or "x"
        if server.tokenizer_name == "none":
            server.tokenizer_name = config.tokenizer_name
    return servers
