"""Tables of counts, and combinations of features as numbers.

Goes in: code columns of an original, of released tables, of a hold-out, and the number of
categories of each feature. Comes out: the cells that occur with their counts, or one number
a row that is the same for equal combinations wherever they occur, so that counting and
matching are array look-ups. Small tables are tabulated, large ones are counted as sparse
cells: memory grows with the rows and never with the number of possible cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.codec.pair_counts import count_pairs
from pegsynth.errors import DataError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.kernels.key_counts import add_dense

DENSE_CELLS = 1 << 20
CELL_LIMIT = 1 << 63


@dataclass(frozen=True)
class Cells:
    """Distinct cells of one table in increasing order, each one number, with counts."""

    keys: Int64
    counts: Int64


@dataclass(frozen=True)
class Groups:
    """The combination of every row of every table, as a number below `count`."""

    ids: tuple[Int64, ...]
    count: int

    def sizes(self, table: int) -> Int64:
        """Rows of each combination in one table."""
        return np.bincount(self.ids[table], minlength=self.count).astype(np.int64)


@dataclass(frozen=True)
class Crossing:
    """Cells of a combination and one more feature, numbered alike in several tables.

    Parameters
    ----------
    cells
        The cell of every row of every table.
    group, category
        Combination and code of each cell; cells of one combination are neighbours.
    """

    cells: tuple[Int64, ...]
    group: Int64
    category: Int64

    def counts(self, rows: Int64) -> Int64:
        """Count each cell among these rows' cells."""
        return np.bincount(rows, minlength=len(self.group)).astype(np.int64)

    def starts(self) -> tuple[Int64, Int64]:
        """First cell of each combination, and the position among these of every cell."""
        first = np.ones(len(self.group), dtype=bool)
        first[1:] = self.group[1:] != self.group[:-1]
        return np.flatnonzero(first), np.cumsum(first) - 1


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
        keys, counts = np.unique(numbered(columns, sizes, columns.shape[1])[0], return_counts=True)
        return Cells(keys, counts.astype(np.int64))
    if len(sizes) == 2:
        pairs = count_pairs([columns.T], (sizes[0], sizes[1]))
        counts = pairs.tables[0, 1].ravel()
    else:
        counts = np.zeros(cells, dtype=np.int64)
        first, _ = numbered(columns[:-1], sizes[:-1], columns.shape[1])
        add_dense(first, columns[-1], sizes[-1], counts)
    keys = np.flatnonzero(counts)
    return Cells(keys, counts[keys])


def align(first: Cells, second: Cells) -> tuple[Int64, Int64, Int64]:
    """Return the cells that occur in either table, and the counts of each."""
    keys = np.union1d(first.keys, second.keys)
    counts = np.zeros((2, len(keys)), dtype=np.int64)
    for row, cells in enumerate((first, second)):
        counts[row, np.searchsorted(keys, cells.keys)] = cells.counts
    return keys, counts[0], counts[1]


def numbered(columns: Iterable[Codes], sizes: Sequence[int], rows: int) -> tuple[Int64, int]:
    """Give every row a number, the same for equal rows, and return a bound of the numbers too.

    Where the possible combinations are too many to number, those that occur are numbered.
    """
    keys, space = np.zeros(rows, dtype=np.int64), 1
    for column, size in zip(columns, sizes, strict=True):
        if space * size >= CELL_LIMIT:
            keys, space = renumbered(keys)
        keys *= size
        keys += column
        space *= size
    return keys, space


def renumbered(keys: Int64) -> tuple[Int64, int]:
    """Return the place of each key among those that occur, and how many there are."""
    distinct, again = np.unique(keys, return_inverse=True)
    return again.astype(np.int64), len(distinct)


def group_sizes(columns: Codes, sizes: Sequence[int]) -> Int64:
    """Count the rows of every combination that occurs, in no particular order."""
    keys, _ = numbered(columns, sizes, columns.shape[1])
    return np.unique(keys, return_counts=True)[1].astype(np.int64)


def group_rows(tables: Sequence[Codes], features: Sequence[int], sizes: Sequence[int]) -> Groups:
    """Give every combination of some features a number, the same in several tables.

    Parameters
    ----------
    tables
        Codes of each table, one feature a row.
    features
        Positions of the features that make a combination.
    sizes
        Number of categories of all features.
    """
    rows = [table.shape[1] for table in tables]
    columns = (np.concatenate([table[feature] for table in tables]) for feature in features)
    keys, space = numbered(columns, [sizes[feature] for feature in features], sum(rows))
    if space > len(keys):
        keys, space = renumbered(keys)
    return Groups(tuple(np.split(keys, np.cumsum(rows)[:-1])), space)


def cross(groups: Groups, columns: Sequence[Codes], size: int) -> Crossing:
    """Cross combinations with one more feature of `size` categories, one column a table."""
    cells = [ids * size + column for ids, column in zip(groups.ids, columns, strict=True)]
    space = groups.count * size
    if space <= sum(len(each) for each in cells):
        keys = np.arange(space, dtype=np.int64)
    else:
        keys, together = np.unique(np.concatenate(cells), return_inverse=True)
        cells = np.split(together, np.cumsum([len(each) for each in cells])[:-1])
    return Crossing(tuple(cells), keys // size, keys % size)
