"""Judge of the task git-find-regression: the repository is made again, and compared with the agent's."""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

PARTIAL = False
HERE = Path(__file__).parent


def git(*arguments, at="shop"):
    # No hooks, no configuration of the agent's: the repository is the agent's own.
    clean = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    options = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"]
    command = ["git", "-C", at, *options, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=clean, timeout=30).stdout.strip()


def original(*arguments):
    """What git says in a fresh copy of the repository."""
    return git(*arguments, at=str(fresh_copy() / "shop"))


@cache
def fresh_copy():
    folder = tempfile.mkdtemp()
    subprocess.run(["bash", str(HERE / "make_shop.sh")], cwd=folder, check=True, timeout=60)
    return Path(folder)


def output(source, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "price.py")
        program.write_text(source)
        command = [sys.executable, "-I", "-S", str(program), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()


def check_first_bad_commit():
    bad = original("log", "--format=%H", "--grep=Add value added tax", "main")
    assert Path("first-bad.txt").read_text().strip() == bad


def check_one_new_commit_on_top():
    assert git("rev-parse", "main~1") == original("rev-parse", "main")
    assert git("symbolic-ref", "--short", "HEAD") == "main"
    assert git("status", "--porcelain") == ""


def check_prices():
    source = git("show", "main:price.py")
    for arguments, total in {("3", "9.99"): "29.97", ("1", "0.005"): "0.01", ("7", "1.25"): "8.75"}.items():
        assert output(source, *arguments) == total, arguments


def check_later_work_stayed():
    source = git("show", "main:price.py")
    before = original("show", "main:price.py")
    names = [line for line in before.splitlines() if line.startswith("def ")]
    assert len(names) > 5 and all(line in source.splitlines() for line in names)
    assert git("diff", "--name-only", "main~1", "main").splitlines() == ["price.py"]


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
