"""The live half of a rollout: its sandbox, its tools, its clock and its log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_sandbox import Sandbox
    from hermes_tools import ToolSession

    from hermes_envs.result import AgentResult
    from hermes_envs.spec import RolloutSpec


@dataclass(slots=True)
class RolloutSession:
    """What an agent, `prepare` and the reward function act on. Nothing in it outlives the rollout.

    Attributes:
        id: The rollout's name.
        spec: What is to be done.
        sandbox: The rollout's own sandbox.
        tools: The tools the agent is shown.
        log: Logs with the rollout's id.
        progress: Set by an agent that can tell what it has done so far, so that a deadline keeps the transcript.
    """

    id: str
    spec: RolloutSpec
    sandbox: Sandbox
    tools: ToolSession
    log: logging.LoggerAdapter[logging.Logger]
    progress: Callable[[], AgentResult | None] | None = field(default=None)
