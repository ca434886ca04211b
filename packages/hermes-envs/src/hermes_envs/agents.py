"""Agents: what acts in a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hermes_envs.clients.turn import ChatClient, RolloutClient
from hermes_envs.loop import HermesAgentLoop, OnTurn
from hermes_envs.messages import ImagePlace, Message
from hermes_envs.outcome import StopReason
from hermes_envs.result import AgentResult
from hermes_envs.session import RolloutSession
from hermes_envs.spec import Agent
from hermes_envs.telemetry import Telemetry


def loop_agent(
    client: ChatClient | RolloutClient | Any,
    *,
    temperature: float | None = None,
    extra_body: Mapping[str, Any] | None = None,
    sampling: Mapping[str, Any] | None = None,
    image_place: ImagePlace = "user",
    on_turn: OnTurn | None = None,
    telemetry: Telemetry | None = None,
) -> Agent:
    """The agent loop with a client; limits and seed come from each rollout's spec.

    Args:
        client: A `ChatClient`, or an object with an OpenAI-style `chat_completion`.
        temperature: Sampling temperature.
        extra_body: Further fields of the request's body.
        sampling: Further sampling parameters.
        image_place: Where images that tools return go.
        on_turn: Called after each turn.
        telemetry: Where spans go.
    """

    async def agent(messages: Sequence[Message], session: RolloutSession) -> AgentResult:
        limits = session.spec.limits
        seeded = {} if session.spec.seed is None else {"seed": session.spec.seed}
        loop = HermesAgentLoop(
            client,
            session.tools,
            max_turns=limits.max_turns,
            temperature=temperature,
            max_tokens=limits.max_tokens,
            token_budget=limits.token_budget,
            cost_budget=limits.cost_budget,
            context_limit=limits.context_limit,
            extra_body=extra_body,
            sampling={**seeded, **(sampling or {})},
            max_parallel_calls=limits.max_parallel_calls,
            image_place=image_place,
            on_turn=on_turn,
            telemetry=telemetry,
        )
        session.progress = loop.progress
        return await loop.run(messages)

    return agent


async def nop_agent(messages: Sequence[Message], session: RolloutSession) -> AgentResult:
    """An agent that does nothing: what a task is worth untouched."""
    return AgentResult(messages=list(messages), stop_reason=StopReason.finished)
