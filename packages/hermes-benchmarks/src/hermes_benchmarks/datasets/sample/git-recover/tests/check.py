"""Judge of the task git-recover."""

import json
import os
import subprocess
from pathlib import Path

PARTIAL = False
SUBJECTS = ["Search for a word", "Ignore case when searching", "Count what was found"]
MAIN = ["Read notes from a file", "Say what a note is", "Write notes to a file"]


def git(*arguments):
    # No hooks, no configuration of the agent's: the repository is the agent's own.
    clean = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"]
    command = ["git", "-C", "notes", *options, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=clean, timeout=30).stdout.strip()


def check_main_did_not_move():
    assert git("log", "--reverse", "--format=%s", "main").splitlines() == MAIN


def check_branch_is_back_on_top_of_main():
    assert git("merge-base", "main", "search") == git("rev-parse", "main")
    assert git("log", "--reverse", "--format=%s", "main..search").splitlines() == SUBJECTS


def check_content_survived():
    code = git("show", "search:search.py")
    assert "word.lower() in line.lower()" in code and "def count(path, word)" in code
    assert "def save(path, lines)" in git("show", "search:notes.py")
    assert git("ls-tree", "-r", "--name-only", "search").splitlines() == ["README.md", "notes.py", "search.py"]


def check_main_is_checked_out_and_clean():
    assert git("symbolic-ref", "--short", "HEAD") == "main"
    assert git("status", "--porcelain") == ""


def check_list_of_commits():
    assert Path("recovered.txt").read_text().split("\n")[:-1] == SUBJECTS


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
