"""OpenTelemetry spans: rollout > turn > model call / tool call. Without an SDK they cost next to nothing.

Names and attributes follow OpenTelemetry's semantic conventions for generative AI. Contents (messages, arguments,
results) are left out unless asked for.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

if TYPE_CHECKING:
    from hermes_parsers import ToolCall

    from hermes_envs.clients.turn import Turn
    from hermes_envs.messages import Message

_SCOPE = "hermes_envs"


class Telemetry:
    """Opens the spans of a rollout.

    Args:
        contents: Whether messages, arguments and results are recorded.
        tracer: Where spans go; None is the globally configured provider.
    """

    def __init__(self, *, contents: bool = False, tracer: Tracer | None = None) -> None:
        self.contents = contents
        self._tracer = tracer or trace.get_tracer(_SCOPE)

    @contextmanager
    def rollout(
        self, rollout_id: str, attributes: Mapping[str, str | int | bool]
    ) -> Generator[Span, None, None]:
        """The span of a whole rollout."""
        with self._span("rollout", {"hermes.rollout.id": rollout_id, **attributes}) as span:
            yield span

    @contextmanager
    def phase(self, name: str) -> Generator[Span, None, None]:
        """The span of a phase of a rollout: sandbox, prepare, reward."""
        with self._span(name, {}) as span:
            yield span

    @contextmanager
    def turn(self, number: int) -> Generator[Span, None, None]:
        """The span of one turn, counted from 1."""
        with self._span("turn", {"hermes.turn": number}) as span:
            yield span

    @contextmanager
    def model_call(self, model: str, messages: Sequence[Message]) -> Generator[ModelCallSpan, None, None]:
        """The span of one model call."""
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": model}
        with self._span(f"chat {model}", attributes, SpanKind.CLIENT) as span:
            if self.contents and span.is_recording():
                span.set_attribute(
                    "gen_ai.input.messages", json.dumps(messages, ensure_ascii=False, default=str)
                )
            yield ModelCallSpan(span, self.contents)

    @contextmanager
    def tool_call(self, call: ToolCall) -> Generator[ToolCallSpan, None, None]:
        """The span of one tool call."""
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
        }
        with self._span(f"execute_tool {call.name}", attributes) as span:
            if self.contents:
                span.set_attribute("gen_ai.tool.call.arguments", call.arguments)
            yield ToolCallSpan(span, self.contents)

    @contextmanager
    def _span(
        self, name: str, attributes: Mapping[str, str | int | bool], kind: SpanKind = SpanKind.INTERNAL
    ) -> Generator[Span, None, None]:
        """A span; what is raised inside marks it as failed, its message recorded only with the contents."""
        with self._tracer.start_as_current_span(
            name,
            kind=kind,
            attributes=attributes,
            record_exception=self.contents,
            set_status_on_exception=self.contents,
        ) as span:
            try:
                yield span
            except BaseException as error:
                if not self.contents:
                    span.set_status(Status(StatusCode.ERROR, type(error).__name__))
                raise


@dataclass(frozen=True, slots=True)
class ModelCallSpan:
    """The open span of a model call."""

    span: Span
    contents: bool

    def finish(self, turn: Turn) -> None:
        """Record the reply."""
        if not self.span.is_recording():
            return
        self.span.set_attributes(
            {
                "gen_ai.response.model": turn.model or "",
                "gen_ai.response.finish_reasons": [turn.finish_reason],
                "gen_ai.usage.input_tokens": turn.usage.prompt_tokens,
                "gen_ai.usage.output_tokens": turn.usage.completion_tokens,
                "gen_ai.usage.cache_read.input_tokens": turn.usage.cached_tokens,
            }
        )
        if self.contents:
            self.span.set_attribute("gen_ai.output.messages", json.dumps(_reply(turn), ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class ToolCallSpan:
    """The open span of a tool call."""

    span: Span
    contents: bool

    def finish(self, text: str, error: str | None) -> None:
        """Record the result; the error's text is content too."""
        if not self.span.is_recording():
            return
        if error is not None:
            self.span.set_status(Status(StatusCode.ERROR, error if self.contents else None))
        if self.contents:
            self.span.set_attribute("gen_ai.tool.call.result", text)


def _reply(turn: Turn) -> dict[str, Any]:
    return {
        "content": turn.content,
        "reasoning": turn.reasoning,
        "tool_calls": [call.to_openai() for call in turn.tool_calls],
    }
