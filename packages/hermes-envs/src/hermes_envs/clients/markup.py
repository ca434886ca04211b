"""Read tool calls out of raw text, for servers that do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes_parsers import get_parser

from hermes_envs.clients.turn import Turn


class Markup:
    """A model's tool-call format.

    Args:
        parser: A name of `hermes_parsers.list_parsers()`.

    Raises:
        hermes_parsers.UnknownParserError: No such parser.
    """

    def __init__(self, parser: str) -> None:
        self._name = parser
        self._keep_special = bool(get_parser(parser).format.special)

    def request_fields(self) -> dict[str, Any]:
        """What to ask of the server: show the model its tools, leave the calls and their markers in the text."""
        return {"tool_choice": "none"} | ({"skip_special_tokens": False} if self._keep_special else {})

    def read(self, turn: Turn, tools: Sequence[Mapping[str, Any]] | None) -> Turn:
        """The turn with the calls in its content read; unchanged when the server has read them already."""
        if turn.tool_calls or not turn.content:
            return turn
        parsed = get_parser(self._name, tools=list(tools or ())).parse(turn.content)
        calls = tuple(parsed.tool_calls)
        finish = "tool_calls" if calls and turn.finish_reason == "stop" else turn.finish_reason
        return replace(
            turn,
            content=parsed.content,
            reasoning=turn.reasoning or parsed.reasoning,
            tool_calls=calls,
            errors=tuple(parsed.errors),
            finish_reason=finish,
        )
