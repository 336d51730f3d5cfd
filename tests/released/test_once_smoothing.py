"""Estimates from noisy counts against slow twins: projection, _estimates, shrinkage, fitting.

All of it is post-processing, so nothing here is about privacy. Noise is seeded.
"""

from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.methods.released import _estimates
from pegsynth.methods.released._estimates import fitted_to, on_simplex, shrunken, smoothed, tilted

# Projection on the simplex


def projected_slowly(noisy, variance, total):
    """The quadratic programme, by trying which cells are above zero."""
    cells = range(len(noisy))
    supports = chain.from_iterable(combinations(cells, n) for n in range(1, len(noisy) + 1))
    best, found = np.inf, None
    for support in map(list, supports):
        multiplier = (noisy[support].sum() - total) / variance[support].sum()
        trial = np.zeros(len(noisy))
        trial[support] = noisy[support] - multiplier * variance[support]
        cost = ((trial - noisy) ** 2 / variance).sum()
        if trial.min() >= 0 and cost < best:
            best, found = cost, trial
    return found


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_the_projection_is_the_quadratic_programme(seed, cells):
    words = np.random.default_rng(seed)
    noisy = words.normal(3, 8, cells)
    variance = words.uniform(0.5, 9, cells)
    total = float(words.uniform(1, 60))
    expected = projected_slowly(noisy, variance, total)
    assert on_simplex(noisy, variance, total) == pytest.approx(expected, abs=1e-6)


def test_the_projection_by_hand():
    # 1 too many, taken from the cells that are above zero: (7, 4, -1) -> (6.5, 3.5, 0).
    assert on_simplex(np.array([7.0, 4.0, -1.0]), 1.0, 10.0) == pytest.approx([6.5, 3.5, 0.0])
    # A cell of three times the variance gives three times as much.
    found = on_simplex(np.array([7.0, 5.0]), np.array([1.0, 3.0]), 8.0)
    assert found == pytest.approx([6.0, 2.0])
    # What is negative throughout still becomes counts of the total.
    assert on_simplex(np.array([-50.0, -52.0]), 1.0, 4.0) == pytest.approx([3.0, 1.0])


# Smoothing of ordered counts


@pytest.mark.parametrize("size", [9, 16, 23, 100])
def test_without_shrinkage_the_transform_gives_back_what_went_in(monkeypatch, size):
    monkeypatch.setattr(_estimates, "_shrunken", lambda coefficients, deviation: coefficients)
    noisy = np.random.default_rng(size).normal(0, 5, size)
    assert smoothed(noisy, 1.0) == pytest.approx(noisy)


def rough(size):
    return np.where(np.arange(size) % 2, 1e6, 0.0)


@pytest.mark.parametrize("size", [12, 40])
@pytest.mark.parametrize(
    "shape",
    [lambda n: np.full(n, 70.0), lambda n: 10.0 * np.arange(n), rough],
    ids=["constant", "linear", "rough"],
)
def test_tables_are_left_alone_within_their_noise(size, shape):
    true = shape(size)
    noisy = true + np.random.default_rng(size).normal(0, 10, size)
    off = smoothed(noisy, 10.0) - true
    assert np.abs(off).max() < 4 * 10
    assert np.sqrt((off**2).mean()) < 1.1 * np.sqrt(((noisy - true) ** 2).mean())


def test_a_smooth_table_loses_most_of_its_noise():
    places = np.arange(64)
    true = 1000 * np.exp(-((places - 30) ** 2) / 300)
    errors = []
    for seed in range(20):
        noisy = true + np.random.default_rng(seed).normal(0, 60, 64)
        errors.append([np.abs(each - true).mean() for each in (smoothed(noisy, 60.0), noisy)])
    after, before = np.mean(errors, axis=0)
    assert after < 0.6 * before


def test_shuffled_categories_would_be_harmed_less_than_helped():
    """A table without any order keeps its large steps: no twin of a moving average."""
    true = np.random.default_rng(8).permutation(np.geomspace(1, 3000, 64))
    noisy = true + np.random.default_rng(9).normal(0, 20, 64)
    averaged = np.convolve(noisy, np.full(3, 1 / 3), mode="same")
    ours = np.abs(smoothed(noisy, 20.0) - true).mean()
    assert ours < 1.5 * np.abs(noisy - true).mean()
    assert ours < 0.1 * np.abs(averaged - true).mean()


# Shrinkage towards what was expected


@given(st.integers(0, 2**32 - 1))
def test_shrunken_counts_lie_between_noisy_and_expected(seed):
    words = np.random.default_rng(seed)
    expected = words.gamma(0.5, 40, 30)
    noisy = np.round(expected * words.uniform(0.2, 3) + words.normal(0, 8, 30))
    found = shrunken(noisy, expected, 8.0)
    low, high = np.minimum(np.maximum(noisy, 0), expected), np.maximum(noisy, expected)
    assert (found >= low - 1e-9).all()
    assert (found <= high + 1e-9).all()
    unseen = expected <= 0.05 * 8
    assert found[unseen].tolist() == expected[unseen].tolist()


def test_nothing_but_noise_stays_near_what_was_expected():
    words = np.random.default_rng(2)
    expected = np.full(200, 50.0)
    noisy = expected + words.normal(0, 40, 200)
    moved = np.abs(shrunken(noisy, expected, 40.0) - expected).mean()
    assert moved < 0.1 * np.abs(noisy - expected).mean()


