"""The agent loop: ask the model, run the tools it calls, and again until it answers or a limit ends it."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes_envs.calls import run_calls
from hermes_envs.clients.server import as_client
from hermes_envs.clients.turn import ChatClient, RolloutClient, Turn
from hermes_envs.messages import ImagePlace, Message
from hermes_envs.outcome import STOP_OF_BOUNDARY, BoundaryError, StopReason, boundary
from hermes_envs.result import AgentResult, TurnRecord
from hermes_envs.telemetry import Telemetry
from hermes_envs.transcript import Transcript

if TYPE_CHECKING:
    from hermes_tools import ToolSession

OnTurn: TypeAlias = Callable[[TurnRecord, Sequence[Message]], Awaitable[None] | None]
"""Called after each turn with its record and the messages it added."""


class HermesAgentLoop:
    """Multi-turn tool calling.

    A failing model or a lost sandbox ends the run with a stop reason and the transcript so far; `run` raises only
    when it is cancelled.

    Args:
        client: A `ChatClient`, or any object with an OpenAI-style `chat_completion(messages=, tools=, …)`.
        session: The tools; None for a conversation without any.
        max_turns: Model calls.
        temperature: Sampling temperature; None leaves it to the server.
        max_tokens: Tokens of one reply.
        deadline: Seconds for the whole run.
        token_budget: Tokens read and sampled over all calls; no call is made once they are spent.
        cost_budget: Dollars over all calls, likewise.
        context_limit: Tokens that a conversation may have; None leaves it to the server.
        extra_body: Further fields of the request's body.
        sampling: Further sampling parameters (top_p, stop, seed, …).
        max_parallel_calls: Tool calls of one turn that run at once.
        image_place: Where images that tools return go.
        on_turn: Called after each turn.
        telemetry: Where spans go.
    """

    def __init__(
        self,
        client: ChatClient | RolloutClient | Any,
        session: ToolSession | None = None,
        *,
        max_turns: int = 30,
        temperature: float | None = None,
        max_tokens: int | None = None,
        deadline: float | None = None,
        token_budget: int | None = None,
        cost_budget: float | None = None,
        context_limit: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
        sampling: Mapping[str, Any] | None = None,
        max_parallel_calls: int = 8,
        image_place: ImagePlace = "user",
        on_turn: OnTurn | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, got {max_turns}")
        self._client = as_client(client)
        self._session = session
        self._max_turns = max_turns
        self._deadline = deadline
        self._token_budget = token_budget
        self._cost_budget = cost_budget
        self._context_limit = context_limit
        given = {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "extra_body": extra_body,
            **(sampling or {}),
        }
        self._sampling = {name: value for name, value in given.items() if value is not None}
        self._max_parallel_calls = max_parallel_calls
        self._image_place: ImagePlace = image_place
        self._on_turn = on_turn
        self._telemetry = telemetry or Telemetry()
        self._transcript: Transcript | None = None

    async def run(self, messages: Sequence[Message]) -> AgentResult:
        """Run until the model answers or a limit ends it.

        Args:
            messages: The conversation to start from, system prompt included; not changed.
        """
        client = self._client.for_rollout() if isinstance(self._client, RolloutClient) else self._client
        tools = self._session.definitions if self._session else []
        transcript = self._transcript = Transcript(messages, client, tools)
        limit = asyncio.timeout(self._deadline)
        try:
            async with limit:
                stop = await self._turns(client, tools, transcript)
        except TimeoutError:
            return transcript.result(StopReason.deadline)
        except BoundaryError as error:
            stop = getattr(error.__cause__, "stop_reason", STOP_OF_BOUNDARY[error.failure.boundary])
            return transcript.result(stop, error.failure)
        return transcript.result(stop)

    def progress(self) -> AgentResult | None:
        """The transcript of the current run so far, as if it were cancelled now; None before the first run."""
        return self._transcript.result(StopReason.cancelled) if self._transcript else None

    async def _turns(
        self, client: ChatClient, tools: Sequence[Mapping[str, Any]], transcript: Transcript
    ) -> StopReason:
        for number in range(1, self._max_turns + 1):
            if limit := self._limit_reached(transcript):
                return limit
            with self._telemetry.turn(number):
                seen = len(transcript.messages)
                turn = await self._ask(client, tools, transcript)
                stop = _ending(turn)
                if stop is None:
                    await self._call_tools(turn, number, transcript)
            await self._report(transcript, seen)
            if stop is not None:
                return stop
        return StopReason.max_turns

    async def _ask(
        self, client: ChatClient, tools: Sequence[Mapping[str, Any]], transcript: Transcript
    ) -> Turn:
        started, clock = time.time(), time.perf_counter()
        with boundary("provider"), self._telemetry.model_call(client.model, transcript.messages) as span:
            turn = await client.complete(transcript.messages, tools or None, **self._sampling)
            span.finish(turn)
        transcript.add_turn(turn, started, time.perf_counter() - clock)
        return turn

    async def _call_tools(self, turn: Turn, number: int, transcript: Transcript) -> None:
        clock = time.perf_counter()
        results = await run_calls(
            turn,
            number,
            self._session,
            max_parallel=self._max_parallel_calls,
            image_place=self._image_place,
            telemetry=self._telemetry,
        )
        transcript.add_results(results.messages, results.errors, results.seconds, time.perf_counter() - clock)

    async def _report(self, transcript: Transcript, seen: int) -> None:
        if self._on_turn is None:
            return
        with boundary("harness", "reporting a turn"):
            reported = self._on_turn(transcript.turns[-1], transcript.messages[seen:])
            if inspect.isawaitable(reported):
                await reported

    def _limit_reached(self, transcript: Transcript) -> StopReason | None:
        usage = transcript.usage
        if self._token_budget is not None and usage.total_tokens >= self._token_budget:
            return StopReason.budget
        if self._cost_budget is not None and (usage.cost_usd or 0.0) >= self._cost_budget:
            return StopReason.budget
        held = transcript.turns[-1].usage.total_tokens if transcript.turns else 0
        if self._context_limit is not None and held >= self._context_limit:
            return StopReason.context_full
        return None


def _ending(turn: Turn) -> StopReason | None:
    """Why a turn ends the run, None when its calls are to be run."""
    if turn.finish_reason == "length":
        return StopReason.truncated
    if turn.refusal or turn.finish_reason == "content_filter":
        return StopReason.refused
    return None if turn.tool_calls or turn.errors else StopReason.finished
