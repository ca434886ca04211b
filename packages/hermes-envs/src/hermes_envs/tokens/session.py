"""The token ids of one rollout, built from what was sampled and never from a second tokenisation."""

import copy
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .conversation import Message, ToolDefinition
from .increment import increment
from .prefix import Prefix
from .segment import MASKED_LOGPROB, Segment, Span
from .tokenizer import Tokenizer

History = Literal["append", "template"]


@dataclass(slots=True)
class _Open:
    """The segment being built."""

    tools: list[ToolDefinition]
    tokens: list[int]
    """Grows and is never changed otherwise: prompts are its prefixes. Longer than `mask` while a prompt is out."""
    mask: list[bool] = field(default_factory=list[bool])
    logprobs: list[float] = field(default_factory=list[float])
    spans: list[Span] = field(default_factory=list[Span])
    seen: list[Message] = field(default_factory=list[Message])
    """Copies of the messages behind `tokens`, the last sampled turn not included."""
    turn: Message | None = None
    """The last sampled turn; None before the first."""

    def ask(self, ids: Sequence[int]) -> Prefix:
        """The prompt that `ids` make of the segment."""
        self.tokens += ids
        return Prefix(self.tokens)

    def take_back(self) -> None:
        """Drop the ids of a prompt that was not answered; whoever holds it keeps the list it is part of."""
        if len(self.tokens) > len(self.mask):
            self.tokens = self.tokens[: len(self.mask)]

    def keep(self) -> None:
        """The ids that were asked for belong to the segment."""
        added = len(self.tokens) - len(self.mask)
        self.mask += [False] * added
        self.logprobs += [MASKED_LOGPROB] * added

    def freeze(self) -> Segment:
        return Segment(self.tokens[: len(self.mask)], list(self.mask), list(self.logprobs), tuple(self.spans))


@dataclass(frozen=True, slots=True)
class _Pending:
    """A prompt that was handed out and whose reply has not been recorded."""

    fresh: bool
    ids: list[int]
    """Ids to append; the whole prompt when `fresh`."""
    messages: list[Message]
    """The messages that those ids add."""
    tools: list[ToolDefinition]
    turn: Message | None = None
    """The last sampled turn as it stands in the conversation; None when `fresh`."""


