"""Exact counts of (key, category) cells that are too many to tabulate.

`CellCounter` adds batches and keeps what it has seen as sorted distinct cells with
counts, in memory proportional to the distinct cells. The result does not depend on how
the rows were cut into batches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Int64
from pegsynth.errors import ParameterError
from pegsynth.kernels.key_counts import run_lengths

_PENDING = 1 << 20


class CellCounter:
    """Counts of cells (key, category), keys below `key_space`, categories below `categories`."""

    def __init__(self, key_space: int, categories: int) -> None:
        self._key_space = key_space
        self._categories = categories
        # One sorted number per cell is fastest; two columns where it would not fit.
        self._one_number = key_space * categories < 1 << 63
        self._pending: list[tuple[Int64, Int64, Int64]] = []
        self._pending_size = 0
        self._keys = self._codes = self._counts = np.empty(0, dtype=np.int64)

    def add(self, keys: Int64, codes: NDArray[np.unsignedinteger]) -> None:
        """Count one batch of rows."""
        self._append(*self._reduce(keys, codes.astype(np.int64), np.ones(len(keys), np.int64)))

    def add_counts(self, keys: Int64, codes: Int64, counts: Int64) -> None:
        """Add cells that were counted elsewhere."""
        self._append(*self._reduce(keys, codes, counts))

    def holds(self, keys: Int64, codes: Int64, counts: Int64) -> bool:
        """Say whether cells from elsewhere are possible here."""
        if not len(keys):
            return True
        small = keys.min() >= 0 and codes.min() >= 0 and counts.min() >= 1
        return bool(small and keys.max() < self._key_space and codes.max() < self._categories)

    def cells(self) -> tuple[Int64, Int64, Int64]:
        """Return keys, categories and counts, sorted by key, then category."""
        self._merge()
        return self._keys, self._codes, self._counts

    def _append(self, keys: Int64, codes: Int64, counts: Int64) -> None:
        self._pending.append((keys, codes, counts))
        self._pending_size += len(keys)
        if self._pending_size > max(_PENDING, len(self._keys)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        parts = [(self._keys, self._codes, self._counts), *self._pending]
        keys, codes, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._keys, self._codes, self._counts = self._reduce(keys, codes, counts)
        self._pending, self._pending_size = [], 0

    def _reduce(self, keys: Int64, codes: Int64, counts: Int64) -> tuple[Int64, Int64, Int64]:
        if self._one_number:
            cells, counts = _sum_equal(keys * self._categories + codes, counts)
            return cells // self._categories, cells % self._categories, counts
        order = np.lexsort((codes, keys))
        keys, codes, counts = keys[order], codes[order], counts[order]
        first = np.ones(len(keys), dtype=bool)
        first[1:] = (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1])
        starts = np.flatnonzero(first)
        return keys[starts], codes[starts], np.add.reduceat(counts, starts)


def cell_arrays(counters: Sequence[CellCounter]) -> dict[str, Int64]:
    """Return the cells of several counters as four plain arrays."""
    parts = [counter.cells() for counter in counters]
    columns = zip(*parts, strict=True) if parts else ([np.empty(0, dtype=np.int64)],) * 3
    keys, codes, counts = (np.concatenate(column) for column in columns)
    sizes = np.array([len(part[0]) for part in parts], dtype=np.int64)
    return {"sizes": sizes, "keys": keys, "codes": codes, "counts": counts}


def absorb_cells(counters: Sequence[CellCounter], arrays: Mapping[str, Int64]) -> None:
    """Add what `cell_arrays` returned elsewhere; refuse what cannot have been returned."""
    sizes, *columns = (arrays[name] for name in ("sizes", "keys", "codes", "counts"))
    if len(sizes) != len(counters) or {len(each) for each in columns} != {int(sizes.sum())}:
        raise ParameterError("these counts belong to other features")
    ends = np.cumsum(sizes)[:-1]
    split = [np.split(column, ends) for column in columns] if len(sizes) else [[], [], []]
    for counter, *cells in zip(counters, *split, strict=True):
        if not counter.holds(*cells):
            raise ParameterError("these counts belong to other features")
        counter.add_counts(*cells)


def _sum_equal(cells: Int64, counts: Int64) -> tuple[Int64, Int64]:
    if len(counts) and counts.min() == counts.max() == 1:
        cells = np.sort(cells)
    else:
        order = np.argsort(cells, kind="stable")
        cells, counts = cells[order], counts[order]
    out_cells, out_counts = np.empty_like(cells), np.empty_like(counts)
    size = run_lengths(cells, counts, out_cells, out_counts)
    return out_cells[:size].copy(), out_counts[:size].copy()
