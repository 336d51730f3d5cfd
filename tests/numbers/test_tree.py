"""Noisy trees: what is asked of the filter, what is published, and what estimates make of it."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from pegsynth.auditing.measured_codecs import exact_counts
from pegsynth.codec.clipped_sum import STEPS, SUM_PART
from pegsynth.codec.estimate import cell_masses
from pegsynth.codec.measured_numbers import bins_for, measure
from pegsynth.codec.number_grid import grid_of
from pegsynth.codec.paying import check_budget, plan_numbers
from pegsynth.codec.tails import Seen, continued, standing_out, visible_masses
from pegsynth.codec.tree import exact_tree
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.privacy import Allowance, Budget, Ledger, NoisyCounts, NoisySums, Unspent
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema

WHOLE = Feature("x", kind="numeric", edges="private", dtype="int64", missing=("",))
REAL = Feature("x", kind="numeric", edges="private", dtype="double")


def filter_of(amount, route="zcdp", seed="tree", **options):
    return PrivacyFilter(Allowance(route, Fraction(amount)), RandomStream(seed), **options)


def lognormal(rows=20_000, seed=1, zeros=0.3):
    generator = np.random.default_rng(seed)
    values = np.floor(generator.lognormal(9, 1.2, rows))
    values[generator.random(rows) < zeros] = 0
    return values


@pytest.mark.parametrize("route", ["pure", "zcdp"])
def test_every_level_is_an_event_and_no_more_than_the_share_is_spent(route):
    budget_filter = filter_of(8, route, names=("x",))
    measure(exact_counts(WHOLE, lognormal().tolist()), WHOLE, budget_filter, 0.5)
    events = [event for event in budget_filter.events if isinstance(event, NoisyCounts)]
    assert len(events) == 4
    assert {(event.purpose, event.features, event.cells) for event in events} == {
        ("edges", ("x",), 1)
    }
    (added,) = (event for event in budget_filter.events if isinstance(event, NoisySums))
    assert (added.purpose, added.largest_sum, added.sums) == ("edges", STEPS, 1)
    assert budget_filter.left >= 0.5
    ledger = Ledger(budget_filter.events, delta=0.0 if route == "pure" else 1e-9)
    claimed = ledger.guarantee.epsilon if route == "pure" else ledger.guarantee.rho
    assert claimed == pytest.approx(8.0)


def test_octaves_get_all_where_no_number_can_be_seen():
    budget_filter = filter_of(Fraction(1, 10**6))
    tree = measure(exact_counts(WHOLE, [1.0, 2.0]), WHOLE, budget_filter, 0.5)
    assert [len(level.nodes) > 0 for level in tree.levels] == [True, False, False, False]
    # Octaves were measured three times; without a number to clip at, no sum was.
    assert [type(event) for event in budget_filter.events] == [NoisyCounts] * 3 + [Unspent]
    assert budget_filter.left == pytest.approx(0.5, abs=1e-6)
    assert tree.levels[0].deviation == pytest.approx(budget_filter.deviation(0.5), rel=1e-3)
    assert tree.clipped_sum is None


def test_a_filter_that_is_empty_refuses():
    budget_filter = filter_of(1)
    counts = exact_counts(WHOLE, [1.0])
    measure(counts, WHOLE, budget_filter, 1.0)
    with pytest.raises(BudgetError):
        measure(counts, WHOLE, budget_filter, 1.0)


def test_counts_of_another_grid_are_refused():
    with pytest.raises(ParameterError, match="'x'"):
        measure(np.zeros(5, dtype=np.int64), WHOLE, filter_of(1), 1.0)


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.none() | st.integers(-(2**40), 2**40), max_size=60),
    st.sampled_from([10**-4, 1, 10**6]),
    st.sampled_from(["pure", "zcdp"]),
)
def test_masses_are_never_negative_and_always_there(values, amount, route):
    tree = measure(exact_counts(WHOLE, values), WHOLE, filter_of(amount, route), 1.0)
    masses, special = cell_masses(tree, grid_of(WHOLE))
    assert np.isfinite(masses).all()
    assert (masses >= 0).all()
    assert masses.sum() > 0
    assert len(special) == 1
    assert special[0] >= 0


def test_without_noise_masses_are_counts():
    values = [0.0] * 40 + [5.0] * 30 + [77.0] * 20 + [1000.0] * 50 + [-3.0] * 25
    counts = exact_counts(WHOLE, values + [None] * 7)
    tree = measure(counts, WHOLE, filter_of(10**6), 1.0)
    masses, special = cell_masses(tree, grid_of(WHOLE))
    assert np.allclose(masses, counts[:-1], atol=0.5)
    assert special[0] == 7


@given(st.lists(st.none() | st.integers(-(2**40), 2**40), min_size=1, max_size=40))
@settings(deadline=None, max_examples=30)
def test_the_exact_tree_is_the_table(values):
    counts = exact_counts(WHOLE, values)
    masses, special = cell_masses(exact_tree(counts, WHOLE), grid_of(WHOLE))
    if counts[:-1].any():
        assert np.allclose(masses, counts[:-1], atol=1e-6)
    assert special[0] == counts[-1]


@pytest.mark.parametrize("number", [500, 50_000, 1_000_000])
def test_rows_heaped_at_a_large_number_stay_there(number):
    """Within 6 standard deviations of the finest noise: a false alarm in 5e8 runs."""
    drawn = np.exp(np.random.default_rng(1).normal(np.log(number), 1, 20_000)).astype(int)
    drawn[:1_000] = number
    counts = exact_counts(WHOLE, drawn.astype(float).tolist())
    tree = measure(counts, WHOLE, filter_of(Fraction(1, 50)), 1.0)
    masses, _ = cell_masses(tree, grid_of(WHOLE))
    cell = np.searchsorted(grid_of(WHOLE).edges, number, side="right") - 1
    assert counts[cell] >= 1_000
    assert abs(masses[cell] - counts[cell]) < 6 * tree.levels[-1].deviation


def test_noise_on_empty_octaves_becomes_no_number():
    tree = measure(exact_counts(WHOLE, [50.0] * 5000), WHOLE, filter_of(Fraction(1, 1000)), 1.0)
    masses, _ = cell_masses(tree, grid_of(WHOLE))
    low, high = grid_of(WHOLE).edges[:-1], grid_of(WHOLE).edges[1:]
    assert masses[(high <= 16) | (low >= 128)].sum() == 0


@pytest.mark.parametrize("laplace", [False, True])
def test_noise_hardly_ever_stands_out(laplace):
    generator = np.random.default_rng(3)
    trials, nodes = 4000, 128
    shape = (trials, nodes)
    noise = (
        generator.laplace(0, 1 / math.sqrt(2), shape) if laplace else generator.normal(size=shape)
    )
    share = (noise > standing_out(nodes, 1.0, laplace=laplace)).any(axis=1).mean()
    assert share < 0.02


def log_normal_octaves(centre, width, rows):
    """Rows of a log-normal law in octaves 0 to 29, and their bounds."""
    near = 2.0 ** np.arange(30)
    share = ndtr((np.log(2 * near) - centre) / width) - ndtr((np.log(near) - centre) / width)
    return rows * share, near, 2 * near


def masses_of(true, near, far, deviation, seed=5):
    noisy = true + deviation * np.random.default_rng(seed).normal(size=len(true))
    sides, sizes = np.ones(len(true), dtype=np.int64), np.arange(len(true)) + 1.0
    masses = visible_masses(noisy, deviation, sides, sizes, laplace=False)
    held = np.flatnonzero(masses)
    seen = Seen(masses[held], near[held], far[held])
    places = np.arange(held[-1], len(true))
    continued(masses, noisy, deviation, (near, far), places, seen, outwards=True)
    return masses, int(held[-1])


@pytest.mark.parametrize("width", [0.3, 0.7, 1.3])
def test_a_log_normal_tail_goes_on_and_ends(width):
    true, near, far = log_normal_octaves(np.log(300), width, 100_000)
    masses, last = masses_of(true, near, far, 40.0)
    beyond = true[last + 1 :].sum()
    assert masses[last + 1 :].sum() == pytest.approx(beyond, abs=0.5 * beyond + 60)
    assert masses[last + 8 :].sum() < 1
    middle = (near + far) / 2
    deviation = np.sqrt(np.average((middle - 300) ** 2, weights=masses))
    truth = np.sqrt(np.average((middle - 300) ** 2, weights=true))
    assert deviation == pytest.approx(truth, rel=0.15)


def test_a_narrow_distribution_does_not_go_on():
    # Years: all in one octave, and none of the noise beyond it becomes a number.
    true = np.where(np.arange(30) == 10, 5_000.0, 0.0)
    noisy = true + 60 * np.random.default_rng(1).normal(size=30)
    near = 2.0 ** np.arange(30)
    masses = np.where(true > 0, noisy, 0.0)
    seen = Seen(
        np.array([2_500.0, 2_500.0]), np.array([1_950.0, 1_980.0]), np.array([1_980.0, 2_010.0])
    )
    continued(masses, noisy, 60.0, (near, 2 * near), np.arange(10, 30), seen, outwards=True)
    assert masses[11:].sum() < 0.01 * 5_000


def test_octaves_are_seen_together_where_none_stands_out_alone():
    true = np.where((np.arange(40) >= 10) & (np.arange(40) < 18), 120.0, 0.0)
    noisy = true + 40 * np.random.default_rng(2).normal(size=40)
    assert (noisy < standing_out(40, 40.0, laplace=False)).sum() > 35
    sides, sizes = np.ones(40, dtype=np.int64), np.arange(40.0)
    masses = visible_masses(noisy, 40.0, sides, sizes, laplace=False)
    assert masses.sum() == pytest.approx(960, rel=0.3)
    assert set(np.flatnonzero(masses)) <= set(range(8, 20))


def test_if_nothing_stands_out_there_is_still_a_number_of_a_usual_size():
    noisy = np.array([-3.0, 2.0, 5.0, -1.0])
    sides = np.array([-1, 0, 1, 1])
    masses = visible_masses(noisy, 10.0, sides, np.array([1.0, 0, 1, 2]), laplace=True)
    assert masses.sum() > 0
    noise = 10 * np.random.default_rng(4).normal(size=60)
    sizes = np.arange(60.0)
    masses = visible_masses(noise, 10.0, np.ones(60, dtype=np.int64), sizes, laplace=False)
    assert np.flatnonzero(masses).max() < 40


def test_the_plan_is_made_of_public_figures_and_is_kept():
    schema = Schema((Feature("sex", categories=("f", "m")), WHOLE))
    allowance = Allowance("zcdp", Fraction(1, 85))
    plan = plan_numbers(schema, allowance, rows=200_000)
    assert plan.names == ("x",)
    # Enough for a mean, however far rows stand out of the noise: 2.5 % for counts, 3.5 % for a sum.
    assert plan.together == pytest.approx(0.06)
    assert plan.sum_part == pytest.approx(0.035 / 0.06)
    # The smaller the table, the more its edges are worth; without a number of rows, at most that.
    shares = [plan_numbers(schema, allowance, rows=rows).share for rows in (10**6, 10**4, 10**3)]
    assert shares[0] == pytest.approx(0.06)
    assert shares[0] < shares[1] < shares[2] <= plan_numbers(schema, allowance).share
    loud = plan_numbers(schema, Allowance("zcdp", Fraction(1, 10**4)), rows=200_000)
    assert loud.together == pytest.approx(0.05 + 0.035, rel=0.1)
    smallest = plan_numbers(schema, allowance, rows=100)
    assert (smallest.share, smallest.sum_part) == (pytest.approx(0.2), pytest.approx(SUM_PART))
    assert plan.bins(200_000) == 12
    assert 8 <= plan.bins(40_000) < 12 < plan.bins(10_000_000)
    assert plan.bins(200_000, model=False) == 24
    budget_filter = PrivacyFilter(allowance, RandomStream("plan"))
    counts = exact_counts(WHOLE, lognormal().tolist())
    tree = measure(counts, WHOLE, budget_filter, plan.share, sum_part=plan.sum_part)
    assert 1 - budget_filter.left <= plan.together
    assert tree.levels[0].deviation == pytest.approx(plan.top_deviation, rel=1e-6)
    many = Schema(tuple(Feature(f"x{i}", kind="numeric", edges="private") for i in range(40)))
    assert plan_numbers(many, allowance).together == pytest.approx(0.3)


def test_more_rows_or_more_budget_never_give_fewer_bins():
    assert bins_for(1, 1e9) == 6
    assert bins_for(1e12, 1.0) == 24
    found = [bins_for(10.0**power, 6.5) for power in range(2, 9)]
    assert found == sorted(found)


def test_private_edges_need_an_epsilon_for_the_whole_release():
    schema = Schema((WHOLE,))
    check_budget(schema, Budget(epsilon=1.0))
    for budget in (Budget(epsilon_per_row=0.1), Budget(l=2.0), Budget(alpha=1.0)):
        with pytest.raises(BudgetError, match=r"'x'.*--epsilon"):
            check_budget(schema, budget)
    check_budget(schema.with_feature("x", edges=(0, 1)), Budget(alpha=1.0))


def test_pandas_floats_and_text_are_counted_alike():
    counts = exact_counts(REAL, [1.5, 2.5])
    grids = pl.Series(["1.5", "2.50"])
    from pegsynth.codec.encoding import ColumnEncoder
    from pegsynth.codec.number_grid import grid_feature

    codes = ColumnEncoder(grid_feature(REAL)).encode(grids)
    assert (np.bincount(codes, minlength=len(counts)) == counts).all()
