"""Record what a model answered, and answer the same again without the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from hermes_parsers import ParseError, ToolCall

from hermes_envs.clients.errors import ProviderError
from hermes_envs.clients.turn import ChatClient, Turn, Usage
from hermes_envs.messages import Message


class ReplayMiss(ProviderError):
    """The record holds no answer to this request."""


def request_key(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[Mapping[str, Any]] | None,
    sampling: Mapping[str, Any],
) -> str:
    """A digest of everything that a reply depends on."""
    request = [model, list(messages), list(tools or ()), {k: v for k, v in sampling.items() if v is not None}]
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class RecordClient:
    """Passes requests on and appends each answer to a JSON-lines file.

    Args:
        client: The client that answers.
        path: The file; appended to.
    """

    def __init__(self, client: ChatClient, path: str | Path) -> None:
        self._client = client
        self._path = Path(path)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._client.model

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Turn:
        """Ask, record, answer."""
        key = request_key(self.model, messages, tools, sampling)
        turn = await self._client.complete(messages, tools, **sampling)
        line = json.dumps({"key": key, "model": self.model, "turn": turn_to_dict(turn)}, ensure_ascii=False)
        # One short append; a thread per turn would cost more than it saves.
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        return turn


class ReplayClient:
    """Answers from a recording: the same request gets the same reply.

    A request that was recorded several times is answered in the order of recording; after the last, the last again.

    Args:
        path: What `RecordClient` wrote.
    """

    def __init__(self, path: str | Path) -> None:
        self._turns: dict[str, list[Turn]] = {}
        self._given: dict[str, int] = {}
        self.model = "replay"
        with Path(path).open(encoding="utf-8") as file:
            for line in file:
                entry = cast("dict[str, Any]", json.loads(line))
                self.model = str(entry["model"])
                self._turns.setdefault(entry["key"], []).append(turn_from_dict(entry["turn"]))

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Turn:
        """The recorded reply.

        Raises:
            ReplayMiss: This request was not recorded.
        """
        key = request_key(self.model, messages, tools, sampling)
        turns = self._turns.get(key)
        if not turns:
            raise ReplayMiss(
                f"no recorded reply to this request of {len(messages)} messages: the messages, tools or sampling "
                "parameters differ from the recorded run"
            )
        given = self._given.get(key, 0)
        self._given[key] = given + 1
        return turns[min(given, len(turns) - 1)]


def turn_to_dict(turn: Turn) -> dict[str, Any]:
    """A turn as JSON values; fields at their defaults are left out."""
    data: dict[str, Any] = {"content": turn.content, "finish_reason": turn.finish_reason}
    if turn.tool_calls:
        data["tool_calls"] = [[call.id, call.name, call.arguments] for call in turn.tool_calls]
    if turn.errors:
        data["errors"] = [[e.kind, e.message, e.start, e.end, e.raw] for e in turn.errors]
    usage = turn.usage
    data["usage"] = [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.cost_usd]
    for name in ("reasoning", "prompt_ids", "completion_ids", "logprobs", "refusal", "model"):
        if (value := getattr(turn, name)) is not None:
            data[name] = value
    for name in ("extra", "call_extra"):
        if value := getattr(turn, name):
            data[name] = dict(value)
    return data


def turn_from_dict(data: Mapping[str, Any]) -> Turn:
    """The reverse of `turn_to_dict`."""
    fields = dict(data)
    fields["tool_calls"] = tuple(
        ToolCall(id=call_id, name=name, arguments=arguments)
        for call_id, name, arguments in fields.get("tool_calls", ())
    )
    fields["errors"] = tuple(
        ParseError(kind=kind, message=message, start=start, end=end, raw=raw)
        for kind, message, start, end, raw in fields.get("errors", ())
    )
    fields["usage"] = Usage(*fields["usage"])
    return Turn(**fields)
