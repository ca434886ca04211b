"""The text that new messages add behind a sampled turn, without rendering that turn or anything before it.

A chat template is only ever given whole conversations, and what it makes of past turns differs from what was
sampled: it strips thinking, trims white space, reorders JSON. So new messages are rendered behind a stand-in
for the sampled turn that carries a sentinel, and the text is cut behind that stand-in.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from .conversation import ChatTemplateError, Message, ToolDefinition
from .tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Increment:
    """What follows a sampled turn in the model's context.

    Attributes:
        end: The token that ends the turn, to be inserted unless it was sampled; None in formats without one.
        text: The rest: separators, new messages, the header of the next turn.
    """

    end: str | None
    text: str


def increment(
    tokenizer: Tokenizer,
    new: Sequence[Message],
    tools: Sequence[ToolDefinition] | None,
    *,
    with_system: bool,
    call_names: Mapping[str, str],
) -> Increment | None:
    """Render `new` behind a sampled assistant turn.

    Args:
        tokenizer: Renders and knows the tokens that end a turn.
        new: The messages after the sampled turn.
        tools: The tools the conversation was opened with.
        with_system: Whether the conversation opens with a system message (templates add their own otherwise).
        call_names: Name of each tool call of the sampled turn, by id.

    Returns:
        The increment, or None where the template leaves no provable cut.
    """
    sentinel = f"b{secrets.token_hex(12)}d"
    opening = _opening(with_system)
    stand_in = _stand_in(sentinel, new, call_names)
    try:
        closed = tokenizer.render([*opening, stand_in], tools)
        whole = tokenizer.render([*opening, stand_in, *new], tools, add_generation_prompt=True)
        tail, whole_tail = _behind(sentinel, closed), _behind(sentinel, whole)
        if tail is None or whole_tail is None:
            return None
        if found := _cut_at_end_token(tokenizer, tail, whole_tail):
            return found
        if not whole_tail.startswith(tail):
            return None
        unsampled = tail
        if "tool_calls" in stand_in:  # the calls' closing markup is sampled; what follows any turn is not
            plain = tokenizer.render([*opening, {"role": "assistant", "content": sentinel}], tools)
            separator = _behind(sentinel, plain) or ""
            unsampled = separator if tail.endswith(separator) else ""
        return Increment(None, whole_tail[len(tail) - len(unsampled) :])
    except ChatTemplateError:
        return None


def _opening(with_system: bool) -> list[Message]:
    system: list[Message] = [{"role": "system", "content": "s"}] if with_system else []
    return [*system, {"role": "user", "content": "u"}]


def _stand_in(sentinel: str, new: Iterable[Message], call_names: Mapping[str, str]) -> Message:
    """An assistant turn whose last rendered text is the sentinel; it calls what `new` answers."""
    answered = list(takewhile(lambda message: message.get("role") == "tool", new))
    if not answered:
        return {"role": "assistant", "content": sentinel}
    calls = [_stand_in_call(sentinel, message, call_names) for message in answered]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def _stand_in_call(sentinel: str, answer: Message, names: Mapping[str, str]) -> dict[str, Any]:
    call_id = str(answer.get("tool_call_id") or "call00000")
    name = names.get(call_id) or str(answer.get("name") or "tool")
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": {"value": sentinel}}}


def _behind(sentinel: str, text: str) -> str | None:
    found = text.rfind(sentinel)
    return None if found < 0 else text[found + len(sentinel) :]


def _cut_at_end_token(tokenizer: Tokenizer, tail: str, whole_tail: str) -> Increment | None:
    """Cut at the first token behind the stand-in that ends a turn, where both renderings agree on it."""
    ends = [(found, text) for text in tokenizer.end_tokens if (found := tail.find(text)) >= 0]
    if not ends:
        return None
    start, end = min(ends)
    cut = start + len(end)
    return Increment(end, whole_tail[cut:]) if whole_tail[:cut] == tail[:cut] else None
