"""Estimates of a success rate, with intervals, in plain Python.

Trials of one task are not independent of each other, so everything over several attempts averages
tasks first and resamples *tasks*: 89 tasks at 60% leave about 10 points either way however many
attempts each gets.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

Z95 = 1.959963984540054
"""The 97.5th percentile of the standard normal distribution."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean in 0..1 and its 95% interval; `n` is the number of tasks or trials behind it."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.1%} [{self.low:.1%}, {self.high:.1%}]"


def wilson(passed: float, n: int) -> Estimate:
    """Wilson's score interval of a binomial proportion (E. B. Wilson, JASA 22, 1927).

    `passed` may be a sum of partial rewards: no values in 0..1 vary more than passes and failures of the same mean.
    """
    if n == 0:
        return Estimate(0.0, 0.0, 1.0, 0)
    p, z2 = passed / n, Z95 * Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    low = 0.0 if passed == 0 else max(0.0, centre - half)
    high = 1.0 if passed == n else min(1.0, centre + half)
    return Estimate(p, low, high, n)


def pass_at_k(n: int, passed: int, k: int) -> float:
    """The chance that at least one of k attempts passes, unbiased: 1 - C(n-c, k) / C(n, k).

    From "Evaluating Large Language Models Trained on Code" (arXiv 2107.03374), section 2.1.

    Raises:
        ValueError: Fewer than k attempts.
    """
    _check(n, passed, k)
    return 1.0 - math.comb(n - passed, k) / math.comb(n, k)


def pass_hat_k(n: int, passed: int, k: int) -> float:
    """The chance that all of k attempts pass, unbiased: C(c, k) / C(n, k).

    From tau-bench (arXiv 2406.12045), section 3.

    Raises:
        ValueError: Fewer than k attempts.
    """
    _check(n, passed, k)
    return math.comb(passed, k) / math.comb(n, k)


def _check(n: int, passed: int, k: int) -> None:
    if not 1 <= k <= n or not 0 <= passed <= n:
        raise ValueError(f"k={k} of n={n} attempts, {passed} passed, is not defined")


def bootstrap(values: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """The mean over tasks with a percentile interval from resampling tasks. The same seed, the same interval.

    Of equal values resampling would claim certainty, however few they are; for those, in 0..1, Wilson's interval is taken.
    """
    n = len(values)
    if n == 0 or min(values) == max(values):
        return wilson(math.fsum(values), n)
    mean = math.fsum(values) / n
    low, high = _percentiles(tuple(values), seed, resamples)
    return Estimate(mean, min(low, mean), max(high, mean), n)


@lru_cache(maxsize=256)
def _percentiles(values: tuple[float, ...], seed: int, resamples: int) -> tuple[float, float]:
    rng, n = random.Random(seed), len(values)
    means = sorted(sum(rng.choices(values, k=n)) / n for _ in range(resamples))
    edge = int(resamples * 0.025)
    return means[edge], means[resamples - 1 - edge]


def mean_of_tasks(rates: Sequence[float], attempts: Sequence[int]) -> Estimate:
    """pass@1: Wilson where every task has one attempt, else the bootstrap over task means.

    Args:
        rates: The share of a task's attempts that passed, one per task.
        attempts: How many graded attempts each task has, aligned with `rates`.
    """
    if all(n == 1 for n in attempts):
        return wilson(round(sum(rates)), len(rates))
    return bootstrap(rates)


def mcnemar(gained: int, lost: int) -> float:
    """The two-sided exact p-value that gains and losses are equally likely."""
    n = gained + lost
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, i) for i in range(min(gained, lost) + 1)) / 2**n
    return min(1.0, 2 * tail)
