"""A pool of rows whose weights are raked to tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64
from pegsynth.kernels import pool_loops as kernels
from pegsynth.released.margins import Margins
from pegsynth.released.row_pool import Features, Pool
from pegsynth.released.steps import Steps

UInt16 = NDArray[np.uint16]


@dataclass
class PoolFit:
    """A pool, the tables that its weights should meet, and how to get there.

    Parameters
    ----------
    features, keys
        What each table is about, and the cell of every row in it.
    targets
        What the weights should add up to in the cells of each table.
    """

    pool: Pool
    margins: Margins
    steps: Steps
    features: list[Features] = field(default_factory=list)
    keys: list[UInt16] = field(default_factory=list)
    targets: list[Float64] = field(default_factory=list)

    def meet(self, targets: Sequence[tuple[Features, Float64]], sweeps: int) -> None:
        """Weigh all rows alike, then rake them to these tables and no others."""
        self.pool.weigh(self.margins.total)
        wanted = [features for features, _ in targets]
        if self.features != wanted:
            self.features, self.keys = wanted, [self.pool.keys(each) for each in wanted]
        self.targets = [counts for _, counts in targets]
        self.sweep(sweeps)

    def expected(self, keys: UInt16, cells: int) -> Float64:
        """Return what the weighted pool expects in the cells of a table."""
        return kernels.weigh_cells(keys, self.pool.weights, cells)

    def sweep(self, times: int = 1, only: Sequence[int] = ()) -> None:
        """Scale the weights by the cells of every table in turn, or of some."""
        turns = list(only) or list(range(len(self.keys)))
        cells = [self._cells(table) for table in turns]
        sums = self.expected(self.keys[turns[0]], cells[0])
        for turn in range(times * len(turns)):
            table, following = turns[turn % len(turns)], (turn + 1) % len(turns)
            sums = self.pool.scale(
                self.keys[table],
                self._factors(table, sums),
                self.keys[turns[following]],
                cells[following],
            )

    def aims(self) -> list[tuple[UInt16, Float64]]:
        """Return tables that rows should meet which are taken from the pool.

        Each has the cell of every row of the pool, and what to add up to in all cells.
        """
        return list(zip(self.keys, self.targets, strict=True))

    def _factors(self, table: int, sums: Float64) -> Float64:
        """Return by how much the weights in every cell of a table are scaled at its turn."""
        return kernels.rake_factors(sums, self.targets[table], self.steps.most_factor)

    def _cells(self, table: int) -> int:
        return self.pool.cells(self.features[table])
