"""What has happened so far in a running agent: it grows turn by turn and can be read as a result at any time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hermes_envs.clients.turn import ChatClient, RecordingClient, Turn, Usage
from hermes_envs.messages import Message, assistant_message
from hermes_envs.outcome import Failure, StopReason
from hermes_envs.result import AgentResult, Timings, ToolCallError, TurnRecord
from hermes_envs.well_formed import well_formed


class Transcript:
    """The growing record of one run.

    Args:
        messages: The conversation to start from; copied.
        client: The client in use; its token segments become the result's.
        tools: The tool dicts the model is shown.
    """

    def __init__(
        self, messages: Sequence[Message], client: ChatClient, tools: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        self.messages: list[Message] = [well_formed(dict(message)) for message in messages]
        self.turns: list[TurnRecord] = []
        self.tool_errors: list[ToolCallError] = []
        self.usage = Usage()
        self._reasoning: list[str | None] = []
        self._client = client
        self._recorder = client if isinstance(client, RecordingClient) else None
        self._tools = [dict(tool) for tool in tools]
        self._began = time.perf_counter()
        self._tool_wall = 0.0

    def add_turn(self, turn: Turn, started: float, seconds: float) -> None:
        """Record a reply that was asked for at `started` (Unix time) and took `seconds`."""
        self.turns.append(
            TurnRecord(
                turn=len(self.turns) + 1,
                message_index=len(self.messages),
                started=started,
                model_seconds=seconds,
                finish_reason=turn.finish_reason,
                usage=turn.usage,
                model=turn.model or self._client.model,
                prompt_ids=None if self._recorder else turn.prompt_ids,
                completion_ids=turn.completion_ids,
                logprobs=turn.logprobs,
            )
        )
        self.messages.append(assistant_message(turn))
        self._reasoning.append(turn.reasoning or _inline_reasoning(turn.content or ""))
        self.usage += turn.usage

    def add_results(
        self,
        messages: Sequence[Message],
        errors: Sequence[ToolCallError],
        seconds: Sequence[float],
        wall: float,
    ) -> None:
        """Record the results of the last turn's calls, which together took `wall` seconds."""
        self.messages.extend(messages)
        self.tool_errors.extend(errors)
        self.turns[-1] = replace(self.turns[-1], tool_seconds=tuple(seconds))
        self._tool_wall += wall

    def result(self, stop_reason: StopReason, error: Failure | None = None) -> AgentResult:
        """Everything so far, as the result of a run that ended with `stop_reason`."""
        client = self._client
        return AgentResult(
            messages=list(self.messages),
            turns_used=len(self.turns),
            reasoning_per_turn=list(self._reasoning),
            tool_errors=list(self.tool_errors),
            stop_reason=stop_reason,
            error=error,
            usage=self.usage,
            timings=Timings(
                total=time.perf_counter() - self._began,
                model=sum(turn.model_seconds for turn in self.turns),
                tools=self._tool_wall,
            ),
            turns=list(self.turns),
            segments=list(self._recorder.segments) if self._recorder else [],
            model=client.model,
            tools=self._tools,
        )


def _inline_reasoning(content: str) -> str | None:
    """The thinking that a server without a reasoning parser left in the text; the template may have opened it."""
    head, end, _ = content.partition("</think>")
    before, start, thought = head.partition("<think>")
    if start:
        return None if before.strip() else thought.strip() or None
    return before.strip() or None if end else None
