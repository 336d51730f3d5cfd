"""What chance can do, against laws that are enumerated."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from pegsynth.evaluation.problems import (
    bernstein,
    function_allowance,
    mean_explained,
    rows_judged,
    share_explained,
)

ALPHAS = (0.5, 0.1, 0.01, 1e-4)
LAWS = {
    "even": ([0.0, 1.0, 2.0], [0.25, 0.5, 0.25]),
    "skewed": ([0.0, 1.0, 100.0], [0.6, 0.39, 0.01]),
    "below": ([-50.0, 3.0, 4.0], [0.02, 0.5, 0.48]),
}


def outcomes(values, shares, n):
    """Yield every multiset of n draws: its counts and its probability."""
    for first in range(n + 1):
        for second in range(n + 1 - first):
            counts = np.array([first, second, n - first - second])
            yield counts, float(stats.multinomial.pmf(counts, n, shares))


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("n", [1, 5, 30])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_mean_is_blamed_no_more_often_than_stated(name, n, alpha):
    values, shares = map(np.array, LAWS[name])
    blamed = sum(
        chance
        for counts, chance in outcomes(values, shares, n)
        if not mean_explained(values, shares, float(counts @ values) / n, n, alpha)
    )
    assert blamed <= alpha


def test_the_normal_law_would_blame_too_often():
    """The twin: a rule by the normal quantile blames the skewed law far more often than stated."""
    values, shares = map(np.array, LAWS["skewed"])
    mean = shares @ values
    deviation = math.sqrt(shares @ (values - mean) ** 2 / 30)
    limit = -stats.norm.ppf(1e-4 / 2) * deviation
    blamed = sum(
        chance
        for counts, chance in outcomes(values, shares, 30)
        if abs(counts @ values / 30 - mean) > limit
    )
    assert blamed > 10 * 1e-4


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_share_is_blamed_no_more_often_than_stated(share, alpha):
    for n in (1, 7, 60):
        blamed = sum(
            stats.binom.pmf(k, n, share)
            for k in range(n + 1)
            if not share_explained(share, k / n, n, alpha)
        )
        assert blamed <= alpha * (1 + 1e-9)


def test_what_is_far_off_is_blamed():
    values, shares = map(np.array, LAWS["even"])
    assert not mean_explained(values, shares, 1.2, 1000, 1e-5)
    assert not mean_explained(values, shares, 0.8, 1000, 1e-5)
    assert mean_explained(values, shares, 1.05, 1000, 1e-5)
    assert not mean_explained(values, shares, 2.1, 3, 0.5)
    assert not share_explained(0.01, 0.0, 2500, 1e-5)
    assert not share_explained(0.0, 0.001, 10, 1e-5)
    # Of a law without spread nothing can be off by chance.
    assert mean_explained(np.array([3.0]), np.array([1.0]), 3.0, 5, 0.1)
    assert not mean_explained(np.array([3.0]), np.array([1.0]), 3.1, 5, 0.1)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_distribution_function_leaves_its_band_no_more_often_than_stated(alpha):
    values, shares = map(np.array, LAWS["even"])
    n = 20
    limit = function_allowance(n, alpha)
    blamed = sum(
        chance
        for counts, chance in outcomes(values, shares, n)
        if np.abs(np.cumsum(counts / n) - np.cumsum(shares)).max() > limit
    )
    assert blamed <= alpha


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("name", LAWS)
def test_bernstein_holds(name, alpha):
    values, shares = map(np.array, LAWS[name])
    mean = shares @ values
    limit = bernstein(shares @ (values - mean) ** 2, np.abs(values - mean).max(), 12, alpha)
    blamed = sum(
        chance
        for counts, chance in outcomes(values, shares, 12)
        if abs(counts @ values / 12 - mean) > limit
    )
    assert blamed <= alpha


def test_fresh_data_differ_by_both_errors():
    assert rows_judged(100, 100) == 50
    assert all(rows_judged(n, m) < min(n, m) for n, m in itertools.product((10, 1000), repeat=2))
