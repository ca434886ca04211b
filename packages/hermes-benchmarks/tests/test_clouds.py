"""The main job at Modal and at Daytona: the published SDKs against local servers of their protocols."""

import json
import time
from dataclasses import replace

import pytest
from hermes_benchmarks_cloud import running_cloud

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.usefixtures("test_image")]
CLOUDS = pytest.mark.parametrize("name", ["modal", "daytona"])
CONFIGURED = {  # as its configuration comes with the package, on the sample
    "modal": ("--config", "tb2-modal", "--env.dataset_name", "sample"),
    "daytona": ("--backend", "daytona"),
}


@pytest.fixture(scope="module", params=["modal", "daytona"])
def cloud(request, tmp_path_factory):
    with running_cloud(request.param, tmp_path_factory.mktemp(request.param)) as cloud:
        yield cloud


def results(run):
    return {path.parent.name: json.loads(path.read_text()) for path in run.glob("trials/*/result.json")}


def without_tokens(cloud, run):
    """Nothing in a run's folder holds a token."""
    secrets = [value for name, value in cloud.env.items() if "SECRET" in name or "KEY" in name]
    assert secrets
    texts = [path.read_text(errors="replace") for path in run.rglob("*") if path.is_file()]
    return not any(secret in text for secret in secrets for text in texts)


@pytest.mark.timeout(1800)
def test_the_oracle_solves_the_sample_with_32_trials_at_once(cloud, tmp_path):
    argv = ("evaluate", *CONFIGURED[cloud.name], "--agent", "oracle", "-k", "3", "-n", "32", "--name", "run")
    code, out, err = cloud.run(tmp_path, *argv, timeout=1700)
    assert (code, err) == (0, ""), out
    found = results(tmp_path / "runs/run")
    assert len(found) == 36
    assert {record["reward"] for record in found.values()} == {1.0}
    assert {record["verdict"] for record in found.values()} == {"passed"}
    assert cloud.containers() == []
    assert without_tokens(cloud, tmp_path / "runs/run")


@pytest.mark.timeout(1800)
def test_doing_nothing_solves_none(cloud, tmp_path):
    argv = ("evaluate", "--backend", cloud.name, "--agent", "nop", "-n", "12", "--name", "run")
    if cloud.name == "modal":
        argv = ("evaluate", "--config", "tblite-modal", "--dataset", "sample", *argv[3:])
    code, out, err = cloud.run(tmp_path, *argv, command="tblite", timeout=1700)
    assert (code, err) == (0, ""), out
    found = results(tmp_path / "runs/run")
    assert len(found) == 12
    assert {record["reward"] for record in found.values()} == {0.0}
    assert cloud.containers() == []


@CLOUDS
@pytest.mark.timeout(1800)
def test_a_service_that_dies_costs_no_trial(name, tmp_path):
    """What could not be graded is a `sandbox_error`, and a resumed run grades it; what was graded stays."""
    run = tmp_path / "runs/run"
    with running_cloud(name, tmp_path / "first") as cloud:
        argv = (
            "evaluate",
            "--backend",
            name,
            "--agent",
            "oracle",
            "-n",
            "3",
            "--run.retries",
            "0",
            "--name",
            "run",
        )
        process = cloud.start(tmp_path, *argv)
        deadline = time.monotonic() + 600
        while len(results(run)) < 2 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        cloud.kill()
        out, err = process.communicate(timeout=900)
        assert process.returncode == 3, out + err
        assert "Traceback" not in out + err
    first = {path: path.read_bytes() for path in run.glob("trials/*/result.json")}
    verdicts = [json.loads(data)["verdict"] for data in first.values()]
    assert len(verdicts) == 12
    assert set(verdicts) == {"passed", "sandbox_error"}
    with running_cloud(name, tmp_path / "second") as cloud:
        code, out, err = cloud.run(tmp_path, "resume", run, timeout=900)
        assert (code, err) == (0, ""), out
        assert cloud.containers() == []
    assert {record["verdict"] for record in results(run).values()} == {"passed"}
    kept = [path for path, data in first.items() if json.loads(data)["graded"]]
    assert kept
    assert all(path.read_bytes() == first[path] for path in kept)


def test_a_wrong_token_is_one_sentence(cloud, tmp_path):
    name = {"modal": "MODAL_TOKEN_SECRET", "daytona": "DAYTONA_API_KEY"}[cloud.name]
    wrong = replace(cloud, env=cloud.env | {name: "not-the-token"})
    code, out, err = wrong.run(tmp_path, "evaluate", "--backend", cloud.name, timeout=300)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert name in err
    assert "not-the-token" not in err
    assert not (tmp_path / "runs").exists()
