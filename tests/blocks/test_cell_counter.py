"""Exact counts of cells, whatever the width of keys and the cut of batches."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth.codec import pair_counts as cells_module
from pegsynth.codec.pair_counts import CellCounter

SPACES = {"one number": (10, 4), "two columns": (2**63, 4), "just two columns": (2**61, 4)}

batches = st.lists(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(1, 5)), max_size=12),
    max_size=6,
)


def as_arrays(cells, dtype=np.int64):
    keys, codes, counts = np.array(cells, dtype=np.int64).reshape(-1, 3).T.copy()
    return keys, codes.astype(dtype), counts


def assert_counts(counter, expected):
    keys, codes, counts = counter.cells()
    assert {keys.dtype, codes.dtype, counts.dtype} == {np.dtype(np.int64)}
    assert list(zip(keys.tolist(), codes.tolist(), strict=True)) == sorted(expected)
    assert counts.tolist() == [expected[cell] for cell in sorted(expected)]


@pytest.mark.parametrize("pending", [0, 1, 7, 1 << 20])
@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@settings(deadline=None, max_examples=40)
@given(parts=batches)
def test_rows_and_counted_cells_add_up(space, pending, parts):
    key_space, categories = space
    shift = key_space - 10
    expected = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells_module, "_PENDING", pending)
        counter = CellCounter(key_space, categories)
        for part in parts:
            keys, codes, counts = as_arrays(part)
            keys += shift
            counter.add(keys, codes.astype(np.uint8))
            counter.add_counts(keys, codes, counts)
            for key, code, count in zip(
                keys.tolist(), codes.tolist(), counts.tolist(), strict=True
            ):
                expected[key, code] += 1 + count
        assert_counts(counter, expected)
        assert_counts(counter, expected)


def test_the_largest_cells_of_one_number_do_not_overflow():
    categories = 7
    key_space = (2**63 - 1) // categories
    counter = CellCounter(key_space, categories)
    keys = np.array([key_space - 1, 0, key_space - 1], dtype=np.int64)
    counter.add(keys, np.array([6, 0, 6], dtype=np.uint32))
    assert_counts(counter, {(key_space - 1, 6): 2, (0, 0): 1})


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
def test_nothing_counted_is_nothing_found(space):
    counter = CellCounter(*space)
    assert_counts(counter, {})
    none = np.empty(0, dtype=np.int64)
    counter.add(none, none.astype(np.uint8))
    counter.add_counts(none, none, none)
    assert_counts(counter, {})
