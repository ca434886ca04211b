"""A client without a model: a deterministic policy, for tests, demonstrations and measurements."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from hermes_parsers import ToolCall

from hermes_envs.clients.errors import ProviderError
from hermes_envs.clients.turn import Turn
from hermes_envs.messages import Message

Reply: TypeAlias = Turn | str | ToolCall | Sequence[ToolCall] | BaseException
"""A whole turn, its content, its calls, or an exception to raise."""

Policy: TypeAlias = Callable[[Sequence[Message], Sequence[Mapping[str, Any]]], Reply | Awaitable[Reply]]
"""From the messages and the tool dicts to a reply; may be asynchronous."""


class ScriptedClient:
    """Answers from a script.

    With a list, a history that holds n assistant messages gets reply number n, so that one client serves any number
    of rollouts at once. With a function, the function decides.

    Args:
        policy: The replies in order, or a function.
        model: The name it goes by.
    """

    def __init__(self, policy: Policy | Sequence[Reply], *, model: str = "scripted") -> None:
        self.model = model
        self._policy = policy

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Turn:
        """The script's next reply.

        Raises:
            ProviderError: The list has no more replies.
        """
        if callable(self._policy):
            reply = self._policy(messages, tools or ())
            if inspect.isawaitable(reply):
                reply = await reply
        else:
            turn = sum(message["role"] == "assistant" for message in messages)
            if turn >= len(self._policy):
                raise ProviderError(f"the script has {len(self._policy)} replies, and one more was asked for")
            reply = self._policy[turn]
        return _turn(reply)


def _turn(reply: Reply) -> Turn:
    if isinstance(reply, Turn):
        return reply
    if isinstance(reply, BaseException):
        raise reply
    if isinstance(reply, str):
        return Turn(reply)
    calls = (reply,) if isinstance(reply, ToolCall) else tuple(reply)
    return Turn(None, tool_calls=calls, finish_reason="tool_calls")
