"""Pair counts and mutual information against loops over rows."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.codec import pair_counts as pairs
from pegsynth.codec.pair_counts import count_pairs, mutual_information

COUNTS = (3, 1, 4, 300)


def slow_information(left, right):
    total = len(left)
    joint, first, second = Counter(zip(left, right, strict=True)), Counter(left), Counter(right)
    return sum(
        n / total * math.log(n * total / (first[a] * second[b])) for (a, b), n in joint.items()
    )


def table(rows, seed, dtype=np.uint16):
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, COUNTS, size=(rows, len(COUNTS)))
    codes[:, 2] = (codes[:, 0] + (generator.random(rows) < 0.2)) % 4
    return codes.astype(dtype)


def cut(codes, cuts):
    edges = [0, *sorted(min(c, len(codes)) for c in cuts), len(codes)]
    return [codes[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("wide", [False, True], ids=["tables", "cells"])
@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(1, 80),
    seed=st.integers(0, 2**32),
    cuts=st.lists(st.integers(0, 80), max_size=4),
    threads=st.integers(1, 3),
)
def test_information_matches_a_double_loop(wide, rows, seed, cuts, threads):
    codes = table(rows, seed)
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(pairs, "DENSE_PAIR_CELLS", 0)
        found = count_pairs(cut(codes, cuts), COUNTS, threads=threads)
    assert (len(found.tables), len(found.cells)) == ((0, 6) if wide else (6, 0))
    scores = found.mutual_information()
    for i in range(4):
        assert scores[i, i] == 0
        for j in range(i):
            expected = slow_information(codes[:, i].tolist(), codes[:, j].tolist())
            assert scores[i, j] == scores[j, i] == pytest.approx(expected, abs=1e-12)


def test_tables_and_cells_give_the_same_matrix_bit_for_bit(monkeypatch):
    codes = table(5000, 1)
    dense = count_pairs([codes], COUNTS).mutual_information()
    monkeypatch.setattr(pairs, "DENSE_PAIR_CELLS", 0)
    assert np.array_equal(count_pairs([codes], COUNTS).mutual_information(), dense)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_counts_do_not_depend_on_batches_threads_or_width(dtype, threads, size):
    counts = (3, 1, 4, 200)
    codes = table(300, 2) % 200
    whole = count_pairs([codes], counts)
    batches = [codes[s : s + size].astype(dtype) for s in range(0, len(codes), size)]
    apart = count_pairs(iter(batches), counts, threads=threads)
    assert whole.tables.keys() == apart.tables.keys()
    for pair, counted in whole.tables.items():
        assert np.array_equal(counted, apart.tables[pair])
        assert counted.sum() == 300
        i, j = pair
        for left, right in codes[:5, [i, j]].tolist():
            expected = np.sum((codes[:, i] == left) & (codes[:, j] == right))
            assert counted[left, right] == expected


@pytest.mark.parametrize("wide", [False, True])
def test_no_rows_carry_no_information(wide, monkeypatch):
    monkeypatch.setattr(pairs, "DENSE_PAIR_CELLS", 0 if wide else 1 << 24)
    for batches in ([], [np.zeros((0, 4), dtype=np.uint8)]):
        assert not count_pairs(batches, COUNTS).mutual_information().any()


def test_noisy_tables_may_hold_fractions_and_negative_cells():
    noisy = np.array([[4.5, -1.0], [0.0, 2.5]])
    clipped = np.array([[4.5, 0.0], [0.0, 2.5]])
    assert mutual_information(noisy) == mutual_information(clipped) > 0
    assert mutual_information(np.array([[-1.0, 0.0]])) == 0
