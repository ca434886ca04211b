import itertools
import math
import random

import pytest
from hermes_benchmarks.statistics import bootstrap, mcnemar, mean_of_tasks, pass_at_k, pass_hat_k, wilson
from hypothesis import given
from hypothesis import strategies as st


def test_wilson_agrees_with_published_values():
    # Newcombe 1998, table I: 81 of 263 and 0 of 20, 95% without continuity correction
    estimate = wilson(81, 263)
    assert (round(estimate.low, 4), round(estimate.high, 4)) == (0.2553, 0.3662)
    estimate = wilson(0, 20)
    assert (estimate.low, round(estimate.high, 4)) == (0.0, 0.1611)


def test_wilson_of_nothing_knows_nothing():
    estimate = wilson(0, 0)
    assert (estimate.low, estimate.high, estimate.n) == (0.0, 1.0, 0)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))))
def test_wilson_stays_in_bounds_and_holds_the_mean(case):
    n, passed = case
    estimate = wilson(passed, n)
    assert 0 <= estimate.low <= estimate.mean <= estimate.high <= 1


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_counts_every_choice_of_k_attempts(case):
    n, passed, k = case
    choices = list(itertools.combinations([1] * passed + [0] * (n - passed), k))
    assert math.isclose(pass_at_k(n, passed, k), sum(map(any, choices)) / len(choices))
    assert math.isclose(pass_hat_k(n, passed, k), sum(map(all, choices)) / len(choices))


@pytest.mark.parametrize("case", [(3, 1, 4), (3, 1, 0), (3, 4, 1)])
def test_k_beyond_the_attempts_is_refused(case):
    with pytest.raises(ValueError, match="not defined"):
        pass_at_k(*case)


def test_bootstrap_covers_the_truth_about_95_times_of_100():
    rng = random.Random(1)
    covered = 0
    for seed in range(200):
        sample = [float(rng.random() < 0.4) for _ in range(89)]
        estimate = bootstrap(sample, seed=seed, resamples=400)
        covered += estimate.low <= 0.4 <= estimate.high
    assert 180 <= covered <= 199


def test_bootstrap_is_the_same_for_the_same_seed():
    values = [0.0, 0.5, 1.0, 1.0, 0.2]
    assert bootstrap(values, seed=3) == bootstrap(values, seed=3)


def test_attempts_of_one_task_are_not_counted_as_independent():
    """Five copies of the same outcome must not make the interval narrower than one attempt's."""
    rates = [1.0, 0.0] * 20
    once = mean_of_tasks(rates, [1] * 40)
    five = mean_of_tasks(rates, [5] * 40)
    assert math.isclose(once.high - once.low, five.high - five.low, rel_tol=0.15)


def test_all_passed_is_not_certainty():
    estimate = mean_of_tasks([1.0] * 10, [5] * 10)
    assert estimate.low < 0.8
    assert estimate.high == 1.0


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_equal_values_are_not_certainty(value):
    few, many = bootstrap([value] * 2), bootstrap([value] * 50)
    assert few.mean == pytest.approx(value)
    assert few.high - few.low > 0.5
    assert few.high - few.low > many.high - many.low > 0


def test_mcnemar_is_the_sign_test():
    assert mcnemar(0, 0) == 1.0
    assert math.isclose(mcnemar(1, 9), 2 * (1 + 10) / 2**10)
    assert mcnemar(5, 5) == 1.0
