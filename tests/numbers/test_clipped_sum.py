"""Clipped sums: what a row adds, what shapes make of them, and sizes that nobody has."""

from __future__ import annotations

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.auditing.measured_codecs import exact_counts
from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.clipped_sum import STEPS, agreeing, steps_of, without_sum
from pegsynth.codec.estimate import cell_masses
from pegsynth.codec.measured_numbers import constant_numbers, measure, settle
from pegsynth.codec.number_grid import grid_of
from pegsynth.codec.tails import visible_masses
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released._shape_replicates import replicated_shapes, reweighed
from pegsynth.privacy import Allowance
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

WHOLE = Feature("x", kind="numeric", edges="private", dtype="int64")
REAL = Feature("x", kind="numeric", edges="private", dtype="double")


def measured(values, amount, feature=WHOLE, *, seed="sum", route="zcdp"):
    budget_filter = PrivacyFilter(Allowance(route, Fraction(amount)), RandomStream(seed))
    counts = exact_counts(feature, values.tolist())
    return measure(counts, feature, budget_filter, 1.0, rows=len(values))


def gains(rows=20_000, seed=1):
    """Return amounts that are 0 in most rows, with a heap far above the others."""
    words = np.random.default_rng(seed)
    amounts = np.minimum(np.floor(np.exp(words.normal(8.5, 0.8, rows))), 50_000.0)
    amounts[words.random(rows) < 0.05] = 99_999.0
    amounts[words.random(rows) < 0.7] = 0.0
    return amounts


@given(st.sampled_from([WHOLE, REAL]), st.data())
@settings(deadline=None, max_examples=40)
def test_a_row_adds_at_most_the_steps_whatever_its_cell(feature, data):
    grid = grid_of(feature)
    cells = st.integers(0, grid.cells - 1)
    centre, bound = data.draw(st.tuples(cells, cells).filter(lambda pair: pair[0] != pair[1]))
    steps = data.draw(st.sampled_from([1, 7, STEPS]))
    added = steps_of(grid, centre, bound, steps)
    assert len(added) == grid.cells
    assert np.abs(added).max() == steps
    assert added[centre] == 0
    assert abs(added[bound]) == steps


def test_the_mean_agrees_with_the_sum_where_counts_leave_it_open():
    values = gains()
    tree = measured(values, Fraction(1, 400))
    settled = settle(Schema((WHOLE,)), {"x": tree}, 6)
    feature, shape = settled.schema["x"], settled.shapes["x"]
    bins = np.searchsorted(feature.edges[1:-1], values, side="right")
    counts = np.bincount(bins, minlength=feature.bin_count).astype(float)

    def mean(held):
        ranks = (np.arange(2_000) + 0.5) / 2_000
        means = [held.values(np.full(2_000, b), ranks).mean() for b in range(feature.bin_count)]
        return float(np.average(means, weights=counts))

    tilted = agreeing(shape, feature, counts)
    level = tree.clipped_sum
    grid = grid_of(WHOLE)
    centre, bound, rows, steps = level.nodes.tolist()
    reach = abs(grid.edges[bound] - grid.edges[centre])
    noise = level.deviation / steps / rows * reach
    assert rows == len(values)
    # 6 deviations of the noise on the sum: a false alarm in 5e8 runs.
    assert abs(mean(tilted) - values.mean()) < 6 * noise
    # A sum that says more than its noise moves the mean there, and bins stay whole.
    high = replace(level, counts=level.counts + int(40 * level.deviation))
    source = replace(shape.source, tree=replace(tree, levels=(*tree.levels[:-1], high)))
    moved = agreeing(replace(shape, source=source), feature, counts)
    assert mean(moved) > mean(tilted) + noise
    assert moved.reached[moved.starts[1:] - 1].tolist() == list(range(1, feature.bin_count + 1))
    assert agreeing(without_sum(shape), feature, counts).reached.tolist() == shape.reached.tolist()
    assert agreeing(shape, feature, counts * 0).reached.tolist() == shape.reached.tolist()


