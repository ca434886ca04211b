"""A client that sends token ids and gets token ids: what was sampled is kept exactly."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermes_parsers import ParseResult, get_parser

from hermes_envs.clients.classify import from_status, provider_error, retry_after
from hermes_envs.clients.concurrency import AdaptiveConcurrency
from hermes_envs.clients.errors import ContextOverflow, ModelNotFound
from hermes_envs.clients.retry import RetryPolicy, retried
from hermes_envs.clients.token_wire import WIRES, Sample, TokenWire, read_sample
from hermes_envs.clients.turn import Turn, Usage
from hermes_envs.messages import assistant_message
from hermes_envs.tokens.session import History, TokenSession

if TYPE_CHECKING:
    import aiohttp

    from hermes_envs.tokens.segment import Segment
    from hermes_envs.tokens.tokenizer import Tokenizer

_THINK_OPENERS = ("<think>", "<|think|>", "[THINK]", "<seed:think>", "<thinking>")
_DEFAULT_MAX_TOKENS = 4096


@dataclass(frozen=True, slots=True)
class _Connection:
    """The HTTP session, bound to the event loop it was made on."""

    loop: asyncio.AbstractEventLoop
    http: aiohttp.ClientSession


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question: the ids sent and what shaped the reply."""

    ids: Sequence[int]
    tools: Sequence[Mapping[str, Any]]
    sampling: dict[str, Any]


class TokenClient:
    """Samples turns from a server that takes and returns token ids, and parses them itself.

    `for_rollout()` gives each rollout its own view with the segments of what it sampled; the agent loop asks for
    it. `complete()` on the client itself answers a single conversation without keeping anything.

    Args:
        base_url: The server's root; a trailing `/v1` is dropped.
        tokenizer: The policy's tokenizer with its chat template (`hermes_envs.tokens.load_tokenizer`).
        model: The model's name at the server.
        wire: "vllm" (`/inference/v1/generate`), "atropos" (`/generate`), "sglang" (`/generate`), "auto" (whichever of
            the first two the server has), or an object.
        parser: Name of the tool-call format (`hermes_parsers`).
        api_key: Sent as a bearer token.
        history: "append" or "template": see `TokenSession`.
        context_limit: Tokens that prompt and reply may have together; None leaves it to the server.
        timeout: Seconds for one try.
        max_retries: Further tries of a request that failed for a passing reason.
        retry: The whole retry policy, in place of `max_retries`.
        concurrency: Requests in flight, or a limiter shared with other clients.
    """

    def __init__(
        self,
        base_url: str,
        tokenizer: Tokenizer,
        *,
        model: str = "policy",
        wire: str | TokenWire = "vllm",
        parser: str = "hermes",
        api_key: str | None = None,
        history: History = "append",
        context_limit: int | None = None,
        timeout: float = 1200.0,
        max_retries: int = 4,
        retry: RetryPolicy | None = None,
        concurrency: AdaptiveConcurrency | int = 512,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.history: History = history
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self._wires = _wires(wire)
        get_parser(parser)  # an unknown name fails here, not in the first rollout
        self._parser = parser
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.context_limit = context_limit
        self._timeout = timeout
        self._retry = retry or RetryPolicy(max_retries=max_retries)
        self.concurrency = AdaptiveConcurrency(concurrency) if isinstance(concurrency, int) else concurrency
        self._connection: _Connection | None = None

    def for_rollout(self) -> TokenRollout:
        """A view for one rollout, which keeps its segments."""
        return TokenRollout(self)

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        **sampling: Any,
    ) -> Turn:
        """Sample one reply and keep nothing; see `ChatClient.complete`."""
        return await self.for_rollout().complete(messages, tools, **sampling)

    async def aclose(self) -> None:
        """Close the connections."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.http.close()

    async def __aenter__(self) -> TokenClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    async def ask(self, ids: Sequence[int], sampling: Mapping[str, Any]) -> Sample:
        """Sample once, with retries.

        Args:
            ids: The prompt.
            sampling: Parameters in the server's names, `max_tokens` included.

        Raises:
            ProviderError: The server could not be asked.
        """
        return await retried(lambda: self._try(ids, sampling), self._retry)

    async def _try(self, ids: Sequence[int], sampling: Mapping[str, Any]) -> Sample:
        async with self.concurrency.slot():
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._sample(ids, sampling)
            except Exception as error:
                raise provider_error(error) from error

    async def _sample(self, ids: Sequence[int], sampling: Mapping[str, Any]) -> Sample:
        wire, *others = self._wires
        try:
            answer = await self._post(wire.path, wire.request(self.model, ids, sampling))
        except ModelNotFound:
            if not others:
                raise
            (wire,) = others
            answer = await self._post(wire.path, wire.request(self.model, ids, sampling))
        self._wires = (
            wire,
        )  # only an answer settles it: requests in flight may all find the first route missing
        return read_sample(wire, answer)

    async def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        url = self.base_url + path
        async with self._http().post(url, json=body, headers=self._headers) as response:
            if response.status >= 400:
                raise from_status(response.status, f"{url}: {await response.text()}", retry_after(response))
            return await response.json(content_type=None)

    def _http(self) -> aiohttp.ClientSession:
        import aiohttp

        loop = asyncio.get_running_loop()
        if self._connection is None or self._connection.loop is not loop:
            http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
            )
            self._connection = _Connection(loop, http)
        return self._connection.http

    def sampling_for(self, prompt_length: int, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Sampling parameters for the wire, with a `max_tokens` that fits the context.

        Raises:
            ContextOverflow: The prompt leaves no room for a reply.
        """
        extra: Mapping[str, Any] = sampling.get("extra_body") or {}
        chosen: dict[str, Any] = {
            name: value for name, value in {**sampling, **extra}.items() if value is not None
        }
        for name in ("extra_body", "n", "tool_choice", "parallel_tool_calls"):
            chosen.pop(name, None)
        wanted: int | None = chosen.pop("max_completion_tokens", None) or chosen.get("max_tokens")
        if self.context_limit is not None:
            room = self.context_limit - prompt_length
            if room <= 0:
                raise ContextOverflow(
                    f"the conversation has {prompt_length} tokens, the context {self.context_limit}"
                )
            wanted = min(wanted or room, room)
        chosen["max_tokens"] = wanted or _DEFAULT_MAX_TOKENS
        return chosen

    def parse(self, asked_ids: Sequence[int], text: str, tools: Sequence[Mapping[str, Any]]) -> ParseResult:
        """Read a reply's text in the policy's tool-call format."""
        opened = self.tokenizer.decode(asked_ids[-8:]).rstrip().endswith(_THINK_OPENERS)
        parser = get_parser(self._parser, tools=list(tools) or None, reasoning="open" if opened else "auto")
        return parser.parse(text)


