"""OpenAI's shapes: streamed chunks from deltas, and two adapters over async iterators."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeVar, cast
from uuid import uuid4

from hermes_parsers.parser import Parser, ParserStream
from hermes_parsers.types import Delta

_Item = TypeVar("_Item")


class ChunkWriter:
    """Turns deltas into `chat.completion.chunk` dicts of one response.

    A call that breaks after its name was streamed cannot be taken back in OpenAI's protocol: its chunk carries
    `hermes_parsers.errors`, and the finish reason counts only calls that are complete.

    Args:
        model: Name of the model, for the chunks.
        id: Id of the response; invented when not given.
        created: Unix time of the response, in whole seconds; now when not given.
        index: Which choice of the response.
    """

    def __init__(
        self, model: str = "", *, id: str | None = None, created: int | None = None, index: int = 0
    ) -> None:
        self._base: dict[str, Any] = {
            "id": id or f"chatcmpl-{uuid4().hex}",
            "object": "chat.completion.chunk",
            "created": int(time.time()) if created is None else created,
            "model": model,
        }
        self._index = index
        self._calls = 0
        self._first = True

    def chunk(self, delta: Delta) -> dict[str, Any]:
        """The chunk for one delta."""
        if delta.tool_call is not None and delta.tool_call.name is not None:
            self._calls += 1
        if delta.error is not None and delta.error.index is not None:
            self._calls -= 1
        return {**self._chunk(delta.to_openai(), None), **_report(delta)}

    def chunks(self, deltas: Iterable[Delta]) -> Iterator[dict[str, Any]]:
        """The chunks for several deltas."""
        return map(self.chunk, deltas)

    def last(self, finish_reason: str | None = None) -> dict[str, Any]:
        """The closing chunk; `stop` becomes `tool_calls` when there were any."""
        reason = finish_reason or "stop"
        if reason == "stop" and self._calls > 0:
            reason = "tool_calls"
        return self._chunk({}, reason)

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None) -> dict[str, Any]:
        if self._first:
            delta = {"role": "assistant", **delta}
            self._first = False
        choice = {"index": self._index, "delta": delta, "finish_reason": finish_reason}
        return {**self._base, "choices": [choice]}


def _report(delta: Delta) -> dict[str, Any]:
    """The extra field of a chunk that tells of a call that could not be read."""
    error = delta.error
    if error is None:
        return {}
    return {
        "hermes_parsers": {"errors": [{"kind": error.kind, "message": error.message, "index": error.index}]}
    }


async def chunks_from_text(
    parser: Parser, chunks: AsyncIterable[str], *, model: str = "", finish_reason: str | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Turn pieces of a model's raw text into `chat.completion.chunk` dicts, each as soon as it is known.

    Args:
        parser: Reads the text.
        chunks: The raw text as it is generated.
        model: Name of the model, for the chunks.
        finish_reason: Why generation ended, such as `length`; by default `stop` or `tool_calls`.

    Yields:
        Chunks; the last has a finish reason. `chunks` is closed when the caller stops early.
    """
    stream, writer = parser.stream(), ChunkWriter(model)
    async with aclosing(_iterator(chunks)) as pieces:
        async for piece in pieces:
            for chunk in writer.chunks(stream.feed(piece)):
                yield chunk
    for chunk in writer.chunks(stream.finish()):
        yield chunk
    yield writer.last(finish_reason)


async def parse_server_stream(parser: Parser, chunks: AsyncIterable[Any]) -> AsyncIterator[dict[str, Any]]:
    """Turn a server's chat-completion stream whose `content` holds raw markup into one with structured calls.

    Args:
        parser: Reads the content. With several choices each has a stream of its own.
        chunks: Chunks as dicts, or as the `openai` library's objects.

    Yields:
        Chunk dicts. Fields that this does not concern, such as `usage` and `logprobs`, pass once each, also where
        the content beside them is held back. What the server has already split off, `reasoning_content` and `tool_calls`, passes too.
    """
    choices: dict[int, _Choice] = {}
    last: dict[str, Any] = {}
    async with aclosing(_iterator(chunks)) as pieces:
        async for piece in pieces:
            chunk = _plain(piece)
            last = chunk
            for out in _rewrite(parser, choices, chunk):
                yield out
    last = {key: value for key, value in last.items() if key != "usage"}
    for index, choice in choices.items():
        for delta in choice.close():
            yield _chunk(last, {"index": index}, delta)


