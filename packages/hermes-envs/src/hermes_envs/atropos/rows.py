"""Rollouts as training rows, and rows as the groups that Atropos' API takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from hermes_envs.messages import Message
from hermes_envs.outcome import Outcome, StopReason
from hermes_envs.result import AgentResult
from hermes_envs.rollout import Rollout
from hermes_envs.tokens import MASKED_LABEL, MASKED_LOGPROB, ChatTemplateError, Segment, Tokenizer

from .library import ScoredDataGroup, ScoredDataItem
from .metrics import readable


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence for a trainer.

    Attributes:
        tokens: Ids, shape (n,).
        masks: The id where it is trained on, -100 elsewhere, shape (n,).
        logprobs: Log-probability of each trained id at sampling, 1.0 elsewhere, shape (n,).
        score: The rollout's reward.
        messages: The conversation.
        overrides: What this row asks of the trainer, and where it comes from.
        advantage: The rollout's advantage, the same for each of its tokens; None leaves it to the trainer.
    """

    tokens: list[int]
    masks: list[int]
    logprobs: list[float]
    score: float
    messages: list[Message]
    overrides: dict[str, Any] = field(default_factory=dict[str, Any])
    advantage: float | None = None

    @property
    def trained(self) -> int:
        """How many tokens are trained on."""
        return len(self.masks) - self.masks.count(MASKED_LABEL)


def is_scored(rollout: Rollout) -> bool:
    """Whether a rollout carries a reward: infrastructure failures never do."""
    return rollout.outcome is not Outcome.infra_failed and rollout.reward is not None


def exact_rows(rollout: Rollout, tokenizer: Tokenizer, *, every_segment: bool = False) -> list[Row]:
    """The rows of a rollout whose sampled ids are known.

    Args:
        rollout: A scored rollout.
        tokenizer: Renders the prompt of a rollout that ended before it sampled anything.
        every_segment: One row per segment; else one row, the segment with the most sampled tokens.
    """
    segments = rollout.result.segments if rollout.result else []
    if not segments:
        return [_unsampled(rollout, tokenizer, {"set_advantage_to_zero": True})]
    rows = [_segment_row(rollout, segment, index, len(segments)) for index, segment in enumerate(segments)]
    return rows if every_segment or len(rows) == 1 else [max(rows, key=lambda row: row.trained)]


def placeholder_row(rollout: Rollout, tokenizer: Tokenizer) -> Row:
    """The row of a rollout whose ids are unknown: its text for readers, and nothing that could be trained on."""
    return _unsampled(rollout, tokenizer, {"placeholder": True, "set_advantage_to_zero": True})


def with_advantages(groups: Sequence[Sequence[Row]], group_size: int) -> list[list[Row]]:
    """Rows of several segments a rollout, cut into posts of exactly `group_size`.

    The advantage is computed once per rollout, (score - mean) / standard deviation over the group's rollouts
    (GRPO, arXiv 2402.03300, section 4.1), and carried by each of its rows. The last post is filled up with rows
    that train on nothing.

    Args:
        groups: For each rollout of the group, its rows.
        group_size: Rows of one post.
    """
    scores = [rows[0].score for rows in groups]
    mean = sum(scores) / len(scores)
    deviation = math.sqrt(sum((score - mean) ** 2 for score in scores) / len(scores))
    weighted = [
        _with_advantage(row, (row.score - mean) / (deviation + 1e-6)) for rows in groups for row in rows
    ]
    missing = -len(weighted) % group_size
    weighted += [_padding(min(weighted, key=lambda row: len(row.tokens)), mean)] * missing
    return [weighted[start : start + group_size] for start in range(0, len(weighted), group_size)]


def as_group(
    rows: Sequence[Row], *, generation_params: dict[str, Any], with_messages: bool
) -> ScoredDataGroup:
    """The group that Atropos' API takes: parallel lists, one entry a row."""
    advantages = [row.advantage for row in rows]
    return ScoredDataGroup(
        tokens=[row.tokens for row in rows],
        masks=[row.masks for row in rows],
        scores=[row.score for row in rows],
        advantages=None
        if None in advantages
        else [[cast("float", row.advantage)] * len(row.tokens) for row in rows],
        ref_logprobs=None,
        messages=cast("Any", [_postable(row.messages) for row in rows]) if with_messages else None,
        generation_params=generation_params,
        inference_logprobs=[row.logprobs for row in rows],
        group_overrides={},
        overrides=[row.overrides for row in rows],
        images=None,
        distill_token_ids=None,
        distill_logprobs=None,
    )


def as_item(row: Row, *, with_messages: bool) -> ScoredDataItem:
    """One row as `collect_trajectory` returns it; `inference_logprobs` goes beyond Atropos' own type."""
    item = ScoredDataItem(
        tokens=row.tokens,
        masks=row.masks,
        scores=row.score,
        advantages=None,
        ref_logprobs=None,
        messages=cast("Any", _postable(row.messages)) if with_messages else None,
        group_overrides={},
        overrides=row.overrides,
        images=None,
        distill_token_ids=None,
        distill_logprobs=None,
    )
    cast("dict[str, Any]", item)["inference_logprobs"] = row.logprobs
    return item


