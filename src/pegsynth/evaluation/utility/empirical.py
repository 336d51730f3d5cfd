"""Distributions of released numbers: moments, quantiles, heaps, and how far apart two are.

Goes in: the numbers of a feature, with weights or without. Comes out: an `Empirical`, the
distinct numbers in order with their shares, of which every figure is computed exactly.

The numbers of one feature as distributions: of the original, and of every released table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pegsynth.evaluation.faults.fault_kinds import rows_judged
from pegsynth.inference.combining_rules import Rule, effective_rows, pooled_estimate
from pegsynth.inference.statistics import Estimate
from pegsynth.inference.value_columns import TableValues
from pegsynth.kernels.arrays import Float64

FEWEST_OF_HEAPS = 20
HEAP_SHARE = 0.01
MOST_HEAPS = 5
TAILS = (("below", 0.01), ("above", 0.99))
_AROUND, _TIMES = 5, 3.0


@dataclass(frozen=True)
class Order:
    """The numbers of a column in order, so that several weights share one sorting.

    Parameters
    ----------
    support
        Distinct numbers, the smallest first.
    rows
        Rows that have a number, in the order of these.
    starts
        Where the rows of each number begin.
    """

    support: Float64
    rows: NDArray[np.int64] | None
    starts: NDArray[np.int64]
    count: int

    @classmethod
    def of(cls, values: Float64, *, weighted: bool = False) -> Order:
        """Sort the numbers of a column, those that are missing left out."""
        known = ~np.isnan(values)
        rows = None
        if weighted:
            rows = np.flatnonzero(known)
            rows = rows[np.argsort(values[rows], kind="stable")]
            values = values[rows]
        else:
            values = np.sort(values[known])
        first = np.ones(len(values), dtype=bool)
        first[1:] = values[1:] != values[:-1]
        starts = np.flatnonzero(first)
        return cls(values[starts], rows, starts, len(values))

    def empirical(self, weights: Float64 | None = None) -> Empirical | None:
        """Return the distribution under some weights; None where nothing counts."""
        if not self.count:
            return None
        if weights is None or self.rows is None:
            counts = np.diff(np.append(self.starts, self.count)).astype(np.float64)
            return Empirical(self.support, counts / self.count, float(self.count), self.count)
        ours = weights[self.rows]
        total = float(ours.sum())
        if not total > 0:
            return None
        shares = np.add.reduceat(ours, self.starts) / total
        return Empirical(self.support, shares, effective_rows(ours), self.count)


@dataclass(frozen=True)
class Empirical:
    """A distribution on finitely many numbers.

    Parameters
    ----------
    support, shares
        The numbers, the smallest first, and the share of each.
    n
        Rows of equal weight that say as much, for variances.
    rows
        Rows behind it, weighted or not. Chance is that of as many: uneven weights are no excuse.
    """

    support: Float64
    shares: Float64
    n: float
    rows: int

    @cached_property
    def cumulative(self) -> Float64:
        """Share of rows up to each number."""
        sums = np.cumsum(self.shares)
        # The last one is all rows, whatever rounding makes of it.
        sums[-1] = 1.0
        return np.asarray(np.minimum(sums, 1.0))

    @cached_property
    def mean(self) -> float:
        """Mean."""
        return float(self.shares @ self.support)

    @cached_property
    def size(self) -> float:
        """Mean of the numbers without their sign."""
        return float(self.shares @ np.abs(self.support))

    @cached_property
    def sd(self) -> float:
        """Standard deviation."""
        return math.sqrt(max(self.moment(2), 0.0))

    def moment(self, power: int) -> float:
        """Return a central moment."""
        return float(self.shares @ (self.support - self.mean) ** power)

    def at_most(self, numbers: Float64 | float) -> Float64:
        """Return the share of rows up to each of some numbers."""
        places = np.searchsorted(self.support, numbers, side="right")
        return np.asarray(np.append(0.0, self.cumulative)[places])

    def share(self, number: float) -> float:
        """Return the share of one number."""
        place = int(np.searchsorted(self.support, number))
        if place < len(self.support) and self.support[place] == number:
            return float(self.shares[place])
        return 0.0

    def beyond(self, bound: float, where: str) -> float:
        """Return the share of rows above or below a bound."""
        if where == "above":
            return 1.0 - float(self.at_most(bound))
        return float(self.at_most(bound)) - self.share(bound)

    def quantile(self, levels: Float64 | float) -> Float64:
        """Return the smallest number at or below which a share of the rows lies."""
        # A level that is itself a sum of shares must not be missed for a rounding error.
        places = np.searchsorted(self.cumulative, np.asarray(levels) - 1e-12)
        return np.asarray(self.support[np.minimum(places, len(self.support) - 1)])

    def heaps(self) -> Float64:
        """Return the numbers, zero aside, at which rows heap up, the largest heap first.

        A heap has at least 1 % of the rows and more than three times the median share of the
        five numbers on either side. Where there are at most 20 numbers none is a heap.
        """
        if len(self.support) <= FEWEST_OF_HEAPS:
            return np.empty(0)
        found = []
        for place in np.flatnonzero((self.shares >= HEAP_SHARE) & (self.support != 0)).tolist():
            around = self.shares[max(place - _AROUND, 0) : place + _AROUND + 1]
            others = np.delete(around, min(place, _AROUND))
            if self.shares[place] > _TIMES * float(np.median(others)):
                found.append(place)
        found.sort(key=lambda place: (-self.shares[place], place))
        return np.asarray(self.support[found], dtype=np.float64)


def kolmogorov(first: Empirical, second: Empirical) -> float:
    """Largest distance of two distribution functions.

    Notes
    -----
    Kolmogorov (1933), Sulla determinazione empirica di una legge di distribuzione, Giornale
    dell'Istituto Italiano degli Attuari 4, 83-91; for two samples Smirnov (1939).
    """
    points = np.union1d(first.support, second.support)
    return float(np.abs(first.at_most(points) - second.at_most(points)).max())


def wasserstein(first: Empirical, second: Empirical) -> float:
    """Mean distance that rows must move to turn one distribution into the other.

    Notes
    -----
    The area between the distribution functions: Vallender (1974), Calculation of the
    Wasserstein distance between probability distributions on the line, Theory of Probability
    and its Applications 18(4), 784-786, doi:10.1137/1118101.
    """
    points = np.union1d(first.support, second.support)
    apart = np.abs(first.at_most(points) - second.at_most(points))[:-1]
    return float(apart @ np.diff(points))


def kolmogorov_floor(n: float) -> float:
    """Kolmogorov distance expected of a bootstrap of n rows of a law without atoms.

    The mean of the Kolmogorov distribution, sqrt(pi/2) log 2, over sqrt(n); with atoms it is
    less.
    """
    return math.sqrt(math.pi / 2) * math.log(2) / math.sqrt(n)


def wasserstein_floor(law: Empirical, n: float) -> float:
    """Wasserstein distance expected of n rows drawn from a law, by the normal approximation.

    The sum over the line of E|F_n - F| = sqrt(2 F (1 - F) / (pi n)).
    """
    if len(law.support) < 2:
        return 0.0
    spread = law.cumulative[:-1] * (1 - law.cumulative[:-1])
    return float(np.sqrt(2 * spread / (math.pi * n)) @ np.diff(law.support))


Figure = Callable[[Empirical], float]


@dataclass(frozen=True)
class Sides:
    """One feature, in the original and in the synthetic tables.

    Parameters
    ----------
    name
        The feature.
    original, synthetic
        Its distribution in the original, and in each synthetic table.
    replicates
        The same under each replicate weight of the one synthetic table that has some.
    dropped
        Rows without a number: of the original, then of each synthetic table.
    rule
        How several tables were made, where that is known.
    """

    name: str
    original: Empirical
    synthetic: tuple[Empirical, ...]
    replicates: tuple[Empirical, ...] = ()
    dropped: tuple[int, ...] = ()
    rule: Rule | None = None

    @property
    def rows(self) -> float:
        """Rows to judge by: of a fresh sample as large as the smallest synthetic table."""
        return rows_judged(self.original.rows, min(each.rows for each in self.synthetic))

    def mean(self, figure: Figure) -> float:
        """Return the mean of a figure over the synthetic tables."""
        return sum(map(figure, self.synthetic)) / len(self.synthetic)

    def heaps(self) -> list[float]:
        """Return the numbers, zero aside, at which either table heaps up, the original's first."""
        found = [law.heaps().tolist()[:MOST_HEAPS] for law in (self.original, *self.synthetic)]
        return list(dict.fromkeys(number for each in found for number in each))

    def estimate(self, figure: Figure, variance: Figure) -> Estimate:
        """Return a figure of the synthetic tables with its interval."""
        values = [figure(each) for each in self.synthetic]
        return pooled_estimate(
            values,
            [max(variance(each), 0.0) for each in self.synthetic],
            share=sum(each.n for each in self.synthetic) / len(values) / self.original.n,
            rule=self.rule,
            replicates=[figure(each) for each in self.replicates],
        )


