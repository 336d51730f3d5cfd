"""Counts that were made apart add up: as plain arrays, in any order, on any kind of block."""

import numpy as np
import pytest

from pegsynth.codec import pair_counts as pairs
from pegsynth.codec.pair_counts import PairCounter, count_pairs
from pegsynth.errors import ParameterError
from pegsynth.methods.gibbs.blocks import BlockCounter, disintegrate
from pegsynth.methods.gibbs.spec import HashSpec

COUNTS = (2, 3, 40)
SPEC = HashSpec(("a", "b", "c"), COUNTS, ((2, 1), (0, 2), (1, 0)), 2)


def codes(rows, seed=1):
    drawn = np.random.default_rng(seed).integers(0, COUNTS, size=(rows, 3))
    return drawn.astype(np.uint8)


def block_counter(limit):
    return BlockCounter(SPEC, threads=2, most_dense_cells=limit)


def cells(blocks):
    return [[part.tolist() for part in block.cells()] for block in blocks.blocks]


@pytest.mark.parametrize("limit", [0, 500, 10**6], ids=["listed", "mixed", "tabulated"])
def test_blocks_counted_apart(limit):
    rows = codes(500)
    with (
        block_counter(limit) as first,
        block_counter(limit) as second,
        block_counter(limit) as whole,
    ):
        first.add(rows[:123])
        second.add(rows[123:])
        kept = {name: array.copy() for name, array in first.arrays().items()}
        whole.absorb(second.arrays())
        whole.absorb(kept)
        assert cells(whole.blocks()) == cells(disintegrate([rows], SPEC, most_dense_cells=limit))


@pytest.mark.parametrize("limit", [0, 50, 10**6])
def test_pairs_counted_apart(limit, monkeypatch):
    monkeypatch.setattr(pairs, "DENSE_PAIR_CELLS", limit)
    rows = codes(500)
    with PairCounter(COUNTS) as first, PairCounter(COUNTS, threads=2) as whole:
        first.add(rows[:77])
        whole.absorb(first.arrays())
        whole.add(rows[77:])
        found, expected = whole.counts(), count_pairs([rows], COUNTS)
    assert np.array_equal(found.mutual_information(), expected.mutual_information())
    for mine, other in zip(found.one_way_counts(), expected.one_way_counts(), strict=True):
        assert np.array_equal(mine, other)


def test_one_row_in_so_many():
    rows = codes(1000)
    with PairCounter(COUNTS, every=10) as counter:
        counter.add(rows[:600])
        counter.add(rows[600:])
        total = sum(int(line.sum()) for line in counter.counts().one_way_counts())
    assert total == 3 * 100


@pytest.mark.parametrize("limit", [0, 10**6])
@pytest.mark.parametrize(
    "change",
    [
        lambda a: a | {"tables": np.zeros(3, dtype=np.int64)},
        lambda a: a | {"tables": a["tables"] - 1, "counts": a["counts"] - 5},
        lambda a: a | {"sizes": a["sizes"][:-1], "tables": a["tables"][:-1]},
        lambda a: a | {"keys": a["keys"] + 10**6, "tables": a["tables"][1:]},
        lambda a: a | {"codes": a["codes"] + 50, "tables": a["tables"][1:]},
    ],
)
def test_arrays_that_cannot_be(limit, change):
    with block_counter(limit) as first, block_counter(limit) as second:
        first.add(codes(50))
        with pytest.raises(ParameterError, match="other features"):
            second.absorb(change(first.arrays()))
