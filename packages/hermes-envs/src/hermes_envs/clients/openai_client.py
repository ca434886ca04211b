"""A client for every OpenAI-compatible server: OpenAI, OpenRouter, vLLM, SGLang, llama.cpp, Ollama and the rest."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from hermes_envs.clients.classify import from_error_body, provider_error
from hermes_envs.clients.completion import as_dict, readable_answer, turn_of
from hermes_envs.clients.concurrency import AdaptiveConcurrency
from hermes_envs.clients.errors import AuthenticationFailed, BadRequest, ProviderTimeout
from hermes_envs.clients.markup import Markup
from hermes_envs.clients.price import Price
from hermes_envs.clients.retry import RetryPolicy, retried
from hermes_envs.clients.stream import StreamedCompletion
from hermes_envs.clients.turn import Turn
from hermes_envs.messages import Message, sendable

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_PATH = "/chat/completions"
_CONNECT_SECONDS = 10.0
_NO_KEY = "none"


@dataclass(frozen=True, slots=True)
class _Connection:
    """The SDK, bound to the event loop it was made on."""

    loop: asyncio.AbstractEventLoop
    sdk: AsyncOpenAI


class OpenAIClient:
    """Chat completions over the OpenAI SDK on aiohttp.

    The SDK's own retries are off: a failed call is asked again here and nowhere else. Use it as an async context
    manager, or call `aclose`.

    Args:
        model: The model's name.
        base_url: The server, with its `/v1`; None takes OPENAI_BASE_URL, else OpenAI.
        api_key: The key; None takes OPENAI_API_KEY. A server given by `base_url` needs none.
        parser: A name of `hermes_parsers`, for servers that return tool calls as raw markup.
        extra_body: Further fields of every request's body.
        sampling: Sampling parameters of every request (temperature, max_tokens, seed, …).
        timeout: Seconds for one try.
        max_retries: Further tries of a call that failed for a passing reason.
        retry: The whole retry policy, in place of `max_retries`.
        stream: Whether to ask for a stream, which keeps long replies alive through proxies.
        concurrency: Calls in flight, or a limiter shared with other clients.
        price: Dollars per million tokens, for servers that do not report a cost.
        headers: Further HTTP headers.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        parser: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        sampling: Mapping[str, Any] | None = None,
        timeout: float = 600.0,
        max_retries: int = 4,
        retry: RetryPolicy | None = None,
        stream: bool = False,
        concurrency: AdaptiveConcurrency | int = 512,
        price: Price | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.model = model
        self.base_url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        self.concurrency = AdaptiveConcurrency(concurrency) if isinstance(concurrency, int) else concurrency
        self.price = price
        self._api_key = api_key or os.environ.get("OPENAI_API_KEY") or (_NO_KEY if self.base_url else "")
        self._markup = Markup(parser) if parser else None
        self._extra_body = dict(extra_body or {})
        self._sampling = dict(sampling or {})
        self._timeout = timeout
        self._retry = retry or RetryPolicy(max_retries=max_retries)
        self._stream = stream
        self._headers = dict(headers or {})
        self._connection: _Connection | None = None
        self._token_field = "max_tokens"
        self._reasoning_field = "reasoning_content"

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Turn:
        """Ask for one reply.

        Args:
            messages: The conversation; not changed.
            tools: OpenAI tool dicts.
            **sampling: Parameters of this request; `extra_body` is merged over the client's.

        Raises:
            ProviderError: One of the errors in `hermes_envs.clients.errors`.
        """
        if not self._api_key:
            raise AuthenticationFailed(
                "no API key and no base URL: give api_key= or set OPENAI_API_KEY, or give base_url= for a server of "
                "your own"
            )
        body = self._body(messages, tools, sampling)
        turn = await retried(lambda: self._try(body), self._retry)
        return self._markup.read(turn, tools) if self._markup else turn

    async def aclose(self) -> None:
        """Close the connections."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.sdk.close()

    async def __aenter__(self) -> OpenAIClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    def _body(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None,
        sampling: Mapping[str, Any],
    ) -> dict[str, Any]:
        given = {**self._sampling, **{name: value for name, value in sampling.items() if value is not None}}
        extra: dict[str, Any] = {**self._extra_body, **(given.pop("extra_body", None) or {})}
        body: dict[str, Any] = {"model": self.model, "messages": self._sendable(messages)}
        if tools:
            body["tools"] = list(tools)
            if self._markup:
                body |= self._markup.request_fields()
        if self._stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if (limit := given.pop("max_tokens", None)) is not None:
            body[self._token_field] = limit
        return body | given | extra

    def _sendable(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as this server takes them: reasoning goes back in its own spelling."""
        if self._reasoning_field == "reasoning_content":
            return sendable(messages)
        renamed: list[Message] = []
        for message in sendable(messages):
            if "reasoning_content" in message:
                message = {**message, self._reasoning_field: message["reasoning_content"]}
                del message["reasoning_content"]
            renamed.append(message)
        return renamed

    async def _try(self, body: dict[str, Any]) -> Turn:
        async with self.concurrency.slot():
            try:
                async with asyncio.timeout(self._timeout):
                    completion = await self._request(body)
            except TimeoutError as error:
                raise ProviderTimeout(f"no answer within {self._timeout:g} s") from error
            except Exception as error:
                failure = provider_error(error)
                if self._learn_token_field(failure, body):
                    return await self._ask_again(body)
                raise failure from error
        turn = turn_of(completion, self.price)
        self._learn_reasoning_field(completion)
        return turn if turn.model else replace(turn, model=self.model)

    async def _ask_again(self, body: dict[str, Any]) -> Turn:
        try:
            async with asyncio.timeout(self._timeout):
                return turn_of(await self._request(body), self.price)
        except Exception as error:
            raise provider_error(error) from error

    async def _request(self, body: Mapping[str, Any]) -> dict[str, Any]:
        sdk = await self._sdk()
        if not self._stream:
            return as_dict(await sdk.post(_PATH, cast_to=object, body=body))
        from openai import AsyncStream

        # pyright cannot match the SDK's overload for a plain-object stream.
        chunks = cast(
            "AsyncIterator[Any]",
            await sdk.post(_PATH, cast_to=object, body=body, stream=True, stream_cls=AsyncStream[object]),  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownMemberType]
        )
        completion = StreamedCompletion()
        async for chunk in chunks:
            fields = as_dict(chunk)
            if fields.get("error"):
                raise from_error_body(fields["error"])
            with readable_answer():
                completion.add(fields)
        with readable_answer():
            return completion.completion()

    async def _sdk(self) -> AsyncOpenAI:
        """The SDK for the running loop; its import takes over a second, so it waits for the first call."""
        loop = asyncio.get_running_loop()
        if self._connection is None or self._connection.loop is not loop:
            self._connection = _Connection(loop, self._connect())
        return self._connection.sdk

    def _connect(self) -> AsyncOpenAI:
        import openai

        httpx = _http_library(openai.DefaultAioHttpClient)
        limits = httpx.Limits(max_connections=self.concurrency.maximum + 8)
        http_client = openai.DefaultAioHttpClient(
            limits=limits, timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS)
        )
        return openai.AsyncOpenAI(
            api_key=self._api_key,
            base_url=self.base_url,
            max_retries=0,
            default_headers=self._headers,
            http_client=http_client,
        )

    def _learn_token_field(self, failure: Exception, body: dict[str, Any]) -> bool:
        """Switch to `max_completion_tokens`, which OpenAI's reasoning models insist on, when the server says so."""
        if not isinstance(failure, BadRequest) or "max_tokens" not in body:
            return False
        if "max_completion_tokens" not in str(failure):
            return False
        self._token_field = "max_completion_tokens"
        body["max_completion_tokens"] = body.pop("max_tokens")
        return True

    def _learn_reasoning_field(self, completion: Mapping[str, Any]) -> None:
        """Remember under which name the server wrote its thinking, to send it back under the same."""
        choices = cast("Sequence[Any]", completion.get("choices") or ())
        message = as_dict(as_dict(choices[0]).get("message") or {}) if choices else {}
        if message.get("reasoning_content"):
            self._reasoning_field = "reasoning_content"
        elif message.get("reasoning"):
            self._reasoning_field = "reasoning"


def _http_library(client: type) -> Any:
    """The library that the SDK's client is built on: httpx2 since openai 3, httpx before; both may be installed."""
    base = next(cls for cls in client.__mro__ if cls.__name__ == "AsyncClient")
    return import_module(base.__module__.partition(".")[0])
