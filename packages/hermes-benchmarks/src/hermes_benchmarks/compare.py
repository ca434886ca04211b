"""Two runs, task by task.

Only what both have graded is compared. The interval comes from resampling the tasks, with both runs'
results of a task kept together, so that a task's difficulty cancels out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hermes_benchmarks.report.data import RunData
from hermes_benchmarks.statistics import Estimate, bootstrap, mcnemar, wilson
from hermes_benchmarks.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Flip:
    """A task on which the measure differs: the share of passed attempts, or the mean reward."""

    task: str
    before: float
    after: float


@dataclass(frozen=True)
class Comparison:
    """What changed from run A to run B.

    Attributes:
        tasks: Tasks that both have graded.
        only_a: Tasks that only A has graded.
        only_b: Likewise for B.
        before: A's measure (pass rate, or mean reward) over the common tasks.
        after: B's.
        difference: Its mean change, and the interval of that.
        p_value: Exact sign test over the tasks that flipped (McNemar's test where each has one attempt).
        gained: Tasks on which B does better, the largest change first.
        lost: Tasks on which B does worse.
        changed_tasks: Common tasks whose files differ between the runs.
    """

    tasks: int
    only_a: list[str]
    only_b: list[str]
    before: float
    after: float
    difference: Estimate
    p_value: float
    gained: list[Flip]
    lost: list[Flip]
    changed_tasks: list[str]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    def verdict(self) -> str:
        """What the numbers say, in words."""
        low, high = self.difference.low, self.difference.high
        if self.tasks == 0:
            return "the runs have no graded task in common"
        if low > 0:
            return "B is better"
        return "B is worse" if high < 0 else "the difference is within the noise"


def compare(a: RunData, b: RunData) -> Comparison:
    """Compare two runs on the tasks that both have graded."""
    rates_a, rates_b = _rates(a), _rates(b)
    common = [task for task in rates_a if task in rates_b]
    flips = [Flip(task, rates_a[task], rates_b[task]) for task in common]
    differences = [flip.after - flip.before for flip in flips]
    gained = sorted((f for f in flips if f.after > f.before), key=lambda f: f.before - f.after)
    lost = sorted((f for f in flips if f.after < f.before), key=lambda f: f.after - f.before)
    sums = {task.name: task.checksum for task in a.plan.tasks}
    changed = [
        task.name for task in b.plan.tasks if task.name in common and sums.get(task.name) != task.checksum
    ]
    return Comparison(
        tasks=len(common),
        only_a=[task for task in rates_a if task not in rates_b],
        only_b=[task for task in rates_b if task not in rates_a],
        before=_mean([rates_a[task] for task in common]),
        after=_mean([rates_b[task] for task in common]),
        difference=_difference(differences),
        p_value=mcnemar(len(gained), len(lost)),
        gained=gained,
        lost=lost,
        changed_tasks=changed,
    )


def comparison_lines(a: RunData, b: RunData, found: Comparison) -> Iterable[str]:
    """A comparison, for a person."""
    for letter, run in (("A", a), ("B", b)):
        summary = run.summary
        shown = summary.pass_at_1 if summary.measure == "pass@1" else summary.mean_reward
        yield f"{letter}  {run.folder.path}: {run.plan.model or run.plan.agent}, {shown}"
    gap = found.difference
    yield f"on the {found.tasks} tasks that both have graded: {found.before:.1%} → {found.after:.1%}"
    yield f"difference {gap.mean:+.1%} [{gap.low:+.1%}, {gap.high:+.1%}], p = {found.p_value:.3g}: {found.verdict()}"
    for title, flips in (("better in B", found.gained), ("worse in B", found.lost)):
        if flips:
            yield f"{title} ({len(flips)})"
            yield from (f"  {flip.task}  {flip.before:.0%} → {flip.after:.0%}" for flip in flips)
    for letter, names in (("A", found.only_a), ("B", found.only_b)):
        if names:
            yield f"graded only in {letter}: {', '.join(names)}"
    if found.changed_tasks:
        yield f"the files of these tasks differ between the runs: {', '.join(found.changed_tasks)}"


def _difference(differences: Sequence[float]) -> Estimate:
    """The mean difference, in -1..1; where all tasks differ alike, resampling them would claim certainty."""
    n = len(differences)
    if n and not any(differences):
        return Estimate(0.0, 0.0, 0.0, n)
    if len(set(differences)) > 1:
        return bootstrap(differences)
    share = wilson(math.fsum((1 + difference) / 2 for difference in differences), n)
    return Estimate(_mean(differences), 2 * share.low - 1, 2 * share.high - 1, n)


def _rates(run: RunData) -> dict[str, float]:
    """The run's measure by task: the share of graded attempts that passed, or their mean reward."""
    outcomes: dict[str, list[float]] = defaultdict(list)
    for record in run.records:
        if record.graded:
            passed = float(record.verdict is Verdict.PASSED)
            outcomes[record.task].append(passed if run.plan.measure == "pass@1" else record.reward or 0.0)
    return {task: _mean(values) for task, values in outcomes.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
