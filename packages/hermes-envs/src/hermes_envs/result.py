"""What one agent did: the conversation, why it ended, what it took."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermes_envs.clients.turn import Usage
from hermes_envs.outcome import Failure, StopReason

if TYPE_CHECKING:
    from hermes_envs.messages import Message
    from hermes_envs.tokens.segment import Segment


@dataclass(frozen=True, slots=True)
class ToolCallError:
    """A tool call that failed; the model was told, and the rollout went on.

    Attributes:
        turn: The model call it came from, counted from 1.
        tool_name: The name that the model gave.
        arguments: The arguments' text as the model wrote it.
        error: What was wrong.
        tool_result: The text that the model was shown.
    """

    turn: int
    tool_name: str
    arguments: str
    error: str
    tool_result: str


ToolError = ToolCallError
"""The reference system's name for `ToolCallError`."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One model call and the tools it led to.

    Attributes:
        turn: Counted from 1.
        message_index: Where the assistant message stands in `AgentResult.messages`.
        started: Unix time, seconds.
        model_seconds: Wall seconds of the model call, retries included.
        tool_seconds: Wall seconds of each tool call, in call order.
        finish_reason: OpenAI's word.
        usage: What the model call took.
        model: The model that answered.
        prompt_ids: Token ids read, where known and not kept in the segments.
        completion_ids: Token ids sampled, where known.
        logprobs: One per completion id, where known.
    """

    turn: int
    message_index: int
    started: float
    model_seconds: float
    tool_seconds: tuple[float, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    model: str | None = None
    prompt_ids: list[int] | None = None
    completion_ids: list[int] | None = None
    logprobs: list[float] | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Wall seconds: the whole run, the sum over model calls, the sum over turns waiting for tools."""

    total: float = 0.0
    model: float = 0.0
    tools: float = 0.0


@dataclass(frozen=True)
class AgentResult:
    """What one agent did.

    Attributes:
        messages: The whole conversation, in OpenAI's form.
        turns_used: Model calls that were answered.
        reasoning_per_turn: The model's thinking in each turn, None where there was none.
        tool_errors: Calls that failed.
        stop_reason: Why it ended.
        error: The failure behind a `*_error` stop reason (and the overflow behind `context_full`).
        usage: The sum over all model calls.
        timings: Where the time went.
        turns: One record per model call.
        segments: Exact token segments to train on, empty for clients that see no tokens.
        model: The model's name.
        tools: The OpenAI tool dicts that the model was shown.
    """

    messages: list[Message]
    turns_used: int = 0
    reasoning_per_turn: list[str | None] = field(default_factory=list[str | None])
    tool_errors: list[ToolCallError] = field(default_factory=list[ToolCallError])
    stop_reason: StopReason = StopReason.finished
    error: Failure | None = None
    usage: Usage = field(default_factory=Usage)
    timings: Timings = field(default_factory=Timings)
    turns: list[TurnRecord] = field(default_factory=list[TurnRecord])
    segments: list[Segment] = field(default_factory=list["Segment"])
    model: str | None = None
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def finished_naturally(self) -> bool:
        """Whether the model itself ended the conversation with an answer."""
        return self.stop_reason is StopReason.finished

    @property
    def managed_state(self) -> dict[str, Any] | None:
        """`{"segments": [...]}` with one dict per token segment, None without token ids."""
        return {"segments": [segment.to_dict() for segment in self.segments]} if self.segments else None

    def to_openai(self) -> dict[str, Any]:
        """The conversation in the form of OpenAI's fine-tuning files: `messages`, and `tools` where there were any."""
        return {"messages": self.messages, "tools": self.tools} if self.tools else {"messages": self.messages}

    def to_atif(self, **options: Any) -> dict[str, Any]:
        """The trajectory in ATIF v1.8; see `hermes_envs.trajectory.to_atif`."""
        from hermes_envs.trajectory.atif import to_atif

        return to_atif(self, **options)

    def to_json(self, *, indent: int | None = None) -> str:
        """Everything, as JSON text that `from_json` reads back to an equal result."""
        from hermes_envs.trajectory.plain import result_to_dict

        return json.dumps(result_to_dict(self), indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> AgentResult:
        """The result that `to_json` wrote.

        Raises:
            ValueError: The text is not JSON, or of another format.
        """
        from hermes_envs.trajectory.plain import result_from_dict

        return result_from_dict(json.loads(text))
