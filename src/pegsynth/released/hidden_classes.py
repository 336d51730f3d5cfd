"""A law of hidden classes that is fitted to one-way counts and all pairs at once.

Given its class a row's features are independent of each other: a mixture of products. All pair
tables of such a law are one product of matrices, and few classes make what pairs have in common
louder than the noise on each. The fit is weighted least squares by inverse variances, by gradient
descent that starts next to independence and ends as soon as the law misses the measurements by no
more than their noise does; going on would fit the noise.

All of it is post-processing of paid-for numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pegsynth.arrays import Float64, Int64
from pegsynth.released.margins import Margins
from pegsynth.released.pair_residuals import PairEstimates, free_cells
from pegsynth.released.row_pool import Features

_LEAST = 1e-9
_APART = 0.5
_RATE, _LAST_RATE = 0.1, 0.02
_SLOW, _SLOWER = 0.9, 0.99
_FEWEST, _GROWTH = 2, 1.5
_MOST_WORK = 20_000_000_000


@dataclass(frozen=True)
class HiddenClasses:
    """A mixture of products.

    Parameters
    ----------
    sizes
        Levels of every feature.
    shares
        The share of every class.
    laws
        A line for every class: its shares of the levels of the first feature, then of the
        second, and so on.
    misfit
        The squared misfit plus twice the number of free figures, in units of what noise explains.
        Less one it estimates the squared distance of the law from the true tables, of which that
        of the measurements is one.
    """

    sizes: tuple[int, ...]
    shares: Float64
    laws: Float64
    misfit: float = math.inf

    @property
    def figures(self) -> int:
        """How many figures are free beyond those of independent features."""
        return (len(self.shares) - 1) * (sum(self.sizes) - len(self.sizes) + 1)

    def pair(self, pair: Features) -> Float64:
        """Return the shares of a pair's cells."""
        first, second = (self.of(feature) for feature in pair)
        cells: Float64 = (self.shares[:, None] * first).T @ second
        return cells

    def of(self, feature: int) -> Float64:
        """Return the shares of a feature's levels, a line for every class."""
        start = sum(self.sizes[:feature])
        return self.laws[:, start : start + self.sizes[feature]]


@dataclass(frozen=True)
class _Wanted:
    """What a law should meet: shares of levels and of pairs of levels, and their precisions."""

    ones: Float64
    ones_precision: Float64
    pairs: Float64
    pairs_precision: Float64
    free: int

    @classmethod
    def of(cls, estimates: PairEstimates, margins: Margins) -> _Wanted:
        starts = np.concatenate(([0], np.cumsum(margins.sizes)))
        whole = int(starts[-1])
        pairs, precision = np.zeros((whole, whole)), np.zeros((whole, whole))
        for pair in estimates.pairs:
            first, second = (slice(starts[each], starts[each + 1]) for each in pair)
            told = estimates.noisy(pair, margins) / margins.total
            pairs[first, second], pairs[second, first] = told, told.T
            # Noise has as many directions as cells are free, and spreads over all cells.
            spread = free_cells(told.shape) / told.size
            known = estimates.precisions[pair] * spread * margins.total**2
            precision[first, second] = precision[second, first] = known
        levels = ([margins.sizes[each] for each in pair] for pair in estimates.pairs)
        return cls(
            np.concatenate(margins.shares),
            np.concatenate(margins.precisions) * margins.total**2,
            pairs,
            precision,
            sum(map(free_cells, levels)),
        )


def fitted_classes(
    estimates: PairEstimates,
    margins: Margins,
    uniforms: Callable[[int], Float64],
    *,
    most_turns: int,
    counts: Sequence[int] = (),
) -> HiddenClasses:
    """Fit a law to one-way counts and residuals of pairs.

    Of several numbers of classes the one is kept that should miss the true tables by least: the
    squared misfit plus twice the number of free figures, all in units of noise (Mallows).

    Parameters
    ----------
    uniforms
        Makes uniform numbers, by which classes start a little apart.
    counts
        Numbers of classes to try, from the smallest on.
    """
    wanted = _Wanted.of(estimates, margins)
    best = _one_class(margins)
    least = math.inf
    for classes in counts or classes_to_try(len(wanted.ones), most_turns):
        law, missed = _fitted(wanted, margins.sizes, classes, uniforms, most_turns)
        if missed + 2 * law.figures >= least:
            break
        best, least = law, missed + 2 * law.figures
        if missed <= wanted.free:
            break
    return replace(best, misfit=least / max(wanted.free, 1))


