"""A pool of rows: margins of the ordered pass, rules (R18), and rows chosen from its weights.

Low-variance sampling: inside the ordered pass a margin is off by less than one row,
where independent draws would be off by their sampling error. Seeded; rates are `ALPHA`.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.errors import SchemaError
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._draw import _systematic, choose_rows, exchange_rows
from pegsynth.methods.released._estimates import Margins
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._row_pool import Pool, cell_count, whole_numbers
from pegsynth.random import RandomStream
from pegsynth.schema import Rule
from significance import fits

SIZES = (2, 3, 4)
WORDS = np.random.default_rng(1)
FIRST = np.array([[0.35, 0.65]])
SECOND = np.array([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
THIRD = WORDS.dirichlet(np.ones(4), 6)


def drawn_pool(rows=1000, *, rules=(), seed=1, threads=1, third=THIRD):
    pool = Pool(SIZES, rows, RandomStream(seed), rules=rules, threads=threads)
    pool.draw(0, (), FIRST)
    pool.draw(1, (0,), SECOND)
    pool.draw(2, (0, 1), third)
    return pool


# The ordered pass


@given(st.integers(0, 2**32 - 1), st.integers(1, 700))
def test_margins_of_the_ordered_pass_are_off_by_less_than_one_row(seed, rows):
    pool = drawn_pool(rows, seed=seed)
    for feature, heads, shares in ((0, (), FIRST), (1, (0,), SECOND), (2, (0, 1), THIRD)):
        expected = pool.counts(heads) @ shares
        assert (np.abs(pool.counts((feature,)) - expected) < 1).all()


def test_conditional_shares_are_off_by_few_rows_in_every_group():
    """Quantiles are off by less than 1 in each cell; settling moves at most one row each."""
    pool = drawn_pool(20_000)
    cells = pool.counts((0, 1, 2)).reshape(-1, 4)
    expected = cells.sum(axis=1, keepdims=True) * THIRD
    assert np.abs(cells - expected).max() < 1 + 4
    # Sampling error would be about 60 rows.
    assert np.sqrt((expected * (1 - THIRD)).max()) > 20


def test_independent_draws_would_not_do():
    """The twin: a multinomial draw of the same column is far outside the bound above."""
    counts = np.random.default_rng(2).multinomial(20_000, FIRST[0])
    assert np.abs(counts - 20_000 * FIRST[0]).max() > 5


def test_rows_of_a_group_get_their_values_in_random_order():
    """A row's place in the pool says nothing of its value; false-alarm rate ALPHA."""
    first = np.zeros((2, 3))
    for seed in range(600):
        pool = drawn_pool(30, seed=seed)
        first[pool.columns[0, 7], pool.columns[1, 7]] += 1
    joint = (FIRST[0][:, None] * SECOND).ravel()
    assert fits(first.ravel(), joint)


@given(st.integers(0, 2**32 - 1), st.integers(1, 500))
def test_whole_numbers_keep_the_sum_and_differ_by_less_than_one(seed, total):
    words = np.random.default_rng(seed)
    expected = words.dirichlet(np.full(7, 0.3)) * total
    found = whole_numbers(expected, total)
    assert found.sum() == total
    assert (np.abs(found - expected) < 1).all()


def test_cells_of_no_feature():
    assert cell_count((), SIZES) == 1
    assert cell_count((0, 2), SIZES) == 8


# Rules


RULES = (Rule.of({0: [0], 1: [0, 1]}), Rule.of({1: [2], 2: [0]}), Rule.of({0: [1], 2: [3]}))


def breaking(pool, rules=RULES):
    rows = pool.columns.T
    return np.any([rule.broken_by(rows) for rule in rules], axis=0)


@pytest.mark.parametrize("rows", [1, 50, 40_000])
def test_no_row_breaks_a_rule(rows):
    pool = drawn_pool(rows, rules=RULES)
    assert not breaking(pool).any()
    assert pool.alive.all()
    if rows > 1:
        assert breaking(drawn_pool(rows)).any()


