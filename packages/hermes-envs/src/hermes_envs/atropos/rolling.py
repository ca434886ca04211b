"""From an environment's task to rollouts of the core engine."""

import asyncio
import inspect
import itertools
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes_envs.agents import loop_agent
from hermes_envs.context import ToolContext, run_bridged
from hermes_envs.group import draw_group, members
from hermes_envs.messages import Message, system_message, user_message
from hermes_envs.result import AgentResult
from hermes_envs.rollout import Rollout, run_rollout
from hermes_envs.semaphore import ResizableSemaphore
from hermes_envs.session import RolloutSession
from hermes_envs.spec import Agent, GroupContext, Limits, Reward, RolloutSpec
from hermes_envs.together import together
from hermes_envs.toolset import tool_options

from .servers import Split

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv

_STARTS_AT_ONCE = 8


class Rolling:
    """Runs an environment's tasks: groups that share a draw of tools, within the limits of the configuration.

    Args:
        env: The environment whose tasks they are.
    """

    def __init__(self, env: "HermesAgentBaseEnv[Any]") -> None:
        self._env = env
        self._starts = asyncio.Semaphore(_STARTS_AT_ONCE)
        self._sandboxes = asyncio.Semaphore(env.config.max_sandboxes)
        self.tool_pool = ResizableSemaphore(env.config.tool_pool_size)
        """Bounds blocking tools over all rollouts of the environment."""
        self._tool_options = tool_options(env.config.tool_options)
        self._numbers = itertools.count()

    def group(self, number: int | None = None, *, size: int | None = None) -> GroupContext:
        """Draw what the members of one group share; each group draws on its own."""
        config = self._env.config
        number = next(self._numbers) if number is None else number
        seed = None if config.seed is None else random.Random(f"{config.seed}/{number}").getrandbits(31)
        return draw_group(
            size or config.group_size,
            distribution=config.distribution,
            seed=seed,
            group_id=f"{self._env.name or type(self._env).__name__}-{number}",
        )

    async def run_group(self, item: Any, group: GroupContext, split: Split = "train") -> list[Rollout]:
        """Run every member of a group; cancelling this cancels them all and waits for their clean-up."""
        agent = self._agent(split)
        return await together(self._run(spec, agent) for spec in self._members(item, group))

    async def run_items(self, items: Sequence[Any], *, at_once: int, prefix: str) -> list[Rollout]:
        """Run each task once, for an evaluation."""
        agent = self._agent("eval")
        places = asyncio.Semaphore(max(1, at_once))

        async def one(index: int, item: Any) -> Rollout:
            (spec,) = self._members(item, self.group(index, size=1))
            async with places:
                return await self._run(replace(spec, id=f"{prefix}-{index}"), agent)

        return await together(one(index, item) for index, item in enumerate(items))

    def spec(self, item: Any) -> RolloutSpec:
        """A task as the core engine runs it."""
        env, config = self._env, self._env.config

        async def prepare(session: RolloutSession) -> None:
            await run_bridged(env.prepare, item, ToolContext(session))

        async def reward(result: AgentResult, ctx: ToolContext) -> float | Reward:
            given: Any = env.compute_reward(item, result, ctx)
            return await given if inspect.isawaitable(given) else given

        return RolloutSpec(
            messages=self._messages(item),
            tools=env.tools(),
            backend=config.terminal_backend,
            sandbox=env.sandbox_spec(item),
            backend_options=config.backend_options,
            limits=self.limits(),
            prepare=prepare,
            reward=reward,
        )

    def _members(self, item: Any, group: GroupContext) -> list[RolloutSpec]:
        """A spec for each member, made anew: what one prepares is its own."""
        specs = [self._env.rollout_spec(item) for _ in range(group.size)]
        return [
            replace(
                spec,
                id=shared.id,
                tools=shared.tools,
                tool_options=spec.tool_options or self._tool_options,
                seed=shared.seed,
                group=group,
            )
            for spec, shared in zip(specs, members(specs[0], group), strict=True)
        ]

    def limits(self) -> Limits:
        """The bounds of a rollout that the configuration sets."""
        config = self._env.config
        return Limits(
            max_turns=config.max_agent_turns,
            deadline=config.rollout_timeout,
            token_budget=config.token_budget,
            cost_budget=config.cost_budget,
            context_limit=config.context_length,
            max_tokens=config.max_token_length,
            terminal_timeout=config.terminal_timeout,
            reward_timeout=config.reward_timeout,
        )

    def _messages(self, item: Any) -> list[Message]:
        prompt = self._env.format_prompt(item)
        messages = (
            [user_message(prompt)] if isinstance(prompt, str) else [dict(message) for message in prompt]
        )
        system = self._env.config.system_prompt
        if system and not any(message["role"] == "system" for message in messages):
            messages.insert(0, system_message(system))
        return messages

    def _agent(self, split: Split) -> Agent:
        config = self._env.config
        return loop_agent(
            self._env.policy.pick(split),
            temperature=config.agent_temperature,
            extra_body=config.extra_body,
            sampling={} if config.top_p is None else {"top_p": config.top_p},
        )

    async def _run(self, spec: RolloutSpec, agent: Agent) -> Rollout:
        async with self._sandboxes:
            retries = self._env.config.max_rollout_attempts - 1
            return await run_rollout(
                spec, agent, sandboxes=self._starts, tool_pool=self.tool_pool, retries=retries
            )
