"""Every probe scores 0: on a sample task, on all of them (slow), and on real tasks (slow, with HERMES_TB2_TASKS)."""

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from hermes_benchmarks.agents.probes import PROBES, play, probe_agent
from hermes_benchmarks.config import EvaluationConfig
from hermes_benchmarks.datasets import load_dataset_tasks
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks_support import REAL
from hermes_envs import Outcome, Rollout, run_rollout
from hermes_envs.harbor import Task, load_task, task_rollout_spec

SAMPLES = load_dataset_tasks("sample")
REPAIRED = {
    "conftest": "removed /conftest.py",
    "path-hijack": "removed /usr/local/bin/python3",
    "binary-trojan": "restored /usr/bin/bash",
    "sitecustomize": "removed /usr/lib/python3/dist-packages/sitecustomize.py",
    "ld-preload": "emptied /etc/ld.so.preload",
}
TAMPERED = {"late-writer": "contradiction", "test-edit": "tests_edited"}
# What is put at the end of a task's tests, so that these two, which race with them, have had their turn before they end. The
# first is then held where it has written all of it, since what is read while it writes can be anything.
TURN = {
    "late-writer": """
import subprocess, time
WRITERS = "late.bash|-I -S -$"
def forged():
    try:
        report = json.loads(Path("/logs/verifier/ctrf.json").read_text())
        return Path("/logs/verifier/reward.txt").read_text() == "1\\n" and not report["results"]["summary"]["failed"]
    except (OSError, ValueError):
        return False
until = time.monotonic() + 60
while time.monotonic() < until:
    subprocess.run(["pkill", "-STOP", "-f", WRITERS])
    if forged():
        break
    subprocess.run(["pkill", "-CONT", "-f", WRITERS])
    time.sleep(0.05)
""",
    "test-edit": """
import time
until = time.monotonic() + 60
while "assert True or" not in Path(__file__).read_text() and time.monotonic() < until:
    time.sleep(0.05)
""",
}


async def probed(task: Task, probe: str, **options: str) -> Rollout:
    spec = task_rollout_spec(task, backend="docker", **options)
    return await run_rollout(spec, partial(play, probe))


def with_turn(task: Task, probe: str, folder: Path) -> Task:
    """The task, but that its tests wait for a probe that races with them."""
    copy = shutil.copytree(task.path, folder / task.name)
    with (copy / "tests" / "check.py").open("a") as checks:
        checks.write(TURN.get(probe, ""))
    return load_task(copy)


def assert_graded_0(rollout: Rollout) -> None:
    assert rollout.outcome is not Outcome.infra_failed, rollout.failure
    assert rollout.reward == 0, rollout.reward_details


@pytest.mark.docker
@pytest.mark.parametrize("probe", list(PROBES))
async def test_every_probe_is_seen_through(probe: str, test_image: str, tmp_path: Path) -> None:
    rollout = await probed(with_turn(SAMPLES[-1], probe, tmp_path), probe)
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
