"""Cells of one-, two- and three-way tables, original and synthetic side by side.

Goes in: code columns of two tables and the number of categories of each. Comes out: the
cells that occur in either table with both counts. Small tables are tabulated, large ones
are counted as sparse cells, so memory grows with the rows and never with the number of
possible cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import DataError
from pegsynth.hashing import count_pairs
from pegsynth.kernels.counting import add_dense

Codes = NDArray[np.unsignedinteger[Any]]
Int64 = NDArray[np.int64]

DENSE_CELLS = 1 << 20
CELL_LIMIT = 1 << 63
_MIXER = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Cells:
    """Distinct cells of one table in increasing order, each one number, with counts."""

    keys: Int64
    counts: Int64


def column_major(codes: Codes, category_counts: Sequence[int], *, what: str) -> Codes:
    """Check a code matrix against the number of categories; return it one feature a row.

    Raises
    ------
    DataError
        It is no matrix of codes, has no rows, or holds a code that the schema lacks.
    """
    if codes.ndim != 2 or not np.issubdtype(codes.dtype, np.integer):
        raise DataError(f"{what}: expected a matrix of integer codes; encode the table first")
    if codes.shape[1] != len(category_counts):
        raise DataError(
            f"{what}: {codes.shape[1]} columns of codes for {len(category_counts)} features"
        )
    if len(codes) == 0:
        raise DataError(f"{what}: the table has no rows, so there is nothing to compare")
    columns = np.ascontiguousarray(codes.T)
    for position, (column, count) in enumerate(zip(columns, category_counts, strict=True)):
        if column.min() < 0 or column.max() >= count:
            raise DataError(
                f"{what}: column {position + 1} holds a code outside its {count} categories; "
                "encode both tables with the same schema"
            )
    return columns


def one_way(column: Codes, size: int) -> Int64:
    """Count every category of one column, zeros included."""
    return np.bincount(column, minlength=size).astype(np.int64)


def count_cells(columns: Codes, sizes: Sequence[int]) -> Cells:
    """Count the cells of a two- or three-way table.

    Parameters
    ----------
    columns
        One row of codes a feature.
    sizes
        Number of categories of each feature, their product below 2^63. Cells are numbered
        with the last feature fastest.
    """
    cells = math.prod(sizes)
    if cells > DENSE_CELLS:
        return _sparse(columns, sizes)
    if len(sizes) == 2:
        pairs = count_pairs([columns.T], (sizes[0], sizes[1]))
        counts = pairs.tables[0, 1].ravel()
    else:
        counts = np.zeros(cells, dtype=np.int64)
        add_dense(_joined(columns[:-1], sizes[:-1]), columns[-1], sizes[-1], counts)
    keys = np.flatnonzero(counts)
    return Cells(keys, counts[keys])


def align(first: Cells, second: Cells) -> tuple[Int64, Int64, Int64]:
    """Return the cells that occur in either table, and the counts of each."""
    keys = np.union1d(first.keys, second.keys)
    counts = np.zeros((2, len(keys)), dtype=np.int64)
    for row, cells in enumerate((first, second)):
        counts[row, np.searchsorted(keys, cells.keys)] = cells.counts
    return keys, counts[0], counts[1]


def group_sizes(columns: Codes, sizes: Sequence[int]) -> Int64:
    """Count the rows of every combination that occurs, in no particular order."""
    keys = np.zeros(columns.shape[1], dtype=np.int64)
    space = 1
    for column, size in zip(columns, sizes, strict=True):
        if space * size >= CELL_LIMIT:
            distinct, keys = np.unique(keys, return_inverse=True)
            space = len(distinct)
        keys = keys * size + column
        space *= size
    return np.unique(keys, return_counts=True)[1].astype(np.int64)


def row_keys(columns: Codes, sizes: Sequence[int]) -> Int64:
    """Return a number for every row and all its features; beyond 63 bits it is a hash."""
    keys = np.zeros(columns.shape[1], dtype=np.uint64)
    wide = math.prod(sizes) >= CELL_LIMIT
    for column, size in zip(columns, sizes, strict=True):
        keys = keys * np.uint64(_MIXER if wide else size) + column.astype(np.uint64)
        if wide:
            keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)


def _joined(columns: Codes, sizes: Sequence[int]) -> Int64:
    keys: Int64 = columns[0].astype(np.int64)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        keys *= size
        keys += column
    return keys


def _sparse(columns: Codes, sizes: Sequence[int]) -> Cells:
    keys, counts = np.unique(_joined(columns, sizes), return_counts=True)
    return Cells(keys, counts.astype(np.int64))
