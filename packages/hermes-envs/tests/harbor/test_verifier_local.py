"""The verifier in local sandboxes: what it does with every way a run of the tests can end."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from envs_clock import Clock
from harbor_folders import CHECK, TOML, make_task
from hermes_envs.harbor import (
    Status,
    Task,
    Verdict,
    load_task,
    prepare_environment,
    run_solution,
    sandbox_spec,
    verify,
)
from hermes_sandbox import Sandbox, create_sandbox

HANGING = "#!/bin/bash\necho 'PASSED check_one'\n: >begun\nsleep 1000\n"
BARE = '#!/bin/bash\nmkdir -p "$TASK_ROOT/logs/verifier"\n'


class Place:
    """Makes sandboxes for tasks of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: list[Sandbox] = []

    async def __call__(self, **parts: str) -> tuple[Task, Sandbox]:
        task = load_task(make_task(self.folder, **parts))
        sandbox = await create_sandbox("local", sandbox_spec(task, "local"), quiet=True)
        self.open.append(sandbox)
        await prepare_environment(task, sandbox)
        return task, sandbox


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    for sandbox in made.open:
        await sandbox.close()


async def judged(task: Task, sandbox: Sandbox, **options: float) -> Verdict:
    return await verify(task, sandbox, backend_options={"quiet": True}, **options)


async def test_doing_nothing_fails_and_the_solution_passes(place: Place) -> None:
    task, sandbox = await place()
    assert (await sandbox.read_text("question.txt")).startswith("what is")
    assert not await sandbox.exists(f"{sandbox.root}/.environment")
    nothing = await judged(task, sandbox)
    assert (nothing.status, nothing.reward, nothing.cause) == (Status.failed, 0.0, "tests")
    assert [(test.name, test.status) for test in nothing.tests] == [("check_answer", "failed")]
    assert (await run_solution(task, sandbox)).ok
    solved = await judged(task, sandbox)
    assert (solved.status, solved.reward, solved.failure) == (Status.passed, 1.0, None)
    assert solved.summary is not None
    assert solved.summary.passed == 1
    assert set(solved.files) == {"reward.txt", "ctrf.json", "test-stdout.txt"}
    assert b"1 passed" in solved.stdout


async def test_what_the_agent_left_in_the_way_is_cleared(place: Place) -> None:
    task, sandbox = await place()
    root = sandbox.root
    script = f"""
    mkdir -p {root}/tests/deep {root}/logs/away && echo 1 >{root}/logs/away/reward.json && chmod 000 {root}/tests/deep
    echo 'exit 0' >{root}/tests/test.sh; rm -rf {root}/logs/verifier; ln -s {root}/logs/away {root}/logs/verifier
    """
    assert (await sandbox.exec(script)).ok
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.reward) == (Status.failed, 0.0)
    assert await sandbox.read_text(f"{root}/logs/away/reward.json") == "1\n"
    assert not await sandbox.exists(f"{root}/tests/deep")


@pytest.mark.parametrize(
    ("write", "status", "cause"),
    [
        ("", Status.verifier_error, "bootstrap"),
        (": >{0}/reward.txt", Status.verifier_error, "bootstrap"),
        ("echo nan >{0}/reward.txt", Status.verifier_error, "bootstrap"),
        ("echo yes >{0}/reward.txt", Status.verifier_error, "bootstrap"),
        ("mkdir {0}/reward.txt", Status.tampered, "not_regular"),
        ("ln -s /dev/null {0}/reward.txt", Status.tampered, "not_regular"),
        ("echo 1 >{0}/x; ln -s x {0}/reward.txt", Status.tampered, "not_regular"),
        ("mkfifo {0}/reward.txt", Status.tampered, "not_regular"),
        ("echo 0.75 >{0}/reward.txt", Status.failed, "tests"),
        ("echo 1 >{0}/reward.txt; exit 3", Status.passed, "tests"),
        ("echo 0 >{0}/reward.txt; echo '{{\"reward\": 1}}' >{0}/reward.json", Status.passed, "tests"),
    ],
)
async def test_only_a_readable_number_is_a_verdict(
    place: Place, write: str, status: Status, cause: str
) -> None:
    task, sandbox = await place(test_sh=BARE + write.format('"$TASK_ROOT/logs/verifier"') + "\n")
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.cause) == (status, cause)
    assert (verdict.reward is not None) == status.graded
    if status is Status.verifier_error:
        assert verdict.failure is not None
        assert verdict.failure.retryable
        assert not verdict.failure.by_policy


