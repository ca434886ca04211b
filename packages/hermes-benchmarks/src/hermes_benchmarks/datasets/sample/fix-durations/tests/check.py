"""Judge of the task fix-durations."""

import json
import os
import subprocess
import sys
from pathlib import Path

PARTIAL = False


def results(function, arguments):
    """What `function` of the agent's module gives for each argument, from a process of its own."""
    code = f"""
import json, sys
sys.path.insert(0, "clock")
import durations
for argument in json.loads(sys.argv[1]):
    try:
        print(json.dumps(durations.{function}(argument)))
    except Exception as error:
        print(json.dumps(type(error).__name__))
"""
    command = [sys.executable, "-I", "-S", "-c", code, json.dumps(arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 0, ran.stderr.strip()[-200:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def expect(function, cases):
    for (argument, wanted), found in zip(cases.items(), results(function, list(cases)), strict=True):
        assert found == wanted, f"{function}({argument!r}) is {found!r}"


def check_single_units():
    expect("parse", {"45s": 45, "2m": 120, "1h": 3600, "3d": 259200, "0s": 0})


def check_several_units_add_up():
    expect("parse", {"1h30m": 5400, "2d 4h": 187200, " 1d 1h 1m 1s ": 90061, "1h5s": 3605})


def check_sign_holds_for_the_whole():
    expect("parse", {"-1h30m": -5400, "-2d 4h": -187200})


def check_anything_else_is_refused():
    texts = ["", "  ", "h", "12", "1h 1h", "30m1h", "1h30", "x1h", "1h-30m", "-"]
    expect("parse", dict.fromkeys(texts, "ValueError"))


def check_format():
    cases = {45: "45s", 60: "1m", 3600: "1h", 5400: "1h30m", 86400: "1d", 90061: "1d1h1m1s", 0: "0s", -5400: "-1h30m"}
    expect("format", cases)


def check_round_trip():
    seconds = [1, 59, 61, 3599, 3601, 86399, 86401, 123456, -1, -61, -90061]
    assert results("parse", results("format", seconds)) == seconds


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
