"""One-way counts as they become known: every measured table adds its margins.

Noisy counts of one margin are averaged by the inverse of their variances, and projected
on non-negative counts of the common total.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.released.details import Detail
from pegsynth.methods.released.published import NoisyTable
from pegsynth.methods.released.smoothing import on_simplex, smoothed

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
