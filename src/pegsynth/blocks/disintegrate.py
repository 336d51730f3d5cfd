"""Disintegrate: count a stream of code rows into blocks.

Batches come in as row-major code matrices, of any size; counts are added feature by
feature, features spread over threads. Which blocks are tabulated and which are listed
follows from the key space alone, and the counts are the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pegsynth.blocks.block import Block, DenseBlock, SparseBlock
from pegsynth.blocks.blocks import Blocks, dense_limit
from pegsynth.errors import ParameterError
from pegsynth.hashing.cells import CellCounter, absorb_cells, cell_arrays
from pegsynth.hashing.columns import Columns, column_major
from pegsynth.hashing.spec import HashSpec
from pegsynth.kernels.key_counts import add_dense, keys_of, tail_totals

_BATCH_ROWS = 1 << 17
_BATCH_CELLS = 1 << 22


class BlockCounter:
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

    Notes
    -----
    What was counted apart can be added: `arrays` gives it as plain arrays, `absorb` takes
    them in.
    """

    def __init__(
        self, spec: HashSpec, *, threads: int = 1, most_dense_cells: int | None = None
    ) -> None:
        features = len(spec.category_counts)
        limit = dense_limit(features) if most_dense_cells is None else most_dense_cells
        cells = [spec.key_space(i) * spec.category_counts[i] for i in range(features)]
        small = [target for target in range(features) if cells[target] <= limit]
        self._spec = spec
        self._tables = np.zeros(sum(cells[target] for target in small), dtype=np.int64)
        ends = np.cumsum([cells[target] for target in small])[:-1]
        parts = np.split(self._tables, ends) if small else []
        self._flat = dict(zip(small, parts, strict=True))
        self._wide = {
            target: CellCounter(spec.key_space(target), spec.category_counts[target])
            for target in range(features)
            if target not in self._flat
        }
        self._merged = {
            target: np.array(line)
            for target, line in enumerate(spec.levels)
            if line != tuple(range(len(line)))
        }
        self._shares = [range(start, features, threads) for start in range(threads)]
        self._pool = ThreadPoolExecutor(threads)

    def add(self, batch: Columns) -> None:
        """Count one batch of code rows, row-major."""
        # Parts that fit in the processor's cache count faster than long ones.
        step = max(1, min(_BATCH_ROWS, _BATCH_CELLS // max(batch.shape[1], 1)))
        for start in range(0, len(batch), step):
            columns = self._in_levels(column_major(batch[start : start + step]))
            totals = np.empty(columns.shape[1], dtype=np.int64)
            tail_totals(columns, self._spec.tables, totals)
            work = [self._pool.submit(self._add, columns, totals, each) for each in self._shares]
            for future in work:
                future.result()

    def _in_levels(self, columns: Columns) -> Columns:
        """Merge categories row by row, as the hash function says (R10)."""
        if not self._merged:
            return columns
        merged = columns.copy()
        for target, line in self._merged.items():
            merged[target] = line[columns[target]]
        return merged

    def _add(self, columns: Columns, totals: NDArray[np.int64], share: range) -> None:
        keys = np.empty(columns.shape[1], dtype=np.int64)
        for target in share:
            keys_of(columns, totals, self._spec.tables, target, keys)
            if target in self._flat:
                categories = self._spec.category_counts[target]
                add_dense(keys, columns[target], categories, self._flat[target])
            else:
                self._wide[target].add(keys, columns[target])

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """Return the counts so far; they change with the next batch."""
        return {"tables": self._tables, **cell_arrays(list(self._wide.values()))}

    def absorb(self, arrays: Mapping[str, NDArray[np.int64]]) -> None:
        """Add counts of other rows."""
        tables = arrays["tables"]
        if tables.shape != self._tables.shape or (len(tables) and tables.min() < 0):
            raise ParameterError("these counts belong to other features")
        absorb_cells(list(self._wide.values()), arrays)
        self._tables += tables

    def blocks(self) -> Blocks:
        """Return the blocks of all rows so far."""
        features = range(len(self._spec.category_counts))
        return Blocks(self._spec, tuple(self._block(target) for target in features))

    def _block(self, target: int) -> Block:
        categories = self._spec.category_counts[target]
        if target in self._flat:
            return DenseBlock(self._flat[target].reshape(-1, categories))
        return SparseBlock.from_cells(categories, *self._wide[target].cells())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()


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
