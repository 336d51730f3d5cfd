"""Estimates from noisy counts: projection, smoothing, shrinkage, margins, sums of products.

All of it is post-processing of paid-for numbers whose noise has a known deviation (R11).

`Margins` are one-way counts as they become known: every measured table adds its own. Noisy counts
of one margin are averaged by the inverse of their variances, and projected on non-negative counts
of the common total.

Noise makes some counts negative. A projection puts these to zero and takes what is too much
off all others, so that rows seem to lie where there are none, and features seem to have
less to do with each other than they have. The sum of products of two ordered codes over the
noisy counts themselves has no such bias. Tables are tilted until they hold it (R28).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.residuals import centred

if TYPE_CHECKING:
    from pegsynth.methods.released._values import Detail, NoisyTable, Released

# The last two leave alone what no noise could have made.
_SPREADS = np.concatenate(([0.0], np.geomspace(0.25, 64.0, 17), [1e3, 1e6]))
_RATIO_SPREADS = np.concatenate(([0.0], np.geomspace(0.02, 8.0, 19)))
_ITERATIONS = 30
_FAITH_IN_NOTHING = 1.0
_FAITH_IN_OTHERS = 20.0
_BISECTIONS = 100
_HARDLY = 0.05
_PAIR = 2
_NEXT_TO_NOTHING = 1e-290
"""Sums below it count as none: what is wanted over them may be no number."""


def on_simplex(noisy: Float64, variance: Float64 | float, total: float) -> Float64:
    """Return the closest non-negative counts of this total, each pulled by its variance."""
    variances = np.broadcast_to(np.asarray(variance, dtype=np.float64), noisy.shape)
    low = float((noisy / variances).min() - total / variances.min() - 1.0)
    high = float((noisy / variances).max() + 1.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if np.maximum(noisy - middle * variances, 0.0).sum() > total:
            low = middle
        else:
            high = middle
    kept = np.maximum(noisy - high * variances, 0.0)
    whole = kept.sum()
    return kept * (total / whole) if whole > 0 else np.full(len(noisy), total / len(noisy))


def smoothed(noisy: Float64, deviation: float) -> Float64:
    """Smooth counts of ordered categories by shrinking their Haar coefficients.

    Differences of neighbours at every scale and shift are replaced by their posterior
    means under a mixture of normals around 0, fitted to the coefficients of that scale
    (empirical Bayes); the shifts are averaged. A feature whose order means nothing has no
    small coefficients, and stays as it is.
    """
    size = len(noisy)
    average = np.concatenate((noisy, noisy[::-1])).astype(np.float64)
    details: list[Float64] = []
    shift = 1
    while 2 * shift <= size:
        following = np.roll(average, -shift)
        spread = deviation / np.sqrt(2.0) ** (len(details) + 1)
        details.append(_shrunken((average - following) / 2, spread))
        average = (average + following) / 2
        shift *= 2
    for detail in reversed(details):
        shift //= 2
        average = (average + detail + np.roll(average - detail, shift)) / 2
    return (average[:size] + average[size:][::-1]) / 2


def _shrunken(coefficients: Float64, deviation: float) -> Float64:
    """Return posterior means of coefficients that are mostly nothing but noise."""
    spreads = _SPREADS * deviation
    variance = deviation**2 + spreads**2
    posterior = _mixture(coefficients, variance[:, None], faith=_FAITH_IN_NOTHING)
    means: Float64 = coefficients * np.einsum("kc,k->c", posterior, spreads**2 / variance)
    return means


def shrunken(
    noisy: Float64, expected: Float64, deviation: float, weights: Float64 | None = None
) -> Float64:
    """Pull noisy counts towards what was expected of them, as far as the noise says.

    The ratio of a count to its expectation has a mixture of normals around 1 as prior,
    fitted to the cells of the table (empirical Bayes). Cells of which hardly anything is
    expected, compared with the noise, stay as expected.

    Parameters
    ----------
    weights
        Those of the prior that many tables tell together (`ratio_weights`), which count as much
        as some cells of this table do.
    """
    result = expected.copy()
    seen = expected > _HARDLY * deviation
    if not seen.any():
        return result
    mean = expected[seen]
    excess = noisy[seen] - mean
    prior = (_RATIO_SPREADS[:, None] * mean) ** 2
    variance = deviation**2 + prior
    likelihood = _likelihood(excess, variance)
    faith = np.zeros(len(likelihood)) if weights is None else _FAITH_IN_OTHERS * weights
    found = _weights(likelihood, faith)
    gain = (_odds(likelihood, found) * (prior / variance)).sum(axis=0)
    result[seen] = np.maximum(mean + gain * excess, 0.0)
    return result


def ratio_weights(noisy: Float64, expected: Float64, deviation: Float64) -> Float64:
    """Return the weights of the prior of `shrunken` that cells of many tables tell together."""
    seen = expected > _HARDLY * deviation
    mean = expected[seen]
    variance = deviation[seen] ** 2 + (_RATIO_SPREADS[:, None] * mean) ** 2
    return _weights(_likelihood(noisy[seen] - mean, variance), np.zeros(len(variance)))


def _mixture(values: Float64, variance: Float64, *, faith: float) -> Float64:
    """Return the odds of every component for every value, with faith in the first one."""
    likelihood = _likelihood(values, variance)
    sure = np.zeros(len(likelihood))
    sure[0] = faith
    return _odds(likelihood, _weights(likelihood, sure))


def _likelihood(values: Float64, variance: Float64) -> Float64:
    logs = -0.5 * values**2 / variance - 0.5 * np.log(variance)
    likelihood: Float64 = np.exp(logs - logs.max(axis=0)) if values.size else logs
    return likelihood


def _weights(likelihood: Float64, faith: Float64) -> Float64:
    """Return the weights of a mixture's components by EM; faith counts like sure values."""
    components = len(likelihood)
    weights = np.full(components, 0.5 / (components - 1))
    weights[0] = 0.5
    for _ in range(_ITERATIONS if likelihood.size else 0):
        weights = _odds(likelihood, weights).sum(axis=1)
        weights += faith
        weights /= weights.sum()
    return weights


