"""Keys, counts and searches of the kernels against their slow twins."""

from collections import Counter
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import slow_key
from pegsynth.kernels import gibbs
from pegsynth.kernels.compiled import as_kernel
from pegsynth.kernels.gibbs import COUNTED
from pegsynth.kernels.key_counts import add_dense, add_pair, keys_of, run_lengths, tail_totals
from pegsynth.methods.gibbs.spec import HashSpec

# Kernels call these; here Python does, compiled all the same.
find_key = as_kernel(gibbs.find_key)
first_above = as_kernel(gibbs.first_above)
keys_of_rows = as_kernel(gibbs.keys_of_rows)
tails_of = as_kernel(gibbs.tails_of)


@st.composite
def specs(draw):
    counts = tuple(draw(st.lists(st.integers(1, 9) | st.just(300), min_size=1, max_size=5)))
    heads = []
    for target in range(len(counts)):
        others = draw(st.permutations([i for i in range(len(counts)) if i != target]))
        heads.append(tuple(others[: draw(st.integers(0, len(others)))]))
    names = tuple(f"f{i}" for i in range(len(counts)))
    return HashSpec(names, counts, tuple(heads), draw(st.integers(0, 16)))


def rows_of(spec, count, seed):
    generator = np.random.default_rng(seed)
    return generator.integers(0, spec.category_counts, size=(count, len(spec.names)))


def number(spec, target, key):
    """The integer of a slow key: heads as digits, first most significant, then the tail."""
    digits, tail = key
    value = 0
    for head, code in zip(spec.heads[target], digits, strict=True):
        value = value * spec.category_counts[head] + code
    return value * 2**spec.tail_bits + tail


def keys_by_column(spec, rows, target):
    columns = np.ascontiguousarray(rows.T)
    totals, keys = np.empty((2, len(rows)), dtype=np.int64)
    tail_totals(columns, spec.tables, totals)
    keys_of(columns, totals, spec.tables, target, keys)
    return keys.tolist(), totals.tolist()


def keys_by_row(spec, rows, target):
    """The same as the sampler computes them, from codes laid out row by row."""
    codes = rows.astype(np.uint32)
    totals, keys = np.empty((2, len(rows)), dtype=np.int64)
    tails_of(codes, spec.tables, totals)
    keys_of_rows(codes, totals, spec.tables, target, keys)
    return keys.tolist(), totals.tolist()


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@settings(deadline=None)
@given(spec=specs(), seed=st.integers(0, 2**32))
def test_keys_follow_the_definition(dtype, spec, seed):
    rows = rows_of(spec, 12, seed).astype(dtype)
    for target in range(len(spec.names)):
        expected = [number(spec, target, slow_key(spec, target, row)) for row in rows.tolist()]
        keys, totals = keys_by_column(spec, rows, target)
        assert keys == expected
        assert keys_by_row(spec, rows, target) == (expected, totals)
        assert max(expected) < spec.key_space(target)


def test_a_key_that_forgets_to_take_the_target_out_is_caught():
    spec = HashSpec(("a", "b"), (2, 3), ((), ()), 4)
    row = np.array([[1, 2]], dtype=np.uint8)
    _, totals = keys_by_column(spec, row, 0)
    assert totals[0] != number(spec, 0, slow_key(spec, 0, [1, 2]))


@settings(max_examples=50, deadline=None)
@given(spec=specs().filter(lambda s: max(s.category_counts) < 10))
def test_the_clear_part_is_injective_and_ignores_the_target(spec):
    for target, heads in enumerate(spec.heads):
        counts = spec.category_counts
        seen = {}
        for digits in product(*(range(counts[h]) for h in heads[:3])):
            row = np.zeros((counts[target], len(counts)), dtype=np.uint8)
            row[:, target] = np.arange(counts[target])
            row[:, list(heads[:3])] = digits
            keys, _ = keys_by_column(spec, row, target)
            assert len(set(keys)) == 1
            seen[digits] = keys[0] >> spec.tail_bits
        assert len(set(seen.values())) == len(seen)


