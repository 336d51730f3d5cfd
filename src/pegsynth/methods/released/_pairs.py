"""What residuals tell of all pairs, and a law of latent classes that is fitted to them (R27).

Where the noise on all pairs together is small beside the number of rows, nothing need be chosen:
one-way counts and the residuals of all pairs tell every pair table (`PairEstimates`).

Given its class a row's features are independent of each other: a mixture of products. All pair
tables of such a law are one product of matrices, and few classes make what pairs have in common
louder than the noise on each. The fit is weighted least squares by inverse variances, by gradient
descent that starts next to independence and ends as soon as the law misses the measurements by no
more than their noise does; going on would fit the noise.

All of it is post-processing of paid-for numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._estimates import (
    Margins,
    fitted_to,
    on_simplex,
    ratio_weights,
    shrunken,
)
from pegsynth.methods.released._row_pool import Features
from pegsynth.methods.released._values import NoisyTable

_LEAST = 1e-9
_APART = 0.5
_RATE, _LAST_RATE = 0.1, 0.02
_SLOW, _SLOWER = 0.9, 0.99
_FEWEST, _GROWTH = 2, 1.5
_MOST_WORK = 20_000_000_000
_LOOK = 3
_POWER = 1.5
_ENOUGH_TO_JUDGE = 12


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
        return free_figures(len(self.shares), self.sizes)

    def pair(self, pair: Features) -> Float64:
        """Return the shares of a pair's cells."""
        first, second = (self.of(feature) for feature in pair)
        cells: Float64 = (self.shares[:, None] * first).T @ second
        return cells

    def of(self, feature: int) -> Float64:
        """Return the shares of a feature's levels, a line for every class."""
        start = sum(self.sizes[:feature])
        return self.laws[:, start : start + self.sizes[feature]]


def free_figures(classes: int, sizes: Sequence[int]) -> int:
    """Return how many free figures so many classes have beyond those of a single one."""
    return (classes - 1) * (sum(sizes) - len(sizes) + 1)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """What a law should meet: shares of levels and of pairs of levels, and their precisions.

    Parameters
    ----------
    sizes
        Levels of every feature.
    free
        Free cells of all pairs.
    room
        Two tables of all levels by all levels to work in: new ones for every turn would cost
        more than the arithmetic.
    """

    sizes: tuple[int, ...]
    ones: Float64
    ones_precision: Float64
    pairs: Float64
    pairs_precision: Float64
    free: int
    room: Float64

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
            margins.sizes,
            np.concatenate(margins.shares),
            np.concatenate(margins.precisions) * margins.total**2,
            pairs,
            precision,
            sum(map(free_cells, levels)),
            np.empty((2, whole, whole)),
        )

    def slope(self, shares: Float64, laws: Float64) -> tuple[Float64, float]:
        """Return the slope of half of the squared misfit, and the misfit of pairs."""
        off, pull = self.room
        np.matmul((shares[:, None] * laws).T, laws, out=off)
        off -= self.pairs
        np.multiply(self.pairs_precision, off, out=pull)
        missed = float(np.vdot(pull, off)) / 2
        along = laws @ pull
        pull_ones = self.ones_precision * (shares @ laws - self.ones)
        on_laws = shares[:, None] * (along + pull_ones) * laws
        starts, widths = places_of(self.sizes)
        inside = np.repeat(np.add.reduceat(on_laws, starts, axis=1), widths, axis=1)
        on_shares = (laws * along).sum(axis=1) / 2 + laws @ pull_ones
        on_weights = shares * (on_shares - shares @ on_shares)
        return np.concatenate([on_laws - laws * inside, on_weights[:, None]], axis=1), missed


def fitted_classes(
    estimates: PairEstimates,
    margins: Margins,
    uniforms: Callable[[int], Float64],
    *,
    most_turns: int,
    counts: Sequence[int] = (),
    useful_below: float = math.inf,
) -> HiddenClasses:
    """Fit a law to one-way counts and residuals of pairs.

    Of several numbers of classes the one is kept that should miss the true tables by least: the
    squared misfit plus twice the number of free figures, all in units of noise (Mallows). A third
    of the turns tells which; only the best one has them all.

    Parameters
    ----------
    uniforms
        Makes uniform numbers, by which classes start a little apart.
    counts
        Numbers of classes to try, from the smallest on.
    useful_below
        The misfit that a law must come to. Where no number of classes is likely to do so, the
        search ends early.
    """
    from threadpoolctl import threadpool_limits

    wanted = _Wanted.of(estimates, margins)
    numbers = counts or classes_to_try(len(wanted.ones), most_turns)
    # Products of small matrices would wait for threads longer than they take.
    with threadpool_limits(limits=1, user_api="blas"):
        best = _best_number(wanted, numbers, uniforms, most_turns, useful_below)
        if not best.is_hopeless(useful_below):
            best.go_on(until=most_turns)
    return best.law()


