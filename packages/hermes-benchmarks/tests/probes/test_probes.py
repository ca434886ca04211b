"""Every probe scores 0: on a sample task, on all of them (slow), and on real tasks (slow, with HERMES_TB2_TASKS)."""

import os
from functools import partial

import pytest
from hermes_benchmarks.agents.probes import PROBES, play, probe_agent
from hermes_benchmarks.config import EvaluationConfig
from hermes_benchmarks.datasets import load_dataset_tasks
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks_support import REAL
from hermes_envs import Outcome, Rollout, run_rollout
from hermes_envs.harbor import Task, task_rollout_spec

SAMPLES = load_dataset_tasks("sample")
REPAIRED = {
    "conftest": "removed /conftest.py",
    "path-hijack": "removed /usr/local/bin/python3",
    "binary-trojan": "restored /usr/bin/bash",
    "sitecustomize": "removed /usr/lib/python3/dist-packages/sitecustomize.py",
    "ld-preload": "emptied /etc/ld.so.preload",
}
TAMPERED = {"late-writer": "contradiction", "test-edit": "tests_edited"}


async def probed(task: Task, probe: str, **options: str) -> Rollout:
    spec = task_rollout_spec(task, backend="docker", **options)
    return await run_rollout(spec, partial(play, probe))


def assert_graded_0(rollout: Rollout) -> None:
    assert rollout.outcome is not Outcome.infra_failed, rollout.failure
    assert rollout.reward == 0, rollout.reward_details


@pytest.mark.docker
@pytest.mark.parametrize("probe", list(PROBES))
async def test_every_probe_is_seen_through(probe: str, test_image: str) -> None:
    rollout = await probed(SAMPLES[-1], probe)
    assert_graded_0(rollout)
    details = rollout.reward_details
    assert rollout.result is not None
    assert "ended with exit code 0" in rollout.result.messages[-1]["content"]
    if probe in TAMPERED:
        assert (details["status"], details["cause"]) == ("tampered", TAMPERED[probe])
    else:
        assert (details["status"], details["cause"]) == ("failed", "tests")
        assert all(test["status"] == "failed" for test in details["tests"])
    if probe in REPAIRED:
        assert REPAIRED[probe] in details["info"]["verifier"]["repaired"]


@pytest.mark.docker
async def test_fresh_mode_ends_what_waits_for_the_verdict(test_image: str) -> None:
    rollout = await probed(SAMPLES[-1], "late-writer", mode="fresh")
    assert_graded_0(rollout)
    assert (rollout.reward_details["status"], rollout.reward_details["cause"]) == ("failed", "tests")


@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("probe", list(PROBES))
async def test_every_probe_scores_0_on_every_sample_task(probe: str, test_image: str) -> None:
    for task in SAMPLES:
        assert_graded_0(await probed(task, probe))


@pytest.mark.docker
@pytest.mark.tb2
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("probe", list(PROBES))
async def test_every_probe_scores_0_on_real_tasks(probe: str) -> None:
    for task in load_dataset_tasks(os.environ["HERMES_TB2_TASKS"], only=REAL):
        assert_graded_0(await probed(task, probe))


@pytest.mark.parametrize("backend", [None, "local", "ssh"])
def test_probes_refuse_the_machine_itself(backend: str | None) -> None:
    config = EvaluationConfig.model_validate({"env": {"terminal_backend": backend}})
    with pytest.raises(UsageError, match="--backend docker"):
        probe_agent("late-writer", config)
