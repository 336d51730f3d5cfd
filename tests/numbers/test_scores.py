"""Kernels of scores inside bins, each against a slow twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from pegsynth.kernels import scores as kernels
from pegsynth.kernels.compiled import as_kernel
from pegsynth.random import RandomStream

FINITE = st.floats(-6, 6)


@given(st.floats(1e-300, 1 - 1e-12))
def test_normal_quantiles_are_those_of_scipy(share):
    assert kernels.normal_quantile(share) == pytest.approx(special.ndtri(share), rel=2e-9, abs=2e-9)


@given(st.floats(-8, 8), st.floats(0.02, 4), FINITE, st.floats(0.01, 6), st.floats(0, 1 - 1e-9))
def test_truncated_draws_are_quantiles_between_the_bounds(mean, spread, low, width, unit):
    high = low + width
    value = kernels.truncated_normal(mean, spread, low, high, unit)
    assert low <= value <= high
    a, b = (low - mean) / spread, (high - mean) / spread
    if abs(a) < 20 and abs(b) < 20 and unit > 1e-6:
        expected = stats.truncnorm.ppf(unit, a, b, loc=mean, scale=spread)
        assert value == pytest.approx(expected, abs=1e-5)


def test_a_bin_that_the_mean_is_far_from_is_not_left():
    assert kernels.truncated_normal(50.0, 0.1, -1.0, 1.0, 0.5) == pytest.approx(1.0, abs=0.01)
    assert kernels.truncated_normal(-50.0, 0.1, -1.0, 1.0, 0.5) == pytest.approx(-1.0, abs=0.01)
    assert as_kernel(kernels.normal_quantile)(0.975) == pytest.approx(1.959964, abs=1e-6)


def rows(count, seed=0):
    """Rows of two categorical features and three numbers, some of them missing."""
    generator = np.random.default_rng(seed)
    positions = np.zeros((count, 3), dtype=np.int32)
    positions[:, 1] = generator.integers(1, 4, count)
    positions[:, 2] = generator.integers(4, 6, count)
    positions[generator.random(count) < 0.2, 2] = -1
    bins = generator.integers(-1, 4, (count, 3)).astype(np.int32)
    return positions, bins, generator.normal(size=(count, 3))


def design_matrix(positions, bins, scores, target):
    """Slow twin: all columns written out."""
    matrix = np.zeros((len(bins), 6 + 3))
    for row in range(len(bins)):
        for column in positions[row]:
            if column >= 0:
                matrix[row, column] = 1
        for number in range(3):
            if number != target and bins[row, number] >= 0:
                matrix[row, 6 + number] = scores[row, number]
    return matrix[bins[:, target] >= 0]


@pytest.mark.parametrize("target", [0, 1, 2])
def test_moments_are_those_of_the_design_matrix(target):
    positions, bins, scores = rows(200)
    gram, right = np.zeros((9, 9)), np.zeros(9)
    kernels.add_pairs(positions, bins, target, gram)
    square = kernels.add_moments(positions, bins, scores, target, 6, gram, right)
    matrix = design_matrix(positions, bins, scores, target)
    wanted = scores[bins[:, target] >= 0, target]
    assert np.allclose(np.triu(gram), np.triu(matrix.T @ matrix))
    assert not np.tril(gram, -1).any()
    assert np.allclose(right, matrix.T @ wanted)
    assert square == pytest.approx(wanted @ wanted)


def test_draws_are_those_of_a_slow_sweep():
    positions, bins, scores = rows(60, seed=1)
    generator = np.random.default_rng(2)
    weights, spreads = generator.normal(scale=0.3, size=(3, 9)), np.array([0.5, 0.9, 0.2])
    starts = np.array([0, 5, 10])
    bounds = np.tile([-8.0, -0.7, 0.0, 0.7, 8.0], 3)
    words = RandomStream("scores").substream().take(60 * 6).reshape(60, 6)
    expected = scores.copy()
    for row in range(60):
        for sweep in range(2):
            for number in range(3):
                if bins[row, number] < 0:
                    continue
                mean = sum(weights[number, c] for c in positions[row] if c >= 0)
                for other in range(3):
                    if other != number and bins[row, other] >= 0:
                        mean += weights[number, 6 + other] * expected[row, other]
                place = starts[number] + bins[row, number]
                unit = int(words[row, 3 * sweep + number]) / 2**64
                a, b = ((bounds[place + i] - mean) / spreads[number] for i in (0, 1))
                expected[row, number] = stats.truncnorm.ppf(unit, a, b, mean, spreads[number])
    kernels.draw_scores(
        positions, bins, starts, bounds, weights, spreads, words, np.empty(3), scores
    )
    seen = bins >= 0
    assert np.allclose(scores[seen], expected[seen], atol=1e-5)


@given(
    st.lists(st.floats(-3, 3), max_size=8),
    st.lists(
        st.tuples(st.integers(-1, 1), st.floats(-3, 3), st.integers(0, 2**64 - 1)), min_size=1
    ),
)
def test_ranks_count_the_known_scores_below(known, drawn):
    known = np.sort(np.array(known))
    starts = np.array([0, len(known), len(known)])
    bins = np.array([each[0] for each in drawn], dtype=np.int32)
    scores = np.array([each[1] for each in drawn])
    words = np.array([each[2] for each in drawn], dtype=np.uint64)
    ranks = np.empty(len(drawn))
    kernels.ranks_in_bins(bins, scores, starts, known, words, ranks)
    for place, (each, score, word) in enumerate(drawn):
        if each < 0:
            assert ranks[place] == 0
        else:
            inside = known if each == 0 else known[:0]
            unit = math.floor(word / 2**11) / 2**53
            assert ranks[place] == pytest.approx(
                min((np.sum(inside < score) + unit) / (len(inside) + 1), 1 - 2**-53)
            )
            assert 0 <= ranks[place] < 1
