"""Disintegrate: count a stream of code rows into blocks.

Batches come in as row-major code matrices, of any size; counts are added feature by
feature, features spread over threads. Which blocks are tabulated and which are listed
follows from the key space alone, and the counts are the same either way.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from pegsynth.blocks.block import Block, DenseBlock, SparseBlock
from pegsynth.blocks.blocks import Blocks, dense_limit
from pegsynth.hashing.cells import CellCounter
from pegsynth.hashing.spec import HashSpec
from pegsynth.kernels.counting import add_dense, keys_of, tail_totals

Columns = NDArray[np.unsignedinteger]

_BATCH_ROWS = 1 << 17


def disintegrate(
    batches: Iterable[NDArray[np.unsignedinteger]],
    spec: HashSpec,
    *,
    threads: int = 1,
    most_dense_cells: int | None = None,
) -> Blocks:
    """Count batches of code rows into one block per feature.

    Parameters
    ----------
    batches
        Code matrices with one line per row and one column per feature.
    spec
        The hash function.
    threads
        How many features are counted at a time.
    most_dense_cells
        Key space times categories up to which a block is tabulated; None for the
        default, a function of the number of features.
    """
    features = len(spec.category_counts)
    limit = dense_limit(features) if most_dense_cells is None else most_dense_cells
    counters = [_counter(spec, target, limit) for target in range(features)]

    def add(columns: Columns, totals: NDArray[np.int64], share: range) -> None:
        keys = np.empty(columns.shape[1], dtype=np.int64)
        for target in share:
            keys_of(columns, totals, spec.tables, target, keys)
            counters[target].add(keys, columns[target])

    shares = [range(start, features, threads) for start in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        for part in _parts(batches):
            columns = np.ascontiguousarray(part.T)
            totals = np.empty(columns.shape[1], dtype=np.int64)
            tail_totals(columns, spec.tables, totals)
            for future in [pool.submit(add, columns, totals, share) for share in shares]:
                future.result()
    return Blocks(spec, tuple(counter.block() for counter in counters))


def _parts(batches: Iterable[Columns]) -> Iterable[Columns]:
    # Parts that fit in the processor's cache count faster than long ones.
    for batch in batches:
        for start in range(0, len(batch), _BATCH_ROWS):
            yield batch[start : start + _BATCH_ROWS]


class _DenseCounter:
    def __init__(self, key_space: int, categories: int) -> None:
        self._categories = categories
        self._counts = np.zeros(key_space * categories, dtype=np.int64)

    def add(self, keys: NDArray[np.int64], codes: Columns) -> None:
        add_dense(keys, codes, self._categories, self._counts)

    def block(self) -> Block:
        return DenseBlock(self._counts.reshape(-1, self._categories))


class _SparseCounter:
    def __init__(self, key_space: int, categories: int) -> None:
        self._categories = categories
        self._cells = CellCounter(key_space, categories)

    def add(self, keys: NDArray[np.int64], codes: Columns) -> None:
        self._cells.add(keys, codes)

    def block(self) -> Block:
        return SparseBlock.from_cells(self._categories, *self._cells.cells())


def _counter(spec: HashSpec, target: int, limit: int) -> _DenseCounter | _SparseCounter:
    key_space, categories = spec.key_space(target), spec.category_counts[target]
    dense = key_space * categories <= limit
    return (_DenseCounter if dense else _SparseCounter)(key_space, categories)
