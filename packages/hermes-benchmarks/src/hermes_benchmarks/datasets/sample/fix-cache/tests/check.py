"""Judge of the task fix-cache."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

PARTIAL = False
PRELUDE = """
import sys
sys.path.insert(0, ".")
from store.cache import Cache
class Clock:
    now = 0
    def __call__(self):
        return self.now
clock = Clock()
"""


def run(code):
    """Run `code` with the agent's cache in a process of its own."""
    command = [sys.executable, "-I", "-S", "-c", PRELUDE + code + "\nprint('done')"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert ran.returncode == 0 and ran.stdout.endswith("done\n"), (ran.stderr.strip() or ran.stdout)[-200:]


def check_command():
    command = [sys.executable, "-S", "-m", "store.warm"]
    clean = {"PATH": os.environ["PATH"]}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, env=clean)
    assert ran.stdout == "hits 6 misses 4 evicted 1 expired 1\n", ran.stdout + ran.stderr[-200:]


def check_command_is_as_it_was():
    original = (Path(__file__).parent / "warm.py").read_bytes()
    assert hashlib.sha256(Path("store/warm.py").read_bytes()).digest() == hashlib.sha256(original).digest()


def check_caches_are_independent():
    run("a, b = Cache(2), Cache(2)\na.set('k', 1)\nassert b.get('k') is None and len(b) == 0")


def check_least_recently_used_goes_first():
    run("c = Cache(2)\nc.set('a', 1)\nc.set('b', 2)\nc.get('a')\nc.set('c', 3)\nassert c.get('b') is None and c.get('a') == 1")
    run("c = Cache(2)\nc.set('a', 1)\nc.set('b', 2)\nc.set('a', 3)\nc.set('c', 4)\nassert c.get('b') is None and c.get('a') == 3")


def check_setting_again_evicts_nothing():
    run("c = Cache(2)\nc.set('a', 1)\nc.set('b', 2)\nc.set('b', 3)\nassert c.evicted == 0 and c.get('a') == 1 and len(c) == 2")


def check_falsy_values_are_values():
    run("c = Cache(9)\nfor v in (0, '', None, False, []):\n    c.set('k', v)\n    assert c.get('k', 'x') == v\nassert c.hits == 5")


def check_expiry():
    run("c = Cache(2, ttl=10, clock=clock)\nc.set('a', 1)\nclock.now = 9\nassert c.get('a') == 1\nclock.now = 10\n"
        "assert c.get('a', 'gone') == 'gone' and (c.hits, c.misses, c.expired) == (1, 1, 1)\nc.get('a')\nassert c.expired == 1")
    run("c = Cache(2, ttl=0, clock=clock)\nc.set('a', 1)\nassert c.get('a') is None and c.expired == 1")
    run("c = Cache(2, ttl=10, clock=clock)\nc.set('a', 1)\nclock.now = 6\nc.set('a', 2)\nclock.now = 12\nassert c.get('a') == 2")


def check_expired_entries_go_before_living_ones():
    run("c = Cache(2, ttl=10, clock=clock)\nc.set('a', 1)\nclock.now = 5\nc.set('b', 2)\nc.get('a')\nclock.now = 11\nc.set('c', 3)\n"
        "assert c.get('b') == 2 and (c.evicted, c.expired) == (0, 1)")


def check_length_counts_the_living():
    run("c = Cache(3, ttl=10, clock=clock)\nc.set('a', 1)\nclock.now = 5\nc.set('b', 2)\nclock.now = 12\nassert len(c) == 1")


def check_size_is_at_least_one():
    run("for n in (0, -1):\n    try:\n        Cache(n)\n    except ValueError:\n        continue\n    raise SystemExit('accepted')")


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
