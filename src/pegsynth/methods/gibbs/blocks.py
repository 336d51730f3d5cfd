"""Statistical building blocks: the counts of one target given its key.

A `DenseBlock` tabulates every key of a small key space; a `SparseBlock` lists the cells
that occur, sorted. Both hold the same counts, add up, and answer alike.

All blocks of a table: what disintegration leaves of it.

`Blocks` is confidential: it holds exact counts. It is additive (`merge`), so a table may
be counted in parts, by several workers, in any order.

Disintegrate: count a stream of code rows into blocks.

Batches come in as row-major code matrices, of any size; counts are added feature by
feature, features spread over threads. Which blocks are tabulated and which are listed
follows from the key space alone, and the counts are the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.pair_counts import Columns, TableCounter, column_major
from pegsynth.errors import DataError, ParameterError
from pegsynth.kernels.arrays import Int64
from pegsynth.kernels.key_counts import add_dense, keys_of, tail_totals
from pegsynth.kernels.sampling_arrays import EntryTables
from pegsynth.methods.gibbs.spec import HashSpec


@dataclass(frozen=True)
class DenseBlock:
    """Counts n_kj as a table with one line per key."""

    counts: Int64

    @property
    def entry_count(self) -> int:
        """Number of entries that have a number, here all keys."""
        return len(self.counts)

    def cells(self) -> tuple[Int64, Int64, Int64]:
        """Return keys, categories and counts of the cells that are not zero, sorted."""
        keys, codes = np.nonzero(self.counts)
        return keys, codes, self.counts[keys, codes]

    def entry_start(self) -> Int64:
        """Return where the cells of each entry start in `cells`, and the end."""
        sizes = np.count_nonzero(self.counts, axis=1)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@dataclass(frozen=True)
class SparseBlock:
    """Counts of the cells that occur: entry e has cells start[e] .. start[e + 1]."""

    categories: int
    keys: Int64
    start: Int64
    codes: Int64
    counts: Int64

    @classmethod
    def from_cells(cls, categories: int, keys: Int64, codes: Int64, counts: Int64) -> SparseBlock:
        """Build a block from cells sorted by key, then category."""
        first = np.ones(len(keys), dtype=bool)
        first[1:] = keys[1:] != keys[:-1]
        starts = np.flatnonzero(first).astype(np.int64)
        return cls(categories, keys[starts], np.append(starts, len(keys)), codes, counts)

    @property
    def entry_count(self) -> int:
        """Number of entries that have a number, here the keys that occur."""
        return len(self.keys)

    def cells(self) -> tuple[Int64, Int64, Int64]:
        """Return keys, categories and counts of the cells that are not zero, sorted."""
        return np.repeat(self.keys, np.diff(self.start)), self.codes, self.counts

    def entry_start(self) -> Int64:
        """Return where the cells of each entry start in `cells`, and the end."""
        return self.start


Block = DenseBlock | SparseBlock


ALWAYS_DENSE_CELLS = 1 << 12
ALL_DENSE_CELLS = 1 << 24
MOST_ROWS = (1 << 32) - 1


def dense_limit(features: int) -> int:
    """Return how many cells a block may have to be tabulated; a function of M alone."""
    return max(ALWAYS_DENSE_CELLS, ALL_DENSE_CELLS // features)


@dataclass(frozen=True)
class Blocks:
    """One block per feature, and the hash function that their keys come from."""

    spec: HashSpec
    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        if len(self.blocks) != len(self.spec.category_counts):
            raise ParameterError("there must be one block per feature")

    @cached_property
    def entry_counts(self) -> tuple[int, ...]:
        """Number of numbered entries of every block."""
        return tuple(block.entry_count for block in self.blocks)

    @cached_property
    def tables(self) -> EntryTables:
        """Return cumulative counts as flat arrays for the kernels."""
        return _entry_tables(self)


def _entry_tables(blocks: Blocks) -> EntryTables:
    dense = np.array([isinstance(block, DenseBlock) for block in blocks.blocks])
    tabulated = [b.counts if isinstance(b, DenseBlock) else _NO_TABLE for b in blocks.blocks]
    listed = [b if isinstance(b, SparseBlock) else _NO_CELLS for b in blocks.blocks]
    cell_counts = [len(block.codes) for block in listed]
    first_cell = np.concatenate([[0], np.cumsum(cell_counts)]).astype(np.int64)
    starts = [block.start[:-1] + first_cell[i] for i, block in enumerate(listed)]
    return EntryTables(
        dense=dense,
        entry_base=_offsets(blocks.entry_counts),
        cell_base=_offsets([table.size for table in tabulated]),
        dense_cumulative=_narrow(np.cumsum(table, axis=1).ravel() for table in tabulated),
        key_base=_offsets([len(block.keys) for block in listed]),
        keys=np.concatenate([block.keys for block in listed]),
        cell_start=np.append(np.concatenate(starts), first_cell[-1]).astype(np.int64),
        cell_category=np.concatenate([block.codes for block in listed]).astype(np.uint32),
        cell_cumulative=_narrow(_cumulate_entries(block) for block in listed),
    )


def _offsets(sizes: Sequence[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _cumulate_entries(block: SparseBlock) -> NDArray[np.int64]:
    running = np.cumsum(block.counts)
    before = np.concatenate([[0], running])[block.start[:-1]]
    cumulated: NDArray[np.int64] = running - np.repeat(before, np.diff(block.start))
    return cumulated


def _narrow(parts: Iterable[NDArray[np.int64]]) -> NDArray[np.uint32]:
    narrow = []
    for part in parts:
        if len(part) and part.max() > MOST_ROWS:
            raise DataError(f"more than {MOST_ROWS} rows share a key; split the table or add heads")
        narrow.append(part.astype(np.uint32))
    return np.concatenate(narrow)


_NO_TABLE = np.empty((0, 1), dtype=np.int64)
_NONE = np.empty(0, dtype=np.int64)
_NO_CELLS = SparseBlock(1, _NONE, np.zeros(1, dtype=np.int64), _NONE, _NONE)


_BATCH_ROWS = 1 << 17
_BATCH_CELLS = 1 << 22


class BlockCounter(TableCounter[int]):
    """Counts of every target given its key, batch by batch.

    Parameters
    ----------
    spec
        The hash function.
    threads
        How many features are counted at a time.
    most_dense_cells
        Key space times categories up to which a block is tabulated; None for the
        default, a function of the number of features.
    """

    def __init__(
        self, spec: HashSpec, *, threads: int = 1, most_dense_cells: int | None = None
    ) -> None:
        features = len(spec.category_counts)
        limit = dense_limit(features) if most_dense_cells is None else most_dense_cells
        spaces = {i: (spec.key_space(i), spec.category_counts[i]) for i in range(features)}
        super().__init__(spaces, most_dense=limit, threads=threads)
        self._spec = spec
        self._merged = {
            target: np.array(line)
            for target, line in enumerate(spec.levels)
            if line != tuple(range(len(line)))
        }

    def add(self, batch: Columns) -> None:
        """Count one batch of code rows, row-major."""
        # Parts that fit in the processor's cache count faster than long ones.
        step = max(1, min(_BATCH_ROWS, _BATCH_CELLS // max(batch.shape[1], 1)))
        for start in range(0, len(batch), step):
            columns = self._in_levels(column_major(batch[start : start + step]))
            totals = np.empty(columns.shape[1], dtype=np.int64)
            tail_totals(columns, self._spec.tables, totals)
            self._each_share(partial(self._add, columns, totals))

    def _in_levels(self, columns: Columns) -> Columns:
        """Merge categories row by row, as the hash function says (R10)."""
        if not self._merged:
            return columns
        merged = columns.copy()
        for target, line in self._merged.items():
            merged[target] = line[columns[target]]
        return merged

    def _add(self, columns: Columns, totals: NDArray[np.int64], share: Sequence[int]) -> None:
        keys = np.empty(columns.shape[1], dtype=np.int64)
        for target in share:
            keys_of(columns, totals, self._spec.tables, target, keys)
            if target in self._flat:
                categories = self._spec.category_counts[target]
                add_dense(keys, columns[target], categories, self._flat[target])
            else:
                self._wide[target].add(keys, columns[target])

    def blocks(self) -> Blocks:
        """Return the blocks of all rows so far."""
        features = range(len(self._spec.category_counts))
        return Blocks(self._spec, tuple(self._block(target) for target in features))

    def _block(self, target: int) -> Block:
        categories = self._spec.category_counts[target]
        if target in self._flat:
            return DenseBlock(self._flat[target].reshape(-1, categories))
        return SparseBlock.from_cells(categories, *self._wide[target].cells())


def disintegrate(
    batches: Iterable[Columns],
    spec: HashSpec,
    *,
    threads: int = 1,
    most_dense_cells: int | None = None,
) -> Blocks:
    """Count batches of code rows into one block per feature; see `BlockCounter`."""
    with BlockCounter(spec, threads=threads, most_dense_cells=most_dense_cells) as counter:
        for batch in batches:
            counter.add(batch)
        return counter.blocks()
