"""A segment: one unbroken run of token ids that a policy saw and sampled."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MASKED_LABEL = -100
"""What a position that is not trained on carries in a mask of labels (PyTorch's `ignore_index`)."""

MASKED_LOGPROB = 1.0
"""What a position that was not sampled carries in `logprobs`: no logarithm of a probability is positive."""


@dataclass(frozen=True, slots=True)
class Span:
    """The tokens of one sampled turn: `tokens[start:end]` of its segment.

    Attributes:
        turn: Index of the model call in the rollout, from 0.
        start: First sampled position.
        end: One past the last sampled position.
        temperature: The temperature it was sampled at, where known.
        weight_version: The version of the weights that sampled it, where the server tells.
        finish_reason: Why sampling ended: "stop", "length", ...
    """

    turn: int
    start: int
    end: int
    temperature: float | None = None
    weight_version: str | None = None
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Segment:
    """Token ids in the order the model saw them, with what it sampled itself marked.

    Attributes:
        tokens: Prompt, sampled and inserted ids, shape (n,).
        mask: True exactly where the id was sampled by the policy, shape (n,).
        logprobs: Log-probability of each sampled id as the server reported it; `MASKED_LOGPROB` elsewhere, shape (n,).
        spans: The sampled turns, in order.
    """

    tokens: list[int]
    mask: list[bool]
    logprobs: list[float]
    spans: tuple[Span, ...] = field(default=())

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.mask) == len(self.logprobs):
            raise ValueError(
                f"a segment's lists must align: {len(self.tokens)} tokens, {len(self.mask)} mask entries, "
                f"{len(self.logprobs)} logprobs"
            )

    @property
    def labels(self) -> list[int]:
        """The sampled ids in place, `MASKED_LABEL` elsewhere: what trainers call masks or labels."""
        return [
            token if sampled else MASKED_LABEL for token, sampled in zip(self.tokens, self.mask, strict=True)
        ]

    @property
    def sampled(self) -> int:
        """How many tokens the policy sampled."""
        return sum(self.mask)

    @property
    def temperature(self) -> float | None:
        """The one temperature of all its turns; None where unknown or mixed."""
        values = {span.temperature for span in self.spans}
        return values.pop() if len(values) == 1 else None

    def sampled_runs(self) -> list[list[int]]:
        """The sampled ids of each span."""
        return [self.tokens[span.start : span.end] for span in self.spans]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "tokens": list(self.tokens),
            "masks": self.labels,
            "logprobs": list(self.logprobs),
            "spans": [
                {
                    "turn": span.turn,
                    "start": span.start,
                    "end": span.end,
                    "temperature": span.temperature,
                    "weight_version": span.weight_version,
                    "finish_reason": span.finish_reason,
                }
                for span in self.spans
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Segment":
        """The reverse of `to_dict`."""
        return cls(
            tokens=list(data["tokens"]),
            mask=[label != MASKED_LABEL for label in data["masks"]],
            logprobs=list(data["logprobs"]),
            spans=tuple(Span(**span) for span in data.get("spans", ())),
        )
