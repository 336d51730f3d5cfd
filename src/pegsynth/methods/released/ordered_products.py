"""Sums of products of ordered codes, which a projection on possible counts would bend (R28).

Noise makes some counts negative. A projection puts these to zero and takes what is too much
off all others, so that rows seem to lie where there are none, and features seem to have
less to do with each other than they have. The sum of products of two ordered codes over the
noisy counts themselves has no such bias. Tables are tilted until they hold it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released.one_way import Margins
from pegsynth.methods.released.published import Released
from pegsynth.methods.released.smoothing import Axes, fitted_to, says_something

Pair = tuple[int, int]

TWO_LEVELS = 2
_TILTING_STEPS = 4
_STEPS = 8
_PASSES = 4
_MOST_TILT = 1.0
"""The most by which the logarithm of a cell may change in one step."""


def standard_scores(
    all_levels: Sequence[Int64], ordered: Sequence[bool], margins: Margins
) -> dict[int, Float64]:
    """Return a score for every level of the ordered features: mean 0, variance 1.

    A level is the mean code of its categories. Features of one level have no score; one of two
    levels is as good as ordered.
    """
    found = {}
    for feature, levels in enumerate(all_levels):
        if not ordered[feature] and margins.sizes[feature] > TWO_LEVELS:
            continue
        own = np.bincount(levels, np.arange(len(levels))) / np.bincount(levels)
        weights = margins.counts(feature) / margins.total
        centred = own - weights @ own
        spread = float(np.sqrt(weights @ centred**2))
        if spread > 0:
            found[feature] = centred / spread
    return found


def measured_products(
    released: Released, margins: Margins, scores: Mapping[int, Float64]
) -> dict[Pair, float]:
    """Return the sum of products of every pair of ordered features that a table holds."""
    found = AddedProducts(scores)
    for table in (*released.blocks, *released.extra):
        levels = [margins.sizes[feature] for feature in table.features]
        found.add(table.features, levels, table.counts, table.deviation**2)
    return {pair: found.mean(pair) for pair in found.sums}


@dataclass
class AddedProducts:
    """Sums of products of ordered features over noisy tables, averaged by their precisions.

    Parameters
    ----------
    scores
        A score for every level of the ordered features.
    """

    scores: Mapping[int, Float64]
    sums: dict[Pair, Any] = field(default_factory=dict)
    precisions: dict[Pair, float] = field(default_factory=dict)

    def add(
        self,
        features: Sequence[int],
        levels: Sequence[int],
        cells: NDArray[np.number[Any]],
        variance: float,
        *,
        residual: bool = False,
    ) -> None:
        """Add the products of a table whose cells have noise of this variance.

        Parameters
        ----------
        cells
            The cells of the table, or lines of them; sums are then lines, too.
        residual
            Whether the noise is that of a residual, which has none on the margins (R27).
        """
        for places, pair in _pairs(features, self.scores):
            products = _products(self.scores, pair, places, len(levels))
            noisy = centred(products.ravel(), products.shape) if residual else products
            spread = variance * float((noisy**2).sum()) * math.prod(levels) / products.size
            if spread > 0:
                value = cells @ np.broadcast_to(products, levels).ravel() / spread
                self.sums[pair] = self.sums.get(pair, 0.0) + value
                self.precisions[pair] = self.precisions.get(pair, 0.0) + 1.0 / spread

    def mean(self, pair: Pair) -> Any:
        """Return the sum of products of a pair."""
        return self.sums[pair] / self.precisions[pair]

    def by_cell(self, pair: Pair) -> Float64:
        """Return the product of scores in every cell of a pair's table."""
        return np.outer(self.scores[pair[0]], self.scores[pair[1]]).ravel()


def tilt_towards(
    sums: Float64, products: Float64, before: float, wanted: float, softness: float, most: float
) -> float:
    """Return the tilt by which cells meet a sum of products, softly.

    It solves softness x tilt + sum of sums exp((tilt - before) products) products = wanted.

    Parameters
    ----------
    sums
        What the weights add up to in the cells under the tilt `before`.
    most
        The most by which the logarithm of a cell may change.
    """
    most /= max(float(np.abs(products).max()), 1e-300)
    tilt = before
    for _ in range(_TILTING_STEPS):
        heavy = sums * np.exp((tilt - before) * products)
        away = tilt * softness + float(heavy @ products) - wanted
        slope = softness + float(heavy @ products**2)
        if not slope > 0:
            return before
        tilt = min(max(tilt - away / slope, before - most), before + most)
    return tilt


def tilted(
    table: Float64,
    features: Sequence[int],
    wanted: Mapping[Pair, float],
    scores: Mapping[int, Float64],
    margins: Mapping[Axes, Float64],
) -> Float64:
    """Tilt a table until it holds the products that are wanted, and fit it to its margins.

    Margins that would leave nothing of it are not met.
    """
    for _ in range(_STEPS):
        changed = False
        for places, pair in _pairs(features, scores):
            if pair not in wanted:
                continue
            products = _products(scores, pair, places, table.ndim)
            total = max(float(table.sum()), 1.0)
            mean = float((table * products).sum()) / total
            spread = float((table * products**2).sum()) / total - mean**2
            step = (wanted[pair] / total - mean) / spread if spread > 0 else 0.0
            largest = float(np.abs(products).max())
            step = float(np.clip(step, -_MOST_TILT / largest, _MOST_TILT / largest))
            if abs(step) > _SMALL:
                changed = True
                fitted = fitted_to(table * np.exp(step * products), margins, passes=_PASSES)
                if not says_something(fitted):
                    return table
                table = fitted
        if not changed:
            break
    return table


_SMALL = 1e-5


def _pairs(features: Sequence[int], scores: Mapping[int, Float64]) -> list[tuple[Pair, Pair]]:
    """Return places and numbers of every two features that have scores, the lower first."""
    found = []
    for first, second in combinations(range(len(features)), 2):
        if features[first] in scores and features[second] in scores:
            places = (first, second) if features[first] < features[second] else (second, first)
            found.append((places, (features[places[0]], features[places[1]])))
    return found


def _products(scores: Mapping[int, Float64], pair: Pair, places: Pair, dimensions: int) -> Float64:
    """Return the product of two scores for every cell of a table."""
    lines = []
    for feature, place in zip(pair, places, strict=True):
        shape = [1] * dimensions
        shape[place] = -1
        lines.append(scores[feature].reshape(shape))
    products: Float64 = lines[0] * lines[1]
    return products
