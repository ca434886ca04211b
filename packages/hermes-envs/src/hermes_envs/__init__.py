"""The agent loop, token-exact rollouts, reward contexts and Atropos environments."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes_envs.agents import loop_agent, nop_agent
    from hermes_envs.context import ToolContext
    from hermes_envs.group import draw_group, run_group
    from hermes_envs.lag import LagMonitor
    from hermes_envs.logs import RolloutFilter
    from hermes_envs.loop import HermesAgentLoop
    from hermes_envs.outcome import EnvsError, Failure, InfraFailed, Outcome, PolicyFailed, StopReason
    from hermes_envs.result import AgentResult, ToolCallError, ToolError
    from hermes_envs.rollout import (
        Agent,
        GroupContext,
        Limits,
        Reward,
        Rollout,
        RolloutSession,
        RolloutSpec,
        run_rollout,
    )
    from hermes_envs.semaphore import ResizableSemaphore
    from hermes_envs.telemetry import Telemetry

__all__ = [
    "Agent",
    "AgentResult",
    "EnvsError",
    "Failure",
    "GroupContext",
    "HermesAgentLoop",
    "InfraFailed",
    "LagMonitor",
    "Limits",
    "Outcome",
    "PolicyFailed",
    "ResizableSemaphore",
    "Reward",
    "Rollout",
    "RolloutFilter",
    "RolloutSession",
    "RolloutSpec",
    "StopReason",
    "Telemetry",
    "ToolCallError",
    "ToolContext",
    "ToolError",
    "draw_group",
    "loop_agent",
    "nop_agent",
    "run_group",
    "run_rollout",
]

# Names are imported when first used: `--help` of a command then pays neither for greenlet nor for OpenTelemetry.
_HOMES = {
    "Agent": "hermes_envs.rollout",
    "AgentResult": "hermes_envs.result",
    "EnvsError": "hermes_envs.outcome",
    "Failure": "hermes_envs.outcome",
    "GroupContext": "hermes_envs.rollout",
    "HermesAgentLoop": "hermes_envs.loop",
    "InfraFailed": "hermes_envs.outcome",
    "LagMonitor": "hermes_envs.lag",
    "Limits": "hermes_envs.rollout",
    "Outcome": "hermes_envs.outcome",
    "PolicyFailed": "hermes_envs.outcome",
    "ResizableSemaphore": "hermes_envs.semaphore",
    "Reward": "hermes_envs.rollout",
    "Rollout": "hermes_envs.rollout",
    "RolloutFilter": "hermes_envs.logs",
    "RolloutSession": "hermes_envs.rollout",
    "RolloutSpec": "hermes_envs.rollout",
    "StopReason": "hermes_envs.outcome",
    "Telemetry": "hermes_envs.telemetry",
    "ToolCallError": "hermes_envs.result",
    "ToolError": "hermes_envs.result",
    "ToolContext": "hermes_envs.context",
    "draw_group": "hermes_envs.group",
    "loop_agent": "hermes_envs.agents",
    "nop_agent": "hermes_envs.agents",
    "run_group": "hermes_envs.group",
    "run_rollout": "hermes_envs.rollout",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
