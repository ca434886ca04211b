"""From an environment's task to rollouts of the core engine."""

import asyncio
import inspect
import itertools
import random
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from hermes_envs.agents import loop_agent
from hermes_envs.context import ToolContext, run_bridged
from hermes_envs.group import draw_group, members
from hermes_envs.messages import Message, system_message, text_of, user_message
from hermes_envs.result import AgentResult
from hermes_envs.rollout import Rollout, run_rollout
from hermes_envs.semaphore import ResizableSemaphore
from hermes_envs.session import RolloutSession
from hermes_envs.spec import Agent, GroupContext, Limits, Reward, RolloutSpec
from hermes_envs.together import together
from hermes_envs.toolset import tool_options, tool_registry

from .servers import Split

if TYPE_CHECKING:
    from .base_env import HermesAgentBaseEnv

T = TypeVar("T")

_STARTS_AT_ONCE = 8
_member: ContextVar[tuple[GroupContext, int] | None] = ContextVar("_member", default=None)
_watched: ContextVar[list[Rollout] | None] = ContextVar("_watched", default=None)


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

    def count_from(self, number: int) -> None:
        """Give groups numbers from this one on, as after those that an earlier run has made."""
        self._numbers = itertools.count(number)

    async def run_group(self, item: Any, group: GroupContext, split: Split = "train") -> list[Rollout]:
        """Run every member of a group; cancelling this cancels them all and waits for their clean-up."""
        agent = self._agent(split)
        return await together(self._run(spec, agent) for spec in self._members(item, group))

    async def run_member(self, item: Any) -> Rollout:
        """Run a task once: as the member that `as_members` makes of the caller, else as a group of one."""
        group, index = _member.get() or (self.group(size=1), 0)
        spec = self._env.rollout_spec(item)
        shared = members(spec, group)[index]
        return await self._run(self._as_member(spec, shared), self._agent("train"))

    async def as_members(self, collect: Callable[[], Coroutine[Any, Any, T]]) -> list[T]:
        """Do something once for each member of a new group, at once."""
        group = self.group()

        async def one(index: int) -> T:
            _member.set((group, index))  # each of these runs in a task, and so in a context, of its own
            return await collect()

        return await together(one(index) for index in range(group.size))

    @contextmanager
    def watched(self) -> Generator[list[Rollout], None, None]:
        """A list of every rollout that the block has run, whoever asked for it."""
        rollouts: list[Rollout] = []
        token = _watched.set(rollouts)
        try:
            yield rollouts
        finally:
            _watched.reset(token)

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
        shared = members(specs[0], group)
        return [self._as_member(spec, member) for spec, member in zip(specs, shared, strict=True)]

    def _as_member(self, spec: RolloutSpec, shared: RolloutSpec) -> RolloutSpec:
        """A spec with what its place in the group says, and what the configuration says of every rollout."""
        disabled = self._env.config.disabled_toolsets
        return replace(
            spec,
            id=shared.id,
            tools=tool_registry(spec).resolve(shared.tools, disabled) if disabled else shared.tools,
            tool_options=spec.tool_options or self._tool_options,
            limits=replace(spec.limits, deadline=_deadline(spec)),
            seed=shared.seed,
            group=shared.group,
        )

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
        config = self._env.config
        if config.system_prompt and not any(message["role"] == "system" for message in messages):
            messages.insert(0, system_message(config.system_prompt))
        if config.custom_thinking_prompt:
            led = bool(messages) and messages[0]["role"] == "system"
            system = messages.pop(0) if led else system_message("")
            parts = filter(None, (config.custom_thinking_prompt, text_of(system)))
            messages.insert(0, {**system, "content": "\n\n".join(parts)})
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
            rollout = await run_rollout(
                spec, agent, sandboxes=self._starts, tool_pool=self.tool_pool, retries=retries
            )
        if (watched := _watched.get()) is not None:
            watched.append(rollout)
        return rollout


def _deadline(spec: RolloutSpec) -> float | None:
    """The agent's seconds, a little under the sandbox's: an agent that takes too long is judged, not lost with it."""
    limits, lifetime = spec.limits, spec.sandbox.lifetime
    if lifetime is None:
        return limits.deadline
    longest = lifetime - min(limits.reward_timeout, lifetime / 10)
    return longest if limits.deadline is None else min(limits.deadline, longest)