def _odds(likelihood: Float64, weights: Float64) -> Float64:
    odds = likelihood * weights[:, None]
    fitted: Float64 = odds / odds.sum(axis=0)
    return fitted


def given_lines(table: Float64, otherwise: Float64) -> Float64:
    """Return the distribution along every line of a table; `otherwise` where a line has nothing."""
    sums = table.sum(axis=1, keepdims=True)
    shares: Float64 = np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), otherwise)
    return shares


Axes = tuple[int, ...]


def fitted_to(table: Float64, margins: Mapping[Axes, Float64], *, passes: int = 20) -> Float64:
    """Scale a table until its margins over some axes are the given ones."""
    if table.ndim == _PAIR and margins.keys() == {(0,), (1,)}:
        return _fitted_to_both(table, *margins.items(), passes=passes)
    for _ in range(passes):
        for axes, margin in margins.items():
            others = tuple(axis for axis in range(table.ndim) if axis not in axes)
            sums = table.sum(axis=others)
            table = table * np.expand_dims(_quotient(margin, sums), others)
    return table


def says_something(fitted: Float64) -> bool:
    """Say whether margins left anything of a table that was fitted to them.

    Loud noise may put all rows of a margin where the table has none.
    """
    return float(fitted.sum()) > _NEXT_TO_NOTHING


def _fitted_to_both(
    table: Float64,
    first: tuple[Axes, Float64],
    second: tuple[Axes, Float64],
    *,
    passes: int,
) -> Float64:
    """Scale rows and columns in turn: the factors of all passes are two lines."""
    turned = table if first[0] == (0,) else table.T
    back, ahead = np.ones(turned.shape[1]), np.ones(turned.shape[0])
    for _ in range(passes):
        ahead = _quotient(first[1], turned @ back)
        back = _quotient(second[1], ahead @ turned)
    scaled = ahead[:, None] * turned * back
    return scaled if turned is table else scaled.T


def _quotient(wanted: Float64, sums: Float64) -> Float64:
    """Return what brings sums to what is wanted; 0 where there is next to nothing to scale."""
    some = sums > _NEXT_TO_NOTHING
    factor: Float64 = np.divide(wanted, sums, out=np.zeros_like(sums), where=some)
    return factor


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


def one_way_shares(table: NoisyTable, total: float, *, smooth: bool) -> Float64:
    """Estimate the shares of all categories of a feature from its noisy counts."""
    noisy = table.counts.astype(np.float64)
    if smooth and len(noisy) >= SHORTEST_SMOOTHED:
        noisy = smoothed(noisy, table.deviation)
    return with_floor(on_simplex(noisy, table.deviation**2, total))


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
    return {pair: float(found.mean(pair)) for pair in found.sums}


@dataclass
class AddedProducts:
    """Sums of products of ordered features over noisy tables, averaged by their precisions.

    Parameters
    ----------
    scores
        A score for every level of the ordered features.
    """

    scores: Mapping[int, Float64]
    sums: dict[Pair, Float64 | float] = field(default_factory=dict)
    precisions: dict[Pair, float] = field(default_factory=dict)

    def add(
        self,
        features: Sequence[int],
        levels: Sequence[int],
        cells: Float64 | Int64,
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

    def mean(self, pair: Pair) -> Float64 | float:
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
