"""The policy's servers: which phase they allow, and a client over all of them."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from hermes_parsers import list_parsers, parser_for_model

from hermes_envs.clients import ChatClient, OpenAIClient, TokenClient, Turn
from hermes_envs.clients.concurrency import AdaptiveConcurrency
from hermes_envs.clients.markup import Markup
from hermes_envs.clients.turn import RecordingClient
from hermes_envs.config import ConfigError
from hermes_envs.messages import Message
from hermes_envs.tokens import Tokenizer

from .config import HermesAgentEnvConfig
from .library import APIServerConfig, ReasoningConfig

Split = Literal["train", "eval"]
_OPENAI = "https://api.openai.com/v1"
_WIRES = {"auto": "auto", "/generate": "atropos", "/inference/v1/generate": "vllm"}


class PolicyServers:
    """Clients of every configured server, and the rule for which of them a rollout gets.

    A rollout stays with one server, whose cache then holds its history. Rollouts go to the server with the fewest
    requests in flight, and in turn where several have as few.

    Args:
        configs: Atropos' server configurations; all of one kind.
        config: The environment's configuration.
        tokenizer: The policy's tokenizer.

    Raises:
        ConfigError: The servers cannot be used together, or at all.
    """

    def __init__(
        self, configs: Sequence[APIServerConfig], config: HermesAgentEnvConfig, tokenizer: Tokenizer
    ) -> None:
        kinds = {server.server_type for server in configs}
        if len(kinds) != 1:
            raise ConfigError(f"all servers must be of one server_type, not {', '.join(sorted(kinds))}")
        if "trl" in kinds:
            raise ConfigError('server_type "trl" gives no token ids: use "vllm", "sglang" or "openai"')
        self.exact = "openai" not in kinds
        """Whether sampled ids are known: phase 2. Servers of the type openai are phase 1."""
        self._reasoning = ReasoningConfig(
            config.thinking_mode, config.reasoning_effort, config.max_reasoning_tokens
        )
        if self.exact and self._reasoning.enabled:
            raise ConfigError(
                "thinking_mode, reasoning_effort and max_reasoning_tokens are asked of servers of server_type "
                '"openai": what a vllm or sglang server samples goes by the chat template and custom_thinking_prompt'
            )
        self.model = configs[0].model_name
        self.base_urls = [server.base_url for server in configs if server.base_url]
        self._clients = {
            split: [self._client(server, config, tokenizer, split) for server in configs]
            for split in ("train", "eval")
        }
        self._given: dict[str, list[int]] = {split: [0] * len(configs) for split in self._clients}

    def pick(self, split: Split) -> "ServerChoice":
        """A client that gives each rollout the least busy server."""
        return ServerChoice(self, split)

    def least_busy(self, split: Split) -> Any:
        """The client to give the next rollout."""
        clients, given = self._clients[split], self._given[split]
        index = min(range(len(clients)), key=lambda i: (clients[i].concurrency.in_flight, given[i]))
        given[index] += 1
        return clients[index]

    def limit_context(self, tokens: int) -> None:
        """Keep conversations within what the trainer takes."""
        for client in (client for clients in self._clients.values() for client in clients):
            if isinstance(client, TokenClient):
                client.context_limit = min(client.context_limit or tokens, tokens)

    async def aclose(self) -> None:
        """Close every connection."""
        for clients in self._clients.values():
            for client in clients:
                await client.aclose()

    def _client(
        self, server: APIServerConfig, config: HermesAgentEnvConfig, tokenizer: Tokenizer, split: str
    ) -> "TokenClient | MarkupClient | OpenAIClient":
        parser: str | None = config.tool_call_parser
        if parser == "auto":
            parser = parser_for_model(server.model_name)
        limit = server.num_max_requests_at_once if split == "train" else server.num_requests_for_eval
        concurrency = AdaptiveConcurrency(max(1, limit))
        base_url = server.base_url or None
        if server.server_type == "openai":
            client = OpenAIClient(
                server.model_name,
                base_url,
                api_key_for(server),
                extra_body=self._reasoning_fields(base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI),
                timeout=server.timeout,
                concurrency=concurrency,
            )
            return client if parser is None else MarkupClient(client, parser)
        if parser is None:
            raise ConfigError(
                f"no tool_call_parser is known for the model {server.model_name!r}: set --env.tool_call_parser to one "
                f"of {', '.join(list_parsers())}"
            )
        if base_url is None:
            raise ConfigError(f"--openai.base_url is needed for server_type {server.server_type}")
        return TokenClient(
            base_url,
            tokenizer,
            model=server.model_name,
            wire="sglang" if server.server_type == "sglang" else _WIRES[config.token_route],
            parser=parser,
            api_key=api_key_for(server),
            history=config.history,
            context_limit=config.context_length,
            timeout=server.timeout,
            concurrency=concurrency,
        )

    def _reasoning_fields(self, base_url: str) -> dict[str, Any]:
        """What atroposlib's own servers add to a request; OpenAI's reasoning models take one temperature only."""
        fields = self._reasoning.build_extra_body(base_url) or {}
        return {**fields, "temperature": 1.0} if "reasoning_effort" in fields else fields


class ServerChoice:
    """What the agent loop asks for a client at the start of each rollout."""

    def __init__(self, servers: PolicyServers, split: Split) -> None:
        self._servers = servers
        self._split: Split = split

    def for_rollout(self) -> "RecordingClient | ChatClient":
        """The least busy server's client."""
        client = self._servers.least_busy(self._split)
        return client.for_rollout() if isinstance(client, TokenClient) else client


class MarkupClient:
    """An OpenAI client that also reads calls which a server without a tool parser left in the text."""

    def __init__(self, client: OpenAIClient, parser: str) -> None:
        self.model = client.model
        self.concurrency = client.concurrency
        self._client = client
        self._markup = Markup(parser)

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Turn:
        """Ask for one reply; see `ChatClient.complete`."""
        turn = await self._client.complete(messages, tools, **sampling)
        return self._markup.read(turn, tools) if tools else turn

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def api_key_for(server: APIServerConfig) -> str | None:
    """The configured key, else the variable that the provider's users set; None where there is none."""
    if server.api_key and server.api_key != "x":
        return server.api_key
    url = server.base_url or ""
    if "openrouter.ai" in url:
        return os.environ.get("OPENROUTER_API_KEY")
    if not url or "api.openai.com" in url:
        return os.environ.get("OPENAI_API_KEY")
    return server.api_key or None
