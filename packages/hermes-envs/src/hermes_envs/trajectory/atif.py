"""Trajectories in ATIF, the Agent Trajectory Interchange Format (Harbor's RFC 0001), version 1.8.

Tool results become observations of the step that called them; token ids and log-probabilities go into a step's
metrics where they are known.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from hermes_envs.messages import Message
    from hermes_envs.result import AgentResult, TurnRecord

ATIF_VERSION = "ATIF-v1.8"

_IMAGE_TYPES = {"jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp"}


def to_atif(
    result: AgentResult,
    *,
    agent_name: str = "hermes-envs",
    agent_version: str | None = None,
    session_id: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A result as an ATIF document.

    Args:
        result: The result.
        agent_name: Who acted.
        agent_version: Its version; None is this package's.
        session_id: The run's name, such as the rollout's id.
        extra: Further metadata for the root.

    Raises:
        ValueError: The result has no messages; ATIF needs at least one step.
    """
    if not result.messages:
        raise ValueError("an ATIF trajectory needs at least one message")
    steps = _Steps(result)
    for index, message in enumerate(result.messages):
        steps.add(index, message)
    document = {
        "schema_version": ATIF_VERSION,
        "session_id": session_id,
        "agent": _present(
            {
                "name": agent_name,
                "version": agent_version or _own_version(),
                "model_name": result.model,
                "tool_definitions": result.tools or None,
            }
        ),
        "steps": steps.steps,
        "final_metrics": _final_metrics(result, len(steps.steps)),
        "extra": {"stop_reason": result.stop_reason.value, **(extra or {})},
    }
    return _present(document)


@dataclass
class _Steps:
    """Builds the steps, one message after another."""

    result: AgentResult
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __post_init__(self) -> None:
        self._records = {record.message_index: record for record in self.result.turns}
        self._prompts = _prompt_ids(self.result)

    def add(self, index: int, message: Message) -> None:
        """Take the message at `index`."""
        role = message["role"]
        if role == "tool" and self.steps and self.steps[-1]["source"] == "agent":
            self._observe(self.steps[-1], message)
            return
        source = {"assistant": "agent", "system": "system", "developer": "system"}.get(role, "user")
        step: dict[str, Any] = {
            "step_id": len(self.steps) + 1,
            "source": source,
            "message": _content(message.get("content")),
        }
        if source == "agent":
            step |= self._agent_fields(message, self._records.get(index))
        self.steps.append(step)

    def _agent_fields(self, message: Message, record: TurnRecord | None) -> dict[str, Any]:
        calls = cast("Sequence[Mapping[str, Any]]", message.get("tool_calls") or ())
        fields: dict[str, Any] = {
            "reasoning_content": message.get("reasoning_content"),
            "tool_calls": [_call(call) for call in calls] or None,
        }
        if record is not None:
            fields |= {
                "timestamp": datetime.fromtimestamp(record.started, UTC).isoformat(),
                "model_name": record.model,
                "llm_call_count": 1,
                "metrics": self._metrics(record),
            }
        return _present(fields)

    def _metrics(self, record: TurnRecord) -> dict[str, Any]:
        return _present(
            {
                "prompt_tokens": record.usage.prompt_tokens,
                "completion_tokens": record.usage.completion_tokens,
                "cached_tokens": record.usage.cached_tokens,
                "cost_usd": record.usage.cost_usd,
                "prompt_token_ids": record.prompt_ids or self._prompts.get(record.turn),
                "completion_token_ids": record.completion_ids,
                "logprobs": record.logprobs,
                "extra": {
                    "finish_reason": record.finish_reason,
                    "model_seconds": record.model_seconds,
                    "tool_seconds": list(record.tool_seconds),
                },
            }
        )

    @staticmethod
    def _observe(step: dict[str, Any], message: Message) -> None:
        known = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        call_id = message.get("tool_call_id")
        observed: dict[str, Any] = {"content": _content(message.get("content"))}
        if call_id in known:
            observed["source_call_id"] = call_id
        step.setdefault("observation", {"results": []})["results"].append(observed)


def _prompt_ids(result: AgentResult) -> dict[int, list[int]]:
    """The ids each turn's prompt had, by turn number, read from the segments."""
    return {
        span.turn + 1: segment.tokens[: span.start] for segment in result.segments for span in segment.spans
    }


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = cast("Mapping[str, Any]", call["function"])
    text = function.get("arguments") or "{}"
    try:
        arguments: Any = json.loads(text)
    except ValueError:
        arguments = None
    step: dict[str, Any] = {
        "tool_call_id": str(call.get("id") or ""),
        "function_name": str(function.get("name") or ""),
        "arguments": arguments if isinstance(arguments, dict) else {},
    }
    if not isinstance(arguments, dict):
        step["extra"] = {"unreadable_arguments": text}
    return step


def _content(content: Any) -> str | list[dict[str, Any]]:
    """Text, or ATIF content parts when there are images."""
    if content is None or isinstance(content, str):
        return content or ""
    parts: list[dict[str, Any]] = []
    for part in cast("Sequence[Mapping[str, Any]]", content):
        if part.get("type") == "image_url":
            url = str(part["image_url"]["url"])
            parts.append({"type": "image", "source": {"media_type": _media_type(url), "path": url}})
        else:
            parts.append({"type": "text", "text": str(part.get("text", ""))})
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _media_type(url: str) -> str:
    if url.startswith("data:"):
        named = url[5:].split(";", 1)[0].split(",", 1)[0]
        return named if named in {*_IMAGE_TYPES.values(), "image/png"} else "image/png"
    return _IMAGE_TYPES.get(url.rsplit(".", 1)[-1].lower(), "image/png")


def _final_metrics(result: AgentResult, steps: int) -> dict[str, Any]:
    usage = result.usage
    return _present(
        {
            "total_prompt_tokens": usage.prompt_tokens,
            "total_completion_tokens": usage.completion_tokens,
            "total_cached_tokens": usage.cached_tokens,
            "total_cost_usd": usage.cost_usd,
            "total_steps": steps,
            "extra": {
                "turns": result.turns_used,
                "tool_errors": len(result.tool_errors),
                "seconds": result.timings.total,
            },
        }
    )


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _own_version() -> str:
    try:
        return version("hermes-envs")
    except PackageNotFoundError:
        return "unknown"