async def test_a_test_that_is_another_only_while_it_runs_is_tampering(place: Place) -> None:
    """A program that the verifier calls before the tests puts another test in place, which puts the first one back."""
    task, sandbox = await place()
    tests = f"{sandbox.root}/tests"
    forged = f"#!/bin/bash\nmv -f {tests}.kept {tests}/test.sh\necho 42 >answer.txt\n{CHECK}"
    await sandbox.write_text(f"{sandbox.root}/forged", forged, mode=0o755)
    swap = f"#!/bin/bash\nmv {tests}/test.sh {tests}.kept; cp {sandbox.root}/forged {tests}/test.sh\n"
    await sandbox.write_text(f"{sandbox.root}/bin/chmod", swap, mode=0o755)
    misled = {"PATH": f"{sandbox.root}/bin:/usr/local/bin:/usr/bin:/bin"}
    task = replace(task, config=replace(task.config, verifier_env=misled))
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.tampered, 0.0, "tests_edited")


async def test_partial_rewards_are_kept(place: Place) -> None:
    task, sandbox = await place(test_sh=BARE + 'echo 0.75 >"$TASK_ROOT/logs/verifier/reward.txt"\n')
    assert (await judged(task, sandbox)).reward == 0.75


async def test_a_verdict_that_contradicts_the_report_is_tampering(place: Place) -> None:
    lie = CHECK + 'echo 1 >"${TASK_ROOT:-}/logs/verifier/reward.txt"\n'
    task, sandbox = await place(test_sh=lie)
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.tampered, 0.0, "contradiction")
    assert "check_answer" in verdict.message
    assert verdict.failure is not None
    assert verdict.failure.by_policy


async def test_tests_that_were_edited_while_they_ran_are_tampering(place: Place) -> None:
    task, sandbox = await place(test_sh=CHECK + 'echo "# edited" >>"$TASK_ROOT/tests/test.sh"\n')
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.tampered, 0.0, "tests_edited")


async def test_tests_that_hang_after_their_start_are_the_agents_fault(place: Place) -> None:
    task, sandbox = await place(test_sh=HANGING)
    begun = Path(sandbox.workdir, "begun")
    passing = asyncio.create_task(Clock().put_forward_once(begun.exists, 300))
    verdict = await judged(task, sandbox, timeout=300)
    await passing
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.failed, 0.0, "hung")
    assert b"PASSED" in verdict.stdout


async def test_tests_that_never_started_are_not_graded(place: Place) -> None:
    task, sandbox = await place(
        test_sh="#!/bin/bash\ncurl() { sleep 100; }\ncurl -LsSf https://example.org | sh\npytest\n"
    )
    verdict = await judged(task, sandbox, timeout=1.0)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.verifier_timeout, None, "not_started")
    assert verdict.failure is not None
    assert verdict.failure.kind == "verifier_timeout"


async def test_a_bootstrap_that_the_agent_broke_is_graded_0(place: Place) -> None:
    broken = '#!/bin/bash\n[ -e broken ] && { echo 0 >"$TASK_ROOT/logs/verifier/reward.txt"; exit 1; }\n'
    task, sandbox = await place(test_sh=broken + CHECK.partition("\n")[2])
    await sandbox.write_text("broken", "")
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.failed, 0.0, "broken_environment")


