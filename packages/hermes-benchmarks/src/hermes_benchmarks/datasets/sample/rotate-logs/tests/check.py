"""Judge of the task rotate-logs."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

PARTIAL = False


def rotate(files, keep="2", links=(), modes=()):
    """What the script makes of a folder: (content by name, exit code, lines printed)."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root, "the logs")
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for name, target in dict(links).items():
            (folder / name).symlink_to(target)
        for name, mode in dict(modes).items():
            (folder / name).chmod(mode)
        command = [str(Path("rotate.sh").resolve()), str(folder), keep]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=root)
        found = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
        for name, mode in dict(modes).items():
            assert (folder / name).stat().st_mode & 0o777 == mode, f"mode of {name}"
        for name, target in dict(links).items():
            assert os.readlink(folder / name) == target, name
        return found, ran.returncode, ran.stdout.splitlines()


def check_one_log_is_rotated():
    found, code, lines = rotate({"app.log": "new", "app.log.1": "old"}, modes={"app.log": 0o640})
    assert found == {"app.log": "", "app.log.1": "new", "app.log.2": "old"}
    assert (code, lines) == (0, ["rotated app.log"])


def check_no_more_than_keep_remain():
    found, _, _ = rotate({"a.log": "0", "a.log.1": "1", "a.log.2": "2", "a.log.3": "3"})
    assert found == {"a.log": "", "a.log.1": "0", "a.log.2": "1"}
    found, _, _ = rotate({"a.log": "0", "a.log.1": "1"}, keep="0")
    assert found == {"a.log": ""}


def check_gaps_and_two_digits():
    files = {"a.log": "0", "a.log.2": "2", "a.log.9": "9", "a.log.10": "10", "a.log.30": "30"}
    found, _, _ = rotate(files, keep="11")
    assert found == {"a.log": "", "a.log.1": "0", "a.log.3": "2", "a.log.10": "9", "a.log.11": "10"}


def check_odd_names():
    names = ["web access.log", "-n.log", ".hidden.log", "a*b.log", "tab\there.log"]
    found, _, lines = rotate({name: name for name in names})
    assert found == {name: "" for name in names} | {name + ".1": name for name in names}
    assert lines == [f"rotated {name}" for name in sorted(names)]


def check_what_is_left_alone():
    files = {"idle.log": "", "idle.log.1": "x", "notes.txt": "t", "sub/deep.log": "d", "b.log.old": "o", "b.log": "b"}
    found, _, lines = rotate(files, links={"link.log": "notes.txt"})
    assert found == {**files, "b.log": "", "b.log.1": "b"} and lines == ["rotated b.log"]


def check_wrong_arguments():
    for keep in ("two", "-1", "1.5", ""):
        found, code, lines = rotate({"a.log": "0"}, keep=keep)
        assert (found, code, lines) == ({"a.log": "0"}, 2, []), keep
    ran = subprocess.run([str(Path("rotate.sh").resolve()), "no such folder", "1"], capture_output=True, timeout=30)
    assert ran.returncode == 2 and ran.stderr and not ran.stdout


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
