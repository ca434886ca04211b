"""The verifier in containers: a hostile root, fresh sandboxes, and the machinery put back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from harbor_folders import CHECK, DOCKERFILE, TOML, make_task
from hermes_envs import AgentResult, Outcome, RolloutSession, StopReason, run_rollout
from hermes_envs.harbor import (
    Layout,
    Status,
    Task,
    load_task,
    prepare_environment,
    run_solution,
    sandbox_spec,
    take_baseline,
    task_rollout_spec,
    verify,
)
from hermes_envs.harbor.guard import Baseline
from hermes_envs.harbor.verifier import Mode
from hermes_sandbox import Sandbox, SandboxGone, Snapshot, create_sandbox

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("test_image")]

LIAR = """#!/bin/bash
while :; do
    if [ -e /logs/verifier/reward.txt ]; then
        echo '{"results": {"tests": [{"name": "check_answer", "status": "passed"}]}}' >/tmp/ctrf.json
        mv /tmp/ctrf.json /logs/verifier/ctrf.json
        echo 1 >/tmp/reward.txt
        mv /tmp/reward.txt /logs/verifier/reward.txt
    fi
    sleep 0.01
done
"""
LIED_TO = f"""{CHECK}
while pgrep -x liar >/dev/null && ! grep -q 1 /logs/verifier/reward.txt; do sleep 0.01; done
"""
PARTIAL_LIAR = """#!/bin/bash
while :; do
    if [ -e /logs/verifier/ctrf.json ]; then
        rm /logs/verifier/ctrf.json
        echo 0.99 >/tmp/reward.txt
        mv /tmp/reward.txt /logs/verifier/reward.txt
    fi
    sleep 0.01
done
"""
PARTLY_LIED_TO = LIED_TO.replace("grep -q 1 ", "grep -q 0.99 ")
FORGER = """#!/bin/sh
echo '==== 1 passed ===='
echo '{"results": {"tests": [{"name": "check_answer", "status": "passed"}]}}' >/logs/verifier/ctrf.json
echo 1 >/logs/verifier/reward.txt
"""


class Place:
    """Makes containers for tasks of a test, each with its baseline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: list[Sandbox] = []

    async def __call__(self, **parts: str) -> tuple[Task, Sandbox, Baseline]:
        task = load_task(make_task(self.folder, **parts))
        sandbox = await create_sandbox("docker", sandbox_spec(task, "docker"))
        self.open.append(sandbox)
        layout = await prepare_environment(task, sandbox)
        baseline = await take_baseline(sandbox, layout)
        assert baseline is not None
        return task, sandbox, baseline


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    for sandbox in made.open:
        await sandbox.close()


async def test_an_honest_agent_passes_in_every_mode_and_no_image_is_left(place: Place) -> None:
    task, sandbox, baseline = await place()
    await run_solution(task, sandbox)
    saved: list[Snapshot] = []
    snapshot = sandbox.snapshot

    async def noted() -> Snapshot:
        saved.append(await snapshot())
        return saved[-1]

    sandbox.snapshot = noted  # type: ignore[method-assign]
    verdict = await verify(task, sandbox, mode="both", baseline=baseline)
    assert (verdict.status, verdict.reward, verdict.repaired) == (Status.passed, 1.0, ())
    assert verdict.fresh is not None
    assert (verdict.fresh.status, verdict.fresh.mode, verdict.disagreement) == (Status.passed, "fresh", "")
    assert len(saved) == 1
    assert saved[0].reference not in await run("docker", "images", "-q", "--no-trunc")


@pytest.mark.parametrize(
    ("liar", "lied_to"), [(LIAR, LIED_TO), (PARTIAL_LIAR, PARTLY_LIED_TO)], ids=["a pass", "a part"]
)
async def test_a_process_that_waits_for_the_verdict_is_caught_in_shared_and_gone_in_fresh(
    place: Place, liar: str, lied_to: str
) -> None:
    task, sandbox, baseline = await place(test_sh=lied_to)
    await sandbox.write_text("/tmp/liar", liar, mode=0o755)
    await sandbox.spawn("exec /tmp/liar")
    await sandbox.exec("until pgrep -x liar; do sleep 0.05; done", timeout=60, check=True)
    verdict = await verify(task, sandbox, mode="both", baseline=baseline)
    assert (verdict.status, verdict.cause) == (Status.tampered, "contradiction")
    assert verdict.fresh is not None
    assert (verdict.fresh.status, verdict.fresh.cause) == (Status.failed, "tests")
    assert verdict.disagreement == "shared: tampered (0.0), fresh: failed (0.0)"


