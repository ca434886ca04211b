"""A real HTTP server on loopback that answers chat completions as a test tells it to."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from aiohttp import web

Answer = dict[str, Any] | web.StreamResponse
Respond = Callable[[dict[str, Any], web.Request], Answer | Awaitable[Answer]]


def completion(
    content: str | None = None,
    *,
    calls: Sequence[tuple[str, str, str]] = (),
    finish_reason: str | None = None,
    usage: dict[str, Any] | None = None,
    message: dict[str, Any] | None = None,
    **top: Any,
) -> dict[str, Any]:
    """A chat completion; `calls` are (id, name, arguments)."""
    body: dict[str, Any] = {"role": "assistant", "content": content, **(message or {})}
    if calls:
        body["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [
            {
                "index": 0,
                "message": body,
                "finish_reason": finish_reason or ("tool_calls" if calls else "stop"),
            }
        ],
        "usage": usage or {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        **top,
    }


def failure(
    status: int, message: str, *, headers: dict[str, str] | None = None, **fields: Any
) -> web.Response:
    """An error in OpenAI's form."""
    return web.json_response({"error": {"message": message, **fields}}, status=status, headers=headers or {})


class ChatServer:
    """`async with ChatServer(respond) as server`: `server.url`, `server.requests`.

    `respond` is a function of (body, request), or a list of answers given in order, the last one for ever.
    """

    def __init__(self, respond: Respond | Sequence[Answer | Callable[[], web.StreamResponse]]) -> None:
        self._respond = respond
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def __aenter__(self) -> "ChatServer":
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, backlog=4096)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if callable(self._respond):
            answer = self._respond(body, request)
            if isinstance(answer, Awaitable):
                answer = await answer
        else:
            answer = self._respond[min(len(self.requests), len(self._respond)) - 1]
            if callable(answer):
                answer = answer()
        if isinstance(answer, web.StreamResponse):
            return answer
        if body.get("stream"):
            return await _stream(request, answer)
        return web.json_response(answer)


async def _stream(request: web.Request, answer: dict[str, Any]) -> web.StreamResponse:
    """The completion as server-sent events, cut into small deltas."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    head = {k: answer[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = answer["choices"][0]
    for delta in _deltas(choice["message"]):
        await _send(response, head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    await _send(response, head | {"choices": [end]})
    await _send(response, head | {"choices": [], "usage": answer["usage"]})
    await response.write(b"data: [DONE]\n\n")
    return response


async def _send(response: web.StreamResponse, chunk: dict[str, Any]) -> None:
    await response.write(f"data: {json.dumps(chunk)}\n\n".encode())


def _deltas(message: dict[str, Any]) -> list[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    for key in ("reasoning_content", "reasoning", "content"):
        deltas += [{key: piece} for piece in _pieces(message.get(key))]
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        first = {"index": index, **{name: value for name, value in call.items() if name != "function"}}
        deltas.append({"tool_calls": [first | {"function": {"name": function["name"], "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in _pieces(function["arguments"])
        ]
    return deltas


def _pieces(text: str | None) -> list[str]:
    return [text[i : i + 3] for i in range(0, len(text), 3)] if text else []
