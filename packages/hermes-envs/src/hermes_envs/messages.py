"""Chat messages in OpenAI's form. Every such dict that hermes-envs makes is made here."""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

if TYPE_CHECKING:
    from hermes_parsers import ParseError

    from hermes_envs.clients.turn import Turn

Message: TypeAlias = dict[str, Any]
"""One chat message in OpenAI's form."""

ImagePlace: TypeAlias = Literal["user", "tool"]
"""Where images that a tool returns go: OpenAI and many templates take them in user messages only."""

UNREADABLE_CALL = "invalid_tool_call"
"""The name that a call gets which could not be read."""

_ID_ALPHABET = string.ascii_letters + string.digits


def system_message(text: str) -> Message:
    """A system message."""
    return {"role": "system", "content": text}


def user_message(content: str | Sequence[Mapping[str, Any]]) -> Message:
    """A user message of text, or of content parts."""
    return {
        "role": "user",
        "content": content if isinstance(content, str) else [dict(part) for part in content],
    }


def assistant_message(turn: Turn) -> Message:
    """The assistant message of a turn.

    `content` is always a string: trainers and several templates reject a missing or null one. The markup of calls
    that could not be read stays in it, so that the model sees what it wrote.
    """
    content = (turn.content or "") + "".join(error.raw for error in turn.errors)
    message: Message = {"role": "assistant", "content": content}
    if turn.refusal:
        message["refusal"] = turn.refusal
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if turn.tool_calls:
        message["tool_calls"] = [
            {**turn.call_extra.get(call.id, {}), **call.to_openai()} for call in turn.tool_calls
        ]
    message.update(turn.extra)
    return message


def tool_message(call_id: str, name: str, text: str) -> Message:
    """The result of a tool call."""
    return {"role": "tool", "tool_call_id": call_id, "name": name, "content": text}


def result_messages(
    results: Sequence[tuple[Message, Sequence[Mapping[str, Any]] | None]], place: ImagePlace
) -> list[Message]:
    """The messages that answer a turn's calls, in call order.

    Args:
        results: For each call its tool message, and the content parts of a result that has images.
        place: "tool" leaves the images in the tool message; "user" puts all of them into one user message after the
            tool messages, which every multimodal server takes.
    """
    messages: list[Message] = []
    images: list[dict[str, Any]] = []
    for message, parts in results:
        messages.append(message)
        shown = [dict(part) for part in parts or () if part.get("type") != "text"]
        if shown and place == "tool":
            message["content"] = [{"type": "text", "text": message["content"]}, *shown]
        elif shown:
            images += [{"type": "text", "text": f"Returned by {message['name']}:"}, *shown]
    return [*messages, user_message(images)] if images else messages


def new_call_id() -> str:
    """An identifier for a call that came without one; nine alphanumerics, which every template accepts."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(9))


def parse_error_text(error: ParseError) -> str:
    """What the model is told about a call that could not be read."""
    return json.dumps(
        {
            "error": f"The tool call could not be read ({error.kind}): {error.message}. It was not executed. "
            "Write the call again, complete and in the right format."
        },
        ensure_ascii=False,
    )


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, content parts joined."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = cast("Sequence[Mapping[str, Any]]", content or ())
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def sendable(messages: Sequence[Message]) -> list[Message]:
    """The messages as chat-completion servers take them.

    Every call's arguments are a JSON object: servers decode them to render past calls, and fail on text that is none.
    Every result answers a call of the assistant message before it, as servers check; what the model is told about a
    call that could not be read gets a stand-in for that call. The history keeps what the model wrote; only what is
    sent is changed.
    """
    sent: list[Message] = []
    caller: int | None = None
    for message in messages:
        if message["role"] == "assistant":
            caller = len(sent)
        elif message["role"] != "tool":
            caller = None
        elif caller is not None:
            sent[caller] = _announcing(sent[caller], message)
        sent.append(_with_readable_arguments(message) if message.get("tool_calls") else message)
    return sent


def _announcing(caller: Message, result: Message) -> Message:
    """The assistant message `caller` with a call that `result` answers."""
    calls = cast("list[dict[str, Any]]", caller.get("tool_calls") or [])
    call_id = result.get("tool_call_id")
    if call_id is None or any(call.get("id") == call_id for call in calls):
        return caller
    function = {"name": result.get("name") or UNREADABLE_CALL, "arguments": "{}"}
    return {**caller, "tool_calls": [*calls, {"id": call_id, "type": "function", "function": function}]}


def _with_readable_arguments(message: Message) -> Message:
    calls = cast("list[dict[str, Any]]", message["tool_calls"])
    if all(_is_json_object(call["function"].get("arguments")) for call in calls):
        return message
    repaired: list[dict[str, Any]] = []
    for call in calls:
        function = dict(call["function"])
        if not _is_json_object(function.get("arguments")):
            function["arguments"] = json.dumps({"unreadable_arguments": str(function.get("arguments") or "")})
        repaired.append({**call, "function": function})
    return {**message, "tool_calls": repaired}


def _is_json_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False
