"""Means, differences and ratios with intervals, against SciPy's own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pegsynth.study.intervals import difference, mean, ratio


@pytest.fixture
def samples() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    return generator.normal(3, 1, 12), generator.normal(2, 0.3, 7)


def test_mean_has_the_t_interval(samples) -> None:
    first, _ = samples
    found = mean(first)
    low, high = stats.t.interval(0.95, 11, first.mean(), stats.sem(first))
    assert (found.value, found.count) == (pytest.approx(first.mean()), 12)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))


def test_difference_has_welchs_interval(samples) -> None:
    first, second = samples
    found = difference(first, second)
    low, high = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(low), pytest.approx(high))
    assert found.count == 7


def test_ratio_is_the_delta_method_on_the_logarithm(samples) -> None:
    first, second = samples
    found = ratio(first, second)
    variances = [stats.sem(s) ** 2 / s.mean() ** 2 for s in samples]
    freedom = sum(variances) ** 2 / (variances[0] ** 2 / 11 + variances[1] ** 2 / 6)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(variances))
    assert found.value == pytest.approx(first.mean() / second.mean())
    assert math.log(found.high / found.value) == pytest.approx(half)
    assert math.log(found.value / found.low) == pytest.approx(half)


def test_ratio_covers_the_true_ratio() -> None:
    """Of 400 intervals of level 95 % about 20 miss; 45 or more would be one in a million."""
    generator = np.random.default_rng(8)
    missed = 0
    for _ in range(400):
        found = ratio(generator.gamma(20, 1.0, 15), generator.gamma(20, 0.5, 15))
        missed += not found.low < 2.0 < found.high
    assert missed < 45


def test_missing_values_are_left_out() -> None:
    found = mean([1.0, math.nan, 3.0])
    assert (found.value, found.count) == (2.0, 2)
    assert not mean([math.nan]).known
    assert not mean([]).known


def test_one_repeat_has_a_value_and_no_interval() -> None:
    for found in (mean([2.0]), difference([2.0], [1.0]), ratio([2.0], [1.0])):
        assert found.known
        assert math.isnan(found.low)
        assert not found.above(-100)
        assert not found.below(100)


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = difference([2.0, 2.0, 2.0], [1.0, 1.0])
    assert (found.low, found.high) == (1.0, 1.0)


def test_there_is_no_ratio_to_nothing() -> None:
    assert not ratio([1.0, 2.0], [0.0, 0.0]).known
