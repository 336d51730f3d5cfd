"""From noisy counts to shares and weights: least squares, sums, floors (R14)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pegsynth.mechanisms.marginals import (
    CAP_RESOLUTION,
    URN_RESOLUTION,
    Marginals,
    integer_weights,
    marginals_from_noisy,
    noisy_marginals,
    prior_weights,
    seed_weights,
)
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream

NOISY = st.lists(st.integers(-50, 200), min_size=1, max_size=6).map(
    lambda line: np.array(line, dtype=np.int64)
)


def projected(counts, total):
    """The nearest point of the simplex of sum `total`, by brute force over its support."""
    best, distance = None, np.inf
    for mask in range(1, 1 << len(counts)):
        kept = np.array([mask >> i & 1 for i in range(len(counts))], dtype=bool)
        point = np.zeros(len(counts))
        point[kept] = counts[kept] - (counts[kept].sum() - total) / kept.sum()
        off = np.sum((point - counts) ** 2)
        if point.min() >= -1e-9 and off < distance:
            best, distance = point, off
    return best


@given(st.lists(NOISY, min_size=1, max_size=4))
def test_shares_are_the_least_squares_projection(noisy):
    found = marginals_from_noisy(noisy)
    precision = np.array([1 / len(line) for line in noisy])
    sums = np.array([line.sum() for line in noisy])
    assert found.total == pytest.approx(max(precision @ sums / precision.sum(), 1))
    for line, shares in zip(noisy, found.shares, strict=True):
        assert shares.min() >= 0
        assert shares.sum() == pytest.approx(1)
        expected = projected(line.astype(float), found.total) / found.total
        assert shares == pytest.approx(expected, abs=1e-9)


def test_an_optimizer_finds_the_same_projection():
    line = np.array([40, -7, 3, 12, 0], dtype=np.int64)
    (shares,) = marginals_from_noisy([line]).shares
    total = line.sum()
    solved = minimize(
        lambda x: np.sum((x - line) ** 2),
        np.full(5, total / 5),
        bounds=[(0, None)] * 5,
        constraints={"type": "eq", "fun": lambda x: x.sum() - total},
        tol=1e-12,
    )
    assert shares * total == pytest.approx(solved.x, abs=1e-4)


def test_counts_that_noise_made_negative_still_give_shares():
    found = marginals_from_noisy([np.array([-5, -9]), np.array([-1, -2, -3])])
    assert found.total == 1
    assert all(line.sum() == pytest.approx(1) and line.min() >= 0 for line in found.shares)


def test_noise_is_paid_for_and_cut_along_the_features():
    counts = [np.array([900, 100]), np.array([0, 500, 500])]
    event = NoisyCounts.laplace(0.01, cells=2, purpose="marginals")
    found = noisy_marginals(counts, event, RandomStream(1))
    assert found.total == pytest.approx(1000)
    assert [line.tolist() for line in found.shares] == [
        pytest.approx([0.9, 0.1]),
        pytest.approx([0, 0.5, 0.5]),
    ]


@settings(max_examples=50)
@given(st.lists(NOISY, min_size=1, max_size=4), st.sampled_from([CAP_RESOLUTION, URN_RESOLUTION]))
def test_weights_are_positive_integers_close_to_the_shares(noisy, resolution):
    found = marginals_from_noisy(noisy)
    for weights in (prior_weights(found, resolution), seed_weights(found)):
        for line in weights:
            assert line.dtype == np.uint64
            assert line.min() >= 1
    for shares, prior in zip(found.shares, prior_weights(found, resolution), strict=True):
        wanted = shares * resolution * len(shares)
        assert np.all(np.abs(prior - np.maximum(wanted, 1)) <= 0.5 + 1e-9)
        assert int(prior.sum()) <= (resolution + 1) * len(shares)
    for shares, line in zip(found.shares, seed_weights(found), strict=True):
        assert line / line.sum() == pytest.approx(shares, abs=1e-4)


def test_a_floor_keeps_alpha_positive_on_categories_that_noise_emptied():
    weights = integer_weights(np.array([1.0, 0.0, 0.0]), 48)
    assert weights.tolist() == [48, 1, 1]
    assert prior_weights(Marginals((np.array([1.0, 0.0]),), 10.0), 16)[0].tolist() == [32, 1]