def test_what_stands_out_of_the_noise_is_believed():
    words = np.random.default_rng(3)
    expected = np.full(200, 50.0)
    true = 50.0 * np.exp(words.normal(0, 1, 200))
    noisy = true + words.normal(0, 1, 200)
    assert np.abs(shrunken(noisy, expected, 1.0) - noisy).mean() < 0.5


def test_a_table_of_which_nothing_is_expected_stays_so():
    assert shrunken(np.array([90.0, 5.0]), np.zeros(2), 3.0).tolist() == [0.0, 0.0]


def mixture_slowly(values, variance, faith, iterations=30):
    """Expectation-maximisation cell by cell, written out."""
    components, cells = variance.shape
    weights = [0.5] + [0.5 / (components - 1)] * (components - 1)
    odds = None
    for turn in range(iterations + 1):
        odds = []
        for cell in range(cells):
            line = [
                weights[k]
                * np.exp(-0.5 * values[cell] ** 2 / variance[k, cell])
                / np.sqrt(variance[k, cell])
                for k in range(components)
            ]
            odds.append([value / sum(line) for value in line])
        if turn < iterations:
            weights = [sum(line[k] for line in odds) for k in range(components)]
            weights[0] += faith
            weights = [weight / sum(weights) for weight in weights]
    return np.array(odds).T


@pytest.mark.parametrize("faith", [0.0, 1.0])
def test_the_mixture_is_fitted_by_expectation_maximisation(faith):
    words = np.random.default_rng(4)
    values = words.normal(0, 2, 12)
    variance = np.array([1.0, 4.0, 25.0])[:, None] * words.uniform(0.8, 1.2, 12)
    found = _estimates._mixture(values, variance, faith=faith)
    assert found == pytest.approx(mixture_slowly(values, variance, faith), abs=1e-9)
    assert found.sum(axis=0) == pytest.approx(np.ones(12))


# Fitting to margins


def test_a_table_is_fitted_to_its_margins():
    words = np.random.default_rng(5)
    table = words.uniform(0.5, 2, (3, 4))
    wanted = words.uniform(1, 5, (3, 4))
    margins = {(0,): wanted.sum(axis=1), (1,): wanted.sum(axis=0)}
    found = fitted_to(table, margins, passes=200)
    assert found.sum(axis=1) == pytest.approx(margins[0,])
    assert found.sum(axis=0) == pytest.approx(margins[1,])
    # Odds ratios stay as they were.
    ratio = found[:2, :2] / table[:2, :2]
    assert ratio[0, 0] * ratio[1, 1] == pytest.approx(ratio[0, 1] * ratio[1, 0])


def test_one_scaling_by_hand_and_pairs_of_a_triple():
    found = fitted_to(np.array([[1.0, 3.0], [2.0, 2.0]]), {(0,): np.array([8.0, 2.0])}, passes=1)
    assert found.tolist() == [[2.0, 6.0], [1.0, 1.0]]
    cube = np.ones((2, 2, 2))
    pair = np.array([[4.0, 0.0], [2.0, 8.0]])
    found = fitted_to(cube, {(0, 2): pair}, passes=1)
    assert found.sum(axis=1).tolist() == pair.tolist()
    assert found[0, 0].tolist() == [2.0, 0.0]


def test_what_is_empty_stays_empty():
    found = fitted_to(np.array([[0.0, 0.0], [1.0, 3.0]]), {(0,): np.array([5.0, 8.0])})
    assert found.tolist() == [[0.0, 0.0], [2.0, 6.0]]


@pytest.mark.parametrize("seed", range(40))
def test_two_margins_are_met_as_by_scaling_the_table_in_turn(seed):
    """Pairs are scaled by two lines of factors; the twin scales every cell at every turn."""
    generator = np.random.default_rng(seed)
    shape = tuple(generator.integers(1, 8, 2).tolist())
    table = 10.0 ** generator.uniform(-20, 4, shape) * (generator.random(shape) < 0.6)
    rows, columns = (10.0 ** generator.uniform(-6, 5, size) for size in shape)
    columns *= rows.sum() / columns.sum()
    for margins in ({(0,): rows, (1,): columns}, {(1,): columns, (0,): rows}):
        twin = table.copy()
        for _ in range(20):
            for (axis,), margin in margins.items():
                sums = twin.sum(axis=1 - axis)
                factor = np.divide(margin, sums, out=np.zeros_like(sums), where=sums > 0)
                twin = twin * np.expand_dims(factor, 1 - axis)
        assert fitted_to(table, margins) == pytest.approx(twin, rel=1e-9, abs=1e-9 * rows.sum())


def test_sums_next_to_nothing_make_no_infinite_factor():
    table = np.array([[1e-310, 0.0], [0.0, 3.0]])
    margins = {(0,): np.array([5.0, 8.0]), (1,): np.array([5.0, 8.0])}
    assert fitted_to(table, margins) == pytest.approx(np.array([[0.0, 0.0], [0.0, 8.0]]))


@pytest.mark.parametrize("dimensions", [2, 3])
def test_a_table_stays_where_margins_leave_nothing_of_it(dimensions):
    """So loud noise at a panel without rows; the rows then had no table to be exchanged by."""
    table = np.zeros((2,) * dimensions)
    table[1, 0] = 2855.5
    ends = {(axis,): np.array([0.0, 40.0]) for axis in range(dimensions)}
    scores = {feature: np.array([-1.4, 0.7]) for feature in range(dimensions)}
    wanted = dict.fromkeys(combinations(range(dimensions), 2), 34500483.5)
    assert not fitted_to(table, ends).any()
    found = tilted(table, range(dimensions), wanted, scores, ends)
    assert found.tolist() == table.tolist()
