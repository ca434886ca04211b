"""What a `test.sh` certainly promises: honest graders of every shape are believed, and forged verdicts of them are not."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hermes_envs.harbor.promise import Promise, promise_of
from hermes_envs.harbor.report import TestResult, parse_summary, shows_start
from hermes_envs.harbor.verdict import Evidence, conclusive, contradiction

IF = "\nif [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n"
REPORT = "--ctrf /logs/verifier/ctrf.json"
FILE = "/tests/test_outputs.py"
TO = "> /logs/verifier/reward.txt"
UVX = "curl -LsSf https://example.org/install.sh | sh\nsource $HOME/.local/bin/env\nuvx \\\n  -p 3.13 \\\n  -w pytest==8.4.1 \\\n  "
STARTED = "============ test session starts ============\ncollected 2 items\n"
SUMMARY = f"{STARTED}==== 2 passed in 0.01s ====\n"
FAILED = f"{STARTED}==== 2 failed in 0.01s ====\n"
QUIET = "..    [100%]\n2 passed in 0.01s\n"
BOTH = {"test_a": "passed", "test_b": "passed"}
NEITHER = {"test_a": "failed", "test_b": "failed"}
TESTS = "import pytest\ndef test_a(): assert 1\ndef test_b(): assert 1\n"
SLOW = TESTS + "@pytest.mark.slow\ndef test_slow(): assert 0\n"
READS = "import json\ntests = json.load(open('/logs/verifier/ctrf.json'))['results']['tests']\npassed = sum(t['status'] == 'passed' for t in tests)\n"
WRITES = "open('/logs/verifier/reward.json', 'w').write(json.dumps({'reward': reward}))\n"
SHARE = READS + "reward = passed / len(tests)\n" + WRITES
THRESHOLD = READS + "reward = float(passed >= 1)\n" + WRITES
JUDGE = """import json, pathlib
ok = pathlib.Path('/app/x').exists()
report = {'results': {'tests': [{'name': 'a', 'status': 'passed' if ok else 'failed'}]}}
"""
WRITES_REPORT = "json.dump(report, open('/logs/verifier/ctrf.json', 'w'))\n"
WRITES_REWARD = "pathlib.Path('/logs/verifier/reward.txt').write_text(str(int(ok)))\n"
PRINTS = "print(f'==== {failed} failed, {passed} passed ====')\nreward = passed / len(tests)\n"
OWN_SHARE = JUDGE + WRITES_REPORT + PRINTS + WRITES
HOOK = "def pytest_sessionfinish(session): session.exitstatus = 0\n"


@dataclass(frozen=True)
class Run:
    """A `test.sh`, and what is left of a run of it."""

    script: str
    output: str = SUMMARY
    report: Mapping[str, str] | None = None
    reward: float = 1.0
    files: Mapping[str, str] = field(default_factory=dict[str, str])

    def promise(self, folder: Path) -> Promise:
        for name, text in {
            "test_outputs.py": TESTS,
            **self.files,
            "test.sh": f"#!/bin/bash\n{self.script}",
        }.items():
            file = folder / "tests" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return promise_of(folder / "tests")

    @property
    def evidence(self) -> Evidence:
        report = self.report
        tests = None if report is None else tuple(TestResult(*each) for each in report.items())
        output = self.output.encode()
        return Evidence(self.reward, tests=tests, summary=parse_summary(output), started=shows_start(output))


def by(option: str, **kept: object) -> Run:
    """A run of the usual call of pytest with another option."""
    return Run(**{"script": f"pytest {option} {REPORT} {FILE}{IF}", "report": BOTH, **kept})  # type: ignore[arg-type]


HONEST = {
    "usual": Run(f"{UVX}pytest {REPORT} {FILE} -rA\n{IF}", report=BOTH),
    "quiet": Run(f"pytest -q {FILE}{IF}", QUIET),
    "quiet and verbose": by("-q -v"),
    "silent": by("-qq", output=".."),
    "no header, no summary": by("--no-header --no-summary"),
    "first failure ends it": by("-x"),
    "colours": by("--color=yes", output="\x1b[32m==== \x1b[1m2 passed\x1b[0m\x1b[32m in 1.0s ====\x1b[0m\n"),
    "hours": Run(f"pytest {FILE}{IF}", "==== 2 passed, 1 warning in 3661.00s (1:01:01) ====\n"),
    "minutes and quiet": Run(f"pytest -q {FILE}{IF}", "2 passed in 0:01:02\n"),
    "many workers": by("-n auto --dist loadfile"),
    "another reporter": by("-p sugar", output="Results (0.05s):\n 2 passed\n"),
    "another reporter's package": Run(f"uvx -w pytest-sugar pytest {FILE}{IF}", "Results (0.05s):\n"),
    "by words": by(
        '-k "not slow"', output="== 2 passed, 1 deselected in 0.1s ==", files={"test_outputs.py": SLOW}
    ),
    "by marks": by(
        "-m 'not slow'", output="== 2 passed, 1 deselected in 0.1s ==", files={"test_outputs.py": SLOW}
    ),
    "one by name": Run(f"pytest {REPORT} {FILE}::test_a{IF}", report={"test_a": "passed"}),
    "without one": by(f"--deselect {FILE}::test_b", report={"test_a": "passed"}),
    "without a file": Run(
        f"pytest {REPORT} /tests --ignore=/tests/test_c.py{IF}",
        report=BOTH,
        files={"test_c.py": "def test_c(): assert 0\n"},
    ),
    "a folder": Run(
        f"pytest {REPORT} /tests{IF}", report=BOTH, files={"deep/test_c.py": "def test_c(): ...\n"}
    ),
    "a glob": Run(f"pytest {REPORT} /tests/test_*.py{IF}", report=BOTH),
    "a fixture like a test": by(
        "", files={"test_outputs.py": TESTS + "@pytest.fixture\ndef test_dir(): ...\n"}
    ),
    "a decorator of its own": by("", files={"test_outputs.py": TESTS + "@helper\ndef test_dir(): ...\n"}),
    "no test after all": by("", files={"test_outputs.py": TESTS + "def test_c(): ...\ndel test_c\n"}),
    "a class": by(
        "",
        report={"TestX::test_m": "passed"},
        files={"test_outputs.py": "class TestX:\n def test_m(self): ...\n"},
    ),
    "unittest in pytest": by(
        "",
        output="== 1 skipped in 0.1s ==",
        report={"Q::test_m": "skipped"},
        files={
            "test_outputs.py": "import unittest\nclass Q(unittest.TestCase):\n @unittest.skip('x')\n def test_m(self): ...\n"
        },
    ),
    "unittest": Run(f"python3 -m unittest discover -s /tests{IF}", "Ran 2 tests in 0.001s\n\nOK\n"),
    "all skipped": by(
        "",
        output="== 1 skipped in 0.1s ==",
        report={"test_s": "skipped"},
        files={"test_outputs.py": "import pytest\n@pytest.mark.skip\ndef test_s(): ...\n"},
    ),
    "skipped by a helper": by(
        "",
        output="== 1 skipped in 0.1s ==",
        report={"test_s": "skipped"},
        files={"test_outputs.py": "import pytest\ndef need(): pytest.skip('x')\ndef test_s(): need()\n"},
    ),
    "expected to fail": by(
        "",
        output="== 1 xfailed, 1 xpassed in 0.1s ==",
        report={"test_s": "skipped"},
        files={"test_outputs.py": "import pytest\n@pytest.mark.xfail\ndef test_s(): assert 0\n"},
    ),
    "no parameters": by(
        "",
        output="== 1 skipped in 0.1s ==",
        report={"test_s": "skipped"},
        files={
            "test_outputs.py": "import pytest\n@pytest.mark.parametrize('x', found())\ndef test_s(x): ...\n"
        },
    ),
    "run again": by(
        "--reruns 2", report={**BOTH, "test_c": "failed"}, output="== 2 passed, 1 rerun in 0.1s =="
    ),
    "hooks that change the exit": by(
        "", output="== 2 failed in 0.1s ==", report=NEITHER, files={"conftest.py": HOOK}
    ),
    "hooks that change the summary": by(
        "", output="bye\n", files={"conftest.py": "def pytest_configure(config): ...\n"}
    ),
    "a configuration": Run(
        f"pytest {REPORT} {FILE}{IF}",
        "",
        report={"check_a": "passed"},
        files={"pytest.ini": "[pytest]\npython_functions = check_*\naddopts = -qq -k a\n"},
    ),
    "a configuration of the project's": Run("cd /app && pytest" + IF, "..\n"),
    "options from the environment": Run(f"export PYTEST_ADDOPTS=-qq\npytest {REPORT} {FILE}{IF}", "", BOTH),
    "options from the image": by(
        "", output="", files={"../environment/Dockerfile": "ENV PYTEST_ADDOPTS -qq\n"}
    ),
    "only collected": Run(f"pytest --co -q {FILE}{IF}", "2 tests collected in 0.01s\n"),
    "to a file": Run(f"pytest {FILE} > /logs/verifier/out.txt 2>&1{IF}", ""),
    "to a variable": Run(f'OUT=$(pytest {FILE} 2>&1){IF}echo "$OUT" | tail -n 0', ""),
    "to files all together": Run(f"exec > /logs/verifier/log 2>&1\npytest {FILE}{IF}", ""),
    "a block to a file": Run("{ pytest " + FILE + "; } > log" + IF, ""),
    "through tee": Run(f"set -o pipefail\npytest {FILE} 2>&1 | tee out.txt{IF}"),
    "through tail": Run(f"pytest {FILE} | tail -n 1; rc=${{PIPESTATUS[0]}}\necho $((! rc)) {TO}", "done\n"),
    "in a string": Run(f'bash -c "pytest {FILE} >/dev/null"{IF}', ""),
    "through another script": Run(
        "bash /tests/run.sh", "", files={"run.sh": f"pytest {FILE} >/dev/null{IF}"}
    ),
    "in the background": Run(f"pytest {FILE} > log &\nwait $!{IF}", ""),
    "a trap": Run(f"trap 'echo $((! $?)) {TO}' EXIT\npytest -q {FILE}", QUIET),
    "two calls": Run(
        f"pytest {REPORT} {FILE}; a=$?\npytest -q /tests/test_more.py; b=$?\n"
        f"if [ $a -eq 0 ] && [ $b -eq 0 ]; then echo 1 {TO}; fi",
        SUMMARY + "1 passed in 0.1s\n",
        BOTH,
        files={"test_more.py": "def test_m(): ...\n"},
    ),
    "a report of one of two calls": Run(
        f"pytest {REPORT} {FILE}\na=$?\npytest --ctrf /logs/verifier/more.json /tests/test_more.py\nb=$?\n"
        f"if [ $a -eq 0 ] && [ $b -eq 0 ]; then echo 1 {TO}; else echo 0 {TO}; fi",
        SUMMARY + "== 1 passed in 0.1s ==\n",
        BOTH,
        files={"test_more.py": "def test_m(): ...\n"},
    ),
    "a bonus that fails": Run(
        f"pytest {REPORT} {FILE}; rc=$?\npytest /tests/bonus.py || true\nif [ $rc = 0 ]; then echo 1 {TO}; fi",
        SUMMARY + FAILED,
        BOTH,
        files={"bonus.py": "def test_m(): ...\n"},
    ),
    "tests that have to fail": Run(f"if ! pytest {FILE}; then echo 1 {TO}; else echo 0 {TO}; fi", FAILED),
    "one file of many": Run(
        f"p=0\nfor f in /tests/test_*.py; do pytest $f && p=1; done\necho $p {TO}", SUMMARY + FAILED
    ),
    "another attempt": Run(f"for i in 1 2 3; do pytest {FILE} && break; done{IF}", FAILED + SUMMARY),
    "another interpreter": Run(
        f"/no/python -m pytest {REPORT} {FILE} || python3 -m pytest {FILE}{IF}", SUMMARY
    ),
    "a pass before the tests": Run(f"if [ -f /app/x ]; then echo 1 {TO}; exit 0; fi\npytest {FILE}{IF}", ""),
    "a case": Run(f"pytest {FILE}\ncase $? in 0) echo 1 {TO} ;; *) echo 0 {TO} ;; esac"),
    "arithmetic": Run(f"pytest {FILE}\n(( $? == 0 )) && echo 1 {TO} || echo 0 {TO}"),
    "a function": Run(f'main() {{\n  pytest {REPORT} {FILE}\n}}\nmain "$@"{IF}', report=BOTH),
    "ends at an error": Run(
        f"set -euo pipefail\necho 0 {TO}\npytest {REPORT} {FILE}\necho 1 {TO}", report=BOTH
    ),
    "by way of a variable": Run(f'R=0\nif pytest {FILE}; then R=1; fi\necho "$R" {TO}'),
    "steps of its own": Run(
        f"echo 0 {TO}\npytest {FILE} && echo 0.5 {TO}\n[ -f /app/x ] && echo 1 {TO}", FAILED, reward=1.0
    ),
    "partial by steps": Run(f"pytest {FILE}{IF}[ -f /app/x ] && echo 0.5 {TO}", FAILED, reward=0.5),
    "a test gives the reward": Run(
        f"pytest {REPORT} {FILE}",
        "== 1 failed, 2 passed in 0.1s ==",
        {**BOTH, "test_c": "failed"},
        files={"test_c.py": "def test_c(): open('/logs/verifier/reward.txt', 'w').write('1')\n"},
    ),
    "a share": Run(
        f"pytest {REPORT} {FILE}\npython3 /tests/grade.py",
        "== 1 failed, 1 passed in 0.1s ==",
        {"test_a": "passed", "test_b": "failed"},
        0.5,
        {"grade.py": SHARE},
    ),
    "a threshold": Run(
        f"pytest {REPORT} {FILE}\npython3 /tests/grade.py",
        "== 1 failed, 1 passed in 0.1s ==",
        {"test_a": "passed", "test_b": "failed"},
        1.0,
        {"grade.py": THRESHOLD},
    ),
    "credit for a crash": Run(
        f"pytest {REPORT} {FILE}\npython3 /tests/grade.py",
        STARTED + "Segmentation fault\n",
        None,
        0.25,
        {"grade.py": THRESHOLD},
    ),
    "a program with a report": Run(
        "python3 /tests/check.py",
        "",
        {"a": "passed"},
        files={"check.py": JUDGE + WRITES_REPORT + WRITES_REWARD},
    ),
    "a program with a report of failures": Run(
        "python3 /tests/check.py",
        "",
        files={"check.py": JUDGE + f"if not ok:\n  {WRITES_REPORT}" + WRITES_REWARD},
    ),
    "a program that ends early": Run(
        "python3 /tests/check.py",
        "",
        files={"check.py": JUDGE + f"if ok:\n  {WRITES_REWARD}  exit()\n" + WRITES_REPORT + WRITES_REWARD},
    ),
    "a program with a threshold": Run(
        "python3 /tests/check.py",
        "",
        {"a": "passed", "b": "failed"},
        files={"check.py": JUDGE + WRITES_REPORT + "ok = 0.5 if score >= 0.5 else 0\n" + WRITES_REWARD},
    ),
    "a program that gives its share": Run(
        "python3 /tests/check.py", "== 2 failed, 1 passed ==", BOTH, 0.33, {"check.py": OWN_SHARE}
    ),
    "a silent program": Run("python3 /tests/check.py", "", None, 0.75, {"check.py": JUDGE + WRITES_REWARD}),
    "bash": Run(
        f'[ -f /app/x ] && n=1\necho "passed $n/2"\necho "scale=2; $n / 2" | bc {TO}', "passed 1/2", None, 0.5
    ),
    "jest": Run(f"npx jest --ci{IF}", "Tests:       2 passed, 2 total\nTime:        0.5 s\n"),
    "cargo": Run(f"cargo test{IF}", "test result: ok. 2 passed; 0 failed; 0 ignored; finished in 0.00s\n"),
    "go": Run(f"go test ./...{IF}", "ok  \texample.org/x\t0.003s\n"),
    "tox": Run(f"tox -e py311{IF}", "  py311: OK (1.0 seconds)\n  congratulations :)\n"),
    "words like a summary": Run(
        f"pytest {FILE} > log; rc=$?\necho '2 of 3 failed in 3s'\necho $((! rc)) {TO}",
        "2 of 3 failed in 3s\n",
    ),
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_graders_are_believed(name: str, tmp_path: Path) -> None:
    run = HONEST[name]
    promise = run.promise(tmp_path)
    assert contradiction(run.evidence, promise) == ""
    assert conclusive(run.evidence, promise)


FORGED = {
    "a pass of failed tests": (by("", output=FAILED), "2 tests failed in the output"),
    "a pass of failed tests, quietly": (
        Run(f"pytest -q {FILE}{IF}", "2 failed in 0.01s\n"),
        "2 tests failed",
    ),
    "a pass against the report": (by("", report=NEITHER), "failed tests: test_a, test_b"),
    "a pass without output": (by("", output=""), "no test passed in the output"),
    "a pass of skipped tests": (by("", output="== 2 skipped in 0.1s =="), "no test passed in the output"),
    "a pass without a report": (by("", report=None), "no test report"),
    "a pass with an empty report": (by("", report={}), "no test report"),
    "a pass with a shorter report": (by("", report={"test_a": "passed"}), "lacks test_b"),
    "a pass of fewer tests": (by("", output="== 1 passed, 1 deselected in 0.1s =="), "1 tests were left out"),
    "a part, the report removed": (by("", report=None, reward=0.99, output=FAILED), "write only 0 or 1"),
    "a part, everything forged": (by("", reward=0.99), "write only 0 or 1"),
    "a part of a quiet run": (
        Run(f"pytest -q {FILE}{IF}", "2 failed in 0.1s", None, 0.5),
        "write only 0 or 1",
    ),
    "two calls": (
        Run(
            f"python -m pytest --ctrf /logs/verifier/other.json -rA\nA=$?\npython -m pytest {REPORT} {FILE}\nB=$?\n"
            f"if [ $A -eq 0 ] && [ $B -eq 0 ]; then\n  echo 1 {TO}\nelse\n  echo 0 {TO}\nfi\n",
            SUMMARY + FAILED,
            BOTH,
        ),
        "2 tests failed",
    ),
    "tee": (Run(f"set -o pipefail\npytest {FILE} | tee log{IF}", FAILED), "2 tests failed"),
    "words": (by('-k "not slow"', output=FAILED), "2 tests failed"),
    "an early way out": (
        Run(f"if [ ! -f x ]; then echo 0 {TO}; exit; fi\npytest {FILE}{IF}", ""),
        "no test passed",
    ),
    "a part, and nothing passed": (
        Run("python3 /tests/check.py", "== 2 failed, 0 passed ==", BOTH, 0.99, {"check.py": OWN_SHARE}),
        "only 0 of 2 tests passed",
    ),
    "more than its part": (
        Run("python3 /tests/check.py", "== 1 failed, 1 passed ==", BOTH, 0.99, {"check.py": OWN_SHARE}),
        "only 1 of 2 tests passed",
    ),
    "a program's report removed": (
        Run("python3 /tests/check.py", "", None, 0.9, {"check.py": JUDGE + WRITES_REPORT + WRITES_REWARD}),
        "no test report",
    ),
    "a program's report against it": (
        Run(
            "python3 /tests/check.py",
            "",
            {"a": "failed"},
            files={"check.py": JUDGE + WRITES_REPORT + WRITES_REWARD},
        ),
        "failed tests: a",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_verdicts_are_not(name: str, tmp_path: Path) -> None:
    run, why = FORGED[name]
    assert why in contradiction(run.evidence, run.promise(tmp_path))


NOT_STARTED = {
    "no uvx": f"/no/uvx pytest -v {FILE}{IF}",
    "no pytest": f"python3.13 -m pytest -q {FILE}{IF}",
    "no pytest in another mode": f"python3 -B -m pytest {FILE}{IF}",
    "with a report": f"uvx -w pytest-json-ctrf pytest {REPORT} {FILE} > log{IF}",
    "a default": f"set -e\necho 0 {TO}\napt-get install -y curl\npytest {FILE}\necho 1 {TO}",
    "with a grader": f"pytest {REPORT} {FILE}\npython3 /tests/grade.py",
}


@pytest.mark.parametrize("name", NOT_STARTED)
def test_a_0_without_a_trace_of_the_tests_is_no_verdict(name: str, tmp_path: Path) -> None:
    script = NOT_STARTED[name]
    run = Run(script, "not found\n", None, 0.0, {"grade.py": THRESHOLD} if "grade.py" in script else {})
    promise = run.promise(tmp_path)
    assert contradiction(run.evidence, promise) == ""
    assert not conclusive(run.evidence, promise)
    assert not promise.early


@pytest.mark.parametrize(
    "before",
    [
        f"echo 0 {TO}\nset -e\ntest -f /app/x",
        f"set -euo pipefail\necho 0 {TO}\n[ -f /app/x ]",
        f"if [ ! -f /app/x ]; then echo 0 {TO}; exit 1; fi",
        f"test -f /app/x || {{ echo 0 {TO}; exit; }}",
        f"trap 'rm -f /tmp/x' EXIT\nfail() {{ echo 0 {TO}; exit 1; }}\n[ -f /app/x ] || fail",
    ],
)
def test_a_0_may_be_meant_before_the_tests(before: str, tmp_path: Path) -> None:
    assert Run(f"{before}\npytest {FILE}{IF}").promise(tmp_path).early


USUAL = Promise(
    report=True,
    summary=True,
    bootstrap=True,
    names=frozenset({"test_a", "test_b"}),
    traces=True,
    clean=True,
    whole=True,
    some=True,
    rewards=frozenset({0.0, 1.0}),
)


def test_what_the_usual_script_promises(tmp_path: Path) -> None:
    assert HONEST["usual"].promise(tmp_path) == USUAL


@pytest.mark.parametrize(
    ("tests", "some"),
    [
        ("def test_a(): skip_header = 1\n", True),
        ("@pytest.mark.parametrize('x', [1, 2])\ndef test_a(x): ...\n", True),
        ("SIZES = list(range(2, 5))\n@pytest.mark.parametrize('x', SIZES)\ndef test_a(x): ...\n", True),
        ("@pytest.mark.parametrize('x', [])\ndef test_a(x): ...\n", False),
        ("FOUND = glob('*')\n@pytest.mark.parametrize(('x', 'y'), FOUND)\ndef test_a(x, y): ...\n", False),
        ("def test_a(): pytest.skip('x')\n", False),
        ("@pytest.mark.skipif(True, reason='x')\ndef test_a(): ...\n", False),
        ("class TestX: ...\n", False),
    ],
)
def test_a_test_has_passed_where_none_may_be_skipped(tests: str, some: bool, tmp_path: Path) -> None:
    assert by("", files={"test_outputs.py": tests}).promise(tmp_path).some == some


@pytest.mark.tb2
def test_every_real_task_promises_all_of_it() -> None:
    for folder in sorted(Path(os.environ["HERMES_TB2_TASKS"]).glob("*/tests")):
        promise = promise_of(folder)
        assert promise.names, folder
        assert promise == replace(USUAL, names=promise.names), folder


@pytest.mark.parametrize(
    "where",
    [
        "cd /tests\npytest --ctrf /logs/verifier/ctrf.json test_outputs.py",
        'pytest --ctrf "$TASK_ROOT/logs/verifier/ctrf.json" "${TASK_ROOT:-}/tests/test_outputs.py"',
        f'HERE="$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)"\npytest {REPORT} "$HERE/test_outputs.py"',
        f"TEST_DIR=${{TEST_DIR:-/tests}}\ntimeout 600 uv run --with pytest pytest {REPORT} $TEST_DIR/test_outputs.py",
    ],
)
def test_the_tests_are_found_wherever_the_script_says_they_are(where: str, tmp_path: Path) -> None:
    promise = Run(where + IF).promise(tmp_path)
    assert (promise.report, promise.summary, promise.names) == (True, True, {"test_a", "test_b"})