def _one_class(margins: Margins) -> HiddenClasses:
    """Return the law of independent features."""
    return HiddenClasses(margins.sizes, np.ones(1), np.concatenate(margins.shares)[None, :])


def classes_to_try(levels: int, most_turns: int) -> list[int]:
    """Return numbers of classes, ever larger, that take bearable time together."""
    room = _MOST_WORK // (levels**2 * most_turns)
    found = [_FEWEST]
    while (following := math.ceil(found[-1] * _GROWTH)) + sum(found) <= room:
        found.append(following)
    return found


def _fitted(
    wanted: _Wanted,
    sizes: Sequence[int],
    classes: int,
    uniforms: Callable[[int], Float64],
    most_turns: int,
) -> tuple[HiddenClasses, float]:
    """Return a law of so many classes, and its misfit."""
    widths = np.array(sizes)
    starts = np.concatenate(([0], np.cumsum(widths)[:-1]))
    apart = uniforms(classes * len(wanted.ones)).reshape(classes, -1) - 0.5
    odds = np.log(np.maximum(wanted.ones, _LEAST)) + _APART * np.sqrt(12.0) * apart
    point = np.concatenate([odds, np.zeros((classes, 1))], axis=1)
    first, second = np.zeros_like(point), np.zeros_like(point)
    shares, laws = _law(point, starts, widths)
    missed = math.inf
    for turn in range(most_turns):
        slope, missed = _slope(shares, laws, wanted, starts, widths)
        if missed <= wanted.free:
            break
        first = _SLOW * first + (1 - _SLOW) * slope
        second = _SLOWER * second + (1 - _SLOWER) * slope**2
        ahead = first / (1 - _SLOW ** (turn + 1))
        spread = np.sqrt(second / (1 - _SLOWER ** (turn + 1)))
        rate = _LAST_RATE + (_RATE - _LAST_RATE) * (1 - turn / most_turns)
        point = point - rate * ahead / (spread + _LEAST)
        shares, laws = _law(point, starts, widths)
    return HiddenClasses(tuple(sizes), shares, laws), missed


def _law(point: Float64, starts: Int64, widths: Int64) -> tuple[Float64, Float64]:
    """Return shares of classes and of levels given the class, from logarithms of odds."""
    odds, weights = point[:, :-1], point[:, -1]
    raised = np.exp(odds - np.repeat(np.maximum.reduceat(odds, starts, axis=1), widths, axis=1))
    laws = raised / np.repeat(np.add.reduceat(raised, starts, axis=1), widths, axis=1)
    shares = np.exp(weights - weights.max())
    return shares / shares.sum(), laws


def _slope(
    shares: Float64, laws: Float64, wanted: _Wanted, starts: Int64, widths: Int64
) -> tuple[Float64, float]:
    """Return the slope of half of the squared misfit, and the misfit of pairs."""
    off = (shares[:, None] * laws).T @ laws - wanted.pairs
    pull = wanted.pairs_precision * off
    missed = float((pull * off).sum()) / 2
    along = laws @ pull
    pull_ones = wanted.ones_precision * (shares @ laws - wanted.ones)
    on_laws = shares[:, None] * (along + pull_ones) * laws
    inside = np.repeat(np.add.reduceat(on_laws, starts, axis=1), widths, axis=1)
    on_shares = (laws * along).sum(axis=1) / 2 + laws @ pull_ones
    on_weights = shares * (on_shares - shares @ on_shares)
    return np.concatenate([on_laws - laws * inside, on_weights[:, None]], axis=1), missed
