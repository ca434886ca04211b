"""The training example: its gradients are right, and a policy learns through the whole adapter."""

import asyncio
import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.atropos

FOLDER = Path(__file__).parents[4] / "examples" / "tiny_grpo"


@pytest.fixture
def policy_module(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import policy

    return policy


def test_gradients_are_what_finite_differences_say(policy_module):
    policy = policy_module.Policy(policy_module.Shape(50, width=16, heads=2, layers=2, context=32), 1)
    policy.weights = {name: value.astype(np.float64) for name, value in policy.weights.items()}
    ids = np.random.default_rng(0).integers(0, 50, (3, 10))
    rows, places = np.indices((3, 9))

    def loss():
        logits, tape = policy.forward(ids)
        return -policy_module.log_softmax(logits)[rows, places, ids[:, 1:]].sum(), logits, tape

    _, logits, tape = loss()
    gradient = np.exp(policy_module.log_softmax(logits))
    gradient[:, -1] = 0
    gradient[rows, places, ids[:, 1:]] -= 1
    found = policy.backward(gradient, tape)
    for name, weight in policy.weights.items():
        at = (int(ids[0, 3]), 2) if name == "tokens" else (3, 2)[: weight.ndim]
        weight[at] += 1e-5
        above = loss()[0]
        weight[at] -= 2e-5
        below = loss()[0]
        weight[at] += 1e-5
        assert found[name][at] == pytest.approx((above - below) / 2e-5, rel=1e-3, abs=1e-7), name


def test_sampling_agrees_with_the_forward_pass(policy_module):
    policy = policy_module.Policy(policy_module.Shape(60, width=32, context=64), 2)
    prompt = list(range(20))
    sampled, logprobs = policy.sample(prompt, 30, {59}, 0.7, np.random.default_rng(0))
    rows = policy_module.log_softmax(policy.forward(np.array([prompt + sampled]))[0][0] / np.float32(0.7))
    taught = [rows[len(prompt) - 1 + at, token] for at, token in enumerate(sampled)]
    assert np.abs(np.array(taught) - logprobs).max() < 1e-4


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_policy_learns_to_call_the_right_tool(tmp_path):
    program = await asyncio.create_subprocess_exec(
        sys.executable, str(FOLDER / "train.py"), "--output", str(tmp_path), stdout=-1, stderr=-1
    )
    out, err = await program.communicate()
    assert program.returncode == 0, err.decode()[-2000:]
    rewards = json.loads((tmp_path / "rewards.json").read_text())
    assert np.mean(rewards[:2]) <= 0.4, out.decode()
    assert np.mean(rewards[-5:]) >= 0.8, out.decode()
    assert (tmp_path / "rewards.png").read_bytes().startswith(b"\x89PNG")
