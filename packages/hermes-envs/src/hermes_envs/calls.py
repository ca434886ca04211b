"""Run the tool calls of one turn: at once, bounded, with results in call order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

from hermes_parsers import ToolCall
from hermes_tools import ToolOutput, ToolSession, call_tool, fit_turn

from hermes_envs.clients.turn import Turn
from hermes_envs.messages import (
    UNREADABLE_CALL,
    ImagePlace,
    Message,
    parse_error_text,
    result_messages,
    tool_message,
)
from hermes_envs.outcome import boundary
from hermes_envs.result import ToolCallError
from hermes_envs.telemetry import Telemetry
from hermes_envs.together import together


@dataclass(frozen=True, slots=True)
class CallResults:
    """What the calls of one turn gave.

    Attributes:
        messages: To append to the conversation.
        errors: The calls that failed.
        seconds: Of each call, in call order.
    """

    messages: list[Message]
    errors: list[ToolCallError]
    seconds: list[float]


async def run_calls(
    turn: Turn,
    number: int,
    session: ToolSession | None,
    *,
    max_parallel: int,
    image_place: ImagePlace,
    telemetry: Telemetry,
) -> CallResults:
    """Run a turn's calls and answer those that could not be read.

    Args:
        turn: The turn.
        number: Its number, from 1.
        session: The tools; without one every call names an unknown tool.
        max_parallel: Calls that run at once.
        image_place: Where images go.
        telemetry: Gets a span per call.

    Raises:
        BoundaryError: The workspace is gone, or a tool broke in a way that is not the model's doing. The other
            calls are cancelled and awaited first.
    """
    if session is None:
        outputs = [_no_tool(call) for call in turn.tool_calls]
    else:
        with boundary("tool"):
            outputs = await _outputs(turn.tool_calls, session, max_parallel, telemetry)
            outputs = await fit_turn(session, outputs)
    answered = [
        (tool_message(call.id, call.name, output.text), output.parts)
        for call, output in zip(turn.tool_calls, outputs, strict=True)
    ]
    errors = [
        ToolCallError(number, call.name, call.arguments, output.error, output.text)
        for call, output in zip(turn.tool_calls, outputs, strict=True)
        if output.error is not None
    ]
    for index, broken in enumerate(turn.errors):
        text = parse_error_text(broken)
        answered.append((tool_message(_broken_id(number, index), UNREADABLE_CALL, text), None))
        errors.append(ToolCallError(number, "", broken.raw, f"{broken.kind}: {broken.message}", text))
    return CallResults(result_messages(answered, image_place), errors, [output.seconds for output in outputs])


def _broken_id(turn: int, index: int) -> str:
    """An id for a call that could not be read: nine alphanumerics, as some templates insist, and the same in a replay."""
    return f"e{turn:05d}{index:03d}"


def _no_tool(call: ToolCall) -> ToolOutput:
    error = f"There is no tool {call.name!r}: this conversation has no tools. Answer in text."
    return ToolOutput(json.dumps({"error": error}), error)


async def _outputs(
    calls: Sequence[ToolCall], session: ToolSession, max_parallel: int, telemetry: Telemetry
) -> list[ToolOutput]:
    if len(calls) <= 1:
        return [await _one(call, session, telemetry) for call in calls]
    free = asyncio.Semaphore(max_parallel)

    async def bounded(call: ToolCall) -> ToolOutput:
        async with free:
            return await _one(call, session, telemetry)

    return await together(bounded(call) for call in calls)


async def _one(call: ToolCall, session: ToolSession, telemetry: Telemetry) -> ToolOutput:
    with telemetry.tool_call(call) as span:
        output = await call_tool(call.name, call.arguments, session)
        span.finish(output.text, output.error)
    return output
