"""The verifier's view of a rollout, and the bridge that lets it be written synchronously."""

from hermes_envs.context.aio import AsyncToolContext
from hermes_envs.context.bridge import NotBridged, run_bridged
from hermes_envs.context.tool_context import ToolContext

run_reward = run_bridged
"""Call a reward function in which a `ToolContext` may be used synchronously."""

__all__ = ["AsyncToolContext", "NotBridged", "ToolContext", "run_bridged", "run_reward"]
