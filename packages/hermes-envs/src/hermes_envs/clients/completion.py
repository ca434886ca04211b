"""Read a chat completion, in whatever dialect of OpenAI's form a server answers, into a `Turn`."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

from hermes_parsers import ToolCall

from hermes_envs.clients.classify import from_error_body
from hermes_envs.clients.errors import BadResponse
from hermes_envs.clients.price import Price
from hermes_envs.clients.turn import Turn, Usage
from hermes_envs.messages import new_call_id

_CALL_FIELDS = ("id", "type", "function", "index")
_REASONING_TYPES = ("thinking", "reasoning", "reasoning_content")


def turn_of(completion: Any, price: Price | None = None) -> Turn:
    """The turn that a chat completion holds.

    Args:
        completion: A dict, or an object of the OpenAI SDK.
        price: What the tokens cost, where the server does not say.

    Raises:
        ProviderError: The body reports an error, holds no choice, or is no chat completion.
    """
    with readable_answer():
        return _turn_of(as_dict(completion), price)


@contextmanager
def readable_answer() -> Generator[None, None, None]:
    """What cannot be read of an answer is a `BadResponse`, which may be asked for again."""
    try:
        yield
    except (TypeError, ValueError, LookupError, AttributeError) as error:
        raise BadResponse(f"the server's answer is not a chat completion: {error!r}") from error


def _turn_of(data: Mapping[str, Any], price: Price | None) -> Turn:
    if data.get("error"):
        raise from_error_body(data["error"])
    choices = cast("Sequence[Any]", data.get("choices") or ())
    if not choices:
        raise BadResponse("the server's answer has no choices")
    choice = as_dict(choices[0])
    if choice.get("error"):
        raise from_error_body(choice["error"])
    message = as_dict(choice.get("message") or {})
    raw_calls = cast("Sequence[Any]", message.get("tool_calls") or ())
    calls = tuple(tool_call_of(call) for call in raw_calls)
    content, inline = _content(message.get("content"))
    ids, logprobs = _sampled(choice)
    return Turn(
        content=content,
        reasoning=reasoning_of(message) or inline,
        tool_calls=calls,
        finish_reason=choice.get("finish_reason") or ("tool_calls" if calls else "stop"),
        usage=usage_of(data.get("usage"), price),
        prompt_ids=data.get("prompt_token_ids") or choice.get("prompt_token_ids"),
        completion_ids=ids,
        logprobs=logprobs,
        refusal=message.get("refusal") or None,
        model=data.get("model") or None,
        extra={"reasoning_details": details} if (details := message.get("reasoning_details")) else {},
        call_extra=_call_extra(calls, raw_calls),
    )


def as_dict(value: Any) -> dict[str, Any]:
    """A mapping, or the fields of an SDK object or the public attributes of a plain one."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    dump = getattr(value, "model_dump", None)
    if callable(dump) and isinstance(fields := dump(), dict):
        return cast("dict[str, Any]", fields)
    if not hasattr(value, "__dict__"):
        raise BadResponse(f"the server's answer is not a chat completion but {type(value).__name__}")
    attributes = cast("dict[str, Any]", vars(value))  # pyright: ignore[reportUnknownArgumentType]
    return {name: field for name, field in attributes.items() if not name.startswith("_")}


def tool_call_of(call: Any) -> ToolCall:
    """A call from OpenAI's dict or object; a missing id is invented, arguments stay as the model wrote them."""
    fields = as_dict(call)
    function = as_dict(fields.get("function") or {})
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False)
    return ToolCall(
        id=fields.get("id") or new_call_id(),
        name=str(function.get("name") or ""),
        arguments=arguments or "{}",
    )


def _call_extra(calls: Sequence[ToolCall], raw_calls: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The texts and objects that a provider put beside a call's own fields, by call id."""
    extras: dict[str, dict[str, Any]] = {}
    for call, raw in zip(calls, raw_calls, strict=True):
        fields: dict[str, Any] = {
            name: value
            for name, value in as_dict(raw).items()
            if name not in _CALL_FIELDS and isinstance(value, str | Mapping)
        }
        if fields:
            extras[call.id] = fields
    return extras


def reasoning_of(message: Mapping[str, Any]) -> str | None:
    """The thinking in a message, in every spelling.

    `reasoning_content` (DeepSeek, vLLM, Kimi), `reasoning` (OpenRouter, Groq), or `reasoning_details` (OpenRouter's
    list of blocks).
    """
    for key in ("reasoning_content", "reasoning"):
        value = message.get(key)
        if isinstance(value, str) and value:
            return value
    parts: list[str] = []
    for detail in cast("Sequence[Any]", message.get("reasoning_details") or ()):
        fields = as_dict(detail)
        text = fields.get("text") or fields.get("summary")
        if isinstance(text, str) and text:
            parts.append(text)
    return "\n".join(parts) or None


def usage_of(usage: Any, price: Price | None = None) -> Usage:
    """Token counts, cached ones and the cost, from a `usage` block in any provider's spelling."""
    if not usage:
        return Usage()
    fields = as_dict(usage)
    details = as_dict(fields.get("prompt_tokens_details") or {})
    counted = Usage(
        prompt_tokens=int(fields.get("prompt_tokens") or 0),
        completion_tokens=int(fields.get("completion_tokens") or 0),
        cached_tokens=int(details.get("cached_tokens") or fields.get("prompt_cache_hit_tokens") or 0),
    )
    cost = fields.get("cost")
    if isinstance(cost, int | float):
        return replace(counted, cost_usd=float(cost))
    return replace(counted, cost_usd=price.of(counted)) if price else counted


def _content(content: Any) -> tuple[str | None, str | None]:
    """The text, and the thinking that some servers put among the content parts."""
    if content is None or isinstance(content, str):
        return content or None, None
    texts: list[str] = []
    thoughts: list[str] = []
    for part in cast("Sequence[Any]", content):
        fields = as_dict(part) if not isinstance(part, str) else {"type": "text", "text": part}
        if fields.get("type") in _REASONING_TYPES:
            value = fields.get(str(fields["type"])) or fields.get("text") or ""
            thoughts.append(value if isinstance(value, str) else (_content(value)[0] or ""))
        elif isinstance(fields.get("text"), str):
            texts.append(fields["text"])
    return "".join(texts) or None, "".join(thoughts) or None


def _sampled(choice: Mapping[str, Any]) -> tuple[list[int] | None, list[float] | None]:
    """Sampled ids (vLLM's `return_token_ids`) and their log-probabilities, where the server tells."""
    ids = cast("list[int] | None", choice.get("token_ids"))
    block = choice.get("logprobs")
    entries = cast("Sequence[Any]", as_dict(block).get("content") or ()) if block else ()
    logprobs = [float(as_dict(entry)["logprob"]) for entry in entries]
    if ids and len(logprobs) != len(ids):
        return list(ids), None
    return (list(ids) if ids else None), logprobs or None
