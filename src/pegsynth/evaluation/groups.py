"""Combinations of features, numbered alike in several tables.

Goes in: code columns of an original, of released tables, of a hold-out. Comes out: one
number a row, the same for equal combinations wherever they occur, so that counting and
matching are array look-ups. Memory grows with the rows, never with the number of possible
combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.evaluation.cells import CELL_LIMIT, Codes, Int64


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
    keys = np.zeros(sum(rows), dtype=np.int64)
    space = 1
    for feature in features:
        if space * sizes[feature] >= CELL_LIMIT:
            keys, space = _renumbered(keys)
        keys *= sizes[feature]
        keys += np.concatenate([table[feature] for table in tables])
        space *= sizes[feature]
    if space > len(keys):
        keys, space = _renumbered(keys)
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


def _renumbered(keys: Int64) -> tuple[Int64, int]:
    distinct, again = np.unique(keys, return_inverse=True)
    return again.astype(np.int64), len(distinct)
