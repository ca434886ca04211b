"""What a rollout is to do, as a value: messages, tools, sandbox, limits, and how to prepare and judge it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes_sandbox import SandboxSpec

from hermes_envs.messages import Message
from hermes_envs.outcome import Failure
from hermes_envs.result import AgentResult

if TYPE_CHECKING:
    from hermes_tools import Tool, ToolRegistry

    from hermes_envs.context import ToolContext
    from hermes_envs.session import RolloutSession


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one rollout. Times are wall seconds; None is no bound.

    Attributes:
        max_turns: Model calls.
        deadline: Seconds for the agent, counted from its start.
        token_budget: Tokens read and sampled, over all model calls.
        cost_budget: Dollars, over all model calls.
        context_limit: Tokens that a conversation may have; None leaves it to the server.
        max_tokens: Tokens of one reply.
        terminal_timeout: Default seconds of one terminal command.
        sandbox_start_timeout: Seconds to create the sandbox, image build included.
        prepare_timeout: Seconds for `prepare`.
        reward_timeout: Seconds for `reward`.
        cleanup_timeout: Seconds for tearing down the tools and the sandbox.
        max_parallel_calls: Tool calls of one turn that run at once.
    """

    max_turns: int = 30
    deadline: float | None = None
    token_budget: int | None = None
    cost_budget: float | None = None
    context_limit: int | None = None
    max_tokens: int | None = None
    terminal_timeout: float = 120.0
    sandbox_start_timeout: float = 600.0
    prepare_timeout: float = 600.0
    reward_timeout: float = 600.0
    cleanup_timeout: float = 60.0
    max_parallel_calls: int = 8


@dataclass(frozen=True, slots=True)
class Reward:
    """A reward with what stands behind it.

    Attributes:
        value: Finite, 0 to 1; None with a `failure`.
        details: Anything JSON-serialisable to keep with the rollout (per-test results, partial scores).
        failure: Why the rollout cannot be graded; `by_policy` decides between reward 0 and no reward.
    """

    value: float | None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class GroupContext:
    """What the members of a group share, drawn once before any of them starts.

    Attributes:
        id: The group's name.
        size: Members.
        toolsets: The toolsets drawn for all of them, None where the spec says.
        distribution: The distribution they were drawn from.
        seed: The seed of the draw and of the members' own seeds.
    """

    id: str
    size: int
    toolsets: tuple[str, ...] | None = None
    distribution: str | None = None
    seed: int | None = None


MessageFunction: TypeAlias = "Callable[[RolloutSession], Awaitable[Sequence[Message]]]"
Prepare: TypeAlias = "Callable[[RolloutSession], Awaitable[None]]"
RewardFunction: TypeAlias = "Callable[[AgentResult, ToolContext], Awaitable[float | Reward] | float | Reward]"
Agent: TypeAlias = "Callable[[Sequence[Message], RolloutSession], Awaitable[AgentResult]]"


@dataclass(frozen=True)
class RolloutSpec:
    """One task, ready to run. The fields up to `reward` may be given by position.

    Attributes:
        messages: The conversation to start from, in OpenAI's form; or a function that gives it once `prepare` has run,
            for a task that is known only from inside its sandbox.
        tools: Toolset names or tools; None is every toolset that can work here, empty is none.
        backend: The sandbox backend's name.
        sandbox: The sandbox to create.
        limits: Bounds.
        prepare: Called with the session once the sandbox is up, before the agent.
        reward: Called with the result and a `ToolContext` after the agent, whatever ended it; synchronous context
            calls may be used. None leaves the rollout ungraded.
        tool_options: Settings of toolsets, such as `hermes_tools.toolsets.web.WebOptions(…)`, one of a kind.
        backend_options: Options of the backend.
        seed: For the agent's sampling and anything else random; None is no seed.
        id: The rollout's name; invented when empty.
        group: What it shares with the rest of its group.
        labels: Written into the result and the telemetry (task name, attempt).
        registry: Where toolset names are looked up; None is `hermes_tools.default_registry()`.
    """

    messages: Sequence[Message] | MessageFunction
    tools: Sequence[str | Tool] | None = None
    backend: str = "local"
    sandbox: SandboxSpec = field(default_factory=SandboxSpec)
    limits: Limits = Limits()
    prepare: Prepare | None = None
    reward: RewardFunction | None = None
    _: KW_ONLY
    tool_options: Sequence[object] = ()
    backend_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int | None = None
    id: str = ""
    group: GroupContext | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    registry: ToolRegistry | None = None