def test_full_conditionals_tell_all_contexts_apart():
    counts = (3, 4, 2)
    spec = HashSpec(("a", "b", "c"), counts, ((1, 2), (0, 2), (0, 1)), 0)
    rows = np.array(list(product(*map(range, counts))), dtype=np.uint8)
    for target in range(3):
        keys, _ = keys_by_column(spec, rows, target)
        assert sorted(set(keys)) == list(range(spec.key_space(target)))
        contexts = {tuple(np.delete(row, target)) for row in rows.tolist()}
        assert len(contexts) == spec.key_space(target)


def test_a_key_of_63_bits_keeps_every_bit():
    counts = (2, 2**20, 2**20, 2**19)
    spec = HashSpec(("a", "b", "c", "d"), counts, ((1, 2, 3), (0,), (0,), (0,)), 4)
    rows = np.array([[c - 1 for c in counts], [0] * 4, [1, 1, 0, 0]], dtype=np.uint32)
    keys, totals = keys_by_column(spec, rows, 0)
    expected = [number(spec, 0, slow_key(spec, 0, row)) for row in rows.tolist()]
    assert keys == expected
    assert keys_by_row(spec, rows, 0) == (expected, totals)
    assert expected[0] >> 4 == 2**59 - 1


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_tables_count_every_row(dtype):
    generator = np.random.default_rng(1)
    keys = generator.integers(0, 5, 200)
    codes = generator.integers(0, 3, 200).astype(dtype)
    dense, pairs = np.zeros((2, 15), dtype=np.int64)
    add_dense(keys, codes, 3, dense)
    add_pair(keys.astype(dtype), codes, 3, pairs)
    expected = Counter(zip(keys.tolist(), codes.tolist(), strict=True))
    assert [expected[cell // 3, cell % 3] for cell in range(15)] == dense.tolist()
    assert np.array_equal(dense, pairs)


@given(cells=st.lists(st.tuples(st.integers(0, 6), st.integers(1, 5)), max_size=30))
def test_run_lengths_sum_equal_neighbours(cells):
    cells.sort()
    numbers, weights = np.array([*zip(*cells, strict=True)] or [[], []], dtype=np.int64)
    numbers, weights = np.ascontiguousarray(numbers), np.ascontiguousarray(weights)
    out_cells, out_counts = np.empty_like(numbers), np.empty_like(weights)
    size = run_lengths(numbers, weights, out_cells, out_counts)
    expected = Counter()
    for cell, weight in cells:
        expected[cell] += weight
    assert dict(zip(out_cells[:size].tolist(), out_counts[:size].tolist(), strict=True)) == expected
    assert size == len(expected)


@settings(deadline=None)
@given(
    counts=st.lists(st.integers(0, 3), min_size=1, max_size=40)
    | st.lists(st.integers(0, 3), min_size=COUNTED - 2, max_size=3 * COUNTED),
    before=st.integers(0, 3),
)
def test_a_search_finds_the_first_count_above(counts, before):
    """Both ways of searching: counting up to COUNTED cells, halving beyond."""
    counts[-1] += 1
    cumulative = np.concatenate([np.full(before, 9), np.cumsum(counts)]).astype(np.uint32)
    for value in range(sum(counts)):
        expected = next(j for j, upto in enumerate(accumulate(counts)) if upto > value)
        assert first_above(cumulative, before, len(counts), np.uint32(value)) == expected


@given(keys=st.sets(st.integers(0, 40)), others=st.lists(st.integers(0, 40)))
def test_a_key_is_found_where_it_is(keys, others):
    low = len(others)
    flat = np.array([*others, *sorted(keys), *others], dtype=np.int64)
    for key in range(42):
        expected = sorted(keys).index(key) if key in keys else -1
        assert find_key(flat, low, low + len(keys), key) == expected
