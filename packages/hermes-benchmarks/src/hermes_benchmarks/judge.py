"""From the outcome of a rollout to the verdict of a trial."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_envs.outcome import Failure, Outcome, StopReason

from hermes_benchmarks.verdict import Judgement, Verdict

if TYPE_CHECKING:
    from hermes_envs import Rollout

_STOPPED = {
    StopReason.deadline: Verdict.AGENT_TIMEOUT,
    StopReason.max_turns: Verdict.AGENT_BUDGET,
    StopReason.context_full: Verdict.AGENT_BUDGET,
    StopReason.truncated: Verdict.AGENT_BUDGET,
    StopReason.budget: Verdict.AGENT_BUDGET,
    StopReason.refused: Verdict.AGENT_REFUSED,
}
_PHASES = {
    "provider": "agent",
    "sandbox": "sandbox",
    "tool": "agent",
    "verifier": "verifier",
    "harness": "harness",
}
_IMAGE_KINDS = frozenset({"ImageError", "image_error"})
_HOPELESS = frozenset({"Unsupported", "AuthError", "UnsupportedTask", "UsageError", "TaskError"})
_TIMEOUT_KINDS = frozenset({"verifier_timeout", "VerifierTimeout", "reward_timeout"})


def judge(rollout: Rollout) -> Judgement:
    """Decide the verdict of a finished rollout.

    A reward of 1 passes whatever ended the agent. Below 1, the agent's own limits name the verdict.
    Whatever the engine calls an infrastructure failure carries no reward.
    """
    if rollout.outcome is Outcome.infra_failed:
        return _ungraded(rollout)
    if rollout.reward is None:
        return Judgement(Verdict.HARNESS_ERROR, None, "no_reward", "verifier", "the benchmark gave no reward")
    if rollout.reward_details.get("status") == "tampered":
        details = rollout.reward_details
        cause, message = str(details.get("cause", "tampered")), str(details.get("message", ""))
        return Judgement(Verdict.TAMPERED, 0.0, cause, "verifier", message)
    stop = rollout.result.stop_reason if rollout.result else None
    if rollout.outcome is Outcome.policy_failed:
        return _policy_failed(rollout.failure, stop)
    cause, message = (
        str(rollout.reward_details.get("cause", "tests")),
        str(rollout.reward_details.get("message", "")),
    )
    if rollout.reward >= 1:
        return Judgement(Verdict.PASSED, rollout.reward, cause, "verifier")
    if stop is not None and stop in _STOPPED:
        return Judgement(_STOPPED[stop], rollout.reward, str(stop), "agent", message)
    return Judgement(Verdict.FAILED, rollout.reward, cause, "verifier", message)


def _policy_failed(failure: Failure | None, stop: StopReason | None) -> Judgement:
    """The agent made grading impossible, or ended in a way that needs none."""
    if failure is None:
        verdict = _STOPPED.get(stop, Verdict.FAILED) if stop else Verdict.FAILED
        return Judgement(verdict, 0.0, str(stop or "policy"), "agent")
    if failure.kind == "tampered":
        return Judgement(Verdict.TAMPERED, 0.0, "tampered", "verifier", failure.message)
    verdict = _STOPPED.get(stop, Verdict.FAILED) if stop else Verdict.FAILED
    return Judgement(verdict, 0.0, failure.kind, _PHASES[failure.boundary], failure.message)


def _ungraded(rollout: Rollout) -> Judgement:
    failure = rollout.failure
    if failure is None or (rollout.result and rollout.result.stop_reason is StopReason.cancelled):
        return Judgement(Verdict.CANCELLED, None, "cancelled", "agent", "the run was interrupted", True)
    verdict, phase = _boundary(failure, rollout)
    return Judgement(verdict, None, failure.kind, phase, failure.message, _worth_a_retry(failure))


def _worth_a_retry(failure: Failure) -> bool:
    """Providers say themselves; everything else may be a passing fault, but for what is plainly not offered."""
    return failure.retryable or (failure.boundary != "provider" and failure.kind not in _HOPELESS)


def _boundary(failure: Failure, rollout: Rollout) -> tuple[Verdict, str]:
    """Where an infrastructure failure surfaced."""
    if failure.boundary == "provider":
        return Verdict.PROVIDER_ERROR, "agent"
    if failure.boundary == "sandbox":
        if failure.kind in _IMAGE_KINDS:
            return Verdict.IMAGE_ERROR, "image"
        return Verdict.SANDBOX_ERROR, "sandbox" if rollout.result is None else "agent"
    if failure.boundary == "verifier":
        slow = failure.kind in _TIMEOUT_KINDS
        return (Verdict.VERIFIER_TIMEOUT if slow else Verdict.VERIFIER_ERROR), "verifier"
    return Verdict.HARNESS_ERROR, "agent" if failure.boundary == "tool" else "harness"
