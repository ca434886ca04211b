"""The main job on an ssh host and in apptainer, through `--backend`: a real sshd, a real apptainer."""

import json

import pytest
from hermes_benchmarks_command import tb2
from sandbox_sshd import running_sshd


@pytest.fixture(scope="module")
def ssh(tmp_path_factory):
    """The arguments that name a host."""
    with running_sshd(tmp_path_factory.mktemp("sshd"), sessions=100) as server:
        options = {**server.options, "keys": [str(server.key)], "known_hosts": str(server.known_hosts)}
        yield ("--backend", "ssh", "--env.backend_options", json.dumps(options))


def rewards(folder, *arguments, **options):
    code, _, err = tb2(folder, "evaluate", *arguments, "--name", "run", **options)
    assert (code, err) == (0, "")
    found = [json.loads(path.read_text()) for path in (folder / "runs/run").glob("trials/*/result.json")]
    return {record["task"]: record["reward"] for record in found}


@pytest.mark.ssh
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_a_task_on_an_ssh_host(tmp_path, ssh, agent, reward):
    assert rewards(tmp_path, *ssh, "--agent", agent, "--tasks", "log-report") == {"log-report": reward}


@pytest.mark.ssh
def test_a_task_that_needs_a_container_is_not_run_on_an_ssh_host(tmp_path, ssh):
    task = tmp_path / "tasks/one"
    (task / "tests").mkdir(parents=True)
    (task / "tests/test.sh").write_text("true")
    (task / "instruction.md").write_text("Do it.")
    (task / "task.toml").write_text('[environment]\ndocker_image = "an/image"\n')
    code, out, err = tb2(tmp_path, "evaluate", *ssh, "--agent", "nop", "--dataset", "tasks")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "it needs a container" in err


@pytest.mark.ssh
@pytest.mark.slow
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_the_sample_on_an_ssh_host(tmp_path, ssh, agent, reward):
    found = rewards(tmp_path, *ssh, "--agent", agent)
    assert len(found) == 12
    assert set(found.values()) == {reward}


@pytest.mark.singularity
@pytest.mark.docker
@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_the_sample_in_apptainer(tmp_path, test_image, agent, reward):
    found = rewards(tmp_path, "--backend", "singularity", "--agent", agent, timeout=1700)
    assert len(found) == 12
    assert set(found.values()) == {reward}
