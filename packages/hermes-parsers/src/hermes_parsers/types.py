"""The records a parser returns: calls, errors, deltas and the result."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hermes_parsers.json_text import decode


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One complete call of a tool.

    Attributes:
        id: The id on the wire where the format has one, else one that is unique per call.
        name: Name of the tool.
        arguments: JSON text of an object, as the model wrote it where that is valid JSON.
    """

    id: str
    name: str
    arguments: str

    @property
    def args(self) -> dict[str, Any]:
        """The decoded arguments; of a repeated key the last value holds."""
        return decode(self.arguments)

    def to_openai(self) -> dict[str, Any]:
        """The call as it stands in an OpenAI assistant message."""
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


@dataclass(frozen=True, slots=True)
class ParseError:
    """One call that could not be read.

    Attributes:
        kind: `invalid_json`, `invalid_arguments`, `missing_name`, `malformed`, `truncated`, `too_deep`,
            `in_reasoning` or `unexpected_call`.
        message: What is wrong, for a person or for the model.
        start: Where the call begins in the text, in characters.
        end: Where it ends.
        raw: The text between the two.
        index: Index of the streamed call that this error voids; None when none of it was streamed.
    """

    kind: str
    message: str
    start: int
    end: int
    raw: str
    index: int | None = None


@dataclass(slots=True)
class ToolCallDelta:
    """A piece of one call: id and name come first and once, then pieces of the arguments.

    Attributes:
        index: Which call of the message; counts from 0 in the order of appearance.
        id: Id of the call, in its first piece only.
        name: Name of the tool, in the first piece only.
        arguments: The next piece of the JSON text of the arguments.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""

    def to_openai(self) -> dict[str, Any]:
        """The piece as it stands in `choices[0].delta.tool_calls` of a streamed chunk."""
        if self.name is None:
            return {"index": self.index, "function": {"arguments": self.arguments}}
        return {
            "index": self.index,
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": self.arguments},
        }


@dataclass(slots=True)
class Delta:
    """What became known from one more chunk of text; exactly one of the fields is set.

    Attributes:
        content: Text for the user.
        reasoning: Text of the model's reasoning.
        tool_call: A piece of a call.
        error: A call that could not be read. Where its `index` is set, what was streamed of that call is void.
    """

    content: str | None = None
    reasoning: str | None = None
    tool_call: ToolCallDelta | None = None
    error: ParseError | None = None

    def to_openai(self) -> dict[str, Any]:
        """The dict for `choices[0].delta` of a streamed chunk; empty for an error, which has no place there."""
        if self.content is not None:
            return {"content": self.content}
        if self.reasoning is not None:
            return {"reasoning_content": self.reasoning}
        if self.tool_call is not None:
            return {"tool_calls": [self.tool_call.to_openai()]}
        return {}


class ParseResult(tuple[str | None, list[ToolCall]]):
    """What a whole text holds. Unpacks to `(content, tool_calls)`.

    Args:
        content: Text before, between and after the calls; None when there is none but white space.
        tool_calls: The complete calls in order.
        reasoning: Text of the reasoning blocks, or None.
        errors: The calls that could not be read.
        recovered: Names of the lenient recoveries that fired, each once, in order.
        unknown: Names of called tools that are not among the parser's `tools`; empty when it has none.
    """

    _extras: tuple[str | None, list[ParseError], list[str], list[str]]

    def __new__(
        cls,
        content: str | None = None,
        tool_calls: list[ToolCall] | None = None,
        reasoning: str | None = None,
        errors: list[ParseError] | None = None,
        recovered: list[str] | None = None,
        unknown: list[str] | None = None,
    ) -> ParseResult:
        """Make a result; the class tells what the arguments are."""
        self = super().__new__(cls, (content, tool_calls or []))
        self._extras = (reasoning, errors or [], recovered or [], unknown or [])
        return self

    @property
    def content(self) -> str | None:
        """Text for the user."""
        return self[0]

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The complete calls in order."""
        return self[1]

    @property
    def reasoning(self) -> str | None:
        """Text of the reasoning blocks."""
        return self._extras[0]

    @property
    def errors(self) -> list[ParseError]:
        """The calls that could not be read."""
        return self._extras[1]

    @property
    def recovered(self) -> list[str]:
        """The lenient recoveries that fired."""
        return self._extras[2]

    @property
    def unknown(self) -> list[str]:
        """Called names that are not among the tools given to the parser."""
        return self._extras[3]

    def to_openai(self) -> dict[str, Any]:
        """The OpenAI assistant message; `reasoning_content` and `tool_calls` only where there are any."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning is not None:
            message["reasoning_content"] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [call.to_openai() for call in self.tool_calls]
        return message

    def to_dict(self) -> dict[str, Any]:
        """Every field as plain data, ready for JSON."""
        return {
            "content": self.content,
            "reasoning": self.reasoning,
            "tool_calls": [
                {"id": call.id, "name": call.name, "arguments": call.arguments} for call in self.tool_calls
            ],
            "errors": [{name: getattr(error, name) for name in error.__slots__} for error in self.errors],
            "recovered": self.recovered,
            "unknown": self.unknown,
        }

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ParseResult) and self._extras != other._extras:
            return False
        return super().__eq__(other)

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # holds lists

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.reasoning, self.errors, self.recovered, self.unknown)

    def __repr__(self) -> str:
        shown = {key: value for key, value in self.to_dict().items() if value or key == "content"}
        return f"ParseResult({json.dumps(shown, ensure_ascii=True)})"