def test_a_row_that_would_break_a_rule_draws_among_what_is_allowed():
    """Given x0 = 0 only category 2 is left; x1 = 2 leaves 1, 2, 3 in their own proportion."""
    pool = drawn_pool(60_000, rules=RULES)
    assert set(pool.columns[1, pool.columns[0] == 0]) == {2}
    inside = (pool.columns[0] == 0) & (pool.columns[1] == 2)
    counts = np.bincount(pool.columns[2, inside], minlength=4)
    shares = THIRD[2].copy()
    shares[0] = 0
    # Quantiles vary less than independent draws, so the rate stays below ALPHA.
    assert fits(counts, shares / shares.sum())


def test_where_noise_left_nothing_allowed_everything_allowed_is_drawn():
    third = np.tile([1.0, 0.0, 0.0, 0.0], (6, 1))
    rule = (Rule.of({0: [0, 1], 2: [0]}),)
    pool = drawn_pool(9_000, rules=rule, third=third)
    assert pool.alive.all()
    counts = np.bincount(pool.columns[2], minlength=4)
    assert counts[0] == 0
    assert fits(counts[1:], np.full(3, 1 / 3))


def test_rows_without_a_way_out_have_no_weight():
    rules = (Rule.of({0: [0], 2: [0, 1]}), Rule.of({0: [0], 2: [2, 3]}))
    pool = drawn_pool(1000, rules=rules)
    dead = pool.columns[0] == 0
    assert dead.any()
    assert (pool.alive == ~dead).all()
    pool.weigh(500.0)
    assert (pool.weights[dead] == 0).all()
    assert pool.weights.sum() == pytest.approx(500)
    fit = JointFit(pool, margins_of(pool), Steps())
    chosen = choose_rows(fit, 5000)
    assert not dead[chosen].any()


def test_a_pool_of_which_no_row_is_left_is_refused():
    rules = tuple(Rule.of({0: [0, 1], 2: [code]}) for code in range(4))
    with pytest.raises(SchemaError, match="rules"):
        drawn_pool(50, rules=rules).weigh(1.0)


# Work on several threads


def test_nothing_depends_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("pegsynth.methods.released._row_pool._PART", 100)
    one, two = drawn_pool(1000, threads=1), drawn_pool(1000, threads=2)
    assert np.array_equal(one.columns, two.columns)
    factors = np.random.default_rng(3).random(6)
    sums = [
        pool.scale(pool.keys((0, 1)), factors, pool.keys((2,)), 4).tolist() for pool in (one, two)
    ]
    assert sums[0] == sums[1]
    assert np.array_equal(one.weights, two.weights)
    expected = np.bincount(one.columns[2], weights=factors[one.keys((0, 1))], minlength=4)
    assert sums[0] == pytest.approx(expected.tolist())
    assert one.each(str, range(5)) == two.each(str, range(5)) == list("01234")


# Rows out of the pool


def margins_of(pool):
    counts = [pool.counts((f,)).astype(float) for f in range(len(pool.sizes))]
    shares = [line / pool.rows for line in counts]
    precisions = [np.ones(len(line)) for line in counts]
    return Margins(pool.sizes, float(pool.rows), counts, precisions, shares)


def weighted(seed=4, rows=500):
    pool = drawn_pool(rows, seed=seed)
    pool.weights = np.random.default_rng(seed).gamma(0.5, 1, rows)
    return JointFit(pool, margins_of(pool), Steps())


@pytest.mark.parametrize("rows", [1, 80, 3000])
def test_a_row_is_chosen_as_often_as_its_weight_says(rows):
    fit = weighted()
    chosen = choose_rows(fit, rows)
    times = np.bincount(chosen, minlength=500)
    expected = rows * fit.pool.weights / fit.pool.weights.sum()
    assert times.sum() == rows
    assert (np.abs(times - expected) < 1 + 1e-9).all()


def test_runs_of_similar_rows_are_chosen_as_often_as_their_weight_says():
    """Rows are taken along the features placed first, so their cells are off by one row."""
    fit = weighted(rows=2000)
    chosen = choose_rows(fit, 700)
    for features in ((0,), (0, 1), (0, 1, 2)):
        keys, cells = fit.pool.keys(features), cell_count(features, SIZES)
        expected = fit.pool.expected(features)
        expected *= 700 / expected.sum()
        counts = np.bincount(keys[chosen], minlength=cells)
        assert (np.abs(counts - expected) < 1 + 1e-9).all()


