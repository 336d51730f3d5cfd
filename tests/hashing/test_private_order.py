"""Private choice of heads: a score of sensitivity 1, whatever the table (R10)."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.codec import pair_counts as pairs
from pegsynth.codec.pair_counts import count_pairs
from pegsynth.mechanisms.noise import choose
from pegsynth.methods.gibbs.order import heads_by_choice, pair_scores
from pegsynth.random import RandomStream

COUNTS = (2, 3, 4)


@st.composite
def tables(draw):
    rows = draw(st.lists(st.tuples(*(st.integers(0, c - 1) for c in COUNTS)), max_size=40))
    return np.array(rows, dtype=np.uint8).reshape(-1, len(COUNTS))


@st.composite
def references(draw):
    """Any marginals: what was paid for may be far from the data."""
    shares = []
    for count in COUNTS:
        weights = np.array(draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))) + 0.01
        shares.append(weights / weights.sum())
    return shares, draw(st.floats(1, 200))


def scores(codes, shares, total):
    return pair_scores(count_pairs([codes], COUNTS), shares, total)


def own_marginals(codes):
    shares = [
        np.bincount(codes[:, i], minlength=c) / max(len(codes), 1) for i, c in enumerate(COUNTS)
    ]
    return shares, float(max(len(codes), 1))


@settings(max_examples=150, deadline=None)
@given(tables(), st.tuples(*(st.integers(0, c - 1) for c in COUNTS)), references())
def test_one_row_changes_every_score_by_at_most_one(codes, row, reference):
    more = np.vstack([codes, np.array([row], dtype=np.uint8)])
    change = scores(more, *reference) - scores(codes, *reference)
    assert np.abs(change).max() <= 1


def test_a_reference_read_off_the_data_is_more_sensitive():
    """The broken twin: marginals of the table itself move with the row."""
    worst = 0
    for size in range(1, 40):
        codes = np.array([[0, 0, 0], [1, 1, 1]] * size, dtype=np.uint8)
        for row in ([0, 1, 2], [1, 0, 0], [0, 0, 0], [1, 2, 3]):
            more = np.vstack([codes, np.array([row], dtype=np.uint8)])
            change = scores(more, *own_marginals(more)) - scores(codes, *own_marginals(codes))
            worst = max(worst, int(np.abs(change).max()))
    assert worst > 1


@settings(max_examples=60, deadline=None)
@given(tables(), references())
def test_tables_and_cells_give_the_same_scores(codes, reference):
    dense = scores(codes, *reference)
    limit = pairs.DENSE_PAIR_CELLS
    try:
        pairs.DENSE_PAIR_CELLS = 0
        counted = count_pairs([codes], COUNTS)
    finally:
        pairs.DENSE_PAIR_CELLS = limit
    assert not counted.tables
    assert np.array_equal(pair_scores(counted, *reference), dense)


def test_scores_follow_their_definition():
    codes = np.array([[0, 0, 0], [0, 0, 1], [1, 2, 3], [1, 2, 2]], dtype=np.uint8)
    shares = [np.full(c, 1 / c) for c in COUNTS]
    found = scores(codes, shares, 24.0)
    # 24 rows spread over 2 x 3 cells make 4 each, of which two cells hold 2.
    chance = int(np.sqrt(2 / np.pi) * 6 * 2)
    assert found[0, 1] == found[1, 0] == 4 * 4 + 2 * 2 - chance
    assert not np.diag(found).any()


@pytest.mark.parametrize("heads", [0, 1, 2, 3])
def test_heads_are_distinct_others(heads):
    matrix = np.arange(16).reshape(4, 4)
    for pick in (lambda line: 0, lambda line: len(line) - 1, lambda line: len(line) // 2):
        chosen = heads_by_choice(matrix, heads, pick)
        assert len(chosen) == 4
        for target, line in enumerate(chosen):
            assert len(line) == heads == len(set(line))
            assert target not in line


def test_a_large_epsilon_picks_the_best():
    matrix = np.array([[0, 5, 9, 1], [5, 0, 2, 8], [9, 2, 0, 3], [1, 8, 3, 0]])
    words = RandomStream(1).substream()
    found = heads_by_choice(matrix, 2, lambda line: choose(line, Fraction(500), words))
    assert found == ((2, 1), (3, 0), (0, 3), (1, 2))


def test_every_choice_sees_the_scores_of_its_own_target_only():
    seen = []

    def record(line):
        seen.append(tuple(line))
        return 1

    matrix = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0]])
    assert heads_by_choice(matrix, 2, lambda line: record(line) if len(line) > 1 else 0)
    assert seen == [(1, 2), (1, 3), (2, 3)]
