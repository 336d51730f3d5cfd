"""Loops over a pool against slow twins, and the sensitivity of the scores (R10).

Sensitivities are tried on every tiny table and every neighbour, so nothing here is left to
chance but the shuffles, whose false-alarm rate is `ALPHA`.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.auditing.divergence import all_rows, all_tables
from pegsynth.kernels import pool_loops as kernels
from pegsynth.methods.released._row_pool import cell_keys
from pegsynth.random import RandomStream
from significance import fits

COUNTS = (2, 3, 2)
WORDS = np.random.default_rng(3)


def columns_of(table):
    return np.array(table, dtype=np.uint16).reshape(-1, len(COUNTS)).T.copy()


def keys_of(columns, features):
    sizes = np.array([COUNTS[f] for f in features], dtype=np.int64)
    return kernels.cell_keys(columns, np.array(features, dtype=np.int64), sizes)


# Keys and counts


@pytest.mark.parametrize("features", [(0,), (1, 0), (2, 1), (0, 1, 2), (2, 0, 1)])
def test_keys_number_the_cells_with_the_last_feature_fastest(features):
    rows = all_rows(COUNTS)
    shape = [COUNTS[f] for f in features]
    expected = [int(np.ravel_multi_index([row[f] for f in features], shape)) for row in rows]
    assert keys_of(columns_of(rows), features).tolist() == expected


def test_no_feature_is_one_cell():
    assert keys_of(columns_of(all_rows(COUNTS)), ()).tolist() == [0] * 12


def test_cells_up_to_the_edge_of_16_bits():
    """Also more rows than keys are held at a time, and a table beyond the edge."""
    columns = np.stack([np.arange(65_536) // 256, np.arange(65_536) % 256]).astype(np.uint16)
    features, sizes = np.array([0, 1]), np.array([256, 256])
    keys = kernels.cell_keys(columns, features, sizes)
    assert keys.tolist() == list(range(65_536))
    weights = WORDS.random(65_536)
    found = kernels.weigh_table(columns, features, sizes, weights, 65_536)
    assert found.tolist() == weights.tolist()
    wider = kernels.count_extended(keys, columns[1], 256, 1 << 24)
    assert np.flatnonzero(wider).tolist() == [256 * n + n % 256 for n in range(65_536)]
    with pytest.raises(ValueError, match="16 bits"):
        cell_keys(columns, (0, 1, 0), (256, 256))


def test_counts_and_weighted_counts_of_cells():
    columns = columns_of(WORDS.integers(0, 2, (500, 3)))
    weights = WORDS.random(500)
    keys = keys_of(columns, (0, 1))
    expected = np.zeros(6, dtype=int)
    sums = np.zeros(6)
    for row in range(500):
        cell = 3 * columns[0, row] + columns[1, row]
        expected[cell] += 1
        sums[cell] += weights[row]
    assert kernels.count_cells(keys, 6).tolist() == expected.tolist()
    assert kernels.weigh_cells(keys, weights, 6) == pytest.approx(sums)
    sizes = np.array([COUNTS[f] for f in (0, 1)])
    unwritten = kernels.weigh_table(columns, np.array([0, 1]), sizes, weights, 6)
    assert unwritten == pytest.approx(sums)
    extended = kernels.count_extended(keys, columns[2], 2, 12)
    assert extended.tolist() == kernels.count_cells(keys_of(columns, (0, 1, 2)), 12).tolist()


# Scores


def test_distances_by_hand():
    counts = np.array([4, 0, 1, 7])
    # The references round to 4, 0, 2 and 5: 0 + 0 + 1 + 2.
    assert kernels.distance(counts, np.array([3.6, 0.4, 2.2, 5.0])) == 3
    # Heads of 5 and 3 rows with shares 1/4 and 3/4: 1, 4, 1, 2 after rounding.
    heads, shares = np.array([5.0, 3.0]), np.array([0.25, 0.75])
    assert kernels.distance_from_product(counts, heads, shares) == 3 + 4 + 0 + 5


@pytest.mark.parametrize("features", [(0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("divisor", [1, 4])
def test_one_row_changes_a_score_by_at_most_one(features, divisor):
    """Pairs, products, and triples whose score is divided: sensitivity 1 (R10)."""
    cells = int(np.prod([COUNTS[f] for f in features]))
    size = COUNTS[features[-1]]
    references = [WORDS.random(cells) * scale for scale in (0.0, 1.0, 3.0)]
    largest = 0
    for table in all_tables(COUNTS, 2):
        for row in all_rows(COUNTS):
            ours, theirs = (
                kernels.count_cells(keys_of(columns_of(each), features), cells)
                for each in (table, (*table, row))
            )
            for reference in references:
                heads, shares = reference[: cells // size], np.full(size, 1 / size)
                for score in (
                    lambda n, r=reference: int(kernels.distance(n, r)),
                    lambda n, h=heads, s=shares: int(kernels.distance_from_product(n, h, s)),
                ):
                    change = abs(score(theirs) // divisor - score(ours) // divisor)
                    largest = max(largest, change)
    assert largest == 1


def test_a_reference_of_the_table_itself_has_a_larger_sensitivity():
    """The twin that R10 warns of: mu must be fixed by earlier output."""

    def own(table):
        columns = columns_of(table)
        counts = kernels.count_cells(keys_of(columns, (0, 1)), 6)
        shares = [kernels.count_cells(keys_of(columns, (f,)), COUNTS[f]) for f in (0, 1)]
        return np.abs(counts - np.outer(*shares).ravel() / len(table)).sum()

    changes = [
        abs(own((*table, row)) - own(table))
        for table in all_tables(COUNTS, 3)
        if table
        for row in all_rows(COUNTS)
    ]
    assert max(changes) > 1


# Spreading a column


def spread_slowly(sizes, shares, offsets):
    """Quantiles by the definition: row i of n has the category that holds (i + u)/n."""
    drawn = []
    for size, line, offset in zip(sizes, shares, offsets, strict=True):
        edges = np.cumsum(line)
        points = (np.arange(size) + offset) / max(size, 1)
        drawn.append([int(np.searchsorted(edges[:-1], point, side="right")) for point in points])
    return drawn


@given(st.integers(0, 2**32 - 1))
def test_spread_gives_equally_spaced_quantiles(seed):
    words = np.random.default_rng(seed)
    groups, size = words.integers(1, 5), words.integers(1, 6)
    keys = words.integers(0, groups, words.integers(1, 60)).astype(np.uint16)
    shares = words.dirichlet(np.full(size, 0.7), groups)
    offsets = words.random(groups)
    order = words.permutation(len(keys))
    rows, starts = kernels.grouped(keys, order, groups)
    drawn = kernels.spread(rows, starts, shares, offsets)
    slow = spread_slowly(np.diff(starts), shares, offsets)
    for group in range(groups):
        members = rows[starts[group] : starts[group + 1]]
        assert (keys[members] == group).all()
        # Inside a group the given order is kept.
        assert members.tolist() == [row for row in order if keys[row] == group]
        assert drawn[members].tolist() == slow[group]
        counts = np.bincount(drawn[members], minlength=size)
        assert (np.abs(counts - len(members) * shares[group]) < 1 + 1e-9).all()


def test_every_quantile_is_hit_as_often_as_its_share():
    """Over the offset, a row has each category with exactly its share."""
    shares = np.array([[0.3, 0.1, 0.6]])
    offsets = (np.arange(1000) + 0.5) / 1000
    rows, starts = np.arange(1), np.array([0, 1])
    drawn = [int(kernels.spread(rows, starts, shares, np.array([u]))[0]) for u in offsets]
    assert np.bincount(drawn).tolist() == [300, 100, 600]


def test_members_of_a_level_get_their_shares():
    rows, starts = np.arange(10), np.array([0, 6, 10])
    members, first = np.array([1, 3, 0, 2]), np.array([0, 2, 4])
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    drawn = kernels.spread_within(rows, starts, members, first, shares, np.array([0.5, 0.5]))
    # Level 0 has categories 1 and 3 as 1 : 2, level 1 has 0 and 2 as 1 : 3.
    assert drawn.tolist() == [1, 1, 3, 3, 3, 3, 0, 2, 2, 2]


# The margin of a column


@given(st.integers(0, 2**32 - 1))
def test_settle_reaches_the_wanted_margin(seed):
    words = np.random.default_rng(seed)
    rows, size = int(words.integers(1, 80)), int(words.integers(1, 6))
    keys = words.integers(0, 3, rows).astype(np.uint16)
    shares = words.dirichlet(np.full(size, 2.0), 3)
    drawn = words.integers(0, size, rows).astype(np.uint32)
    wanted = words.multinomial(rows, np.full(size, 1 / size))
    before = drawn.copy()
    missing = np.maximum(np.bincount(before, minlength=size) - wanted, 0).sum()
    left = kernels.settle(drawn, keys, shares, wanted, words.permutation(rows), words.random(rows))
    assert left == 0
    assert np.bincount(drawn, minlength=size).tolist() == wanted.tolist()
    # No row moved that need not.
    assert (drawn != before).sum() == missing


def test_settle_moves_no_row_to_what_its_own_distribution_excludes():
    keys = np.array([0, 0, 0, 1], dtype=np.uint16)
    shares = np.array([[1.0, 0.0], [0.5, 0.5]])
    drawn = np.zeros(4, dtype=np.uint32)
    wanted, order = np.array([2, 2]), np.arange(4)
    left = kernels.settle(drawn, keys, shares, wanted, order, np.full(4, 0.5))
    assert (left, drawn.tolist()) == (1, [0, 0, 0, 1])


def test_settle_chooses_among_what_is_missing_by_the_rows_own_odds():
    shares = np.array([[0.2, 0.2, 0.6]])
    keys, order = np.zeros(2, dtype=np.uint16), np.arange(2)
    moved = []
    for point in (np.arange(400) + 0.5) / 400:
        drawn = np.zeros(2, dtype=np.uint32)
        kernels.settle(drawn, keys, shares, np.array([0, 1, 1]), order, np.array([point, 0.5]))
        assert sorted(drawn.tolist()) == [1, 2]
        moved.append(int(drawn[0]))
    assert np.bincount(moved, minlength=3).tolist() == [0, 100, 300]


# Raking


def test_raking_meets_the_target_where_the_step_allows():
    keys = np.array([0, 0, 1, 2], dtype=np.uint16)
    weights = np.array([1.0, 3.0, 2.0, 1.0])
    target = np.array([2.0, 100.0, 0.1])
    factors = kernels.rake_factors(kernels.weigh_cells(keys, weights, 3), target, 3.0)
    assert factors.tolist() == [0.5, 3.0, 1 / 3]
    following = np.array([1, 0, 1, 0], dtype=np.uint16)
    sums = kernels.rake_and_weigh(keys, weights, factors, following, 2)
    assert weights == pytest.approx([0.5, 1.5, 6.0, 1 / 3])
    assert sums == pytest.approx([1.5 + 1 / 3, 6.5])


def test_cells_without_weight_stay_as_they_are():
    assert kernels.rake_factors(np.zeros(2), np.array([5.0, 0.0]), 3.0).tolist() == [1.0, 1.0]


# Exchanging rows


def deviation(chosen, lines, starts, targets):
    counts = np.zeros(len(targets))
    for row in chosen:
        counts[lines[row] + starts] += 1
    return ((counts - targets) ** 2).sum()


@given(st.integers(0, 2**32 - 1))
def test_exchanges_never_raise_the_squared_deviation(seed):
    words = np.random.default_rng(seed)
    pool, rows = 30, int(words.integers(1, 25))
    lines = np.stack([words.integers(0, 3, pool), words.integers(0, 4, pool)], 1)
    lines, starts = lines.astype(np.uint16), np.array([0, 3, 7])
    targets = words.random(7) * rows
    chosen = words.integers(0, pool, rows)
    excess = -targets
    kernels.count_lines(chosen, lines, starts, excess)
    before = deviation(chosen, lines, starts[:-1], targets)
    for _ in range(3):
        proposed = words.integers(0, pool, rows)
        taken = kernels.exchange(chosen, lines, starts, excess, proposed, words.permutation(rows))
        after = deviation(chosen, lines, starts[:-1], targets)
        assert after < before if taken else after == pytest.approx(before)
        before = after
    counts = np.bincount((lines[chosen] + starts[:-1]).ravel(), minlength=7)
    assert excess == pytest.approx(counts - targets)


def test_an_exchange_by_hand():
    """Rows of cell 0 that should be in cell 1: one is taken, the next would overshoot."""
    lines, starts = np.array([[0], [1]], dtype=np.uint16), np.array([0, 2])
    chosen, excess = np.array([0, 0, 0]), np.array([1.2, -1.2])
    proposed, order = np.array([1, 1, 1]), np.array([2, 0, 1])
    taken = kernels.exchange(chosen, lines, starts, excess, proposed, order)
    assert (taken, chosen.tolist()) == (1, [0, 0, 1])
    assert excess == pytest.approx([0.2, -0.2])


def test_lines_hold_the_cells_of_all_tables():
    lines = np.zeros((3, 2), dtype=np.uint16)
    kernels.line_up(np.array([2, 0, 1], dtype=np.uint16), 1, lines)
    assert lines.tolist() == [[0, 2], [0, 0], [0, 1]]


# Random order


def test_every_permutation_is_as_likely():
    words = RandomStream("permutations").substream()
    seen = [tuple(kernels.shuffled(words.take(4)).tolist()) for _ in range(24_000)]
    assert all(sorted(each) == [0, 1, 2, 3] for each in seen[:50])
    ways = {way: number for number, way in enumerate(product(range(4), repeat=4))}
    counts = np.bincount([ways[each] for each in seen], minlength=len(ways))
    allowed = [len(set(way)) == 4 for way in ways]
    assert fits(counts[allowed], np.full(24, 1 / 24))


def test_an_order_that_swaps_any_two_is_told_apart():
    """The usual mistake, a swap with any row, is not uniform; the test above would see it."""
    words = np.random.default_rng(5)
    counts = {}
    for _ in range(24_000):
        order = list(range(4))
        for last in range(3, 0, -1):
            other = words.integers(0, 4)
            order[last], order[other] = order[other], order[last]
        counts[tuple(order)] = counts.get(tuple(order), 0) + 1
    assert not fits(list(counts.values()), np.full(len(counts), 1 / len(counts)))


def test_uniform_numbers_are_below_one():
    drawn = kernels.uniforms(np.array([0, 2**64 - 1, 1 << 63], dtype=np.uint64))
    assert drawn.tolist() == [0.0, 1 - 2.0**-53, 0.5]


# Rows drawn one by one


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_rows_drawn_one_by_one_have_exactly_the_shares_of_their_line(size):
    """A number for each of 60 equal steps: every category gets its share of them."""
    words = np.random.default_rng(size)
    counts = words.multinomial(60, np.full(size, 1 / size), size=4)
    counts[0], counts[1] = 0, 0
    counts[0, 0] = counts[1, -1] = 60
    reached = np.cumsum(counts / 60, axis=1)
    points = (np.arange(60) + 0.5) / 60
    for key, line in enumerate(counts):
        keys = np.full(60, key, dtype=np.uint16)
        drawn = kernels.draw_lines(keys, reached, points)
        assert np.bincount(drawn, minlength=size).tolist() == line.tolist()
    mixed = kernels.draw_lines(np.array([1, 0, 1], dtype=np.uint16), reached, np.full(3, 0.4))
    assert mixed.tolist() == [size - 1, 0, size - 1]


def test_rounding_never_draws_what_has_no_share():
    reached = np.array([[0.0, 0.7, 0.7], [0.3, 0.3, 0.3]])
    keys = np.array([0, 0, 1], dtype=np.uint16)
    drawn = kernels.draw_lines(keys, reached, np.array([0.0, 1.0, 1.0]))
    assert drawn.tolist() == [1, 1, 0]