def sides_of(
    name: str, original: TableValues, synthetic: Sequence[TableValues], rule: Rule | None = None
) -> Sides | str:
    """Sort the numbers of a feature in all tables; a text says why it cannot be done."""
    for number, table in enumerate((original, *synthetic)):
        if name in table.labelled:
            where = f"synthetic table {number}" if number else "the original"
            return f"{where} holds labels of bins, no numbers"
    orders = [_order(each, name) for each in (original, *synthetic)]
    laws = [order.empirical(each.weights) for order, each in _paired(orders, original, synthetic)]
    if laws[0] is None:
        return "no row of the original has a number"
    known = tuple(law for law in laws[1:] if law is not None)
    if len(known) < len(synthetic):
        return "a synthetic table has no row with a number"
    replicates: tuple[Empirical, ...] = ()
    if len(synthetic) == 1 and synthetic[0].replicates is not None:
        found = [orders[1].empirical(line) for line in synthetic[0].replicates]
        replicates = tuple(law for law in found if law is not None)
    dropped = tuple(
        len(each.columns[name]) - order.count
        for order, each in _paired(orders, original, synthetic)
    )
    return Sides(name, laws[0], known, replicates, dropped, rule)


def _order(table: TableValues, name: str) -> Order:
    return Order.of(table.columns[name], weighted=table.weights is not None)


def _paired(
    orders: Sequence[Order], original: TableValues, synthetic: Sequence[TableValues]
) -> list[tuple[Order, TableValues]]:
    return list(zip(orders, (original, *synthetic), strict=True))
