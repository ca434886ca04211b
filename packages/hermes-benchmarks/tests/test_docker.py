"""The main job in containers."""

import json
import os
import subprocess

import pytest
from hermes_benchmarks_command import tb2
from hermes_benchmarks_support import REAL

pytestmark = pytest.mark.docker


def results(run):
    return {p.parent.name: json.loads(p.read_text()) for p in run.glob("trials/*/result.json")}


def forget(record):
    """Remove the image that a trial's state was kept in."""
    image = record["info"]["snapshot"]["reference"]
    subprocess.run(["docker", "image", "rm", "-f", image], check=True, capture_output=True)


KEPT = ("evaluate", "--backend", "docker", "--keep-state", "--name", "run")


@pytest.mark.slow
def test_a_kept_state_is_scored_again_as_it_was(tmp_path, test_image):
    code, out, err = tb2(tmp_path, *KEPT, "--tasks", "log-report", "--verifier", "both")
    assert (code, err) == (0, "")
    assert "disagree" not in out
    (record,) = results(tmp_path / "runs/run").values()
    assert record["verdict"] == "passed"
    assert record["info"]["verifier"]["fresh"]["reward"] == 1
    assert record["limits"]["effective"] == {"cpus": 1, "memory_mb": 1024, "network": "none"}
    code, out, err = tb2(tmp_path, "score", "runs/run")
    assert (code, err) == (0, "")
    assert "0 verdicts changed" in out
    forget(record)
    code, out, err = tb2(tmp_path, "score", "runs/run")
    assert (code, err) == (3, "")
    assert "log-report__1: not judged again: " in out
    assert results(tmp_path / "runs/run") == {"log-report__1": record}
    code, out, err = tb2(tmp_path, "score", "runs/run", "--no-tests")
    assert (code, err) == (0, "")


def test_what_an_agent_planted_is_found_when_its_state_is_scored_again(tmp_path, test_image):
    code, _, err = tb2(tmp_path, *KEPT, "--tasks", "log-report", "--agent", "path-hijack")
    assert (code, err) == (0, "")
    run = tmp_path / "runs/run"
    (record,) = results(run).values()
    assert (record["verdict"], record["reward"]) == ("failed", 0)
    path = run / "trials/log-report__1/result.json"
    path.write_text(json.dumps({**record, "verdict": "passed", "reward": 1.0}))
    code, out, err = tb2(tmp_path, "score", "runs/run")
    assert (code, err) == (0, "")
    assert "log-report__1: passed 1 → failed 0 (tests)" in out
    forget(record)


@pytest.mark.slow
def test_tasks_are_validated(tmp_path, test_image):
    argv = ("validate", "--backend", "docker", "--tasks", "log-report", "--allow-list", "valid.txt")
    code, out, err = tb2(tmp_path, *argv)
    assert (code, err) == (0, "")
    assert "1 of 1 tasks are valid" in out
    assert (tmp_path / "valid.txt").read_text().split() == ["log-report"]


def test_a_daemon_that_is_not_there_is_one_sentence(tmp_path):
    code, out, err = tb2(tmp_path, "evaluate", "--backend", "docker", DOCKER_HOST="unix:///nowhere")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "the docker backend does not work here" in err
    assert not (tmp_path / "runs").exists()


@pytest.mark.tb2
@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1.0), ("nop", 0.0)])
def test_real_tasks(tmp_path, agent, reward):
    argv = ("--dataset", os.environ["HERMES_TB2_TASKS"], "--tasks", ",".join(REAL), "-n", "2")
    code, _, err = tb2(tmp_path, "evaluate", *argv, "--agent", agent, "--name", "run", timeout=2900)
    assert (code, err) == (0, "")
    rewards = {record["task"]: record["reward"] for record in results(tmp_path / "runs/run").values()}
    assert rewards == dict.fromkeys(REAL, reward)
