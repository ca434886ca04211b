"""What the plug-ins for both servers share: their tools as dicts, and what a server shows of a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from hermes_parsers.types import Delta, ParseError, ParseResult, ToolCallDelta


def shown_content(result: ParseResult, text: str) -> str | None:
    """The content of a whole output, with the text of unreadable calls, for which a server has no other place."""
    if not result.errors:
        return result.content
    if not result.tool_calls:
        return text
    return "".join((result.content or "", *(error.raw for error in result.errors)))


def streamed_content(deltas: Iterable[Delta]) -> str:
    """The content of some deltas, with the text of unreadable calls of which nothing was streamed."""
    parts = [delta.content if delta.error is None else _unseen(delta.error) for delta in deltas]
    return "".join(part for part in parts if part)


def _unseen(error: ParseError) -> str:
    return error.raw if error.index is None else ""


def streamed_calls(deltas: Iterable[Delta]) -> list[ToolCallDelta]:
    """The pieces of calls in some deltas, one for each call: servers look at no more than that."""
    calls: dict[int, ToolCallDelta] = {}
    for piece in (delta.tool_call for delta in deltas if delta.tool_call is not None):
        begun = calls.get(piece.index)
        arguments = piece.arguments if begun is None else begun.arguments + piece.arguments
        calls[piece.index] = replace(begun or piece, arguments=arguments)
    return list(calls.values())


def plain_tool(tool: Any) -> Mapping[str, Any]:
    """A tool as a dict, from a dict or from a server's pydantic object."""
    if isinstance(tool, Mapping):
        return cast("Mapping[str, Any]", tool)
    return cast("Mapping[str, Any]", tool.model_dump())
