"""Distributions of numbers, against NumPy and SciPy and against rows written out."""

import numpy as np
import pytest
from scipy import stats

from pegsynth.evaluation.utility.empirical import (
    distributions,
    kolmogorov,
    kolmogorov_floor,
    wasserstein,
    wasserstein_floor,
)

RNG = np.random.default_rng(5)
COLUMNS = {
    "whole": RNG.integers(0, 9, 300).astype(float),
    "heavy": np.exp(RNG.normal(0, 2, 400)),
    "one": np.full(7, 3.0),
    "signed": RNG.normal(-5, 3, 250).round(1),
}


def law(values, weights=None):
    return distributions(values, [weights])[0]


@pytest.mark.parametrize("name", COLUMNS)
def test_moments_and_quantiles_are_those_of_numpy(name):
    values = COLUMNS[name]
    found = law(values)
    assert found.mean == pytest.approx(values.mean())
    assert found.sd == pytest.approx(values.std(), abs=1e-12)
    assert found.size == pytest.approx(np.abs(values).mean())
    levels = [0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0]
    expected = np.quantile(values, levels, method="inverted_cdf")
    assert found.quantile(levels).tolist() == expected.tolist()
    assert found.n == len(values)


@pytest.mark.parametrize("first", COLUMNS)
@pytest.mark.parametrize("second", COLUMNS)
def test_distances_are_those_of_scipy(first, second):
    a, b = COLUMNS[first], COLUMNS[second]
    assert kolmogorov(law(a), law(b)) == pytest.approx(stats.ks_2samp(a, b).statistic)
    assert wasserstein(law(a), law(b)) == pytest.approx(stats.wasserstein_distance(a, b))


def test_missing_numbers_are_left_out():
    values = np.array([1.0, np.nan, 3.0])
    assert law(values).mean == 2
    assert distributions(np.array([np.nan])) == [None]


def test_weights_are_rows_that_are_repeated():
    values = np.array([5.0, 1.0, np.nan, 1.0, 2.0])
    counts = np.array([2, 1, 9, 3, 0])
    weighted = law(values, counts.astype(float))
    known = ~np.isnan(values)
    plain = law(np.repeat(values[known], counts[known]))
    assert weighted.mean == pytest.approx(plain.mean)
    assert weighted.sd == pytest.approx(plain.sd)
    assert weighted.quantile([0.1, 0.5, 0.7]).tolist() == plain.quantile([0.1, 0.5, 0.7]).tolist()
    assert kolmogorov(weighted, plain) == pytest.approx(0, abs=1e-12)
    assert weighted.n == pytest.approx(6**2 / (4 + 1 + 9))
    assert distributions(values, [np.zeros(5)]) == [None]


def test_equal_weights_say_as_much_as_rows():
    assert law(COLUMNS["heavy"], np.full(400, 0.3)).n == pytest.approx(400)


def test_heaps_stand_out_of_what_lies_around_them():
    values = np.concatenate([np.linspace(10, 90, 950), np.full(50, 40.0), np.zeros(30)])
    assert law(values).heaps().tolist() == [40.0]
    # Every whole number is as common as the next: none is a heap, and of few numbers none is.
    assert law(np.repeat(np.arange(80.0), 5)).heaps().size == 0
    assert law(np.array([1.0] * 90 + [2.0] * 5 + [3.0] * 5)).heaps().size == 0


def test_floors_are_what_a_bootstrap_has():
    """Means over 400 bootstraps are within 5 standard errors of the floor, or below (atoms)."""
    values = RNG.gamma(1.0, 2.0, 500)
    whole, rng = law(values), np.random.default_rng(3)
    found = np.array(
        [
            [kolmogorov(whole, drawn), wasserstein(whole, drawn)]
            for drawn in (law(rng.choice(values, 500)) for _ in range(400))
        ]
    )
    mean, error = found.mean(axis=0), found.std(axis=0) / 20
    expected = np.array([kolmogorov_floor(500), wasserstein_floor(whole, 500)])
    assert np.abs(mean - expected)[1] < 5 * error[1]
    assert 0.9 * expected[0] < mean[0] < expected[0] + 5 * error[0]