class _Choice:
    """One choice of a server's stream."""

    def __init__(self, stream: ParserStream) -> None:
        self.stream = stream
        self.calls = 0

    def read(self, content: str) -> list[Delta]:
        return self._count(self.stream.feed(content))

    def close(self) -> list[Delta]:
        return self._count(self.stream.finish())

    def _count(self, deltas: list[Delta]) -> list[Delta]:
        for delta in deltas:
            self.calls += delta.tool_call is not None and delta.tool_call.name is not None
            self.calls -= delta.error is not None and delta.error.index is not None
        return deltas

    def reason(self, given: str) -> str:
        return "tool_calls" if given == "stop" and self.calls > 0 else given


def _rewrite(parser: Parser, choices: dict[int, _Choice], chunk: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The chunks that one chunk becomes; the last has its `usage`, which counts once."""
    usage = chunk.get("usage")
    plain = chunk if usage is None else {**chunk, "usage": None}
    given = cast("list[dict[str, Any]]", chunk.get("choices") or [])
    if not given:
        yield chunk
        return
    written = [out for item in given for out in _rewrite_choice(parser, choices, plain, item)]
    if usage is not None:
        end = written.pop() if written else {**chunk, "choices": [_silent(item) for item in given]}
        written.append({**end, "usage": usage})
    yield from written


def _rewrite_choice(
    parser: Parser, choices: dict[int, _Choice], chunk: dict[str, Any], item: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The chunks that one choice of a chunk becomes; the first has its `logprobs`."""
    index = int(item.get("index") or 0)
    if index not in choices:
        choices[index] = _Choice(parser.stream())
    choice = choices[index]
    delta: dict[str, Any] = dict(item.get("delta") or {})
    content = delta.pop("content", None)
    reason = item.get("finish_reason")
    rest: dict[str, Any] = {
        key: value for key, value in item.items() if key not in ("delta", "finish_reason")
    }
    if any(value is not None for value in delta.values()):
        yield {**chunk, "choices": [{**rest, "delta": delta, "finish_reason": None}]}
        rest.pop("logprobs", None)
    shown = choice.read(content) if content else []
    if reason is not None:
        shown += choice.close()
    for each in shown:
        yield _chunk(chunk, rest, each)
        rest.pop("logprobs", None)
    if reason is not None:
        last: dict[str, Any] = {**rest, "delta": {}, "finish_reason": choice.reason(str(reason))}
        yield {**chunk, "choices": [last]}
    elif rest.get("logprobs") is not None:
        yield {**chunk, "choices": [_silent(rest)]}


def _silent(item: dict[str, Any]) -> dict[str, Any]:
    """A choice whose content is held back."""
    return {**item, "delta": {}, "finish_reason": None}


def _chunk(chunk: dict[str, Any], rest: dict[str, Any], delta: Delta) -> dict[str, Any]:
    choice = {**rest, "delta": delta.to_openai(), "finish_reason": None}
    return {**chunk, **_report(delta), "choices": [choice]}


def _plain(chunk: Any) -> dict[str, Any]:
    if isinstance(chunk, Mapping):
        return dict(cast("Mapping[str, Any]", chunk))
    return cast("dict[str, Any]", chunk.model_dump(exclude_unset=True))


async def _iterator(chunks: AsyncIterable[_Item]) -> AsyncGenerator[_Item, None]:
    """The items of `chunks`, which is closed with this iterator where it can be."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close = getattr(chunks, "aclose", None) or getattr(chunks, "close", None)
        if close is not None:
            result = close()
            if hasattr(result, "__await__"):
                await result
