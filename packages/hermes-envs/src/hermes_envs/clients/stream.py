"""Put a streamed chat completion together again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from hermes_envs.clients.errors import BadResponse

_CALL_PIECES = ("index", "type", "function")
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")


class StreamedCompletion:
    """Collects chunks; `completion()` is the dict a server without streaming would have answered."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._details: list[Any] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._arguments: dict[int, list[str]] = {}
        self._logprobs: list[Any] = []
        self._token_ids: list[int] = []
        self._finish_reason: str | None = None
        self._any_choice = False

    def add(self, chunk: Mapping[str, Any]) -> None:
        """Take one chunk."""
        for key in ("id", "model", "usage", "prompt_token_ids"):
            if chunk.get(key):
                self._head[key] = chunk[key]
        for choice in cast("Sequence[Mapping[str, Any]]", chunk.get("choices") or ()):
            if choice.get("index", 0) == 0:
                self._any_choice = True
                self._add_choice(choice)

    def completion(self) -> dict[str, Any]:
        """The whole answer.

        Raises:
            BadResponse: The stream ended before the reply did; what came of it is no reply.
        """
        if self._any_choice and self._finish_reason is None:
            raise BadResponse("the stream ended before the reply did")
        message: dict[str, Any] = {"role": "assistant", "content": None}
        message |= {key: "".join(pieces) for key, pieces in self._texts.items()}
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = [self._call(index) for index in sorted(self._calls)]
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": self._finish_reason}
        if self._logprobs:
            choice["logprobs"] = {"content": self._logprobs}
        if self._token_ids:
            choice["token_ids"] = self._token_ids
        return {**self._head, "choices": [choice] if self._any_choice else []}

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = cast("Mapping[str, Any]", choice.get("delta") or {})
        for key in _TEXTS:
            if isinstance(delta.get(key), str):
                self._texts.setdefault(key, []).append(delta[key])
        self._details += delta.get("reasoning_details") or ()
        for call in cast("Sequence[Mapping[str, Any]]", delta.get("tool_calls") or ()):
            self._add_call(call)
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        self._token_ids += choice.get("token_ids") or ()
        logprobs = cast("Mapping[str, Any]", choice.get("logprobs") or {})
        self._logprobs += logprobs.get("content") or ()

    def _add_call(self, call: Mapping[str, Any]) -> None:
        """Merge a piece of a call; a server that sends no index starts a new call with every new id."""
        index = call.get("index")
        if index is None:
            last = max(self._calls, default=-1)
            fresh = last < 0 or (call.get("id") and call["id"] != self._calls[last].get("id"))
            index = last + 1 if fresh else last
        kept = self._calls.setdefault(index, {"type": "function", "name": ""})
        kept |= {name: value for name, value in call.items() if value and name not in _CALL_PIECES}
        function = cast("Mapping[str, Any]", call.get("function") or {})
        kept["name"] = kept["name"] or function.get("name") or ""
        if function.get("arguments"):
            self._arguments.setdefault(index, []).append(function["arguments"])

    def _call(self, index: int) -> dict[str, Any]:
        call = dict(self._calls[index])
        function = {"name": call.pop("name"), "arguments": "".join(self._arguments.get(index, ()))}
        return {"id": None, **call, "type": "function", "function": function}
