"""One rollout, from task to outcome."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from hermes_tools.session import Slots
from opentelemetry.trace import Status, StatusCode

from hermes_envs.logs import RolloutLogger, in_rollout
from hermes_envs.outcome import Failure, Outcome
from hermes_envs.phases import Attempt, Shared
from hermes_envs.result import AgentResult
from hermes_envs.session import RolloutSession
from hermes_envs.spec import Agent, GroupContext, Limits, Reward, RolloutSpec
from hermes_envs.telemetry import Telemetry

__all__ = [
    "Agent",
    "GroupContext",
    "Limits",
    "Reward",
    "Rollout",
    "RolloutSession",
    "RolloutSpec",
    "SandboxSlots",
    "run_rollout",
]

SandboxSlots = AbstractAsyncContextManager[Any]
"""Held while a sandbox is created: an `asyncio.Semaphore`, or a limiter of your own."""

_RETRY_PAUSE = 1.0


@dataclass(frozen=True)
class Rollout:
    """How one rollout ended.

    Attributes:
        id: The rollout's name.
        outcome: Whether it may be graded.
        reward: Finite, 0 to 1; None for `infra_failed`, and where no reward function was given.
        result: What the agent did; None when it never started.
        failure: Why it is not `completed`.
        timings: Wall seconds by phase: sandbox, prepare, agent, reward, cleanup, total.
        reward_details: What the reward function kept with its reward.
        group: What it shared with its group: the tool draw and the seed.
        seed: Its own seed.
        tools: Names of the tools that the agent was shown.
        labels: The spec's labels.
        attempts: How often it was run; more than 1 after infrastructure failures.
    """

    id: str
    outcome: Outcome
    reward: float | None = None
    result: AgentResult | None = None
    failure: Failure | None = None
    timings: Mapping[str, float] = field(default_factory=dict[str, float])
    reward_details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    group: GroupContext | None = None
    seed: int | None = None
    tools: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    attempts: int = 1


async def run_rollout(
    spec: RolloutSpec,
    agent: Agent,
    *,
    sandboxes: SandboxSlots | None = None,
    tool_pool: Slots | None = None,
    retries: int = 0,
    telemetry: Telemetry | None = None,
) -> Rollout:
    """Create the sandbox, run the agent in it, judge what it left, and clean up.

    Whatever fails on the way is data in the rollout. Only three things are raised: cancellation (after clean-up),
    and a spec that cannot work anywhere (an unknown toolset or backend).

    Args:
        spec: What to do.
        agent: Who does it.
        sandboxes: Bounds how many sandboxes are created at once; share one between rollouts.
        tool_pool: Bounds how many blocking (not async) tools run at once over all rollouts that share it: a
            `ResizableSemaphore` or an `asyncio.Semaphore`; None is a few per rollout.
        retries: How often a rollout is run anew, in a fresh sandbox, after a retryable infrastructure failure.
        telemetry: Where spans go.

    Raises:
        hermes_tools.UnknownToolsetError: A toolset name is unknown; `ToolsetUnavailableError` for one that cannot work
            here.
        ValueError: There is no such backend.
        hermes_sandbox.Unavailable: What the backend needs is not installed.
    """
    rollout_id = spec.id or f"rollout-{secrets.token_hex(4)}"
    spec = replace(spec, id=rollout_id)
    telemetry = telemetry or Telemetry()
    log = RolloutLogger(rollout_id)
    tries = 0
    with (
        in_rollout(rollout_id),
        telemetry.rollout(rollout_id, {f"hermes.{k}": v for k, v in spec.labels.items()}) as span,
    ):
        while True:
            tries += 1
            attempt = Attempt(spec, agent, Shared(sandboxes, tool_pool, telemetry), log)
            await attempt.run()
            failure = attempt.failure
            if failure is None or failure.by_policy or not failure.retryable or tries > retries:
                break
            log.warning(
                "infrastructure failed (%s: %s); attempt %d", failure.kind, failure.message, tries + 1
            )
            await asyncio.sleep(_RETRY_PAUSE * tries)
        rollout = _rollout(spec, attempt, tries)
        span.set_attribute("hermes.outcome", rollout.outcome.value)
        if rollout.failure is not None:
            span.set_status(Status(StatusCode.ERROR, f"{rollout.failure.boundary}: {rollout.failure.kind}"))
        if rollout.reward is not None:
            span.set_attribute("hermes.reward", rollout.reward)
        return rollout


def _rollout(spec: RolloutSpec, attempt: Attempt, tries: int) -> Rollout:
    failure, judged = attempt.failure, attempt.reward
    if failure is None:
        outcome, reward = Outcome.completed, judged.value if judged else None
    elif failure.by_policy:
        outcome, reward = Outcome.policy_failed, 0.0
    else:
        outcome, reward = Outcome.infra_failed, None
    return Rollout(
        id=spec.id,
        outcome=outcome,
        reward=reward,
        result=attempt.result,
        failure=failure,
        timings=attempt.timings,
        reward_details=judged.details if judged else {},
        group=spec.group,
        seed=spec.seed,
        tools=attempt.tool_names,
        labels=spec.labels,
        attempts=tries,
    )
