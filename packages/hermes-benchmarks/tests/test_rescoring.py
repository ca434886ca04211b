"""Verdicts from the files that a trial kept, by the rules of this version."""

import json

import pytest
from hermes_benchmarks.datasets import load_dataset_tasks
from hermes_benchmarks.terminal_bench.rescoring import from_files
from hermes_envs.harbor import load_task
from hermes_envs.harbor.promise import promise_of

SCRIPT = """#!/bin/bash
pytest -q {0} /tests/test_a.py
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""
REPORT = "--ctrf /logs/verifier/ctrf.json"
PASSED = json.dumps({"results": {"tests": [{"name": "test_a", "status": "passed"}]}})


@pytest.fixture
def kept(tmp_path):
    """Judge a trial of a task with these files."""

    def judge(files, options=""):
        for name, text in {
            "task/task.toml": 'version = "1.0"\n',
            "task/instruction.md": "x",
            "task/environment/Dockerfile": "FROM scratch\n",
            "task/tests/test.sh": SCRIPT.format(options),
            "task/tests/test_a.py": "def test_a(): ...\n",
            **{f"verifier/{name}": text for name, text in files.items()},
        }.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return from_files(load_task(tmp_path / "task"), tmp_path / "verifier")

    return judge


@pytest.mark.parametrize(
    ("files", "options", "value", "status"),
    [
        ({"reward.txt": "1", "test-stdout.txt": "1 passed in 0.1s"}, "", 1.0, "passed"),
        ({"reward.txt": "0", "test-stdout.txt": "1 failed in 0.1s"}, "", 0.0, "failed"),
        ({"reward.txt": "1", "test-stdout.txt": "1 failed in 0.1s"}, "", 0.0, "tampered"),
        ({"reward.txt": "0.99", "test-stdout.txt": "1 failed in 0.1s"}, REPORT, 0.0, "tampered"),
        (
            {"reward.txt": "1", "test-stdout.txt": "1 passed in 0.1s", "ctrf.json": PASSED},
            REPORT,
            1.0,
            "passed",
        ),
    ],
)
def test_kept_files_are_judged(kept, files, options, value, status):
    reward = kept(files, options)
    assert (reward.value, reward.details["status"]) == (value, status)


@pytest.mark.parametrize("options", ["", REPORT])
def test_a_0_without_a_trace_of_tests_is_left_to_the_sandbox(kept, options):
    assert kept({"reward.txt": "0", "test-stdout.txt": "pytest: command not found"}, options) is None


def test_every_sample_task_promises_what_a_late_writer_would_contradict():
    for task in load_dataset_tasks("sample"):
        promise = promise_of(task.tests_dir)
        assert (promise.report, promise.summary, promise.clean, promise.shares) == (True,) * 4, task.name
