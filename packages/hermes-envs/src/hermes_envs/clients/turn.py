"""The seam between the agent loop and a model: a client turns messages into one `Turn`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hermes_envs.well_formed import well_formed

if TYPE_CHECKING:
    from hermes_parsers import ParseError, ToolCall

    from hermes_envs.messages import Message
    from hermes_envs.tokens.segment import Segment

_TEXTS = ("content", "reasoning", "tool_calls", "errors", "refusal", "model", "extra", "call_extra")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money that one or more model calls took.

    Attributes:
        prompt_tokens: Tokens read, cached ones included.
        completion_tokens: Tokens sampled, reasoning included.
        cached_tokens: The part of `prompt_tokens` served from the provider's cache.
        cost_usd: Dollars, None where neither the provider nor a price list says.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float | None = None

    @property
    def total_tokens(self) -> int:
        """Tokens read and sampled."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            sum(costs) if costs else None,
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the model, its texts well-formed: a server or a call's JSON may spell what UTF-8 cannot.

    Attributes:
        content: The text beside the calls, None when there is none.
        reasoning: The model's thinking, None when none was returned.
        tool_calls: Complete calls, in order.
        errors: Calls in the text that could not be read; never executed.
        finish_reason: OpenAI's word: stop, tool_calls, length, content_filter.
        usage: What the call took.
        prompt_ids: Token ids that the model read, where the server tells or the client sent them.
        completion_ids: Token ids that were sampled, end-of-turn token included where sampled.
        logprobs: One log-probability per id in `completion_ids`.
        refusal: The model's refusal, where the provider reports it apart from the content.
        model: The model that answered, None where it is the one asked for.
        extra: Provider fields that must go back with the message unchanged (`reasoning_details`).
        call_extra: Likewise for the calls, by call id (Gemini's `extra_content` with its thought signature).
    """

    content: str | None
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    errors: tuple[ParseError, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = Usage()
    prompt_ids: list[int] | None = None
    completion_ids: list[int] | None = None
    logprobs: list[float] | None = None
    refusal: str | None = None
    model: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])
    call_extra: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    def __post_init__(self) -> None:
        for name in _TEXTS:
            object.__setattr__(self, name, well_formed(getattr(self, name)))


@runtime_checkable
class ChatClient(Protocol):
    """Anything that answers a conversation."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None, **sampling: Any
    ) -> Turn:
        """Ask for one reply.

        Args:
            messages: The whole conversation, in OpenAI's form; not changed.
            tools: OpenAI tool dicts, None or empty for none.
            **sampling: temperature, max_tokens, top_p, stop, seed, extra_body, …: what is None is left out.

        Raises:
            hermes_envs.clients.ProviderError: The model could not be asked; `ContextOverflow` when the
                conversation does not fit.
        """
        ...


@runtime_checkable
class RolloutClient(Protocol):
    """A client that keeps state for one rollout (token ids); the loop asks for a fresh one at its start."""

    def for_rollout(self) -> RecordingClient:
        """A client for one rollout."""
        ...


@runtime_checkable
class RecordingClient(ChatClient, Protocol):
    """A client of one rollout that keeps what was sampled, to be trained on."""

    @property
    def segments(self) -> Sequence[Segment]:
        """The token segments so far; read by the loop when the rollout ends."""
        ...
