"""Judge of the task log-report: the logs are made again from their recipe and counted independently."""

import calendar
import csv
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from functools import cache
from pathlib import Path

PARTIAL = False
HERE = Path(__file__).parent
NAMES = {"error": "error", "err": "error", "warn": "warning", "warning": "warning", "info": "info"}
LETTERS = {"E": "error", "W": "warning", "I": "info"}


@cache
def logs():
    """The lines of each log."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["bash", str(HERE / "make_logs.sh")], cwd=folder, check=True, timeout=60)
        return {name: Path(folder, "logs", f"{name}.log").read_text().splitlines() for name in ("api", "worker", "db")}


def entries():
    """Pairs of (seconds since 1970, service, level), read by splitting rather than by patterns."""
    for line in logs()["api"]:
        words = line.split(" ")
        if len(words) > 1 and words[1].startswith("[") and line[0].isdigit():
            offset = int(words[0][20:22]) * 3600 + int(words[0][23:25]) * 60
            local = calendar.timegm(time.strptime(words[0][:19], "%Y-%m-%dT%H:%M:%S"))
            yield local - (offset if words[0][19] == "+" else -offset), "api", NAMES.get(words[1][1:-1].lower(), "other")
    for line in logs()["worker"]:
        words = line.split(" ")
        if words[1].endswith(":"):
            yield int(words[0]), "worker", NAMES.get(words[1][:-1].lower(), "other")
    for line in logs()["db"]:
        if not line.startswith(" "):
            words = line.split()
            seconds = calendar.timegm(time.strptime(" ".join(words[:4]), "%b %d %Y %H:%M:%S"))
            yield seconds, "db", LETTERS.get(words[5], "other")


def hour(seconds):
    return time.strftime("%Y-%m-%dT%H", time.gmtime(seconds))


def rows():
    with Path("report.csv").open(newline="") as file:
        return list(csv.reader(file))


def check_header_and_order():
    assert rows()[0] == ["hour", "service", "level", "count"]
    keys = [tuple(row[:3]) for row in rows()[1:]]
    assert keys and keys == sorted(set(keys))


def check_counts():
    counts = Counter((hour(seconds), service, level) for seconds, service, level in entries())
    assert {tuple(row[:3]): int(row[3]) for row in rows()[1:]} == dict(counts)


def check_worst_hour():
    errors = Counter(hour(seconds) for seconds, _, level in entries() if level == "error")
    assert Path("worst.txt").read_text().strip() == min(errors, key=lambda name: (-errors[name], name))


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
