"""The verdict on what an agent left behind, and how it follows from what was seen."""

import ast
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

from hermes_envs.harbor.report import Summary, TestResult
from hermes_envs.outcome import Failure

PASS = 1.0
"""A reward of at least this is a pass."""


class Status(StrEnum):
    """What the verifier found. Only the first three are graded."""

    passed = "passed"
    failed = "failed"
    tampered = "tampered"
    """What the tests said and what the sandbox says they said contradict each other: graded 0."""
    verifier_error = "verifier_error"
    """The tests could not be run, for no fault of the agent's: not graded."""
    verifier_timeout = "verifier_timeout"
    """The time was over before the tests had started: not graded."""

    @property
    def graded(self) -> bool:
        """Whether the verdict carries a reward."""
        return self in (Status.passed, Status.failed, Status.tampered)


@dataclass(frozen=True)
class Verdict:
    """The outcome of a verification.

    Attributes:
        status: What was found.
        reward: As the tests wrote it, finite; 0 when tampered; None when not graded.
        cause: A short stable word: tests, contradiction, tests_edited, not_regular, hung, broken_environment, wipe_failed,
            bootstrap, not_started, ….
        message: One sentence for a person; empty where there is nothing to add.
        tests: The tests of the CTRF report, in its order.
        summary: pytest's own count, where it printed one.
        rewards: Every number of a `reward.json` of several.
        stdout: What the tests printed, as the host captured it.
        files: What the tests wrote into `/logs/verifier`, by name.
        failure: For the rollout engine, where the verdict is anything but passed or failed by the tests.
        seconds: Wall seconds of the whole verification, and of its parts.
        mode: Where the tests ran: shared or fresh.
        repaired: Files of the image that the agent had changed and that were put back for the tests.
        fresh: The verdict of the fresh container, when both were asked for.
    """

    status: Status
    reward: float | None
    cause: str
    message: str = ""
    tests: tuple[TestResult, ...] = ()
    summary: Summary | None = None
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    stdout: bytes = b""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    failure: Failure | None = None
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    mode: str = "shared"
    repaired: tuple[str, ...] = ()
    fresh: "Verdict | None" = None

    @property
    def disagreement(self) -> str:
        """How the verdicts of the two modes differ; empty where they agree, or where only one ran."""
        other = self.fresh
        if other is None or (other.status, other.reward) == (self.status, self.reward):
            return ""
        here, there = (f"{v.status} ({v.reward})" for v in (self, other))
        return f"{self.mode}: {here}, {other.mode}: {there}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen after the tests had run.

    Attributes:
        reward: The number in the verdict file, where it is one, clipped to 0..1.
        problem: Why there is no such number: missing, empty, not a number, not finite, not a regular file.
        rewards: Every number of a `reward.json`.
        tests: The CTRF report, None where there is none.
        summary: What pytest printed last, None where it printed nothing of the kind.
    """

    reward: float | None
    problem: str = ""
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    tests: tuple[TestResult, ...] | None = None
    summary: Summary | None = None

    @property
    def tests_ran(self) -> bool:
        """Whether there is any trace of tests."""
        return bool(self.tests) or self.summary is not None


@dataclass(frozen=True, slots=True)
class Promise:
    """What a task's tests leave behind when they run, known from their source.

    Attributes:
        report: They write a CTRF report.
        summary: They print a pytest summary.
        bootstrap: They install something first, which can fail or take time.
        names: The test functions that a passing report must name.
    """

    report: bool
    summary: bool
    bootstrap: bool
    names: frozenset[str] = frozenset()


_INSTALLS = re.compile(
    r"^\s*(?:[A-Z_]+=\S+\s+)*(?:sudo\s+)?(?:apt-get|apt|apk|dnf|yum|curl|wget|pip3?|uvx?|npm)\b", re.MULTILINE
)
_PYTEST = re.compile(r"\bpytest\b[^\n>|]*$", re.MULTILINE)
_REPORT = re.compile(r"--ctrf[ =]/logs/verifier/ctrf\.json|ctrf\.json")


def promise_of(tests: Path) -> Promise:
    """Read a task's `tests/` folder for what a run of it must leave behind."""
    script = (tests / "test.sh").read_text("utf-8", "replace")
    code = "\n".join(line for line in script.splitlines() if not line.lstrip().startswith("#"))
    sources = {path: path.read_text("utf-8", "replace") for path in sorted(tests.rglob("*.py"))}
    uses_pytest = bool(_PYTEST.search(code))
    own_judge = not uses_pytest and any("ctrf.json" in text for text in sources.values())
    names: set[str] = set()
    for path, text in sources.items():
        if uses_pytest and f"/tests/{path.relative_to(tests)}" in code:
            names |= _test_names(text)
    return Promise(
        report=bool(_REPORT.search(code)) or own_judge,
        summary=uses_pytest or own_judge,
        bootstrap=bool(_INSTALLS.search(code)),
        names=frozenset(names),
    )


def _test_names(source: str) -> set[str]:
    """The test functions at the top of a module, without those that a decorator may skip or rename."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return set()
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


def read_reward(name: str, kind: str, data: bytes) -> Evidence:
    """Read a verdict file.

    Args:
        name: `reward.json` (an object of numbers, whose `reward` or whose mean counts) or `reward.txt` (one number).
        kind: The file's type as `stat` names it.
        data: Its content.
    """
    if not kind.startswith("regular"):
        return Evidence(None, f"not a regular file ({kind})")
    text = data.decode("utf-8", "replace").strip()
    if not text:
        return Evidence(None, "empty")
    rewards: dict[str, float] = {}
    try:
        if name == "reward.json":
            found: object = json.loads(text)
            items = cast("dict[str, Any]", found) if isinstance(found, dict) else {"reward": found}
            rewards = {key: _number(value) for key, value in items.items()}
            if not rewards:
                return Evidence(None, "empty")
            reward = rewards.get("reward", sum(rewards.values()) / len(rewards))
        else:
            reward = float(text)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return Evidence(None, f"not a number: {text[:60]!r}")
    if not math.isfinite(reward) or not all(map(math.isfinite, rewards.values())):
        return Evidence(None, f"not finite: {text[:60]!r}")
    return Evidence(min(max(reward, 0.0), PASS), rewards=rewards if len(rewards) > 1 else {})


def contradiction(evidence: Evidence, promise: Promise) -> str:
    """Why a passing reward cannot be true; empty where nothing speaks against it."""
    if evidence.reward is None or evidence.reward < PASS:
        return ""
    tests, summary = evidence.tests, evidence.summary
    if tests is not None and any(test.status == "failed" for test in tests):
        failed = [test.name for test in tests if test.status == "failed"]
        return f"the verdict is a pass, but the report has failed tests: {', '.join(failed[:3])}"
    if summary is not None and summary.failed:
        return f"the verdict is a pass, but {summary.failed} tests failed in the output"
    if summary is not None and summary.deselected:
        return f"the verdict is a pass, but {summary.deselected} tests were left out"
    if promise.report and not tests:
        return "the verdict is a pass, but there is no test report"
    if promise.summary and (summary is None or not summary.passed):
        return "the verdict is a pass, but no test passed in the output"
    if promise.names and tests:
        reported = {word for test in tests for word in re.findall(r"\w+", test.name)}
        missing = sorted(promise.names - reported)
        if missing:
            return f"the verdict is a pass, but the report lacks {', '.join(missing[:3])}"
    return ""


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)
