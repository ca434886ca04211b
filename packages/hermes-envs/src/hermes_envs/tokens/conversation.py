"""Conversations in the form that chat templates are written for."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

Message: TypeAlias = Mapping[str, Any]
"""One message in OpenAI's form."""

ToolDefinition: TypeAlias = Mapping[str, Any]
"""One tool in OpenAI's form."""


class ChatTemplateError(ValueError):
    """A chat template refused a conversation, is missing or is broken."""


def template_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in the form chat templates are written for: arguments decoded, content a string."""
    return [_template_message(message) for message in messages]


def _template_message(message: Message) -> dict[str, Any]:
    shown = dict(message)
    shown["content"] = _text(message.get("content"))
    if calls := message.get("tool_calls"):
        shown["tool_calls"] = [_template_call(call) for call in calls]
    else:
        shown.pop("tool_calls", None)
    return shown


def _template_call(call: Mapping[str, Any]) -> dict[str, Any]:
    shown = dict(call)
    if isinstance(function := call.get("function"), Mapping):
        function = dict(cast("Mapping[str, Any]", function))
        function["arguments"] = _decoded(function.get("arguments"))
        shown["function"] = function
    return shown


def _decoded(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return cast("Any", value) if isinstance(value, dict) else arguments


def _text(content: Any) -> Any:
    """Text parts joined; content with images stays a list for templates that show them."""
    if content is None:
        return ""
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        if all(part.get("type") == "text" for part in parts):
            return "".join(part.get("text", "") for part in parts)
    return cast("Any", content)
