"""A confidential table as a release of blocks sees it: tables of counts, and nothing else.

`CountedRows` counts a table in memory. `TableCounter` counts one that comes in batches, wherever
they are; `pegsynth.spark` adds up such counters over a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.methods.released.row_pool import Features, cell_count, cell_keys

UInt16 = NDArray[np.uint16]


class MergedTable(Protocol):
    """Counts on merged levels. Tables are flat, their last feature varying fastest."""

    def ask(self, tables: Sequence[Features]) -> None:
        """Say which tables will be wanted next, so that they can be counted together."""
        ...

    def count(self, table: Features) -> Int64:
        """Count the rows by the cells of a table."""
        ...

    def extended(self, heads: Features, features: Sequence[int]) -> Iterator[Int64]:
        """Yield the table of some heads extended by one feature after the other."""
        ...


class CountedTable(Protocol):
    """A confidential table."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    def one_way(self, feature: int) -> Int64:
        """Count the rows by the categories of a feature."""
        ...

    def merged(self, levels: Sequence[Int64]) -> MergedTable:
        """Return the same table on merged levels: one level for every category."""
        ...


@dataclass(frozen=True)
class MergedRows:
    """A table in memory, one line of levels for every feature."""

    columns: UInt16
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, codes: Codes, levels: Sequence[Int64]) -> MergedRows:
        """Merge the categories of code rows."""
        lines = [line.astype(np.uint16)[codes[:, i]] for i, line in enumerate(levels)]
        return cls(np.stack(lines), level_counts(levels))

    def ask(self, tables: Sequence[Features]) -> None:
        """Do nothing: every table is counted when it is wanted."""

    def count(self, table: Features) -> Int64:
        """Count a table."""
        keys = cell_keys(self.columns, table, self.sizes)
        return kernels.count_cells(keys, cell_count(table, self.sizes))

    def extended(self, heads: Features, features: Sequence[int]) -> Iterator[Int64]:
        """Count tables that share their heads."""
        keys, cells = cell_keys(self.columns, heads, self.sizes), cell_count(heads, self.sizes)
        for feature in features:
            size = self.sizes[feature]
            yield kernels.count_extended(keys, self.columns[feature], size, cells * size)


@dataclass(frozen=True)
class CountedRows:
    """A table of codes in memory."""

    codes: Codes
    category_counts: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def one_way(self, feature: int) -> Int64:
        """Count a feature."""
        counts = np.bincount(self.codes[:, feature], minlength=self.category_counts[feature])
        return counts.astype(np.int64)

    def merged(self, levels: Sequence[Int64]) -> MergedRows:
        """Merge categories."""
        return MergedRows.of(self.codes, levels)


def level_counts(levels: Sequence[Int64]) -> tuple[int, ...]:
    """Return how many levels every feature has."""
    return tuple(int(line.max()) + 1 for line in levels)


class TableCounter:
    """Counts of some tables on merged levels, batch by batch.

    What was counted apart can be added: `arrays` gives it as plain arrays, `absorb` takes
    them in.
    """

    def __init__(self, levels: Sequence[Int64], tables: Sequence[Features]) -> None:
        self._levels = levels
        self._tables = tables
        sizes = level_counts(levels)
        self._ends = np.cumsum([cell_count(table, sizes) for table in tables])
        self._cells = np.zeros(int(self._ends[-1]) if len(tables) else 0, dtype=np.int64)

    def add(self, batch: Codes) -> None:
        """Count one batch of code rows."""
        rows = MergedRows.of(batch, self._levels)
        lines = iter(self.counts())
        # Neighbours that share their heads share the keys of these.
        for heads, group in groupby(self._tables, key=lambda table: table[:-1]):
            features = [table[-1] for table in group]
            for counts in rows.extended(heads, features):
                line = next(lines)
                line += counts

    def counts(self) -> list[Int64]:
        """Return the counts of every table so far."""
        return np.split(self._cells, self._ends[:-1])

    def arrays(self) -> dict[str, Int64]:
        """Return the counts so far; they change with the next batch."""
        return {"tables": self._cells}

    def absorb(self, arrays: Mapping[str, Int64]) -> None:
        """Add counts of other rows."""
        self._cells += arrays["tables"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
