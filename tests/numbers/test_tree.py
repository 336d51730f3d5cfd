"""Noisy trees: what is asked of the filter, what is published, and what estimates make of it."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.auditing.numbers import exact_counts
from pegsynth.errors import BudgetError, DataError, ParameterError
from pegsynth.numbers import (
    NumberTree,
    bins_for,
    check_budget,
    exact_tree,
    grid_of,
    measure,
    plan_numbers,
)
from pegsynth.numbers.estimate import cell_masses
from pegsynth.numbers.tails import octave_masses, standing_out
from pegsynth.privacy import Allowance, Budget, Ledger, NoisyCounts
from pegsynth.random import RandomStream
from pegsynth.released import PrivacyFilter
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
    budget_filter = filter_of(4, route, names=("x",))
    measure(exact_counts(WHOLE, lognormal().tolist()), WHOLE, budget_filter, 0.5)
    events = [event for event in budget_filter.events if isinstance(event, NoisyCounts)]
    assert len(events) == 4
    assert {(event.purpose, event.features, event.cells) for event in events} == {
        ("edges", ("x",), 1)
    }
    assert budget_filter.left >= 0.5
    ledger = Ledger(budget_filter.events, delta=0.0 if route == "pure" else 1e-9)
    claimed = ledger.guarantee.epsilon if route == "pure" else ledger.guarantee.rho
    assert claimed == pytest.approx(4.0)


def test_what_is_not_spent_stays_in_the_filter():
    budget_filter = filter_of(Fraction(1, 10**6))
    tree = measure(exact_counts(WHOLE, [1.0, 2.0]), WHOLE, budget_filter, 0.5)
    assert [len(level.nodes) > 0 for level in tree.levels] == [True, False, False, False]
    assert budget_filter.left > 0.75


def test_a_filter_that_is_empty_refuses():
    budget_filter = filter_of(1)
    counts = exact_counts(WHOLE, [1.0])
    for _ in range(2):
        measure(counts, WHOLE, budget_filter, 1.0)
    with pytest.raises(BudgetError):
        measure(counts, WHOLE, budget_filter, 1.0)


def test_counts_of_another_grid_are_refused():
    with pytest.raises(ParameterError, match="'x'"):
        measure(np.zeros(5, dtype=np.int64), WHOLE, filter_of(1), 1.0)


def test_a_tree_goes_through_a_file():
    tree = measure(exact_counts(WHOLE, lognormal().tolist()), WHOLE, filter_of(1), 1.0)
    header = json.loads(json.dumps(tree.header()))
    again = NumberTree.restored(header, tree.arrays())
    assert again.header() == tree.header()
    for name, line in again.arrays().items():
        assert line.dtype == np.int64
        assert (line == tree.arrays()[name]).all()
    with pytest.raises(DataError, match="format"):
        NumberTree.restored({**header, "format": 99}, tree.arrays())


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


def test_a_log_normal_tail_goes_on_and_a_cut_one_does_not():
    octaves = np.arange(20)
    true = 50_000 * np.exp(-0.25 * (octaves - 8) ** 2)
    noise = 40 * np.random.default_rng(5).normal(size=20)
    sides, ones = np.ones(20, dtype=np.int64), np.ones(20)
    masses = octave_masses(true + noise, 40.0, sides, (ones, ones), laplace=False)
    assert masses[12:].sum() == pytest.approx(true[12:].sum(), rel=0.15)
    assert masses[16:].sum() < 10
    ended = ones.copy()
    ended[13] = 0
    cut = np.where(octaves <= 13, true, 0.0)
    masses = octave_masses(cut, 40.0, sides, (ones, np.where(octaves == 12, 0, 1)), laplace=False)
    assert masses[13:].sum() == 0 or masses[12] > standing_out(20, 40.0, laplace=False)


def test_if_nothing_stands_out_there_is_still_a_number():
    noisy = np.array([-3.0, 2.0, 5.0, -1.0])
    sides, ones = np.array([-1, 0, 1, 1]), np.ones(4)
    masses = octave_masses(noisy, 10.0, sides, (ones, ones), laplace=True)
    assert masses.tolist() == [0, 0, 5, 0]


def test_the_plan_is_made_of_public_figures_and_is_kept():
    schema = Schema((Feature("sex", categories=("f", "m")), WHOLE))
    allowance = Allowance("zcdp", Fraction(1, 85))
    plan = plan_numbers(schema, allowance)
    assert plan.names == ("x",)
    assert plan.together == pytest.approx(0.02)
    loud = plan_numbers(schema, Allowance("zcdp", Fraction(1, 10**4)))
    assert loud.together == pytest.approx(0.04)
    assert plan.bins(200_000) == 12
    assert 8 <= plan.bins(40_000) < 12 < plan.bins(10_000_000)
    assert plan.bins(200_000, model=False) == 24
    budget_filter = PrivacyFilter(allowance, RandomStream("plan"))
    tree = measure(exact_counts(WHOLE, lognormal().tolist()), WHOLE, budget_filter, plan.share)
    assert 1 - budget_filter.left <= plan.together
    assert tree.levels[0].deviation == pytest.approx(plan.top_deviation, rel=1e-6)
    many = Schema(tuple(Feature(f"x{i}", kind="numeric", edges="private") for i in range(40)))
    assert plan_numbers(many, allowance).together == pytest.approx(0.15)
    with pytest.raises(ParameterError, match="share"):
        plan_numbers(schema, allowance, share=1.0)


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
    from pegsynth.numbers import grid_feature
    from pegsynth.schema.encoding import ColumnEncoder

    codes = ColumnEncoder(grid_feature(REAL)).encode(grids)
    assert (np.bincount(codes, minlength=len(counts)) == counts).all()
