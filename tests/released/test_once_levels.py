"""Levels that merge categories: rules by hand, and rows split again (R11, post-processing)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.codec.levels import alone, merged, split_again


def levels(counts, least, *, ordered):
    return merged(np.array(counts, dtype=float), least, ordered=ordered).tolist()


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([50, 1, 40, 2, 3], [0, 2, 1, 2, 2]),
        ([50, 40, 30], [0, 1, 2]),
        # One small category alone would be a level of its own anyway.
        ([50, 1, 40], [0, 1, 2]),
        ([1, 2, 3], [0, 0, 0]),
    ],
)
def test_small_categories_become_one_level(counts, expected):
    assert levels(counts, 10, ordered=False) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Runs are closed as soon as they are large enough.
        ([4, 4, 4, 4, 4, 4], [0, 0, 0, 1, 1, 1]),
        # What is left over at the end joins the run before it.
        ([4, 4, 4, 4], [0, 0, 0, 0]),
        # A large category stays alone, and what precedes it is a run or small.
        ([4, 8, 50, 4, 8], [0, 0, 1, 2, 2]),
        ([4, 50, 4], [1, 0, 1]),
        ([50, 50], [0, 1]),
        ([1, 1], [0, 0]),
    ],
)
def test_neighbours_merge_into_runs(counts, expected):
    assert levels(counts, 10, ordered=True) == expected


def test_what_is_left_between_heaps_stays_in_its_order():
    """Hours of work: heaps at 20, 30 and 40, and few people between them.

    One level for all that is rare would put 12 and 38 hours together.
    """
    found = levels([6, 6, 50, 4, 4, 50, 4, 4, 50, 5], 10, ordered=True)
    assert found == [0, 0, 1, 4, 4, 2, 4, 4, 3, 4]
    apart = levels([6, 50, 6, 50, 6, 50, 6], 10, ordered=True)
    assert apart == [3, 0, 3, 1, 4, 2, 4]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=30), st.integers(1, 60), st.booleans())
def test_levels_are_numbered_and_large_but_for_one(counts, least, ordered):
    found = merged(np.array(counts, dtype=float), least, ordered=ordered)
    size = int(found.max()) + 1
    assert sorted(set(found.tolist())) == list(range(size))
    sums = np.bincount(found, weights=counts)
    assert np.count_nonzero(sums < least) <= (1 if ordered or size < len(counts) else len(counts))
    if ordered:
        # Only runs that are too small, and have no run before them, lie apart in a level; such
        # levels are in order.
        for level in range(size):
            places = np.flatnonzero(found == level)
            runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1)
            assert len(runs) == 1 or all(np.array(counts)[run].sum() < least for run in runs)
    # A large category is never merged.
    for category in np.flatnonzero(np.array(counts) >= least):
        assert (found == found[category]).sum() == 1


def words(count, seed=1):
    return np.random.default_rng(seed).integers(0, 2**64, count, dtype=np.uint64)


def test_a_level_for_every_category_is_split_into_itself():
    column = np.array([2, 0, 1, 1], dtype=np.uint16)
    assert split_again(column, alone(3), np.full(3, 1 / 3), words(7)).tolist() == [2, 0, 1, 1]


@given(st.integers(0, 2**32 - 1))
def test_split_rows_keep_the_totals_of_levels_and_the_shares_inside(seed):
    source = np.random.default_rng(seed)
    categories = int(source.integers(2, 9))
    line = source.integers(0, 4, categories)
    line = np.unique(line, return_inverse=True)[1]
    size = int(line.max()) + 1
    shares = source.dirichlet(np.ones(categories))
    column = source.integers(0, size, int(source.integers(1, 200))).astype(np.uint16)
    codes = split_again(column, line, shares, words(len(column) + size, seed))
    assert (line[codes] == column).all()
    for level in range(size):
        members = np.flatnonzero(line == level)
        rows = np.count_nonzero(column == level)
        counts = np.bincount(codes[column == level], minlength=categories)[members]
        expected = rows * shares[members] / shares[members].sum()
        assert (np.abs(counts - expected) < 1 + 1e-9).all()


def test_which_row_of_a_level_gets_which_category_is_random():
    column = np.zeros(1000, dtype=np.uint16)
    one, two = (
        split_again(column, np.array([0, 0]), np.array([0.5, 0.5]), words(1001, seed))
        for seed in (1, 2)
    )
    assert np.bincount(one).tolist() == np.bincount(two).tolist() == [500, 500]
    assert 300 < np.count_nonzero(one != two) < 700
    # Split in the order of the rows, the halves would be sorted.
    assert 300 < np.count_nonzero(np.diff(one.astype(int))) < 700