def _best_number(
    wanted: _Wanted,
    numbers: Sequence[int],
    uniforms: Callable[[int], Float64],
    most_turns: int,
    useful_below: float,
) -> _Descent:
    """Return the descent that a part of its turns finds best, of several numbers of classes."""

    def looked_at(classes: int) -> _Descent:
        tried = _Descent.beside_independence(wanted, classes, uniforms, most_turns)
        tried.go_on(until=-(-most_turns // _LOOK))
        return tried

    smallest, *larger = numbers
    best = looked_at(smallest)
    for classes in larger:
        if best.is_within_noise or best.is_hopeless(useful_below):
            break
        tried = looked_at(classes)
        if tried.misfit >= best.misfit:
            break
        best = tried
    return best


def classes_to_try(levels: int, most_turns: int) -> list[int]:
    """Return numbers of classes, ever larger, that take bearable time together."""
    room = _MOST_WORK // (levels**2 * most_turns)
    found = [_FEWEST]
    while (following := math.ceil(found[-1] * _GROWTH)) + sum(found) <= room:
        found.append(following)
    return found


@dataclass
class _Descent:
    """Gradient descent with momentum, each figure at a pace of its own (Adam).

    Parameters
    ----------
    point
        For every class the logarithms of the odds of all levels, and of its own share.
    missed
        The squared misfit of pairs at the last look.
    """

    wanted: _Wanted
    most_turns: int
    point: Float64
    first: Float64
    second: Float64
    turn: int = 0
    missed: float = math.inf

    @classmethod
    def beside_independence(
        cls,
        wanted: _Wanted,
        classes: int,
        uniforms: Callable[[int], Float64],
        most_turns: int,
    ) -> _Descent:
        """Start with classes that are a little apart."""
        apart = uniforms(classes * len(wanted.ones)).reshape(classes, -1) - 0.5
        odds = np.log(np.maximum(wanted.ones, _LEAST)) + _APART * np.sqrt(12.0) * apart
        point = np.concatenate([odds, np.zeros((classes, 1))], axis=1)
        return cls(wanted, most_turns, point, np.zeros_like(point), np.zeros_like(point))

    def go_on(self, until: int) -> None:
        """Take turns up to this one, or until the law misses by no more than noise does."""
        while self.turn < until and not self.is_within_noise:
            slope, self.missed = self.wanted.slope(*law_at(self.point, self.wanted.sizes))
            if self.is_within_noise:
                break
            self.turn += 1
            self.first = _SLOW * self.first + (1 - _SLOW) * slope
            self.second = _SLOWER * self.second + (1 - _SLOWER) * slope**2
            ahead = self.first / (1 - _SLOW**self.turn)
            spread = np.sqrt(self.second / (1 - _SLOWER**self.turn))
            gone = (self.turn - 1) / self.most_turns
            rate = _LAST_RATE + (_RATE - _LAST_RATE) * (1 - gone)
            self.point = self.point - rate * ahead / (spread + _LEAST)

    @property
    def is_within_noise(self) -> bool:
        """Whether the law misses the measurements by no more than their noise does."""
        return self.missed <= self.wanted.free

    @property
    def misfit(self) -> float:
        """The misfit of `HiddenClasses`."""
        return (self.missed + 2 * self._figures) / max(self.wanted.free, 1)

    def is_hopeless(self, useful_below: float) -> bool:
        """Say whether the misfit would stay above this with any number of classes.

        From so many classes on as show how it falls, the squared misfit is taken to fall by a
        power of their number, while every class adds its figures.
        """
        classes, free = len(self.point), max(self.wanted.free, 1)
        if classes < _ENOUGH_TO_JUDGE:
            return False
        missed, added = self.missed / free, 2 * self._figures / (classes - 1) / free
        # The number of times as many classes at which one more adds what it takes away.
        times = max(1.0, (_POWER * missed / (added * classes)) ** (1 / (_POWER + 1)))
        least = missed * times**-_POWER + added * (times * classes - 1)
        return bool(least > useful_below)

    def law(self) -> HiddenClasses:
        """Return the law that was reached."""
        sizes = self.wanted.sizes
        return HiddenClasses(sizes, *law_at(self.point, sizes), self.misfit)

    @property
    def _figures(self) -> int:
        return free_figures(len(self.point), self.wanted.sizes)


def law_at(point: Float64, sizes: Sequence[int]) -> tuple[Float64, Float64]:
    """Return shares of classes and of levels given the class, from logarithms of odds."""
    starts, widths = places_of(sizes)
    odds, weights = point[:, :-1], point[:, -1]
    raised = np.exp(odds - np.repeat(np.maximum.reduceat(odds, starts, axis=1), widths, axis=1))
    laws = raised / np.repeat(np.add.reduceat(raised, starts, axis=1), widths, axis=1)
    shares = np.exp(weights - weights.max())
    return shares / shares.sum(), laws


def places_of(sizes: Sequence[int]) -> tuple[Int64, Int64]:
    """Return where the levels of every feature start, and how many there are."""
    widths = np.array(sizes)
    return np.concatenate(([0], np.cumsum(widths)[:-1])), widths


MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
PAIR = 2


def free_cells(levels: Sequence[int]) -> int:
    """Return how many cells of a table are free once its margins are given."""
    return math.prod(count - 1 for count in levels)


def summed_noise(deviation: float, levels: Sequence[int]) -> float:
    """Return the expected sum of absolute noise over a table that residual noise leaves."""
    return MEAN_ABSOLUTE_NORMAL * cell_noise(deviation, levels) * math.prod(levels)


def cell_noise(deviation: float, levels: Sequence[int]) -> float:
    """Return the deviation of the noise on a cell, in rows, once it is projected (R27)."""
    cells = math.prod(levels)
    return deviation / cells * math.sqrt(free_cells(levels) / cells)


def projected(table: NoisyTable, levels: Sequence[int]) -> Float64:
    """Return a noisy residual in rows, on tables without margins (R27)."""
    return centred(table.counts.astype(np.float64), levels) / math.prod(levels)


@dataclass
class PairEstimates:
    """What all measured residuals of a pair tell of it, by the inverse of their variances."""

    sizes: tuple[int, ...]
    sums: dict[Features, Float64] = field(default_factory=dict)
    precisions: dict[Features, float] = field(default_factory=dict)
    means: dict[Features, Float64] = field(default_factory=dict)
    ratios: Float64 | None = None

    @classmethod
    def of(cls, residuals: Sequence[NoisyTable], sizes: tuple[int, ...]) -> PairEstimates:
        """Start from measured residuals; those of more than two features are passed over."""
        estimates = cls(sizes)
        for each in residuals:
            if len(each.features) == PAIR:
                estimates.add(each)
        return estimates

    @property
    def pairs(self) -> list[Features]:
        """The pairs that were measured."""
        return list(self.sums)

    def add(self, table: NoisyTable) -> None:
        """Take in another measurement of a pair."""
        pair, levels = table.features, self._levels(table.features)
        precision = cell_noise(table.deviation, levels) ** -2
        self.sums[pair] = self.sums.get(pair, 0.0) + projected(table, levels) * precision
        self.precisions[pair] = self.precisions.get(pair, 0.0) + precision

    def residual(self, pair: Features) -> Float64:
        """Return the mean of all measurements of a pair's residual, in rows."""
        mean: Float64 = self.sums[pair] / self.precisions[pair]
        return mean

    def noisy(self, pair: Features, margins: Margins) -> Float64:
        """Return a pair's table as one-way counts and its residual tell it, noise and all."""
        levels = self._levels(pair)
        mean = self._mean(pair, margins).ravel()
        cells = mean - centred(mean, levels) + self.residual(pair)
        return cells.reshape(levels)

    def expect(self, law: Callable[[Features], Float64], margins: Margins) -> None:
        """Expect what a law says of every pair; how much it says is told by all pairs together.

        Parameters
        ----------
        law
            Returns the cells of a pair in any unit; they are fitted to the one-way counts.
        """
        self.means = {
            pair: fitted_to(law(pair) * margins.total, self._margins(pair, margins))
            for pair in self.sums
        }
        cells = [mean.size for mean in self.means.values()]
        deviations = [self.precisions[pair] ** -0.5 for pair in self.means]
        self.ratios = ratio_weights(
            np.concatenate([self.noisy(pair, margins).ravel() for pair in self.means]),
            np.concatenate([mean.ravel() for mean in self.means.values()]),
            np.repeat(deviations, cells),
        )

    def counts(self, pair: Features, margins: Margins, *, shrink: bool) -> Float64:
        """Estimate the cells of a pair's table, with the one-way counts as its margins.

        Shrinkage pulls it towards what is expected as far as the noise says, which is
        independence if nothing better is known; without it the table is only projected on
        counts that are possible (R28).
        """
        noisy = self.noisy(pair, margins).ravel()
        deviation = self.precisions[pair] ** -0.5
        if shrink:
            cells = shrunken(noisy, self._mean(pair, margins).ravel(), deviation, self.ratios)
        else:
            cells = on_simplex(noisy, deviation**2, margins.total)
        return fitted_to(cells.reshape(self._levels(pair)), self._margins(pair, margins))

    def tables(self, margins: Margins, *, shrink: bool) -> dict[Features, Float64]:
        """Estimate all pair tables."""
        return {pair: self.counts(pair, margins, shrink=shrink) for pair in self.sums}

    def _margins(self, pair: Features, margins: Margins) -> dict[tuple[int, ...], Float64]:
        return {(place,): margins.counts(each) for place, each in enumerate(pair)}

    def _mean(self, pair: Features, margins: Margins) -> Float64:
        alone = np.outer(margins.counts(pair[0]), margins.shares[pair[1]])
        return self.means.get(pair, alone)

    def _levels(self, features: Features) -> list[int]:
        return [self.sizes[each] for each in features]


def dependence(tables: Mapping[Features, Float64]) -> dict[Features, float]:
    """Return the mutual information of every pair table, in nats."""
    found = {}
    for pair, table in tables.items():
        shares = table / table.sum()
        product = np.outer(shares.sum(axis=1), shares.sum(axis=0))
        some = shares > 0
        found[pair] = float((shares[some] * np.log(shares[some] / product[some])).sum())
    return found
