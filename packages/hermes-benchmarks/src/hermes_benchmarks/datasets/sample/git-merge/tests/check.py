"""Judge of the task git-merge."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

PARTIAL = False


def git(*arguments):
    # No hooks, no configuration of the agent's: the repository is the agent's own.
    clean = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"]
    command = ["git", "-C", "todo", *options, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=clean, timeout=30).stdout.strip()


def session(*commands, stored=None):
    """What the committed program prints in the end, used in an empty folder or on a stored list."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "todo.py").write_text(git("show", "main:todo.py"))
        if stored is not None:
            Path(folder, "todo.json").write_text(json.dumps(stored))
        for command in commands:
            ran = [sys.executable, "-I", "-S", "todo.py", *command.split()]
            done = subprocess.run(ran, cwd=folder, capture_output=True, text=True, timeout=20)
        return done.stdout.splitlines()


def check_merge_commit():
    subjects = {"Mark items as done", "Show important items first"}
    parents = git("log", "-1", "--format=%P", "main").split()
    assert len(parents) == 2, "the tip of main is no merge"
    assert {git("log", "-1", "--format=%s", parent) for parent in parents} == subjects
    assert git("rev-parse", "priorities") in parents
    assert git("rev-list", "--count", "main") == "4"


def check_main_is_checked_out_and_clean():
    assert git("symbolic-ref", "--short", "HEAD") == "main"
    assert git("status", "--porcelain") == ""
    assert not Path("todo/.git/MERGE_HEAD").exists()


def check_features_together():
    listed = session("add buy milk", "add --high call the bank", "add read", "add --high pay rent", "list")
    assert listed == ["1. [ ] ! call the bank", "2. [ ] ! pay rent", "3. [ ] buy milk", "4. [ ] read"]


def check_done_counts_in_the_order_shown():
    listed = session("add one", "add two", "add --high three", "done 2", "done 1", "list")
    assert listed == ["1. [x] ! three", "2. [x] one", "3. [ ] two"]


def check_lists_written_before():
    stored = [{"text": "plain"}, {"text": "old", "done": True}, {"text": "big", "high": True}]
    assert session("add new", "list", stored=stored) == ["1. [ ] ! big", "2. [ ] plain", "3. [x] old", "4. [ ] new"]


def check_readme():
    text = git("show", "main:README.md")
    assert "<<<<" not in text and ">>>>" not in text and "\n====" not in text
    sections = [line for line in text.splitlines() if line.startswith("#")]
    assert sections == ["# todo", "## add and list", "## done", "## priorities"]
    assert "marks an item as done." in text and "at the top of the list." in text


# From here on every sample task is the same: run the checks, say what happened, write report and verdict.
def run_checks():
    results = []
    for name, check in list(globals().items()):
        if name.startswith("check_"):
            try:
                check()
                results.append((name, ""))
            except Exception as error:
                results.append((name, f"{type(error).__name__}: {error}"))
            print(f"{'FAILED' if results[-1][1] else 'PASSED'} {name} {results[-1][1]}".rstrip())
    return results


def write_verdict(results):
    logs = Path(os.environ.get("TASK_ROOT", "") + "/logs/verifier")
    logs.mkdir(parents=True, exist_ok=True)
    failed = sum(bool(message) for _, message in results)
    passed = len(results) - failed
    tests = [
        {"name": name, "status": "failed" if message else "passed", "duration": 0, "message": message}
        for name, message in results
    ]
    summary = {"tests": len(results), "passed": passed, "failed": failed}
    report = {"results": {"tool": {"name": "check.py"}, "summary": summary, "tests": tests}}
    (logs / "ctrf.json").write_text(json.dumps(report, indent=1))
    print(f"==== {f'{failed} failed, ' if failed else ''}{passed} passed ====")
    reward = passed / len(results) if PARTIAL else float(not failed)
    (logs / "reward.txt").write_text(f"{reward:g}\n")


write_verdict(run_checks())
