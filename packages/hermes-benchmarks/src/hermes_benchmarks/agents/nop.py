"""The agent `nop`: it does nothing, so that a task that passes with it judges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_benchmarks.agents import RunAgent

if TYPE_CHECKING:
    from hermes_benchmarks.config import EvaluationConfig


def nop_agent(config: EvaluationConfig) -> RunAgent:
    """An agent that does nothing."""
    from hermes_envs.agents import nop_agent as idle

    return RunAgent(lambda task: idle)
