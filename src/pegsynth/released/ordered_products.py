"""Sums of products of ordered codes, which a projection on possible counts would bend (R28).

Noise makes some counts negative. A projection puts these to zero and takes what is too much
off all others, so that rows seem to lie where there are none, and features seem to have
less to do with each other than they have. The sum of products of two ordered codes over the
noisy counts themselves has no such bias. Tables are tilted until they hold it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from pegsynth.arrays import Float64
from pegsynth.released.margins import Margins
from pegsynth.released.published import Released
from pegsynth.released.smoothing import Axes, fitted_to

Pair = tuple[int, int]

_STEPS = 8
_PASSES = 4
_MOST_TILT = 1.0
"""The most by which the logarithm of a cell may change in one step."""


def standard_scores(released: Released, margins: Margins) -> dict[int, Float64]:
    """Return a score for every level of the ordered features: mean 0, variance 1.

    A level is the mean code of its categories. Features of one level have no score.
    """
    found = {}
    for feature, levels in enumerate(released.levels):
        if not released.ordered[feature]:
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
    """Return the sum of products of every pair of ordered features that a table holds.

    Sums over the noisy counts of several tables are averaged by the inverse of their
    variances.
    """
    sums: dict[Pair, float] = {}
    precisions: dict[Pair, float] = {}
    for table in (*released.blocks, *released.extra):
        shape = [margins.sizes[feature] for feature in table.features]
        cells = table.counts.astype(np.float64).reshape(shape)
        for places, pair in _pairs(table.features, scores):
            products = _products(scores, pair, places, len(shape))
            noise = float((products**2).sum()) * cells.size / products.size
            precision = 1.0 / (table.deviation**2 * noise)
            sums[pair] = sums.get(pair, 0.0) + float((cells * products).sum()) * precision
            precisions[pair] = precisions.get(pair, 0.0) + precision
    return {pair: each / precisions[pair] for pair, each in sums.items()}


def tilted(
    table: Float64,
    features: Sequence[int],
    wanted: Mapping[Pair, float],
    scores: Mapping[int, Float64],
    margins: Mapping[Axes, Float64],
) -> Float64:
    """Tilt a table until it holds the products that are wanted, and fit it to its margins."""
    for _ in range(_STEPS):
        changed = False
        for places, pair in _pairs(features, scores):
            products = _products(scores, pair, places, table.ndim)
            total = max(float(table.sum()), 1.0)
            mean = float((table * products).sum()) / total
            spread = float((table * products**2).sum()) / total - mean**2
            step = (wanted[pair] / total - mean) / spread if spread > 0 else 0.0
            largest = float(np.abs(products).max())
            step = float(np.clip(step, -_MOST_TILT / largest, _MOST_TILT / largest))
            if abs(step) > _SMALL:
                changed = True
                table = fitted_to(table * np.exp(step * products), margins, passes=_PASSES)
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
