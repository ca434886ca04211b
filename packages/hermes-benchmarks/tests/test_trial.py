import asyncio
import json
import pickle
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from hermes_benchmarks import TrialSpec, run_trial
from hermes_benchmarks.config import EvaluationConfig
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.evaluation import Evaluation
from hermes_benchmarks.outcome import write_trial
from hermes_benchmarks.run_folder import RunFolder
from hermes_benchmarks.runner import Run
from hermes_benchmarks.selection import select
from hermes_benchmarks_toy import ODD, Toy


def config(tmp_path, **run):
    return EvaluationConfig.model_validate(
        {"run": {"output": tmp_path, "name": "run", "retry_wait": 0, **run}}
    )


def spec(tmp_path, task, attempt=1):
    return TrialSpec(str(tmp_path / "run"), "hermes_benchmarks_toy:Toy", config(tmp_path), task, attempt)


@pytest.mark.parametrize(
    ("task", "verdict", "reward", "cause"),
    [
        ("good", "passed", 1.0, "tests"),
        ("bad", "failed", 0.0, "tests"),
        ("partial", "failed", 0.5, "tests"),
        ("slow", "agent_timeout", 0.0, "deadline"),
        ("broken-verifier", "verifier_error", None, "RuntimeError"),
        ("no-reward", "verifier_error", None, "bootstrap"),
        ("raises", "harness_error", None, "ValueError"),
        ("tampered", "tampered", 0.0, "contradiction"),
    ],
)
async def test_verdicts_of_real_rollouts(tmp_path, task, verdict, reward, cause):
    record = await run_trial(spec(tmp_path, task))
    assert (record.verdict, record.reward, record.cause) == (verdict, reward, cause)
    folder = tmp_path / "run/trials" / f"{task}__1"
    assert json.loads((folder / "result.json").read_text()) == record.to_dict()
    assert (folder / "trajectory.json").exists() == (task != "raises")


async def test_what_the_reward_brings_is_kept_inside_the_trial_alone(tmp_path):
    record = await run_trial(spec(tmp_path, "partial"))
    verifier = tmp_path / "run/trials/partial__1/verifier"
    assert (verifier / "log.txt").read_text() == "text"
    assert (verifier / "raw.bin").read_bytes() == b"\x00\x01"
    assert (verifier / "deep/er.txt").exists()
    assert not (verifier.parent / "escape.txt").exists()
    assert [(test.name, test.status) for test in record.tests] == [("one", "passed"), ("two", "failed")]
    assert record.info["funds"] == 7


@pytest.mark.parametrize("odd", ODD)
async def test_details_that_cannot_be_kept_are_the_reward_functions_fault(tmp_path, odd):
    trial = replace(spec(tmp_path, f"odd-{odd}"), benchmark="hermes_benchmarks_toy:OddToy")
    record = await run_trial(trial)
    assert (record.verdict, record.reward, record.cause) == ("verifier_error", None, "InvalidDetails")
    assert RunFolder(tmp_path / "run").trial(f"odd-{odd}", 1).record() == record


async def test_a_graded_trial_runs_once_and_an_ungraded_one_again(tmp_path):
    Toy.calls.clear()
    first = await run_trial(spec(tmp_path, "bad"))
    assert await run_trial(spec(tmp_path, "bad")) == first
    assert Toy.calls == ["bad"]
    assert (await run_trial(spec(tmp_path, "no-reward"))).try_ == 1
    assert (await run_trial(spec(tmp_path, "no-reward"))).try_ == 2
    folder = RunFolder(tmp_path / "run").trial("no-reward", 1)
    assert [record.try_ for record in folder.records()] == [1, 2]


async def test_a_cancelled_trial_says_so_and_can_be_run_again(tmp_path):
    Toy.calls.clear()
    task = asyncio.create_task(run_trial(spec(tmp_path, "hangs")))
    async with asyncio.timeout(60):
        while Toy.calls != ["hangs"]:
            await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    record = RunFolder(tmp_path / "run").trial("hangs", 1).record()
    assert (record.verdict, record.graded) == ("cancelled", False)


async def test_an_interrupt_waits_for_a_result_that_is_being_written(tmp_path, monkeypatch):
    began, go_on = threading.Event(), threading.Event()

    def slowly(*given):
        began.set()
        assert go_on.wait(60)
        write_trial(*given)

    monkeypatch.setattr("hermes_benchmarks.trial.write_trial", slowly)
    task = asyncio.create_task(run_trial(spec(tmp_path, "good")))
    assert await asyncio.to_thread(began.wait, 60)
    task.cancel()
    await asyncio.wait([task], timeout=0.1)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert RunFolder(tmp_path / "run").trial("good", 1).record().verdict == "passed"


def test_another_process_can_run_a_pickled_trial(tmp_path):
    code = """
import asyncio, pickle, sys
from hermes_benchmarks import run_trial
record = asyncio.run(run_trial(pickle.loads(sys.stdin.buffer.read())))
sys.stdout.buffer.write(pickle.dumps(record))
"""
    support = [path for path in sys.path if path.endswith("tests/support")]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path += {support!r}\n{code}"],
        input=pickle.dumps(spec(tmp_path, "good")),
        capture_output=True,
        check=True,
        timeout=500,
    )
    record = pickle.loads(done.stdout)
    assert record.verdict == "passed"
    assert RunFolder(tmp_path / "run").trial("good", 1).record() == record


async def test_a_whole_run_retries_keeps_and_counts(tmp_path):
    from hermes_benchmarks.progress import Tally, make_progress

    settings = config(tmp_path, retries=1, attempts=2)
    settings.env.skip_tasks = ["hangs"]
    evaluation = Evaluation(Toy(settings), settings)
    run = Run.start(evaluation, select(evaluation))
    end = await run.execute(make_progress("none", Tally(1)))
    assert (end.complete, end.stopped, end.interrupted) == (False, "", False)
    summary = end.summary
    assert (summary.planned, summary.graded, summary.passed) == (16, 10, 2)
    assert summary.headline is None
    assert summary.own == {"toys": 16}
    assert summary.skipped == {"named in skip_tasks": ["hangs"], "it crashes": ["crash"]}
    lines = [json.loads(line) for line in (tmp_path / "run/trials.jsonl").read_text().splitlines()]
    tries = {(x["task"], x["attempt"]): 0 for x in lines}
    for line in lines:
        tries[line["task"], line["attempt"]] += 1
    assert tries["no-reward", 1] == tries["broken-verifier", 2] == 2
    assert tries["bad", 1] == tries["slow", 2] == 1


def test_a_run_that_another_process_works_on_keeps_its_plan(tmp_path):
    def opened(attempts):
        evaluation = Evaluation(Toy(config(tmp_path)), config(tmp_path, attempts=attempts))
        return evaluation, select(evaluation)

    run = Run.start(*opened(1))
    before = run.folder.config()
    with run.folder.locked(), pytest.raises(UsageError, match="another process"):
        Run.reopen(run.folder, *opened(2))
    assert run.folder.config() == before
    assert Run.reopen(run.folder, *opened(2)).plan.attempts == 2


def test_a_whole_run_does_not_become_a_shard(tmp_path):
    evaluations = [Evaluation(Toy(config(tmp_path)), config(tmp_path, shard=part)) for part in (None, "1/2")]
    run = Run.start(evaluations[0], select(evaluations[0]))
    with pytest.raises(UsageError, match="is a whole run"):
        Run.reopen(run.folder, evaluations[1], select(evaluations[1]))
    assert len(Run.reopen(run.folder, evaluations[0], select(evaluations[0])).plan.trials()) == 9
