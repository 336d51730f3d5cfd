"""One-way counts as they become known: every measured table adds its margins.

Noisy counts of one margin are averaged by the inverse of their variances, and projected
on non-negative counts of the common total.

A pool of rows whose weights are raked to tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.released.details import Detail
from pegsynth.methods.released.published import NoisyTable
from pegsynth.methods.released.row_pool import Features, Pool
from pegsynth.methods.released.smoothing import on_simplex, smoothed
from pegsynth.methods.released.steps import Steps

_FLOOR = 1e-4
SHORTEST_SMOOTHED = 9


@dataclass
class Margins:
    """Weighted sums of noisy one-way counts on merged levels, and the estimates they give."""

    sizes: tuple[int, ...]
    total: float
    sums: list[Float64]
    precisions: list[Float64]
    shares: list[Float64] = field(default_factory=list)
    details: tuple[Detail, ...] = ()

    @classmethod
    def of(
        cls,
        one_ways: tuple[NoisyTable, ...],
        levels: tuple[Int64, ...],
        shares: tuple[Float64, ...],
        total: float,
        details: tuple[Detail, ...] = (),
    ) -> Margins:
        """Start from noisy one-way counts, summed by level."""
        sums: list[Float64] = []
        precisions: list[Float64] = []
        merged: list[Float64] = []
        for noisy, line, share in zip(one_ways, levels, shares, strict=True):
            variance = np.bincount(line).astype(np.float64) * noisy.deviation**2
            summed: Float64 = np.bincount(line, noisy.counts).astype(np.float64)
            sums.append(summed / variance)
            precisions.append(np.reciprocal(variance))
            merged.append(np.bincount(line, weights=share).astype(np.float64))
        sizes = tuple(len(line) for line in merged)
        margins = cls(sizes, total, sums, precisions, merged, details)
        margins._agree()
        return margins

    def known(self, feature: int) -> tuple[Float64, Float64]:
        """Return the noisy counts of a feature from all tables so far, and their variances.

        The total is known best, so what counts exceed it by is noise.
        """
        variance = np.reciprocal(self.precisions[feature])
        counts = self.sums[feature] * variance
        excess = float(counts.sum()) - self.total
        return counts - excess * variance / variance.sum(), variance

    def counts(self, feature: int) -> Float64:
        """Return the estimated counts of a feature's levels."""
        counts: Float64 = self.shares[feature] * self.total
        return counts

    def fold(self, table: NoisyTable, features: tuple[int, ...]) -> None:
        """Let the margins of a measured table improve these features."""
        shape = [self.sizes[feature] for feature in table.features]
        cells = table.counts.reshape(shape)
        for axis, feature in enumerate(table.features):
            if feature in features:
                others = tuple(other for other in range(len(shape)) if other != axis)
                precision = 1.0 / (table.deviation**2 * (cells.size / shape[axis]))
                self.sums[feature] = self.sums[feature] + cells.sum(axis=others) * precision
                self.precisions[feature] = self.precisions[feature] + precision
                self._estimate(feature)

    def _estimate(self, feature: int) -> None:
        precision = self.precisions[feature]
        counts = on_simplex(self.sums[feature] / precision, 1.0 / precision, self.total)
        self.shares[feature] = with_floor(counts)
        self._agree()

    def _agree(self) -> None:
        """Let the shares of details add up to those of their parents."""
        for each in self.details:
            joint = each.joint(self.shares[each.parent], self.shares[each.feature])
            own = joint.sum(axis=0)
            self.shares[each.feature] = own / own.sum()


def with_floor(counts: Float64) -> Float64:
    """Return shares, none of them zero."""
    kept = np.maximum(counts, _FLOOR * counts.sum() / len(counts))
    shares: Float64 = kept / kept.sum()
    return shares


def common_total(total: tuple[int, float], measured: Iterable[NoisyTable]) -> float:
    """Estimate the number of rows from every noisy sum there is."""
    count, deviation = total
    sums, weights = float(count) / deviation**2, 1.0 / deviation**2
    for table in measured:
        precision = 1.0 / (len(table.counts) * table.deviation**2)
        sums += float(table.counts.sum()) * precision
        weights += precision
    return max(sums / weights, 1.0)


def anchored(
    one_ways: tuple[NoisyTable, ...], public: tuple[bool, ...], total: float
) -> tuple[NoisyTable, ...]:
    """Scale counts that are public shares to the estimated total, so that they stay shares.

    They were written as shares of the noisy number of rows. A projection on another total
    would move all categories by the same number of rows, and rare ones by a large part.
    """
    return tuple(
        replace(table, counts=table.counts * (total / table.counts.sum())) if known else table
        for table, known in zip(one_ways, public, strict=True)
    )


def one_way_shares(table: NoisyTable, total: float, *, smooth: bool) -> Float64:
    """Estimate the shares of all categories of a feature from its noisy counts."""
    noisy = table.counts.astype(np.float64)
    if smooth and len(noisy) >= SHORTEST_SMOOTHED:
        noisy = smoothed(noisy, table.deviation)
    return with_floor(on_simplex(noisy, table.deviation**2, total))


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