PYTEST = """#!/bin/bash
mkdir -p "$TASK_ROOT/logs/verifier"
echo 0 >"$TASK_ROOT/logs/verifier/reward.txt"
{before}
{python} -m pytest -q -p no:cacheprovider "$TASK_ROOT/tests/test_answer.py" && echo 1 >"$TASK_ROOT/logs/verifier/reward.txt"
"""
ANSWER = "def test_answer():\n    assert open('answer.txt').read() == '42'\n"


@pytest.mark.parametrize(
    ("before", "python", "answer", "status", "cause"),
    [
        ("", sys.executable, "42", Status.passed, "tests"),
        ("", sys.executable, "43", Status.failed, "tests"),
        ("[ -s answer.txt ] || exit", sys.executable, "", Status.failed, "tests"),
        ("", "/no/such/python3", "42", Status.verifier_error, "bootstrap"),
        ("[ -s answer.txt ] || exit", "/no/such/python3", "42", Status.verifier_error, "bootstrap"),
        ("[ -s answer.txt ] && exit", sys.executable, "43", Status.failed, "broken_environment"),
    ],
)
async def test_quiet_tests_are_judged_by_what_they_print(
    place: Place, before: str, python: str, answer: str, status: Status, cause: str
) -> None:
    task, sandbox = await place(test_sh=PYTEST.format(before=before, python=python))
    (task.tests_dir / "test_answer.py").write_text(ANSWER)
    await sandbox.write_text("answer.txt", answer)
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.cause) == (status, cause), verdict
    if cause == "tests" and answer:
        assert verdict.summary is not None


async def test_a_part_that_the_tests_never_give_is_tampering(place: Place) -> None:
    forger = 'rm "$TASK_ROOT/logs/verifier/ctrf.json"; echo 0.99 >"$TASK_ROOT/logs/verifier/reward.txt"\n'
    task, sandbox = await place(test_sh=CHECK + "[ ! -x forger ] || ./forger\n")
    await sandbox.write_text("forger", f"#!/bin/bash\n{forger}", mode=0o755)
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.reward, verdict.cause) == (Status.tampered, 0.0, "contradiction")
    assert verdict.message == "the verdict is 0.99, but the tests write only 0 or 1"


async def test_files_of_any_name_beside_the_verdict_change_nothing(place: Place) -> None:
    names = r"$'A\nregular file|1|reward.json' $'B\nb' 'C|c' $'D\xff'"
    odd = f'cd "$TASK_ROOT/logs/verifier"; touch {names}; echo 1 >reward.txt\n'
    task, sandbox = await place(test_sh=BARE + odd)
    verdict = await judged(task, sandbox)
    assert (verdict.status, verdict.reward) == (Status.passed, 1.0)
    assert {"B\nb", "C|c", "A\nregular file|1|reward.json"} < set(verdict.files)


async def test_a_service_of_the_agent_is_alive_while_the_tests_run(place: Place) -> None:
    ask = BARE + '[ "$(head -n 1 pipe)" = hello ] && echo 1 >"$TASK_ROOT/logs/verifier/reward.txt"\n'
    task, sandbox = await place(test_sh=ask)
    await sandbox.exec("mkfifo pipe", check=True)
    await sandbox.spawn("while :; do echo hello >pipe; done")
    assert (await judged(task, sandbox)).status is Status.passed


async def test_the_environment_and_variables_reach_tests_and_solution(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_HOST", "seven")
    toml = TOML.replace(
        "timeout_sec = 60.0", 'timeout_sec = 60.0\nenv = { A = "${OF_THE_HOST}", B = "${NOT_THERE:-b}" }', 1
    )
    toml += '[solution]\nenv = { SECRET = "s" }\n'
    task, sandbox = await place(
        toml=toml,
        test_sh=BARE
        + '[ "$A$B$(cat secret)" = sevenbs ]; echo $((! $?)) >"$TASK_ROOT/logs/verifier/reward.txt"\n',
        solve='printf %s "$SECRET" >secret\n',
    )
    await run_solution(task, sandbox)
    assert (await judged(task, sandbox)).status is Status.passed
