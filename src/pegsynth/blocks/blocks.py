"""All blocks of a table: what disintegration leaves of it.

`Blocks` is confidential: it holds exact counts. It is additive (`merge`), so a table may
be counted in parts, by several workers, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pegsynth.blocks.block import Block, DenseBlock, SparseBlock
from pegsynth.errors import DataError, ParameterError
from pegsynth.hashing.cells import CellCounter
from pegsynth.hashing.spec import HashSpec
from pegsynth.kernels.sampling_arrays import EntryTables

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


def merge(parts: Sequence[Blocks]) -> Blocks:
    """Add up blocks that were counted apart with one hash function."""
    spec = parts[0].spec
    if any(part.spec != spec for part in parts):
        raise ParameterError("blocks with different hash functions cannot be added")
    merged = [_merge_blocks(spec, target, parts) for target in range(len(parts[0].blocks))]
    return Blocks(spec, tuple(merged))


def _merge_blocks(spec: HashSpec, target: int, parts: Sequence[Blocks]) -> Block:
    blocks = [part.blocks[target] for part in parts]
    dense = [block for block in blocks if isinstance(block, DenseBlock)]
    if len(dense) == len(blocks):
        return DenseBlock(np.sum([block.counts for block in dense], axis=0))
    categories = spec.category_counts[target]
    counter = CellCounter(spec.key_space(target), categories)
    for block in blocks:
        counter.add_counts(*block.cells())
    return SparseBlock.from_cells(categories, *counter.cells())


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
