"""A rollout as a line of JSON: our own form, and those that SFT tools read."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hermes_envs.messages import Message, text_of
from hermes_envs.rollout import Rollout

from .rows import Row


def trajectory_line(rollout: Rollout, row: Row, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Conversation, reward, metadata, and tokens where they are known."""
    exact = not row.overrides.get("placeholder")
    return {
        "id": rollout.id,
        "conversation": _conversation(rollout),
        "reward": rollout.reward,
        "metadata": dict(metadata),
        "tools": _tools(rollout),
        "tokens": row.tokens if exact else None,
        "masks": row.masks if exact else None,
        "logprobs": row.logprobs if exact else None,
    }


def openai_line(rollout: Rollout, row: Row, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """`messages` and `tools` as TRL, Axolotl and OpenAI's fine-tuning read them."""
    return {
        "id": rollout.id,
        "messages": _conversation(rollout),
        "tools": _tools(rollout),
        "reward": rollout.reward,
        "metadata": dict(metadata),
    }


def sharegpt_line(rollout: Rollout, row: Row, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """`conversations` of `from` and `value`; calls and results in Hermes markup."""
    return {
        "id": rollout.id,
        "conversations": [_spoken(message) for message in _conversation(rollout)],
        "tools": _tools(rollout),
        "reward": rollout.reward,
        "metadata": dict(metadata),
    }


def atif_line(rollout: Rollout, row: Row, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The Agent Trajectory Interchange Format, with the reward in its `extra`."""
    atif: dict[str, Any] = rollout.result.to_atif() if rollout.result else {"steps": []}
    kept: Mapping[str, Any] = atif.get("extra") or {}
    extra = {**kept, "reward": rollout.reward, "metadata": dict(metadata)}
    return {**atif, "id": rollout.id, "extra": extra}


LineFormat = Callable[[Rollout, Row, Mapping[str, Any]], dict[str, Any]]
FORMATS: Mapping[str, LineFormat] = {
    "trajectories": trajectory_line,
    "openai": openai_line,
    "sharegpt": sharegpt_line,
    "atif": atif_line,
}
"""The forms with one line a rollout, by name."""

_TELLING = {
    "scores": "groups",
    "conversation": "trajectories",
    "conversations": "sharegpt",
    "steps": "atif",
    "messages": "openai",
}
"""The key that tells a form from those that come after it."""

_SPEAKERS = {"system": "system", "user": "human", "assistant": "gpt", "tool": "tool"}


def form_of(line: Mapping[str, Any]) -> str | None:
    """The form of a line that `process` wrote, the group form included; None for another."""
    return next((form for key, form in _TELLING.items() if key in line), None)


def metadata_of(rollout: Rollout, *, env: str, group: int, member: int, item: str) -> dict[str, Any]:
    """What a reader wants to know of a rollout besides the conversation; the same keys and types in every line."""
    result = rollout.result
    return {
        "env": env,
        "group": group,
        "member": member,
        "item": item,
        "outcome": rollout.outcome.value,
        "stop_reason": result.stop_reason.value if result else "",
        "model": (result.model if result else None) or "",
        "turns": result.turns_used if result else 0,
        "prompt_tokens": result.usage.prompt_tokens if result else 0,
        "completion_tokens": result.usage.completion_tokens if result else 0,
        "tool_errors": json.dumps([asdict(error) for error in result.tool_errors] if result else []),
        "toolsets": list(rollout.group.toolsets or ()) if rollout.group else [],
        "tool_names": list(rollout.tools),
        "seed": rollout.seed,
        "seconds": round(rollout.timings.get("total", 0.0), 3),
        "reward_details": json.dumps(dict(rollout.reward_details), default=str),
    }


def _conversation(rollout: Rollout) -> list[dict[str, Any]]:
    """Messages of one shape: readers such as Arrow need every value of a key to be of one type."""
    return [_uniform(message) for message in (rollout.result.messages if rollout.result else [])]


def _uniform(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message["role"], "content": _flat(message)}
    if message.get("reasoning_content"):
        shown["reasoning_content"] = message["reasoning_content"]
    if message.get("tool_calls"):
        shown["tool_calls"] = [
            {"id": call.get("id"), "type": "function", "function": dict(call["function"])}
            for call in message["tool_calls"]
        ]
    for key in ("tool_call_id", "name"):
        if message.get(key):
            shown[key] = message[key]
    return shown


def _flat(message: Message) -> str:
    content = message.get("content")
    if not isinstance(content, list):
        return content or ""
    images = sum(part.get("type") != "text" for part in content)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType, reportUnknownArgumentType]
    return text_of(message) + "\n[image]" * images


def _tools(rollout: Rollout) -> str:
    """JSON text: a column of JSON schemas has no common type."""
    return json.dumps(rollout.result.tools if rollout.result else [], ensure_ascii=False)


def _spoken(message: Mapping[str, Any]) -> dict[str, str]:
    text = str(message["content"])
    if message["role"] == "assistant":
        thinking = message.get("reasoning_content")
        parts = [f"<think>\n{thinking}\n</think>\n"] if thinking else []
        parts += [text] if text else []
        parts += [_marked_up(call["function"]) for call in _calls(message)]
        text = "\n".join(parts)
    elif message["role"] == "tool":
        text = f"<tool_response>\n{text}\n</tool_response>"
    return {"from": _SPEAKERS.get(str(message["role"]), str(message["role"])), "value": text}


def _calls(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return message.get("tool_calls") or ()


def _marked_up(function: Mapping[str, Any]) -> str:
    try:
        arguments = json.loads(function["arguments"])
    except (TypeError, ValueError):
        arguments = function["arguments"]
    call = json.dumps({"name": function["name"], "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call}\n</tool_call>"