class TokenRollout:
    """One rollout's view of a `TokenClient`: a `RecordingClient`."""

    def __init__(self, client: TokenClient) -> None:
        self._client = client
        self._session = TokenSession(client.tokenizer, history=client.history)

    @property
    def model(self) -> str:
        """The model's name."""
        return self._client.model

    @property
    def segments(self) -> list[Segment]:
        """What was sampled so far."""
        return self._session.segments

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        **sampling: Any,
    ) -> Turn:
        """Sample the next turn of this rollout's conversation; see `ChatClient.complete`."""
        ids = self._session.prompt(messages, tools)
        asked = _Asked(ids, tools or (), self._client.sampling_for(len(ids), sampling))
        sample = await self._client.ask(ids, asked.sampling)
        turn = self._turn(asked, sample)
        self._session.record(
            sample.ids,
            sample.logprobs,
            message=assistant_message(turn),
            temperature=asked.sampling.get("temperature"),
            weight_version=sample.weight_version,
            finish_reason=sample.finish_reason,
        )
        return turn

    def _turn(self, asked: _Asked, sample: Sample) -> Turn:
        tokenizer = self._client.tokenizer
        ended = bool(sample.ids) and sample.ids[-1] in tokenizer.end_tokens.values()
        text = tokenizer.decode(sample.ids[:-1] if ended else sample.ids)
        parsed = self._client.parse(asked.ids, _before_stop(text, asked.sampling.get("stop")), asked.tools)
        finish = (
            "tool_calls" if parsed.tool_calls and sample.finish_reason == "stop" else sample.finish_reason
        )
        return Turn(
            content=parsed.content,
            reasoning=parsed.reasoning,
            tool_calls=tuple(parsed.tool_calls),
            errors=tuple(parsed.errors),
            finish_reason=finish,
            usage=Usage(prompt_tokens=len(asked.ids), completion_tokens=len(sample.ids)),
            prompt_ids=list(asked.ids),
            completion_ids=sample.ids,
            logprobs=sample.logprobs,
        )


def _wires(wire: str | TokenWire) -> tuple[TokenWire, ...]:
    """The wires to try, in order."""
    if not isinstance(wire, str):
        return (wire,)
    names = ("atropos", "vllm") if wire == "auto" else (wire,)
    if names[0] not in WIRES:
        raise ValueError(f"unknown wire {wire!r}: one of auto, {', '.join(WIRES)}")
    return tuple(WIRES[name]() for name in names)


def _before_stop(text: str, stop: str | Sequence[str] | None) -> str:
    """Servers keep the ids of a stop string but do not show its text."""
    stops = [stop] if isinstance(stop, str) else list(stop or ())
    found = [index for word in stops if (index := text.find(word)) >= 0]
    return text[: min(found)] if found else text