@pytest.mark.parametrize("route", ["pure", "zcdp"])
@pytest.mark.parametrize("amount", [Fraction(1, 10**5), Fraction(1, 100), 1])
def test_no_value_is_beyond_twice_the_largest(route, amount):
    """Of 120 columns each is wrong with a chance of 1e-4; noise is seeded."""
    for seed in range(20):
        values = gains(5_000, seed) * np.where(
            np.random.default_rng(seed).random(5_000) < 0.1, -1, 1
        )
        tree = measured(values, amount, seed=f"{seed} {amount}", route=route)
        masses, _ = cell_masses(tree, grid_of(WHOLE))
        held = np.flatnonzero(masses)
        ends = grid_of(WHOLE).edges[held], grid_of(WHOLE).edges[held + 1] - 1
        assert max(abs(ends[0].min()), abs(ends[1].max())) <= 2 * np.abs(values).max()


def test_an_octave_joins_those_that_stand_out_at_less_than_one_by_itself():
    noisy, sides, sizes = np.zeros(120), np.ones(120, dtype=np.int64), 2.0 ** np.arange(120)
    noisy[10], noisy[11] = 40.0, 4.6
    assert visible_masses(noisy, 1.0, sides, sizes, laplace=False)[11] > 0
    noisy[11], noisy[60] = 0.0, 4.6
    assert visible_masses(noisy, 1.0, sides, sizes, laplace=False)[60] == 0
    noisy[60] = 6.5
    assert visible_masses(noisy, 1.0, sides, sizes, laplace=False)[60] > 0


def test_what_the_budget_cannot_carry_is_constant_and_named():
    for feature in (WHOLE, REAL, replace(WHOLE, dtype="double", decimals=2)):
        tree = measured(gains(2_000), Fraction(1, 10**7), feature)
        settled = settle(Schema((feature,)), {"x": tree}, 6)
        (line,) = constant_numbers(settled.schema)
        assert line.startswith("x came out constant: the budget cannot carry it")
        assert (
            settled.shapes["x"].values(np.zeros(3, dtype=int), np.array([0.0, 0.5, 0.99])).any()
            == 0
        )
    tree = measured(gains(2_000), 10)
    assert constant_numbers(settle(Schema((WHOLE,)), {"x": tree}, 6).schema) == ()


def test_replicates_move_the_sum_as_rows_and_noise_would():
    values, amount = gains(4_000), Fraction(1, 50)
    tree = measured(values, amount)
    settled = settle(Schema((WHOLE,)), {"x": tree}, 6)
    found = replicated_shapes(settled.shapes, settled.schema, RandomStream("k"), count=200)
    assert len(found) == 200
    level, grid = tree.clipped_sum, grid_of(WHOLE)
    added = steps_of(grid, *level.nodes[:2].tolist(), STEPS)
    counts = exact_counts(WHOLE, values.tolist())
    rows = counts.sum()
    sampling = rows * (counts @ added.astype(float) ** 2 / rows - (counts @ added / rows) ** 2)
    from pegsynth.methods.released import _shape_replicates as shape_replicates

    masses, _ = cell_masses(tree, grid)
    words = np.random.default_rng(1)
    sums = []
    for seed in range(200):
        moved = words.multinomial(rows, masses / masses.sum()) - masses * rows / masses.sum()
        fresh = shape_replicates._perturbed(tree, grid, moved, RandomStream(seed))
        sums.append(float(fresh.clipped_sum.counts[0]))
    wanted = np.sqrt(sampling + level.deviation**2)
    # The deviation of 200 draws is within 30 % but for a chance of 1e-8; masses are near counts.
    assert np.std(sums) == pytest.approx(wanted, rel=0.4)


def test_weights_of_numbers_with_cells_of_their_own_do_not_overflow():
    tiny = np.nextafter(0.0, 1.0)
    narrow = Shape(np.array([0.0]), np.array([tiny]), np.array([1.0]), 0.0, np.ones(1))
    wide = replace(narrow, high=np.array([2.0**60]))
    schema = Schema((Feature("x", kind="numeric", edges=(0.0, 2.0**60)),))
    source = settle(Schema((REAL,)), {"x": measured(gains(1_000), 1, REAL)}, 6).shapes["x"].source
    source = without_sum(replace(narrow, source=source)).source
    shapes = {"x": replace(wide, source=source)}
    frame = pl.DataFrame({"x": [0.0, 0.0, 1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = reweighed(frame, np.ones((1, 3)), np.ones((1, 3)), schema, shapes, [{"x": narrow}])
    assert np.isfinite(found).all()
