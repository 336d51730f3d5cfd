"""`pegs-once` on a cluster: candidate tables counted where the rows are (R11).

All tables that a step looks at are counted together, in one job; their sums come to the
driver, which chooses, adds noise and pays. The rows stay where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pegsynth.kernels.arrays import Int64
from pegsynth.methods.gibbs.block_fitting import hash_spec, one_way_counts
from pegsynth.methods.released.counted import TableCounter, level_counts
from pegsynth.methods.released.row_pool import Features, cell_count

if TYPE_CHECKING:
    from pegsynth.schema import Schema
    from pegsynth.spark.counts import ClusterCounts


MOST_CELLS_PER_JOB = 1 << 24


class ClusterTable:
    """A confidential table that is counted on a cluster."""

    def __init__(self, counts: ClusterCounts, schema: Schema) -> None:
        self._counts, self._schema = counts, schema
        counts.keep()

    @property
    def rows(self) -> int:
        """Number of rows that count."""
        return int(self._one_ways[0].sum())

    def one_way(self, feature: int) -> Int64:
        """Count the rows by the categories of a feature."""
        return self._one_ways[feature]

    def merged(self, levels: Sequence[Int64]) -> ClusterTables:
        """Return the same table on merged levels."""
        return ClusterTables(self._counts, levels)

    @cached_property
    def _one_ways(self) -> list[Int64]:
        """Blocks without heads or tail are one-way counts."""
        spec = hash_spec(self._schema, ((),) * len(self._schema.features), 0)
        return one_way_counts(self._counts.blocks(spec, drawn_heads=False))


class ClusterTables:
    """Counts on merged levels, those of one step at a time."""

    def __init__(self, counts: ClusterCounts, levels: Sequence[Int64]) -> None:
        self._counts, self._levels = counts, levels
        self._held: dict[Features, Int64] = {}

    def ask(self, tables: Sequence[Features]) -> None:
        """Count some tables, and forget those of the step before."""
        self._held = {}
        for lot in _lots(tables, level_counts(self._levels)):
            counter: TableCounter = self._counts.totals(partial(TableCounter, self._levels, lot))
            self._held.update(zip(lot, counter.counts(), strict=True))

    def count(self, table: Features) -> Int64:
        """Return the counts of a table."""
        if table not in self._held:
            self.ask([table])
        return self._held[table]

    def extended(self, heads: Features, features: Sequence[int]) -> Iterator[Int64]:
        """Yield the table of some heads extended by one feature after the other."""
        return (self.count((*heads, feature)) for feature in features)


def _lots(tables: Sequence[Features], sizes: Sequence[int]) -> Iterator[list[Features]]:
    """Cut a list of tables into lots that a worker can hold."""
    lot: list[Features] = []
    cells = 0
    for table in tables:
        lot.append(table)
        cells += cell_count(table, sizes)
        if cells >= MOST_CELLS_PER_JOB:
            yield lot
            lot, cells = [], 0
    if lot:
        yield lot
