"""An `AgentResult` as JSON values and back, without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hermes_envs.clients.turn import Usage
from hermes_envs.outcome import Failure, StopReason
from hermes_envs.result import AgentResult, Timings, ToolCallError, TurnRecord

if TYPE_CHECKING:
    from hermes_envs.tokens.segment import Segment

FORMAT = "hermes-envs.result/1"
"""Written into every result, so that later versions can read earlier ones."""


def result_to_dict(result: AgentResult) -> dict[str, Any]:
    """A result as JSON values; what is None or empty in a turn is left out."""
    return {
        "format": FORMAT,
        "messages": result.messages,
        "turns_used": result.turns_used,
        "finished_naturally": result.finished_naturally,
        "reasoning_per_turn": result.reasoning_per_turn,
        "tool_errors": [asdict(error) for error in result.tool_errors],
        "stop_reason": result.stop_reason.value,
        "error": asdict(result.error) if result.error else None,
        "usage": asdict(result.usage),
        "timings": asdict(result.timings),
        "turns": [_without_empty(asdict(turn)) for turn in result.turns],
        "segments": [segment.to_dict() for segment in result.segments],
        "model": result.model,
        "tools": result.tools,
    }


def result_from_dict(data: Mapping[str, Any]) -> AgentResult:
    """The reverse of `result_to_dict`.

    Raises:
        ValueError: The data is of another format.
    """
    if data.get("format") != FORMAT:
        raise ValueError(f"expected a result of format {FORMAT!r}, got {data.get('format')!r}")
    return AgentResult(
        messages=list(data["messages"]),
        turns_used=data["turns_used"],
        reasoning_per_turn=list(data["reasoning_per_turn"]),
        tool_errors=[ToolCallError(**error) for error in data["tool_errors"]],
        stop_reason=StopReason(data["stop_reason"]),
        error=Failure(**data["error"]) if data["error"] else None,
        usage=Usage(**data["usage"]),
        timings=Timings(**data["timings"]),
        turns=[_turn(turn) for turn in data["turns"]],
        segments=_segments(data["segments"]),
        model=data["model"],
        tools=list(data["tools"]),
    )


def _without_empty(turn: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in turn.items() if value is not None}


def _turn(data: Mapping[str, Any]) -> TurnRecord:
    fields = dict(data)
    fields["usage"] = Usage(**fields["usage"])
    fields["tool_seconds"] = tuple(fields["tool_seconds"])
    return TurnRecord(**fields)


def _segments(data: list[Mapping[str, Any]]) -> list[Segment]:
    if not data:
        return []
    from hermes_envs.tokens.segment import Segment

    return [Segment.from_dict(segment) for segment in data]
