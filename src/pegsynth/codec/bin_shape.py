"""How values lie inside bins: pieces with masses, and the quantiles they give (R21).

A `Shape` is made of paid counts and is public. Inside a piece all values are alike: the
numbers of its unit, or any number if there is no unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.number_grid import Grid, grid_of
from pegsynth.codec.tree import NumberTree
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.schema.feature import Feature

Bins = NDArray[np.integer[Any]]

_NOTHING = 1e-100
_NEGLIGIBLE = 1e-12
"""Shares of a bin below this are left out."""


@dataclass(frozen=True, eq=False)
class ShapeSource:
    """The noisy tree that a shape was made of, for replicates of it (R28).

    Parameters
    ----------
    tree
        What was paid for.
    bounds
        The ends of the grid that was measured, where edges are private; None: the grid is that
        of the public edges.
    """

    tree: NumberTree
    bounds: tuple[float, float] | None = None

    def grid(self, feature: Feature) -> Grid:
        """Return the grid that was measured, of a feature with its settled edges."""
        return grid_of(feature, self.bounds)


@dataclass(frozen=True, eq=False)
class Shape:
    """Pieces of the number line in order, each within one bin.

    Parameters
    ----------
    low, high
        Where every piece begins and ends; it holds its beginning and not its end.
    reached
        The bin of every piece plus the share of the bin's mass up to its end.
    unit
        The step between values, 0 for none: pieces begin and end at multiples of it.
    shares
        The mass of every bin.
    source
        What it was made of; None where that is not kept.
    """

    low: Float64
    high: Float64
    reached: Float64
    unit: float
    shares: Float64
    source: ShapeSource | None = None

    def __post_init__(self) -> None:
        if not len(self.low) == len(self.high) == len(self.reached):
            raise ParameterError("a shape has one beginning, end and mass for every piece")

    @classmethod
    def of(cls, edges: Sequence[float], cells: Float64, masses: Float64, unit: float) -> Shape:
        """Cut the masses of cells at the edges of bins; an empty bin is taken as uniform.

        Parameters
        ----------
        edges
            Edges of the bins, all of them among those of the cells.
        cells, masses
            Edges of the cells, and the mass between them. What lies beyond the bins belongs
            to the end bins, but is not drawn.
        """
        low, high = cells[:-1], cells[1:]
        bins = np.searchsorted(np.asarray(edges[1:-1]), low, side="right")
        count = len(edges) - 1
        shares = np.bincount(bins, weights=masses, minlength=count)
        inside = (low >= edges[0]) & (high <= edges[-1])
        held = np.bincount(bins[inside], weights=masses[inside], minlength=count)
        weights = np.where(held[bins] > _NOTHING, masses, high - low) * inside
        whole = np.bincount(bins, weights=weights, minlength=count)
        weights = weights / whole[bins]
        kept = np.flatnonzero(weights > _NEGLIGIBLE)
        low, high, bins, weights = low[kept], high[kept], bins[kept], weights[kept]
        # Neighbours of one density are one piece, as far as they are of one bin.
        with np.errstate(over="ignore"):
            density = weights / (high - low)
        same = np.isclose(density[1:], density[:-1], rtol=1e-9, atol=0)
        joined = (bins[1:] == bins[:-1]) & (low[1:] == high[:-1]) & same
        first = np.flatnonzero(np.append(True, ~joined))
        weights = np.add.reduceat(weights, first)
        low, high, bins = low[first], high[np.append(first[1:], len(high)) - 1], bins[first]
        starts = np.searchsorted(bins, np.arange(count + 1))
        within = np.append(0.0, np.cumsum(weights))
        reached = bins + np.minimum(within[1:] - within[starts][bins], 1.0)
        reached[starts[1:] - 1] = np.arange(count) + 1.0
        return cls(low, high, reached, unit, shares / max(float(shares.sum()), _NOTHING))

    @classmethod
    def uniform(cls, edges: Sequence[float], unit: float, shares: Float64) -> Shape:
        """Return the shape of values that are uniform in every bin."""
        low, high = np.asarray(edges[:-1], dtype=np.float64), np.asarray(edges[1:])
        return cls(low, high, np.arange(1.0, len(low) + 1), unit, shares)

    @cached_property
    def starts(self) -> Int64:
        """The first piece of every bin, and the number of all pieces."""
        return np.searchsorted(self.reached, np.arange(len(self.shares) + 1), side="right")

    @cached_property
    def bins(self) -> Int64:
        """The bin of every piece."""
        return np.repeat(np.arange(len(self.shares)), np.diff(self.starts))

    @cached_property
    def parts(self) -> Float64:
        """The part of its bin's mass that every piece has."""
        before = np.append(0.0, self.reached[:-1])
        within: Float64 = self.reached - np.maximum(before, self.bins)
        return within

    def with_parts(self, parts: Float64) -> Shape:
        """Return the shape with other parts of every piece, which add up to 1 in every bin."""
        ends = self.starts[1:] - 1
        within = np.append(0.0, np.cumsum(parts))
        reached = self.bins + np.minimum(within[1:] - within[self.starts[:-1]][self.bins], 1.0)
        reached[ends] = np.arange(len(ends)) + 1.0
        return replace(self, reached=reached)

    def is_single(self, bin_: int) -> bool:
        """Say whether a bin holds one value only."""
        first, last = self.starts[bin_], self.starts[bin_ + 1]
        if last - first != 1:
            return False
        low, high = self.low[first], self.high[first]
        return bool(high <= low + 1.5 * self.unit if self.unit else high == np.nextafter(low, high))

    def values(self, bins: Bins, ranks: Float64) -> Float64:
        """Return the value at a rank, in [0, 1), among those of its bin."""
        # A rank close to 1 must not be rounded into the next bin.
        first, last = self.starts[bins], self.starts[bins + 1] - 1
        piece = np.searchsorted(self.reached, bins + ranks, side="right")
        piece = np.minimum(np.maximum(piece, first), last)
        before = np.where(piece > first, self.reached[piece - 1] - bins, 0.0)
        width = self.reached[piece] - bins - before
        place = np.clip((ranks - before) / np.maximum(width, _NEGLIGIBLE), 0.0, 1.0)
        low, high = self.low[piece], self.high[piece]
        if self.unit == 0:
            drawn: Float64 = low + place * (high - low)
            return np.minimum(drawn, np.nextafter(high, -np.inf))
        scale = round(1 / self.unit)
        first = np.rint(low * scale)
        number = np.maximum(np.rint(high * scale) - first, 1.0)
        whole: Float64 = (first + np.minimum(np.floor(place * number), number - 1)) / scale
        return whole

    def arrays(self) -> dict[str, Float64]:
        """Return the shape as plain arrays, for a file."""
        return {
            "low": self.low,
            "high": self.high,
            "reached": self.reached,
            "shares": self.shares,
        }