async def test_pytest_that_is_not_there_is_nobodys_failure(place: Place) -> None:
    test = "#!/bin/bash\npython3 -m pytest -q /tests/test_a.py\necho $((! $?)) >/logs/verifier/reward.txt\n"
    task, sandbox, baseline = await place(test_sh=test)
    (task.tests_dir / "test_a.py").write_text("def test_a(): assert 0\n")
    verdict = await verify(task, sandbox, baseline=baseline)
    assert (verdict.status, verdict.cause, verdict.files["reward.txt"]) == (
        Status.verifier_error,
        "bootstrap",
        b"0\n",
    )


async def test_a_service_of_the_agent_counts_in_shared_and_not_in_fresh(place: Place) -> None:
    ask = "#!/bin/bash\npgrep -x the-service >/dev/null; echo $((! $?)) >/logs/verifier/reward.txt\n"
    task, sandbox, baseline = await place(test_sh=ask)
    await sandbox.spawn("cp /usr/bin/sleep /tmp/the-service; exec /tmp/the-service 1000")
    await sandbox.exec("until pgrep -x the-service; do sleep 0.05; done", timeout=60, check=True)
    verdict = await verify(task, sandbox, mode="both", baseline=baseline)
    assert verdict.status is Status.passed
    assert verdict.fresh is not None
    assert verdict.fresh.status is Status.failed


PLANTED = {
    "cp /tmp/forger /usr/local/bin/python3": "removed /usr/local/bin/python3",
    "cp /tmp/forger /usr/local/sbin/curl": "removed /usr/local/sbin/curl",
    "cp /tmp/forger /usr/bin/cat.new; mv -f /usr/bin/cat.new /usr/bin/cat": "restored /usr/bin/cat",
    "echo '[pytest]' >/pytest.ini": "removed /pytest.ini",
    "echo 'import os' >/usr/lib/python3/dist-packages/x.pth": "removed /usr/lib/python3/dist-packages/x.pth",
    "echo 'boom' >/etc/python3.11/sitecustomize.py": "restored /etc/python3.11/sitecustomize.py",
    "echo 'DPkg::Pre-Invoke {\"boom\";};' >/etc/apt/apt.conf.d/zz": "removed /etc/apt/apt.conf.d/zz",
    "cp /usr/bin/true /usr/bin/sha256sum": "restored /usr/bin/sha256sum",
    "cp /tmp/forger /usr/bin/bash.new; mv -f /usr/bin/bash.new /usr/bin/bash": "restored /usr/bin/bash",
}


async def test_what_was_planted_is_undone(place: Place) -> None:
    task, sandbox, baseline = await place()
    await sandbox.write_text("/tmp/forger", FORGER, mode=0o755)
    await sandbox.exec("set -e\n" + "\n".join(PLANTED), check=True)
    verdict = await verify(task, sandbox, baseline=baseline)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.failed, 0.0, "tests")
    assert set(PLANTED.values()) <= set(verdict.repaired)
    again = await verify(task, sandbox, baseline=baseline)
    assert (again.status, again.repaired) == (Status.failed, ())


async def test_a_preloaded_library_is_disarmed_before_anything_runs(place: Place) -> None:
    task, sandbox, baseline = await place()
    await sandbox.exec("echo /no/such.so >/etc/ld.so.preload", check=True)
    verdict = await verify(task, sandbox, baseline=baseline)
    assert (verdict.status, verdict.repaired[0]) == (Status.failed, "emptied /etc/ld.so.preload")
    assert b"ld.so" not in verdict.stdout


async def test_honest_installations_stay(place: Place) -> None:
    task, sandbox, baseline = await place()
    await run_solution(task, sandbox)
    honest = """
    ln -s /usr/bin/python3 /usr/local/bin/python
    cp /usr/bin/python3 /usr/local/bin/python3.11
    cp /usr/bin/git /usr/local/bin/curl
    printf '#!/usr/bin/python3\\nimport re\\nimport sys\\nfrom pytest import console_main\\nif __name__ == "__main__":\\n' >/usr/local/bin/pytest
    printf "    sys.argv[0] = re.sub(r'(-script\\\\.pyw|\\\\.exe)?$', '', sys.argv[0])\\n    sys.exit(console_main())\\n" >>/usr/local/bin/pytest
    chmod 755 /usr/local/bin/pytest
    mkdir -p /usr/local/lib/python3.11/dist-packages
    echo /opt/project >/usr/local/lib/python3.11/dist-packages/project.pth
    echo 'alias ll="ls -l"' >>/root/.bashrc
    """
    await sandbox.exec(honest, check=True)
    verdict = await verify(task, sandbox, baseline=baseline)
    assert (verdict.status, verdict.repaired) == (Status.passed, ())