@pytest.mark.parametrize("offset", [0.0, 0.5, 1 - 2.0**-53])
def test_rows_without_weight_are_never_chosen(offset):
    """Not even when rounding carries the last point to the very end."""
    weights = np.array([0.0, 0.3, 0.0, 0.1 + 0.2, 0.0])
    for count in (1, 3, 1000):
        places = _systematic(np.cumsum(weights), count, offset)
        assert set(places) <= {1, 3}


def squared_excess(fit, chosen):
    total = 0.0
    for keys, target in fit.aims():
        counts = np.bincount(keys[chosen], minlength=len(target))
        total += ((counts - target * len(chosen) / target.sum()) ** 2).sum()
    return total


def test_exchanged_rows_fit_all_tables_better():
    fit = weighted(rows=2000)
    target = np.random.default_rng(5).dirichlet(np.ones(24)) * 900
    margin = target.reshape(2, 3, 4).sum(axis=(0, 2))
    fit.meet([((0, 1, 2), target), ((1,), margin)], 1)
    chosen = choose_rows(fit, 600)
    kept = chosen.copy()
    before = squared_excess(fit, chosen)
    better = exchange_rows(fit, chosen, 5)
    assert squared_excess(fit, better) < 0.5 * before
    assert np.array_equal(chosen, kept)
    assert (fit.pool.weights[better] > 0).all()
    assert exchange_rows(fit, chosen, 0) is chosen


def test_rows_meet_pairs_that_nobody_measured():
    pool = Pool((3,) * 8, 4000, RandomStream(6))
    for feature in range(8):
        pool.draw(feature, (), np.full((1, 3), 1 / 3))
    fit = JointFit(pool, margins_of(pool), Steps())
    fit.pool.weigh(fit.margins.total)
    fit.start()
    chosen = choose_rows(fit, 600)
    # Rows are chosen along the features that were placed first; these two were last.
    wanted = fit.pool.expected((6, 7)) * (600 / pool.weights.sum())
    apart = []
    for rows in (chosen, exchange_rows(fit, chosen, 5)):
        found = np.bincount(pool.keys((6, 7))[rows], minlength=9)
        apart.append(np.abs(found - wanted).sum())
    assert apart[1] < 0.5 * apart[0]


def test_without_room_only_measured_tables_are_aimed_at(monkeypatch):
    monkeypatch.setattr("pegsynth.methods.released._joint_fit._MOST_AIMS", 100)
    pool = drawn_pool(2000)
    fit = JointFit(pool, margins_of(pool), Steps())
    fit.pool.weigh(fit.margins.total)
    fit.start()
    assert len(fit.aims()) == len(fit.tables)


@pytest.mark.parametrize(
    "forbidden",
    [
        [{0: [0, 1]}, {0: [2], 1: [0]}, {1: [1], 2: [0, 1]}],
        [{0: [0], 1: [0, 1]}, {0: [1], 2: [0]}, {0: [2], 2: [1, 2]}],
        [{0: [0, 1, 2], 1: [0, 1]}],
    ],
)
def test_rows_that_all_died_get_values_that_break_no_rule(forbidden):
    """Noise may leave no allowed row; the search finds allowed ones, and none where none is."""
    sizes, rules = (3, 2, 3), tuple(Rule.of(each) for each in forbidden)
    every = np.array(list(product(*map(range, sizes))), dtype=np.uint16)
    broken = np.any([rule.broken_by(every) for rule in rules], axis=0)
    allowed = set(map(tuple, every[~broken]))
    pool = Pool(sizes, 200, RandomStream(1), rules=rules)
    pool.alive[:] = False
    if not allowed:
        with pytest.raises(SchemaError, match="obeys the schema's rules"):
            pool.weigh(10.0)
        return
    pool.weigh(10.0)
    assert set(map(tuple, pool.columns.T)) == allowed
    assert np.allclose(pool.weights, 10 / 200)
