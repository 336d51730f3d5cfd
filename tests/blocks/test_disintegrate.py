"""Counts are the same however rows arrive and however blocks are kept."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import slow_key
from pegsynth.errors import DataError, ParameterError
from pegsynth.methods.gibbs.blocks import Blocks, DenseBlock, SparseBlock, disintegrate
from pegsynth.methods.gibbs.spec import HashSpec

SPECS = {
    "plain": HashSpec(("a", "b", "c"), (2, 3, 4), ((), (), ()), 0),
    "tail": HashSpec(("a", "b", "c"), (2, 3, 4), ((), (), ()), 3),
    "heads and tail": HashSpec(("a", "b", "c"), (2, 3, 4), ((2,), (0,), (0,)), 1),
    "full": HashSpec(("a", "b", "c"), (2, 3, 4), ((2, 1), (0, 2), (1, 0)), 0),
    "one category": HashSpec(("a", "b", "c"), (1, 3, 1), ((1,), (0, 2), (1,)), 2),
    "one feature": HashSpec(("a",), (5,), ((),), 1),
}
DTYPES = (np.uint8, np.uint16, np.uint32)

specs = st.sampled_from(list(SPECS.values()))
seeds = st.integers(0, 2**32)


def table(spec, rows, seed, dtype=np.uint8):
    generator = np.random.default_rng(seed)
    return generator.integers(0, spec.category_counts, size=(rows, len(spec.names))).astype(dtype)


def listed(blocks):
    """All cells of all blocks as plain numbers."""
    return [[part.tolist() for part in block.cells()] for block in blocks.blocks]


def number(spec, target, row):
    digits, tail = slow_key(spec, target, row)
    value = 0
    for head, code in zip(spec.heads[target], digits, strict=True):
        value = value * spec.category_counts[head] + code
    return value * 2**spec.tail_bits + tail


def slow_counts(spec, codes):
    return [
        Counter((number(spec, target, row), row[target]) for row in codes.tolist())
        for target in range(len(spec.names))
    ]


def slow_cells(spec, codes):
    cells = []
    for counts in slow_counts(spec, codes):
        ordered = sorted(counts)
        cells.append([[k for k, _ in ordered], [c for _, c in ordered]])
        cells[-1].append([counts[cell] for cell in ordered])
    return cells


@settings(deadline=None)
@given(
    spec=specs,
    rows=st.integers(0, 120),
    seed=seeds,
    size=st.integers(1, 130),
    threads=st.integers(1, 4),
    dtype=st.sampled_from(DTYPES),
)
def test_dense_sparse_streamed_and_threaded_counts_are_the_slow_ones(
    spec, rows, seed, size, threads, dtype
):
    codes = table(spec, rows, seed, dtype)
    expected = slow_cells(spec, codes)
    batches = [codes[start : start + size] for start in range(0, rows, size)]
    for most_dense_cells, kind in ((None, DenseBlock), (0, SparseBlock)):
        options = {"threads": threads, "most_dense_cells": most_dense_cells}
        streamed = disintegrate(iter(batches), spec, **options)
        assert all(isinstance(block, kind) for block in streamed.blocks)
        assert listed(streamed) == expected
        assert listed(disintegrate([codes], spec, **options)) == expected


def test_a_lost_batch_is_caught():
    spec = SPECS["tail"]
    codes = table(spec, 60, 3)
    assert listed(disintegrate([codes[:59]], spec)) != slow_cells(spec, codes)


def test_there_is_one_block_per_feature():
    blocks = disintegrate([], SPECS["plain"])
    with pytest.raises(ParameterError, match="one block per feature"):
        Blocks(blocks.spec, blocks.blocks[:2])


@settings(deadline=None, max_examples=50)
@given(spec=specs, rows=st.integers(0, 60), seed=seeds, dense=st.booleans())
def test_every_entry_is_numbered(spec, rows, seed, dense):
    codes = table(spec, rows, seed)
    blocks = disintegrate([codes], spec, most_dense_cells=None if dense else 0)
    for target, counts in enumerate(slow_counts(spec, codes)):
        start = blocks.blocks[target].entry_start().tolist()
        assert (start[0], start[-1]) == (0, len(counts))
        assert len(start) == blocks.entry_counts[target] + 1


@settings(deadline=None, max_examples=50)
@given(
    spec=specs,
    rows=st.integers(0, 60),
    seed=seeds,
    tabulated=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_the_kernels_tables_hold_running_counts_of_every_entry(spec, rows, seed, tabulated):
    codes = table(spec, rows, seed)
    both = [disintegrate([codes], spec, most_dense_cells=most) for most in (0, None)]
    mixed = [both[tabulated[i]].blocks[i] for i in range(len(spec.names))]
    tables = Blocks(spec, tuple(mixed)).tables
    entries = 0
    for target, counts in enumerate(slow_counts(spec, codes)):
        categories = spec.category_counts[target]
        assert tables.entry_base[target] == entries
        assert tables.dense[target] == tabulated[target]
        if tables.dense[target]:
            for key in range(spec.key_space(target)):
                start = tables.cell_base[target] + key * categories
                running = np.cumsum([counts[key, code] for code in range(categories)])
                found = tables.dense_cumulative[start : start + categories]
                assert found.tolist() == running.tolist()
            entries += spec.key_space(target)
            assert tables.cell_base[target + 1] == tables.cell_base[target] + (
                spec.key_space(target) * categories
            )
        else:
            first, last = tables.key_base[target], tables.key_base[target + 1]
            assert tables.keys[first:last].tolist() == sorted({key for key, _ in counts})
            for position in range(first, last):
                key = int(tables.keys[position])
                cells = slice(tables.cell_start[position], tables.cell_start[position + 1])
                present = [code for code in range(categories) if counts[key, code]]
                running = np.cumsum([counts[key, code] for code in present])
                assert tables.cell_category[cells].tolist() == present
                assert tables.cell_cumulative[cells].tolist() == running.tolist()
            entries += last - first
    assert tables.entry_base[-1] == entries


@pytest.mark.parametrize("most_dense_cells", [None, 0])
@pytest.mark.parametrize("batches", [[], [np.zeros((0, 3), dtype=np.uint8)]], ids=["none", "empty"])
def test_no_rows_give_empty_blocks(batches, most_dense_cells):
    spec = SPECS["heads and tail"]
    blocks = disintegrate(batches, spec, most_dense_cells=most_dense_cells)
    assert listed(blocks) == [[[], [], []]] * 3
    assert not blocks.tables.dense_cumulative.any()


@pytest.mark.parametrize("most_dense_cells", [None, 0])
def test_long_batches_are_cut_without_loss(most_dense_cells):
    spec = SPECS["heads and tail"]
    codes = table(spec, 300_000, 1)
    options = {"most_dense_cells": most_dense_cells}
    whole = disintegrate([codes], spec, **options)
    parts = disintegrate([codes[:131_071], codes[131_071:]], spec, threads=2, **options)
    assert listed(whole) == listed(parts)
    assert all(block.cells()[2].sum() == 300_000 for block in whole.blocks)


def test_whether_a_block_is_tabulated_depends_on_the_key_space_alone():
    spec = HashSpec(("a", "b"), (3, 1 << 15), ((1,), (0,)), 16)
    for rows in (0, 1, 50):
        blocks = disintegrate([table(spec, rows, 1, np.uint16)], spec)
        kinds = [type(block) for block in blocks.blocks]
        assert kinds == [SparseBlock, SparseBlock]
    blocks = disintegrate([], HashSpec(("a", "b"), (3, 4), ((1,), (0,)), 1), most_dense_cells=24)
    assert [type(block) for block in blocks.blocks] == [DenseBlock, DenseBlock]


def test_keys_of_63_bits_are_counted():
    """Key space times categories beyond one 63-bit number, through the whole path."""
    spec = HashSpec(("a", "b", "c", "d"), (7, 2**21, 2**21, 2**21), ((1, 2, 3), (), (), ()), 0)
    codes = table(spec, 40, 9, np.uint32)
    codes = np.concatenate([codes, codes[:15], codes[:1]])
    codes[0] = codes[-1] = [6, 2**21 - 1, 2**21 - 1, 2**21 - 1]
    blocks = disintegrate([codes[:30], codes[30:]], spec, most_dense_cells=0, threads=2)
    counts = Counter(((b << 42) + (c << 21) + d, a) for a, b, c, d in codes.tolist())
    keys, categories, found = blocks.blocks[0].cells()
    cells = list(zip(keys.tolist(), categories.tolist(), strict=True))
    assert cells == sorted(counts)
    assert found.tolist() == [counts[cell] for cell in cells]
    assert keys.max() == 2**63 - 1


def test_more_rows_per_key_than_32_bits_are_refused():
    spec = SPECS["one feature"]
    counts = np.zeros((2, 5), dtype=np.int64)
    counts[1] = [2**31, 2**31 - 1, 0, 0, 0]
    assert Blocks(spec, (DenseBlock(counts),)).tables.dense_cumulative[-1] == 2**32 - 1
    counts[1, 4] = 1
    keys, codes = np.nonzero(counts)
    sparse = SparseBlock.from_cells(5, keys, codes, counts[keys, codes])
    for block in (DenseBlock(counts), sparse):
        with pytest.raises(DataError, match="share a key"):
            _ = Blocks(spec, (block,)).tables