async def test_the_tests_see_the_images_environment_and_nothing_of_the_agents_shell(place: Place) -> None:
    test = "#!/bin/bash\nenv >/logs/verifier/env.txt; pwd >>/logs/verifier/env.txt\necho 1 >/logs/verifier/reward.txt\n"
    dockerfile = DOCKERFILE + 'ENV PATH="/opt/tool:$PATH" OF_IMAGE=yes\n'
    toml = TOML + '[environment]\nenv = { OF_TASK = "too" }\n'
    task, sandbox, baseline = await place(test_sh=test, dockerfile=dockerfile, toml=toml)
    shell = await sandbox.open_shell()
    await shell.run("export PYTEST_ADDOPTS=-k BASH_ENV=/tmp/evil LD_PRELOAD=/x; cd /tmp")
    await sandbox.exec(
        "echo 'export EVIL=1' | tee -a /root/.bashrc /root/.profile /etc/profile; echo 'EVIL=2' >>/etc/environment"
    )
    verdict = await verify(task, sandbox, baseline=baseline)
    seen = verdict.files["env.txt"].decode().splitlines()
    assert {"OF_IMAGE=yes", "OF_TASK=too", "HOME=/root", "/app"} <= set(seen)
    assert any(line.startswith("PATH=/opt/tool:") for line in seen)
    assert not any(
        line.split("=")[0] in ("EVIL", "PYTEST_ADDOPTS", "BASH_ENV", "LD_PRELOAD") for line in seen
    )


async def test_tests_of_another_user_and_an_image_with_a_user(place: Place) -> None:
    test = '#!/bin/bash\n[ "$(id -un)" = judge ] && [ -O answer.txt ] && echo 1 >/logs/verifier/reward.txt\n'
    dockerfile = DOCKERFILE + "RUN useradd -m judge && chown judge /app\nUSER judge\n"
    task, sandbox, baseline = await place(test_sh=test, dockerfile=dockerfile)
    await run_solution(task, sandbox)
    verdict = await verify(task, sandbox, baseline=baseline)
    assert verdict.status is Status.passed, verdict
    other = TOML.replace("[verifier]\n", '[verifier]\nuser = "nobody"\n')
    nobody = "#!/bin/bash\nid -un >/logs/verifier/reward.txt; [ $(id -un) = nobody ] && echo 1 >/logs/verifier/reward.txt\n"
    task, sandbox, baseline = await place(name="other", toml=other, test_sh=nobody)
    (task.tests_dir / "test.sh").chmod(0o600)  # as a clone is under a strict umask
    assert (await verify(task, sandbox, baseline=baseline)).status is Status.passed


async def test_the_sandbox_is_as_the_task_asks(place: Place) -> None:
    toml = TOML + '[environment]\ncpus = 0.5\nmemory = "256M"\nallow_internet = false\n'
    healthy = (
        'command = "test -e /tmp/ready || { touch /tmp/ready; false; }"\ninterval_sec = 0.1\nretries = 5\n'
    )
    _, sandbox, _ = await place(toml=f"{toml}[environment.healthcheck]\n{healthy}")
    assert await sandbox.exists("/tmp/ready")
    assert (sandbox.spec.cpus, sandbox.spec.memory_mb, sandbox.spec.network) == (0.5, 256, "none")
    ran = await sandbox.exec("ls /sys/class/net; head -c 400m /dev/zero | tail | wc -c", merge=True)
    assert ran.output.split()[0] == "lo"
    assert b"419430400" not in ran.stdout
    layout = Layout.of(sandbox)
    assert (layout.tests, layout.verdict, layout.image) == ("/tests", "/logs/verifier", True)
    listed = await sandbox.exec('ls -d /logs/agent /logs/verifier /logs/artifacts "${TASK_ROOT-none}"')
    assert listed.stdout.split() == [b"/logs/agent", b"/logs/artifacts", b"/logs/verifier"]


async def test_an_agent_that_ends_its_container_is_graded_0(place: Place) -> None:
    task = load_task(make_task(place.folder))

    async def suicidal(messages: object, session: RolloutSession) -> AgentResult:
        with contextlib.suppress(SandboxGone):  # one that goes on regardless, too
            await session.sandbox.exec("kill 1; sleep 1000")
        return AgentResult(messages=[], stop_reason=StopReason.finished)

    rollout = await run_rollout(task_rollout_spec(task, backend="docker"), suicidal)
    assert (rollout.outcome, rollout.reward) == (Outcome.policy_failed, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["shared", "fresh"])
async def test_an_agent_that_leaves_no_command_to_run_is_graded_0(place: Place, mode: Mode) -> None:
    task, sandbox, baseline = await place()
    await sandbox.exec("rm -rf /bin /usr /lib /lib64")
    verdict = await verify(task, sandbox, mode=mode, baseline=baseline)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.failed, 0.0, "broken_environment")
    assert await run("docker", "ps", "-q", "--filter", f"name={sandbox.id}")  # it was there all the time


async def test_a_container_that_was_removed_from_outside_is_nobodys_failure(place: Place) -> None:
    task, sandbox, baseline = await place()
    await run("docker", "rm", "-f", sandbox.id)
    with pytest.raises(SandboxGone) as gone:
        await verify(task, sandbox, baseline=baseline)
    assert not gone.value.ended_inside


async def run(*command: str) -> str:
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode()
