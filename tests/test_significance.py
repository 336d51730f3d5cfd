"""The checks of randomised tests keep their false-alarm rate and have power."""

import numpy as np
import pytest

from significance import ALPHA, bonferroni, fit_p_value, fits, outcomes_fit


def test_p_values_are_uniform_enough_under_the_null():
    """1,000 seeded multinomials: the share of p-values below 1% is near 1%."""
    generator = np.random.default_rng(5)
    shares = [0.5, 0.25, 0.125, 0.125]
    draws = generator.multinomial(2000, shares, size=1000)
    share_below = np.mean([fit_p_value(d, shares) < 0.01 for d in draws])
    assert 0.002 < share_below < 0.022


def test_a_shifted_distribution_is_rejected():
    assert fits([500, 500], [0.5, 0.5])
    assert not fits([600, 400], [0.5, 0.5])


def test_rare_cells_are_pooled_and_impossible_ones_reject():
    assert fits([9990, 5, 5], [0.999, 0.0005, 0.0005])
    assert not fits([9999, 1], [1.0, 0.0])
    assert not outcomes_fit(["a", "b"], {"a": 1.0})
    assert outcomes_fit(["a"] * 50 + ["b"] * 50, {"a": 0.5, "b": 0.5})


def test_a_pool_that_is_still_rare_has_a_test_of_its_own():
    """What is seen once in ten thousand runs is no reason to reject; three of it are."""
    shares = [0.5, 0.5 - 4e-10, 2e-10, 2e-10]
    assert fit_p_value([100_000, 99_999, 1, 0], shares) == pytest.approx(2 * 8e-5, rel=1e-3)
    assert not fits([100_000, 99_997, 1, 2], shares)
    assert not fits([101_000, 97_999, 1, 0], shares)
    assert not fits([9_900, 100], [0.9999, 0.0001])


def test_probabilities_must_sum_to_one():
    with pytest.raises(ValueError, match="sum to 1"):
        fit_p_value([1, 1], [0.5, 0.6])


def test_bonferroni_divides_the_rate():
    assert bonferroni(4) == ALPHA / 4
