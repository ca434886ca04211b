"""What the tests say about themselves: the CTRF report, and the summary that pytest prints."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

_COUNTS = r"(?P<counts>\d+ [a-z][a-z ]*(?:, \d+ [a-z][a-z ]*)*)"
_TIME = r" in (?:[0-9.]+ ?s(?:econds)?|[0-9:]+)(?: \([^()]*\))?"
_SUMMARY_LINE = re.compile(rf"=+ {_COUNTS}(?:{_TIME})? =+")
_QUIET_LINE = re.compile(rf"{_COUNTS}{_TIME}")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?)\b")
_BREAKDOWN = re.compile(
    r"^INTERNALERROR>|\b(?:uvx?|pytest|python[0-9.]*|pip[0-9.]*): (?:command )?not found|No module named '?pytest"
    r"|/(?:uvx?|pytest|python[0-9.]*|pip[0-9.]*): No such file",
    re.MULTILINE,
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_STARTED = re.compile(
    r"={3,} test session starts|^collect(?:ed|ing) |^(?:PASSED|FAILED|ERROR) ", re.MULTILINE
)
_MAX_MESSAGE = 2000


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test of a report.

    Attributes:
        name: As the report has it.
        status: passed, failed, skipped, pending or other (CTRF's words).
        message: Why it failed, shortened.
        seconds: What it took.
    """

    __test__ = False

    name: str
    status: str
    message: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """The last line that pytest printed, counted: `=== 1 failed, 2 passed in 0.10s ===`, with `-q` without the bars."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    deselected: int = 0


def parse_ctrf(data: bytes) -> tuple[TestResult, ...] | None:
    """The tests of a CTRF report (https://ctrf.io), or None where the bytes hold no whole report."""
    try:
        report: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    results = _mapping(_mapping(report).get("results"))
    tests = results.get("tests")
    if not isinstance(tests, list):
        return None
    return tuple(_test(_mapping(test)) for test in cast("list[object]", tests))


def parse_summary(output: bytes) -> Summary | None:
    """The last pytest summary in a terminal's output, or None where there is none."""
    for line in reversed(output.decode("utf-8", "replace").splitlines()):
        plain = _ANSI.sub("", line).strip()
        found = _SUMMARY_LINE.fullmatch(plain) or _QUIET_LINE.fullmatch(plain)
        if not found:
            continue
        counts: dict[str, int] = {}
        for number, word in _COUNT.findall(found["counts"]):
            counts[word.rstrip("s")] = counts.get(word.rstrip("s"), 0) + int(number)
        if counts:
            failed = counts.get("failed", 0) + counts.get("error", 0)
            return Summary(
                counts.get("passed", 0), failed, counts.get("skipped", 0), counts.get("deselected", 0)
            )
    return None


def shows_start(output: bytes) -> bool:
    """Whether a terminal's output shows that tests had begun to run."""
    return bool(_STARTED.search(_ANSI.sub("", output.decode("utf-8", "replace"))))


def shows_breakdown(output: bytes) -> bool:
    """Whether a terminal's output shows that pytest, or what runs it, is not there or broke of itself."""
    return bool(_BREAKDOWN.search(output.decode("utf-8", "replace")))


def _test(test: Mapping[str, Any]) -> TestResult:
    message = test.get("message") or test.get("trace") or ""
    duration = test.get("duration")
    seconds = duration / 1000 if isinstance(duration, int | float) else 0.0
    return TestResult(
        name=str(test.get("name", "")),
        status=str(test.get("status", "other")),
        message=str(message)[:_MAX_MESSAGE],
        seconds=seconds,
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
