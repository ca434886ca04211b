"""Any object with an OpenAI-style `chat_completion` method as a client: Atropos servers, test doubles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast, runtime_checkable

from hermes_envs.clients.classify import provider_error
from hermes_envs.clients.completion import turn_of
from hermes_envs.clients.markup import Markup
from hermes_envs.clients.turn import ChatClient, RolloutClient, Turn
from hermes_envs.messages import Message, sendable


@runtime_checkable
class ChatServer(Protocol):
    """What the reference's loop and atroposlib's `ServerManager` offer."""

    async def chat_completion(self, **kwargs: Any) -> Any:
        """Answer `messages` (and `tools`, `temperature`, …) with a chat completion: an SDK object or a dict."""
        ...


class ServerClient:
    """A `ChatServer` as a `ChatClient`.

    Args:
        server: The server; it keeps its own retries.
        model: The name it goes by; None takes the server's own, or that of the first server it manages.
        parser: A name of `hermes_parsers`, for calls that the server leaves in the text as raw markup; None for none.
    """

    def __init__(
        self, server: ChatServer, model: str | None = None, *, parser: str | None = "hermes"
    ) -> None:
        self._server = server
        self.model = model or _model_name(server)
        self._markup = Markup(parser) if parser else None

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Turn:
        """Ask the server for one reply."""
        request: dict[str, Any] = {"messages": sendable(messages), "n": 1}
        if tools:
            request["tools"] = list(tools)
        request |= {name: value for name, value in sampling.items() if value is not None}
        try:
            completion = await self._server.chat_completion(**request)
        except Exception as error:
            raise provider_error(error) from error
        turn = turn_of(completion)
        if self._markup is None or not tools:
            return turn
        read = self._markup.read(turn, tools)
        return read if read.tool_calls or read.errors else turn  # an answer stays as it was said


def as_client(client: Any) -> ChatClient | RolloutClient:
    """The object itself if it is a client, else wrapped if it has a `chat_completion`.

    Raises:
        TypeError: It is neither.
    """
    if hasattr(client, "complete") or hasattr(client, "for_rollout"):
        return cast("ChatClient", client)
    if hasattr(client, "chat_completion"):
        return ServerClient(client)
    raise TypeError(
        f"{type(client).__name__} is no client: it has neither complete(messages, tools, **sampling) nor "
        "chat_completion(messages=, tools=, …)"
    )


def _model_name(server: Any) -> str:
    """The model that a server says it serves; a manager's first server speaks for it."""
    for one in (server, *(getattr(server, "servers", None) or ())[:1]):
        name = getattr(one, "model", None) or getattr(getattr(one, "config", None), "model_name", None)
        if isinstance(name, str):
            return name
    return "server"
