"""The figures of a run, computed from its results alone."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hermes_benchmarks.benchmark import Measure
from hermes_benchmarks.plan import Plan
from hermes_benchmarks.record import Consumption, TrialRecord
from hermes_benchmarks.statistics import Estimate, bootstrap, mean_of_tasks, pass_at_k, pass_hat_k
from hermes_benchmarks.verdict import Verdict

HEADLINE_COVERAGE = 0.95
"""The share of planned trials that must be graded before a run has a headline figure."""


@dataclass(frozen=True, slots=True)
class AtK:
    """pass@k or pass^k: over the tasks with at least k graded attempts; the others are named by number."""

    k: int
    estimate: Estimate
    excluded: int


@dataclass(frozen=True, slots=True)
class Group:
    """The trials of one category or difficulty."""

    name: str
    tasks: int
    graded: int
    passed: int
    estimate: Estimate


@dataclass(frozen=True)
class Summary:
    """The figures of a run.

    Attributes:
        planned: Trials that the run is made of.
        graded: Trials with a verdict that counts.
        passed: Trials that passed.
        pass_at_1: Mean over tasks of the share of graded attempts that passed, with its interval.
        pass_rate_all: Passed over planned: every error, and every trial not run, counted as a failure.
        coverage: Graded over planned.
        mean_reward: Mean over tasks of the mean reward; differs from pass@1 where rewards are partial.
        measure: Which of the two the headline and the figures by category and difficulty are.
        verdicts: How many trials ended in each verdict.
        causes: How many ungraded trials have each cause.
        skipped: Tasks left out, by reason.
        usage: What all tries used, those too that could not be graded.
        own: The benchmark's own figures.
    """

    planned: int
    graded: int
    passed: int
    tasks: int
    attempts: int
    pass_at_1: Estimate
    pass_rate_all: float
    coverage: float
    mean_reward: Estimate
    pass_at: list[AtK]
    pass_hat: list[AtK]
    by_category: list[Group]
    by_difficulty: list[Group]
    verdicts: dict[str, int]
    causes: dict[str, int]
    skipped: dict[str, list[str]]
    usage: Consumption
    priced: int
    seconds: float
    tests_passed: int
    tests_total: int
    measure: Measure = "pass@1"
    own: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def headline(self) -> Estimate | None:
        """The benchmark's measure, or None below 95% coverage, where it could be far off."""
        if self.coverage < HEADLINE_COVERAGE:
            return None
        return self.pass_at_1 if self.measure == "pass@1" else self.mean_reward

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        plain = {key: getattr(self, key) for key in self.__dataclass_fields__ if key != "usage"}
        for key, value in plain.items():
            if isinstance(value, Estimate):
                plain[key] = asdict(value)
            elif isinstance(value, list):
                plain[key] = [asdict(item) for item in value]  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        headline = asdict(self.headline) if self.headline else None
        return {"headline": headline, **plain, "usage": self.usage.model_dump()}


def summarize(
    plan: Plan,
    records: Sequence[TrialRecord],
    own: Mapping[str, float] | None = None,
    earlier: Sequence[TrialRecord] = (),
) -> Summary:
    """Compute the figures from the latest result of every attempt; what `earlier` tries used was used all the same."""
    graded = [record for record in records if record.graded]
    passed = sum(record.verdict is Verdict.PASSED for record in graded)
    planned = len(plan.trials())
    counts = _by_task(graded)
    rewards = _by_task(graded, _reward)
    return Summary(
        planned=planned,
        graded=len(graded),
        passed=passed,
        tasks=len(plan.tasks),
        attempts=plan.attempts,
        pass_at_1=_pass_at_1(counts),
        pass_rate_all=passed / planned if planned else 0.0,
        coverage=len(graded) / planned if planned else 0.0,
        mean_reward=_mean_reward(rewards),
        pass_at=_at_k(counts, plan, pass_at_k),
        pass_hat=_at_k(counts, plan, pass_hat_k),
        by_category=_groups(graded, "category", plan.measure),
        by_difficulty=_groups(graded, "difficulty", plan.measure),
        verdicts=dict(Counter(str(record.verdict) for record in records).most_common()),
        causes=dict(Counter(record.cause for record in records if not record.graded).most_common()),
        skipped=_skipped(plan),
        usage=_total([*records, *earlier]),
        priced=sum(record.usage.cost_usd is not None for record in records),
        seconds=math.fsum(record.seconds for record in records),
        tests_passed=sum(test.status == "passed" for record in graded for test in record.tests),
        tests_total=sum(test.status != "skipped" for record in graded for test in record.tests),
        measure=plan.measure,
        own=dict(own or {}),
    )


def _by_task(
    records: Iterable[TrialRecord], value: Callable[[TrialRecord], float] | None = None
) -> dict[str, list[float]]:
    """A value of each trial, by task: by default 1 where it passed, else 0."""
    found: dict[str, list[float]] = defaultdict(list)
    for record in records:
        found[record.task].append(value(record) if value else float(record.verdict is Verdict.PASSED))
    return found


def _pass_at_1(counts: Mapping[str, list[float]]) -> Estimate:
    rates = [math.fsum(values) / len(values) for values in counts.values()]
    return mean_of_tasks(rates, [len(values) for values in counts.values()])


def _reward(record: TrialRecord) -> float:
    return record.reward or 0.0


def _mean_reward(rewards: Mapping[str, list[float]]) -> Estimate:
    return bootstrap([math.fsum(values) / len(values) for values in rewards.values()])


def _at_k(
    counts: Mapping[str, list[float]], plan: Plan, chance: Callable[[int, int, int], float]
) -> list[AtK]:
    """An estimate for k = 2, 4, 8, … and for the number of attempts itself."""
    ks = sorted({plan.attempts, *(2**i for i in range(1, 11) if 2**i <= plan.attempts)} - {1})
    found: list[AtK] = []
    for k in ks:
        values = [chance(len(v), round(sum(v)), k) for v in counts.values() if len(v) >= k]
        found.append(AtK(k, bootstrap(values), len(plan.tasks) - len(values)))
    return found


def _groups(records: Sequence[TrialRecord], key: str, measure: Measure) -> list[Group]:
    groups: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        groups[str(getattr(record, key)) or "(none)"].append(record)
    return (
        [_group(name, groups[name], measure) for name in sorted(groups)] if set(groups) - {"(none)"} else []
    )


def _group(name: str, records: Sequence[TrialRecord], measure: Measure) -> Group:
    counts = _by_task(records)
    passed = sum(record.verdict is Verdict.PASSED for record in records)
    estimate = _pass_at_1(counts) if measure == "pass@1" else _mean_reward(_by_task(records, _reward))
    return Group(name, len(counts), len(records), passed, estimate)


def _skipped(plan: Plan) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for task in plan.skipped:
        found[task.reason].append(task.name)
    return dict(found)


def _total(records: Sequence[TrialRecord]) -> Consumption:
    costs = [record.usage.cost_usd for record in records if record.usage.cost_usd is not None]
    return Consumption(
        prompt_tokens=sum(record.usage.prompt_tokens for record in records),
        completion_tokens=sum(record.usage.completion_tokens for record in records),
        cached_tokens=sum(record.usage.cached_tokens for record in records),
        cost_usd=math.fsum(costs) if costs else None,
    )
