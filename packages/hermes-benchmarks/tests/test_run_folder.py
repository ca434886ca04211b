import json
import subprocess
import sys
from pathlib import Path

import pytest
from hermes_benchmarks.errors import UsageError
from hermes_benchmarks.run_folder import RunFolder
from hermes_benchmarks_support import record


def finish(folder, value):
    trial = folder.trial(value.task, value.attempt)
    number = trial.begin()
    (trial.path / "trajectory.json").write_text(f"try {number}")
    (trial.path / "verifier").mkdir()
    trial.finish(value.model_copy(update={"try_": number}))


def test_a_second_try_keeps_the_first(tmp_path):
    folder = RunFolder(tmp_path)
    finish(folder, record(verdict="sandbox_error"))
    finish(folder, record(verdict="passed"))
    trial = folder.trial("alpha", 1)
    assert trial.record().verdict == "passed"
    assert [(r.try_, r.verdict) for r in trial.records()] == [(1, "sandbox_error"), (2, "passed")]
    assert (trial.path / "tries/1/trajectory.json").read_text() == "try 1"
    assert (trial.path / "trajectory.json").read_text() == "try 2"


def test_what_a_kill_left_behind_is_dropped(tmp_path):
    trial = RunFolder(tmp_path).trial("alpha", 1)
    assert trial.begin() == 1
    (trial.path / "trajectory.json").write_text("half of")
    (trial.path / ".result.json.77.partial").write_text("{")
    assert trial.begin() == 1
    assert list(trial.path.iterdir()) == []


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_a_kill_while_setting_a_try_aside_loses_nothing(tmp_path, moved):
    folder = RunFolder(tmp_path)
    finish(folder, record(verdict="sandbox_error"))
    trial = folder.trial("alpha", 1)
    aside = trial.path / "tries" / "1"
    aside.mkdir(parents=True)
    for name in ("result.json", "trajectory.json")[:moved]:  # the result goes first
        (trial.path / name).rename(aside / name)
    assert trial.begin() == 2
    assert [r.verdict for r in trial.records()] == ["sandbox_error"]


def test_lines_are_rebuilt_from_the_results(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create({"version": 1})
    finish(folder, record("beta", verdict="provider_error"))
    finish(folder, record("beta", verdict="failed"))
    finish(folder, record("alpha", 2))
    (tmp_path / "trials.jsonl").write_text('{"task": "torn')
    folder.rebuild_lines()
    lines = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert [(x["task"], x["attempt"], x["try"], x["verdict"]) for x in lines] == [
        ("beta", 1, 1, "provider_error"),
        ("beta", 1, 2, "failed"),
        ("alpha", 2, 1, "passed"),
    ]
    keys = ["task", "attempt", "try", "verdict", "graded", "reward", "cause", "started", "seconds"]
    assert sorted(lines[0]) == sorted(keys)
    assert lines[0]["reward"] is None


def test_the_last_line_of_an_attempt_is_its_last_try_although_the_clock_was_set_back(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create({"version": 1})
    finish(folder, record("alpha", verdict="provider_error", started="2026-11-30T10:00:00.000+00:00"))
    finish(folder, record("beta", started="2026-11-30T09:30:00.000+00:00"))
    finish(folder, record("alpha", try_=2, started="2026-11-30T09:00:00.000+00:00"))
    folder.rebuild_lines()
    lines = [json.loads(line) for line in (tmp_path / "trials.jsonl").read_text().splitlines()]
    assert [(line["task"], line["try"]) for line in lines] == [("beta", 1), ("alpha", 1), ("alpha", 2)]


def test_a_task_with_a_slash_makes_one_folder(tmp_path):
    folder = RunFolder(tmp_path)
    finish(folder, record("suite/one"))
    assert [path.name for path in (tmp_path / "trials").iterdir()] == ["suite--one__1"]


def test_an_unreadable_result_counts_as_none(tmp_path):
    folder = RunFolder(tmp_path)
    finish(folder, record())
    (tmp_path / "trials/alpha__1/result.json").write_text('{"version": 1}')
    assert folder.latest() == []


def test_a_folder_that_is_no_run_is_named(tmp_path):
    with pytest.raises(UsageError, match="not a run folder"):
        RunFolder(tmp_path / "nowhere").config()


HOLD = """
import sys
from pathlib import Path
from pathlib import Path
from hermes_benchmarks.run_folder import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_two_processes_cannot_run_the_same_folder(tmp_path):
    argv = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="another process"), RunFolder(tmp_path).locked():
            pass
        other.stdin.close()
        other.wait(60)
    with RunFolder(tmp_path).locked():
        pass


def test_a_run_has_its_folders_name_from_inside_too(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert RunFolder(Path()).name == "mine"
