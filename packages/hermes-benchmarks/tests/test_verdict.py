import pytest
from hermes_benchmarks.verdict import Judgement, Verdict


def test_graded_and_ungraded_as_the_design_lists_them():
    graded = {verdict.value for verdict in Verdict if verdict.graded}
    assert graded == {"passed", "failed", "agent_timeout", "agent_budget", "agent_refused", "tampered"}
    assert {verdict.value for verdict in Verdict if verdict.retried} == {
        *("provider_error", "sandbox_error", "image_error"),
        *("verifier_error", "verifier_timeout", "harness_error"),
    }


@pytest.mark.parametrize(("verdict", "reward"), [(Verdict.FAILED, None), (Verdict.SANDBOX_ERROR, 0.0)])
def test_a_reward_goes_with_grading(verdict, reward):
    with pytest.raises(ValueError, match="reward"):
        Judgement(verdict, reward, "x", "agent")
