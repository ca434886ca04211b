"""What is read from verdict files, reports and output, and what contradicts a pass."""

import json

import pytest
from hermes_envs.harbor.promise import Promise
from hermes_envs.harbor.report import (
    Summary,
    TestResult,
    parse_ctrf,
    parse_summary,
    shows_breakdown,
    shows_start,
)
from hermes_envs.harbor.verdict import Evidence, conclusive, contradiction, read_reward
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

REGULAR = "regular file"


@pytest.mark.parametrize(
    ("name", "data", "reward"),
    [
        ("reward.txt", b"1\n", 1.0),
        ("reward.txt", b" 0.25 ", 0.25),
        ("reward.txt", b"0", 0.0),
        ("reward.txt", b"7", 1.0),
        ("reward.txt", b"-3", 0.0),
        ("reward.json", b'{"reward": 0.5}', 0.5),
        ("reward.json", b"1", 1.0),
        ("reward.json", b'{"speed": 1, "size": 0}', 0.5),
        ("reward.json", b'{"reward": 1, "size": 0}', 1.0),
    ],
)
def test_rewards_are_read_raw(name: str, data: bytes, reward: float) -> None:
    assert read_reward(name, REGULAR, data).reward == reward


@pytest.mark.parametrize(
    ("name", "kind", "data", "problem"),
    [
        ("reward.txt", REGULAR, b"", "empty"),
        ("reward.txt", REGULAR, b"  \n", "empty"),
        ("reward.txt", REGULAR, b"passed", "not a number"),
        ("reward.txt", REGULAR, b"nan", "not finite"),
        ("reward.txt", REGULAR, b"inf", "not finite"),
        ("reward.txt", "symbolic link", b"1", "not a regular file"),
        ("reward.txt", "fifo", b"1", "not a regular file"),
        ("reward.json", REGULAR, b"{}", "empty"),
        ("reward.json", REGULAR, b'{"reward": true}', "not a number"),
        ("reward.json", REGULAR, b'{"reward": "1"}', "not a number"),
        ("reward.json", REGULAR, b'{"reward": 1, "x": NaN}', "not finite"),
        ("reward.json", REGULAR, b"[" * 100_000, "not a number"),
    ],
)
def test_anything_else_is_no_reward(name: str, kind: str, data: bytes, problem: str) -> None:
    seen = read_reward(name, kind, data)
    assert seen.reward is None
    assert seen.problem.startswith(problem)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200), st.sampled_from(["reward.txt", "reward.json"]))
def test_any_bytes_give_a_reward_in_range_or_a_problem(data: bytes, name: str) -> None:
    seen = read_reward(name, REGULAR, data)
    assert (seen.reward is None) == bool(seen.problem)
    assert seen.reward is None or 0 <= seen.reward <= 1


@pytest.mark.parametrize(
    ("line", "summary"),
    [
        ("=== 1 failed, 2 passed in 0.10s ===", Summary(passed=2, failed=1)),
        ("============ 6 passed, 1 warning in 75.31s (0:01:15) ============", Summary(passed=6)),
        ("\x1b[32m==== \x1b[1m3 passed\x1b[0m, 2 skipped in 1.00s ====\x1b[0m", Summary(passed=3, skipped=2)),
        ("=== 2 passed, 3 deselected in 0.1s ===", Summary(passed=2, deselected=3)),
        ("=== 1 passed, 2 errors in 0.1s ===", Summary(passed=1, failed=2)),
        ("==== 4 failed, 0 passed ====", Summary(passed=0, failed=4)),
        ("1 failed, 2 passed in 0.10s", Summary(passed=2, failed=1)),
        ("\x1b[32m\x1b[32m\x1b[1m2 passed\x1b[0m\x1b[32m in 0.01s\x1b[0m\x1b[0m", Summary(passed=2)),
        ("2 passed, 1 rerun, 3 subtests passed in 86461.00s (1 day, 0:01:01)", Summary(passed=2)),
        ("== 2 passed, 1 xfailed, 1 xpassed in 0:01:02 ==", Summary(passed=2)),
        ("=== 3 passed in 0.12 seconds ===", Summary(passed=3)),
    ],
)
def test_summaries_of_pytest(line: str, summary: Summary) -> None:
    output = f"=== test session starts ===\n=== FAILURES ===\n{line}\nbye\n".encode()
    assert parse_summary(output) == summary
    assert shows_start(output)


