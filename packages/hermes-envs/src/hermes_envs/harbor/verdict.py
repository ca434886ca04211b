"""The verdict on what an agent left behind, and how it follows from what was seen."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from hermes_envs.harbor.promise import Promise
from hermes_envs.harbor.report import Summary, TestResult
from hermes_envs.outcome import Failure

PASS = 1.0
"""A reward of at least this is a pass."""
_ROUNDED = 0.05
"""What a share may be above the true one."""


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
        started: The output shows that tests had begun.
    """

    reward: float | None
    problem: str = ""
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    tests: tuple[TestResult, ...] | None = None
    summary: Summary | None = None
    started: bool = False

    @property
    def tests_ran(self) -> bool:
        """Whether there is any trace of tests."""
        return bool(self.tests) or self.summary is not None


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
    """Why a reward cannot be true, by what the tests certainly leave; empty where nothing speaks against it."""
    reward = evidence.reward
    if not reward:
        return ""
    verdict = "a pass" if reward >= PASS else f"{reward:g}"
    why = (reward >= PASS and _against_pass(evidence, promise)) or _against_any(evidence, promise, reward)
    return f"the verdict is {verdict}, but {why}" if why else ""


def conclusive(evidence: Evidence, promise: Promise) -> bool:
    """Whether the evidence gives the verdict: there is a reward, and nothing hints that the tests could not start."""
    return evidence.reward is not None and (evidence.reward > 0 or evidence.tests_ran or not promise.traces)


def _against_pass(evidence: Evidence, promise: Promise) -> str:
    tests, summary = evidence.tests or (), evidence.summary
    failed = [test.name for test in tests if test.status == "failed"]
    if failed and promise.clean:
        return f"the report has failed tests: {', '.join(failed[:3])}"
    if summary is not None:
        if summary.failed and promise.clean:
            return f"{summary.failed} tests failed in the output"
        if summary.deselected and promise.whole:
            return f"{summary.deselected} tests were left out"
        if not summary.passed and promise.some:
            return "no test passed in the output"
    reported = {word for test in tests for word in re.findall(r"\w+", test.name)}
    missing = sorted(promise.names - reported) if tests else []
    return f"the report lacks {', '.join(missing[:3])}" if missing else ""


def _against_any(evidence: Evidence, promise: Promise, reward: float) -> str:
    if promise.rewards is not None and reward not in promise.rewards:
        return f"the tests write only {' or '.join(f'{number:g}' for number in sorted(promise.rewards))}"
    if promise.report and not evidence.tests:
        return "there is no test report"
    summary = evidence.summary
    if summary is None:
        return "no test passed in the output" if promise.summary else ""
    count = summary.passed + summary.failed
    if promise.shares and reward > summary.passed / max(count, 1) + _ROUNDED:
        return f"only {summary.passed} of {count} tests passed"
    return ""


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)