_LISTS = (
    "tokens",
    "masks",
    "scores",
    "advantages",
    "ref_logprobs",
    "messages",
    "inference_logprobs",
    "images",
    "distill_token_ids",
    "distill_logprobs",
)
"""What a group has one entry a row of, and may lack altogether."""


def merged(items: Sequence[ScoredDataItem], generation_params: dict[str, Any]) -> ScoredDataGroup:
    """Items that `collect_trajectory` gave as the group that Atropos' API takes."""
    rows = cast("Sequence[Mapping[str, Any]]", items)
    lists = {name: [row.get(name) for row in rows] for name in _LISTS}
    group: dict[str, Any] = {
        **{name: None if all(one is None for one in values) else values for name, values in lists.items()},
        "generation_params": generation_params,
        "group_overrides": {},
        "overrides": [dict(row.get("overrides") or {}) for row in rows],
    }
    for row in rows:
        group["group_overrides"] |= row.get("group_overrides") or {}
    return cast("ScoredDataGroup", group)


def rows_in(group: ScoredDataGroup, rollouts: Sequence[Rollout]) -> list[tuple[Rollout, Row]]:
    """The rows of a group that an environment made or changed, each with the rollout that it comes from.

    Args:
        group: The group.
        rollouts: What was run for it. A row that names none of these in its overrides is a rollout of its own.
    """
    known = {rollout.id: rollout for rollout in rollouts}
    lists = {name: cast("Mapping[str, Any]", group).get(name) for name in (*_LISTS, "overrides")}
    found: list[tuple[Rollout, Row]] = []
    for index in range(len(group["tokens"])):
        entry: dict[str, Any] = {name: values[index] for name, values in lists.items() if values}
        row = Row(
            tokens=entry["tokens"],
            masks=entry["masks"],
            logprobs=entry.get("inference_logprobs") or [],
            score=entry["scores"],
            messages=entry.get("messages") or [],
            overrides=entry.get("overrides") or {},
        )
        rollout = known.get(row.overrides.get("rollout", ""), Rollout(str(index), Outcome.completed))
        result = rollout.result or AgentResult(messages=row.messages, stop_reason=StopReason.finished)
        result = replace(result, messages=row.messages or result.messages)
        found.append((replace(rollout, reward=row.score, result=result), row))
    return found


def _segment_row(rollout: Rollout, segment: Segment, index: int, count: int) -> Row:
    overrides = _origin(rollout)
    if segment.temperature is not None:
        overrides["temperature"] = segment.temperature
    versions = sorted({span.weight_version for span in segment.spans if span.weight_version is not None})
    if versions:
        overrides["weight_versions"] = versions
    if count > 1:
        overrides |= {"segment": index, "segments": count}
    return Row(
        tokens=segment.tokens,
        masks=segment.labels,
        logprobs=segment.logprobs,
        score=_score(rollout),
        messages=rollout.result.messages if rollout.result else [],
        overrides=overrides,
    )


def _unsampled(rollout: Rollout, tokenizer: Tokenizer, overrides: dict[str, Any]) -> Row:
    messages = rollout.result.messages if rollout.result else []
    tokens = tokenizer.encode(_rendered(messages, tokenizer))
    return Row(
        tokens=tokens,
        masks=[MASKED_LABEL] * len(tokens),
        logprobs=[MASKED_LOGPROB] * len(tokens),
        score=_score(rollout),
        messages=messages,
        overrides=_origin(rollout) | overrides,
    )


def _rendered(messages: Sequence[Message], tokenizer: Tokenizer) -> str:
    """The conversation as text; the server's template may take what the local one refuses."""
    try:
        return tokenizer.render(messages) if messages else ""
    except ChatTemplateError:
        return readable(messages)


def _origin(rollout: Rollout) -> dict[str, Any]:
    stop = rollout.result.stop_reason.value if rollout.result else rollout.outcome.value
    return {"rollout": rollout.id, "stop_reason": stop}


def _score(rollout: Rollout) -> float:
    if rollout.reward is None:
        raise ValueError(f"rollout {rollout.id} has no reward: {rollout.failure}")
    return rollout.reward


def _with_advantage(row: Row, advantage: float) -> Row:
    return Row(row.tokens, row.masks, row.logprobs, row.score, row.messages, row.overrides, advantage)


def _padding(like: Row, score: float) -> Row:
    return Row(
        tokens=like.tokens[:1],
        masks=[MASKED_LABEL],
        logprobs=[MASKED_LOGPROB],
        score=score,
        messages=[],
        overrides={"padding": True, "set_advantage_to_zero": True},
        advantage=0.0,
    )


def _postable(messages: Sequence[Message]) -> list[Message]:
    """The API refuses a message without content."""
    return [{**message, "content": message.get("content") or ""} for message in messages]