def test_no_summary_in_other_output() -> None:
    assert parse_summary(b"=====\n=== FAILURES ===\n== no counts ==\n\xff\xfe") is None
    others = (
        *(
            "Tests:       1 failed, 2 passed, 3 total",
            "test result: ok. 2 passed; 0 failed; finished in 0.00s",
        ),
        *(
            "2 passed",
            "2 tests collected in 0.01s",
            "I found 2 failed in 3s",
            "Ran 3 tests in 0.001s",
            "no tests ran in 0.1s",
        ),
    )
    for line in others:
        assert parse_summary(line.encode()) is None, line
    assert not shows_start(b"Reading package lists...\nPASSED is a word\n"[:30])


@pytest.mark.parametrize(
    ("output", "broke"),
    [
        ("/tests/test.sh: line 3: uvx: command not found\n", True),
        ("/tests/test.sh: line 3: /no/uvx: No such file or directory\n", True),
        ("/usr/bin/python3: No module named pytest\n", True),
        ("INTERNALERROR> Traceback\n", True),
        ("answer.py: command not found\nNo module named answer\n", False),
        ("cat: /app/answer: No such file or directory\n", False),
    ],
)
def test_what_shows_that_pytest_is_not_there(output: str, broke: bool) -> None:
    assert shows_breakdown(output.encode()) == broke


def test_reports() -> None:
    report = {
        "results": {
            "tests": [{"name": "t::a", "status": "failed", "duration": 1500, "message": "x" * 5000}, 7]
        }
    }
    first, second = parse_ctrf(json.dumps(report).encode()) or ()
    assert (first.name, first.status, first.seconds, len(first.message)) == ("t::a", "failed", 1.5, 2000)
    assert second.status == "other"
    for broken in (b"", b"[]", b'{"results": 5}', b'{"results": {"tests": {}}}', b"[" * 99_999):
        assert parse_ctrf(broken) is None


FULL = Promise(
    report=True,
    summary=True,
    names=frozenset({"test_a", "test_b"}),
    traces=True,
    clean=True,
    whole=True,
    some=True,
)
PASSED = (TestResult("test_outputs.py::test_a[1]", "passed"), TestResult("test_b", "skipped"))


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        (Evidence(1.0, tests=PASSED, summary=Summary(passed=2)), ""),
        (Evidence(0.0, tests=None), ""),
        (Evidence(0.9, tests=(TestResult("test_a", "failed"),), summary=Summary(failed=1)), ""),
        (
            Evidence(0.9, tests=None, summary=Summary(failed=1)),
            "the verdict is 0.9, but there is no test report",
        ),
        (Evidence(0.9, tests=PASSED, summary=None), "no test passed in the output"),
        (
            Evidence(1.0, tests=(*PASSED, TestResult("c", "failed")), summary=Summary(passed=2)),
            "failed tests: c",
        ),
        (Evidence(1.0, tests=PASSED, summary=Summary(passed=1, failed=1)), "1 tests failed in the output"),
        (Evidence(1.0, tests=PASSED, summary=Summary(passed=1, deselected=1)), "left out"),
        (Evidence(1.0, tests=None, summary=Summary(passed=2)), "no test report"),
        (Evidence(1.0, tests=(), summary=Summary(passed=2)), "no test report"),
        (Evidence(1.0, tests=PASSED, summary=None), "no test passed in the output"),
        (Evidence(1.0, tests=PASSED[:1], summary=Summary(passed=1)), "lacks test_b"),
    ],
)
def test_contradictions(evidence: Evidence, why: str) -> None:
    found = contradiction(evidence, FULL)
    assert why in found
    assert bool(found) == bool(why)


def test_without_a_promise_a_bare_reward_is_believed() -> None:
    for reward in (0.0, 0.5, 1.0):
        assert not contradiction(Evidence(reward), Promise())
        assert conclusive(Evidence(reward), Promise())


@pytest.mark.parametrize(
    ("evidence", "gives"),
    [
        (Evidence(None), False),
        (Evidence(0.0), False),
        (Evidence(0.0, started=True), False),
        (Evidence(0.5), True),
        (Evidence(0.0, tests=()), False),
        (Evidence(0.0, tests=PASSED), True),
        (Evidence(0.0, summary=Summary(failed=1)), True),
    ],
)
def test_a_reward_is_a_verdict_where_the_promised_tests_left_a_trace(evidence: Evidence, gives: bool) -> None:
    assert conclusive(evidence, Promise(traces=True)) == gives
