"""How a rollout ended: why the agent stopped, whose fault a failure is, and the one place that decides it.

A rollout crosses five boundaries: the model's `provider`, the `sandbox`, a `tool`, the `verifier` (the reward
function) and our own `harness`. `boundary()` wraps each crossing; whatever escapes it becomes a `BoundaryError`
that carries a `Failure`. A failure is data in the result, never a reward of 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from hermes_sandbox.errors import SandboxError, SandboxGone

BoundaryName = Literal["provider", "sandbox", "tool", "verifier", "harness"]


class StopReason(StrEnum):
    """Why the agent stopped acting."""

    finished = "finished"
    """The model answered without calling a tool."""
    max_turns = "max_turns"
    """The limit of model calls was reached."""
    context_full = "context_full"
    """The history no longer fits the model's context."""
    truncated = "truncated"
    """The reply was cut at the token limit; a cut reply ends the rollout."""
    budget = "budget"
    """The token or cost budget is spent."""
    deadline = "deadline"
    """The agent's time is over."""
    refused = "refused"
    """The model, or the provider's content filter, declined."""
    cancelled = "cancelled"
    """The caller cancelled the rollout."""
    provider_error = "provider_error"
    """The model could not be asked."""
    sandbox_error = "sandbox_error"
    """The sandbox was lost."""
    harness_error = "harness_error"
    """A fault of the harness or of the agent's own code."""


class Outcome(StrEnum):
    """Whether a rollout may be graded."""

    completed = "completed"
    """The agent ended, by itself or at a limit, and the reward function judged what it left."""
    policy_failed = "policy_failed"
    """The policy made grading impossible (it killed its sandbox, hung the tests, ran out of memory): reward 0."""
    infra_failed = "infra_failed"
    """Something outside the policy failed: no reward."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and where.

    Attributes:
        boundary: The boundary at which it surfaced.
        kind: A short stable name, usually the exception's class.
        message: One sentence for a reader.
        retryable: Whether the same rollout may succeed when run again.
        by_policy: Whether the policy caused it, so that the rollout is graded 0 instead of dropped.
    """

    boundary: BoundaryName
    kind: str
    message: str
    retryable: bool = False
    by_policy: bool = False


class EnvsError(Exception):
    """Base of every error that hermes-envs raises."""


class BoundaryError(EnvsError):
    """An exception that crossed a boundary; `failure` says what it means for the rollout."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.boundary}: {failure.kind}: {failure.message}")
        self.failure = failure

    def __reduce__(self) -> tuple[type[BoundaryError], tuple[Failure]]:
        return type(self), (self.failure,)


class PolicyFailed(EnvsError):
    """Raised by a reward function to say that the policy's doing makes grading impossible.

    The rollout is then `policy_failed` with reward 0.
    """


class InfraFailed(EnvsError):
    """Raised by a reward function to say that grading failed for no fault of the policy: no reward, may be retried."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


def is_failure(error: BaseException) -> bool:
    """Whether an exception tells of a failure, and not that the running task is cancelled or the user interrupts.

    A `CancelledError` of code that nobody cancels is a failure like any other, and so is `SystemExit`: neither may end
    the rollouts beside it.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        return task is not None and not task.cancelling()
    return not isinstance(error, KeyboardInterrupt | GeneratorExit)


def failure_of(error: BaseException, boundary: BoundaryName) -> Failure:
    """Class an exception that surfaced at `boundary`.

    An error that names its own boundary (a lost sandbox noticed inside a tool call, a judge model's provider
    failing inside the reward function) keeps it. Errors are read by their attributes `boundary`, `retryable` and
    `by_policy`, so that a third party's exceptions can take part.
    """
    if isinstance(error, BoundaryError):
        return error.failure
    if isinstance(error, BaseExceptionGroup):
        return failure_of(error.exceptions[0], boundary)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    by_policy = isinstance(error, PolicyFailed) or _ended_by_policy(error)
    own: BoundaryName = "sandbox" if isinstance(error, SandboxError) else getattr(error, "boundary", boundary)
    return Failure(
        boundary=own,
        kind=getattr(error, "kind", None) or type(error).__name__,
        message=str(error) or type(error).__name__,
        # A lost sandbox does not come back, but a rollout that is run again gets another.
        retryable=bool(getattr(error, "retryable", False))
        or (isinstance(error, SandboxGone) and not by_policy),
        by_policy=by_policy,
    )


def _ended_by_policy(error: BaseException) -> bool:
    """Whether the error says so, or says that what ran inside the sandbox ended it: only the policy runs there."""
    return any(bool(getattr(error, name, False)) for name in ("by_policy", "ended_inside"))


@contextmanager
def boundary(name: BoundaryName, doing: str = "") -> Generator[None, None, None]:
    """Turn whatever escapes the block into a `BoundaryError`.

    Args:
        name: The boundary that the block crosses.
        doing: What the block does, for the message ("starting the sandbox").

    What is no failure (`is_failure`) passes unchanged.
    """
    try:
        yield
    except BoundaryError:
        raise
    except BaseException as error:
        if not is_failure(error):
            raise
        failure = failure_of(error, name)
        if doing:
            failure = Failure(
                failure.boundary,
                failure.kind,
                f"{doing}: {failure.message}",
                failure.retryable,
                failure.by_policy,
            )
        raise BoundaryError(failure) from error


STOP_OF_BOUNDARY: dict[BoundaryName, StopReason] = {
    "provider": StopReason.provider_error,
    "sandbox": StopReason.sandbox_error,
    "tool": StopReason.harness_error,
    "verifier": StopReason.harness_error,
    "harness": StopReason.harness_error,
}
"""The stop reason of an agent that a failure at each boundary ended."""
