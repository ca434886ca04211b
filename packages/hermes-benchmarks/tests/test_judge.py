import pytest
from hermes_benchmarks.judge import judge
from hermes_benchmarks.verdict import Verdict
from hermes_envs import AgentResult, Failure, Outcome, Rollout, StopReason


def rollout(outcome="completed", reward=None, stop="finished", failure=None, **details):
    result = AgentResult(messages=[], stop_reason=StopReason(stop)) if stop else None
    return Rollout(
        id="r",
        outcome=Outcome(outcome),
        reward=reward,
        result=result,
        failure=failure,
        reward_details=details,
    )


@pytest.mark.parametrize(
    ("reward", "stop", "verdict"),
    [
        (1.0, "finished", Verdict.PASSED),
        (1.0, "deadline", Verdict.PASSED),
        (1.0, "max_turns", Verdict.PASSED),
        (0.0, "finished", Verdict.FAILED),
        (0.99, "finished", Verdict.FAILED),
        (0.5, "deadline", Verdict.AGENT_TIMEOUT),
        (0.0, "max_turns", Verdict.AGENT_BUDGET),
        (0.0, "context_full", Verdict.AGENT_BUDGET),
        (0.0, "truncated", Verdict.AGENT_BUDGET),
        (0.0, "budget", Verdict.AGENT_BUDGET),
        (0.0, "refused", Verdict.AGENT_REFUSED),
    ],
)
def test_what_is_graded(reward, stop, verdict):
    found = judge(rollout(reward=reward, stop=stop))
    assert (found.verdict, found.reward) == (verdict, reward)


def test_a_contradiction_is_worth_nothing():
    found = judge(rollout(reward=0.0, status="tampered", cause="contradiction", message="no test passed"))
    assert (found.verdict, found.reward, found.cause) == (Verdict.TAMPERED, 0.0, "contradiction")


def test_what_the_agent_broke_is_a_failure_with_its_cause():
    failure = Failure("sandbox", "OutOfMemory", "killed", by_policy=True)
    found = judge(rollout("policy_failed", 0.0, failure=failure))
    assert (found.verdict, found.reward, found.cause, found.phase) == (
        Verdict.FAILED,
        0.0,
        "OutOfMemory",
        "sandbox",
    )
    found = judge(rollout(reward=0.0, status="failed", cause="broken_environment", message="works elsewhere"))
    assert (found.verdict, found.cause, found.message) == (
        Verdict.FAILED,
        "broken_environment",
        "works elsewhere",
    )


@pytest.mark.parametrize(
    ("boundary", "kind", "verdict"),
    [
        ("provider", "RateLimited", Verdict.PROVIDER_ERROR),
        ("sandbox", "SandboxGone", Verdict.SANDBOX_ERROR),
        ("sandbox", "ImageError", Verdict.IMAGE_ERROR),
        ("verifier", "bootstrap", Verdict.VERIFIER_ERROR),
        ("verifier", "verifier_timeout", Verdict.VERIFIER_TIMEOUT),
        ("harness", "ValueError", Verdict.HARNESS_ERROR),
        ("tool", "RuntimeError", Verdict.HARNESS_ERROR),
    ],
)
def test_what_is_not_graded_has_no_reward_and_is_tried_again(boundary, kind, verdict):
    found = judge(rollout("infra_failed", failure=Failure(boundary, kind, "why", retryable=True)))
    assert (found.verdict, found.reward, found.cause, found.message) == (verdict, None, kind, "why")
    assert found.retryable


@pytest.mark.parametrize("kind", ["AuthenticationFailed", "Unsupported", "AuthError"])
def test_what_no_retry_can_mend_is_not_retried(kind):
    boundary = "provider" if kind == "AuthenticationFailed" else "sandbox"
    assert not judge(rollout("infra_failed", failure=Failure(boundary, kind, "no"))).retryable


def test_a_benchmark_that_gives_no_reward_is_at_fault_itself():
    assert judge(rollout(reward=None)).verdict is Verdict.HARNESS_ERROR
