"""What became of one trial, and whether it counts.

A *graded* trial says something about the agent and enters the score, also when its reward is 0. An
*ungraded* one says something about a provider, a machine or this harness; it is retried, never
scored as 0. The two are kept apart in every figure that this package prints.
"""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The outcome of a trial; `graded` says whether it counts."""

    PASSED = "passed"
    """Reward of at least 1, whatever ended the agent."""
    FAILED = "failed"
    AGENT_TIMEOUT = "agent_timeout"
    """The agent's time ran out, the tests ran all the same, and did not pass."""
    AGENT_BUDGET = "agent_budget"
    """Turns, tokens, context or money ran out, and the tests did not pass."""
    AGENT_REFUSED = "agent_refused"
    TAMPERED = "tampered"
    """The recorded verdict and what the host saw contradict each other: graded 0."""
    PROVIDER_ERROR = "provider_error"
    SANDBOX_ERROR = "sandbox_error"
    IMAGE_ERROR = "image_error"
    VERIFIER_ERROR = "verifier_error"
    VERIFIER_TIMEOUT = "verifier_timeout"
    """The verifier's time ran out before its tests had started."""
    HARNESS_ERROR = "harness_error"
    CANCELLED = "cancelled"

    @property
    def graded(self) -> bool:
        """Whether a trial of this verdict enters the score."""
        return self in _GRADED

    @property
    def retried(self) -> bool:
        """Whether a run tries again by itself: every ungraded verdict but a cancelled one."""
        return not self.graded and self is not Verdict.CANCELLED


_GRADED = frozenset(
    {
        Verdict.PASSED,
        Verdict.FAILED,
        Verdict.AGENT_TIMEOUT,
        Verdict.AGENT_BUDGET,
        Verdict.AGENT_REFUSED,
        Verdict.TAMPERED,
    }
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its reasons.

    Attributes:
        verdict: What became of the trial.
        reward: In 0..1; None when ungraded.
        cause: A short stable word for what decided it, such as `tests`, `rate_limited` or `oom`.
        phase: Where it was decided: image, sandbox, prepare, agent, verifier or harness.
        message: One sentence for a person; empty when there is nothing to add.
        retryable: Whether another try may come out differently; False for a wrong key.
    """

    verdict: Verdict
    reward: float | None
    cause: str
    phase: str
    message: str = ""
    retryable: bool = False

    def __post_init__(self) -> None:
        if self.verdict.graded != (self.reward is not None):
            raise ValueError(f"a {self.verdict} trial {'needs' if self.verdict.graded else 'has no'} reward")