class TokenSession:
    """Turns the conversation of one rollout into prompts and keeps what was sampled.

    `prompt` gives the ids to sample from and `record` takes what was sampled. Sampled ids are kept as they are.
    With `history="append"` only new messages are rendered, encoded on their own and appended, so a rollout is one
    segment. A new segment is opened only where the conversation no longer extends the last one: an edited or
    compacted history, other tools, or a template that leaves no provable cut. With `history="template"` every
    prompt is the template's own rendering of the whole conversation, and a segment goes on only while its ids are
    a prefix of that.

    The cost of a turn in append mode depends on the new messages, not on the length of the history.

    Args:
        tokenizer: Encodes, decodes and renders (`load_tokenizer`).
        history: See above.
    """

    def __init__(self, tokenizer: Tokenizer, *, history: History = "append") -> None:
        self.tokenizer = tokenizer
        self.history: History = history
        self._closed: list[Segment] = []
        self._open: _Open | None = None
        self._pending: _Pending | None = None
        self._turns = 0

    @property
    def segments(self) -> list[Segment]:
        """Every segment that holds sampled tokens, the open one last."""
        return [*self._closed, self._open.freeze()] if self._open else list(self._closed)

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolDefinition] | None = None) -> Prefix:
        """The ids to sample the next turn from, a sequence that shares the session's memory.

        Asking again before `record` (a retry) gives the same ids and changes nothing.

        Args:
            messages: The whole conversation so far, in OpenAI's form.
            tools: OpenAI tool dicts.

        Raises:
            ChatTemplateError: The template refuses the conversation as a whole.
        """
        if self._open is not None:
            self._open.take_back()
        pending = self._extension(messages, list(tools or ())) or self._fresh(messages, list(tools or ()))
        self._pending = pending
        return Prefix(pending.ids) if pending.fresh or self._open is None else self._open.ask(pending.ids)

    def record(
        self,
        completion_ids: Sequence[int],
        logprobs: Sequence[float],
        *,
        message: Message | None = None,
        temperature: float | None = None,
        weight_version: str | None = None,
        finish_reason: str = "stop",
    ) -> None:
        """Take what was sampled from the last prompt.

        Args:
            completion_ids: The sampled ids, the end-of-turn token included where it was sampled.
            logprobs: One per id.
            message: The assistant message that these ids are in the conversation; None accepts any.
            temperature: The sampling temperature.
            weight_version: The server's name for its weights.
            finish_reason: Why sampling ended.

        Raises:
            RuntimeError: No prompt was asked for since the last reply.
            ValueError: Ids and logprobs do not align.
        """
        if self._pending is None:
            raise RuntimeError("record() without prompt(): ask for the prompt of each turn first")
        if len(completion_ids) != len(logprobs):
            raise ValueError(
                f"{len(completion_ids)} sampled ids but {len(logprobs)} logprobs: they must align"
            )
        segment = self._commit(self._pending)
        start = len(segment.tokens)
        segment.tokens += completion_ids
        segment.mask += [True] * len(completion_ids)
        segment.logprobs += logprobs
        segment.spans.append(
            Span(self._turns, start, len(segment.tokens), temperature, weight_version, finish_reason)
        )
        segment.turn = copy.deepcopy(message) if message is not None else {}
        self._turns += 1
        self._pending = None

    def _commit(self, pending: _Pending) -> _Open:
        if pending.fresh or self._open is None:
            if self._open is not None:
                self._closed.append(self._open.freeze())
            self._open = _Open(pending.tools, list(pending.ids))
        else:
            self._open.seen.append(copy.deepcopy(pending.turn or {}))
        self._open.keep()
        self._open.seen += copy.deepcopy(pending.messages)
        return self._open

    def _fresh(self, messages: Sequence[Message], tools: list[ToolDefinition]) -> _Pending:
        text = self.tokenizer.render(messages, tools, add_generation_prompt=True)
        return _Pending(True, self.tokenizer.encode(text), list(messages), tools)

    def _extension(self, messages: Sequence[Message], tools: list[ToolDefinition]) -> _Pending | None:
        """How the conversation extends the open segment; None where it does not."""
        segment = self._open
        if segment is None or segment.turn is None or tools != segment.tools:
            return None
        sampled_at = len(segment.seen)
        if len(messages) <= sampled_at or not _unchanged(segment.seen, messages):
            return None
        if not same_turn(segment.turn, messages[sampled_at]):
            return None
        new = list(messages[sampled_at + 1 :])
        ids = (
            self._rendered(messages, segment)
            if self.history == "template"
            else self._appended(new, segment, messages)
        )
        return None if ids is None else _Pending(False, ids, new, tools, messages[sampled_at])

    def _rendered(self, messages: Sequence[Message], segment: _Open) -> list[int] | None:
        text = self.tokenizer.render(messages, segment.tools, add_generation_prompt=True)
        ids = self.tokenizer.encode(text)
        known = len(segment.tokens)
        return ids[known:] if ids[:known] == segment.tokens else None

    def _appended(self, new: list[Message], segment: _Open, messages: Sequence[Message]) -> list[int] | None:
        turn = messages[len(segment.seen)]
        names = {
            call["id"]: call["function"]["name"] for call in turn.get("tool_calls") or () if call.get("id")
        }
        added = increment(
            self.tokenizer,
            new,
            segment.tools,
            with_system=messages[0].get("role") == "system",
            call_names=names,
        )
        if added is None:
            return None
        ends = self.tokenizer.end_tokens
        ended = segment.mask[-1] and segment.tokens[-1] in ends.values()
        ids = self.tokenizer.encode(added.text)
        if added.end is not None:
            return ids if ended else [ends[added.end], *ids]
        return ids[1:] if ended and ids and ids[0] == segment.tokens[-1] else ids


def _unchanged(seen: Sequence[Message], messages: Sequence[Message]) -> bool:
    """Whether the conversation still begins with what was seen; assistant turns are compared by what they say."""
    # Nearly always nothing changed, and comparing in C costs far less than a loop over a long history.
    return all(map(operator.eq, seen, messages)) or all(
        was == now or (was.get("role", "assistant") == "assistant" and same_turn(was, now))
        for was, now in zip(seen, messages, strict=False)
    )


def same_turn(sampled: Message, message: Message) -> bool:
    """Whether an assistant message of the conversation is the turn that was sampled.

    White space around the text and the spelling of the arguments' JSON may differ: they are the harness's, while
    the ids are the policy's.
    """
    if message.get("role") != "assistant":
        return False
    return not sampled or _said(sampled) == _said(message)


def _said(message: Message) -> tuple[str, list[tuple[Any, Any]]]:
    content = message.get("content")
    text = content if isinstance(content, str) else json.dumps(content) if content else ""
    calls: list[Mapping[str, Any]] = [call["function"] for call in message.get("tool_calls") or ()]
    return text.strip(), [(call.get("name"), _value(call.get("arguments"))) for call in calls]


def _value(arguments: Any) -> Any:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments
