"""The numbers of tables: their distributions and correlations, and how far apart two are.

Goes in: the numbers of a feature, or of two, with weights or without. Comes out: an `Empirical`,
the distinct numbers in order with their shares, of which every figure is computed exactly; or a
`Correlation`. `Sides` hold either of the original beside those of every released table.

Correlations are Pearson's of the numbers themselves, and Spearman's of their ranks: the share of
rows below a number and half of those that have it. A pair is measured on the rows that have both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Generic, TypeVar

import numpy as np

from pegsynth.evaluation.problems import bernstein, rows_judged
from pegsynth.inference.combining_rules import Rule, effective_rows, pooled_estimate
from pegsynth.inference.statistics import Estimate
from pegsynth.inference.value_columns import TableValues
from pegsynth.kernels.arrays import Float64

FEWEST_OF_HEAPS = 20
HEAP_SHARE = 0.01
MOST_HEAPS = 5
TAILS = (("below", 0.01), ("above", 0.99))
CORRELATIONS = ("pearson_correlation", "spearman_correlation")
_AROUND, _TIMES = 5, 3.0
_NO_SPREAD = 1e-12


def distributions(
    values: Float64, weights: Sequence[Float64 | None] = (None,)
) -> list[Empirical | None]:
    """Return the distribution of a column under each of some weights, sorted once.

    Weights of None let all rows count alike. Rows without a number are left out; where nothing
    counts there is no distribution.
    """
    rows = np.flatnonzero(~np.isnan(values))
    if all(line is None for line in weights):
        ordered = np.sort(values[rows])
    else:
        rows = rows[np.argsort(values[rows], kind="stable")]
        ordered = values[rows]
    if not len(ordered):
        return [None] * len(weights)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    found: list[Empirical | None] = []
    for line in weights:
        ours = np.ones(len(ordered)) if line is None else line[rows]
        total = float(ours.sum())
        shares = np.add.reduceat(ours, starts) / (total or 1.0)
        n = effective_rows(ours)
        found.append(Empirical(ordered[starts], shares, n, len(ordered)) if total > 0 else None)
    return found


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


@dataclass(frozen=True)
class Correlation:
    """A correlation in one table.

    Parameters
    ----------
    value, variance
        The coefficient, and its variance over n rows, by its influence on each row.
    largest
        Largest influence of a row.
    n
        Rows of equal weight that say as much, for variances.
    rows
        Rows behind it, weighted or not.
    """

    value: float
    variance: float
    largest: float
    n: float
    rows: int

    def allowance(self, n: float, alpha: float) -> float:
        """Return how far n rows drawn from this table may be off, for large n.

        Bernstein's inequality for the mean of the rows' influences, which the coefficient is
        up to terms of the order 1/n.
        """
        return bernstein(self.variance * self.n, self.largest, n, alpha)


Side = TypeVar("Side", "Empirical", "Correlation")
Figure = Callable[[Side], float]


@dataclass(frozen=True)
class Sides(Generic[Side]):
    """The numbers of one feature, or of two, in the original and in the synthetic tables.

    Parameters
    ----------
    names
        The features.
    original, synthetic
        Their distribution or correlation in the original, and in each synthetic table.
    replicates
        The same under each replicate weight of the one synthetic table that has some.
    dropped
        Rows without a number: of the original, then of each synthetic table.
    rule
        How several tables were made, where that is known.
    measure
        Which correlation; empty for a distribution.
    """

    names: tuple[str, ...]
    original: Side
    synthetic: tuple[Side, ...]
    replicates: tuple[Side, ...] = ()
    dropped: tuple[int, ...] = ()
    rule: Rule | None = None
    measure: str = ""

    @property
    def name(self) -> str:
        """The features, as results call them."""
        return ", ".join(self.names)

    @property
    def released(self) -> int:
        """Rows of the smallest synthetic table."""
        return min(each.rows for each in self.synthetic)

    @property
    def rows(self) -> float:
        """Rows to judge by: of a fresh sample as large as the smallest synthetic table."""
        return rows_judged(self.original.rows, self.released)

    def mean(self, figure: Figure[Side]) -> float:
        """Return the mean of a figure over the synthetic tables."""
        return sum(map(figure, self.synthetic)) / len(self.synthetic)

    def estimate(self, figure: Figure[Side], variance: Figure[Side]) -> Estimate:
        """Return a figure of the synthetic tables with its interval."""
        values = [figure(each) for each in self.synthetic]
        return pooled_estimate(
            values,
            [max(variance(each), 0.0) for each in self.synthetic],
            share=sum(each.n for each in self.synthetic) / len(values) / self.original.n,
            rule=self.rule,
            replicates=[figure(each) for each in self.replicates],
        )


def heaps_of(side: Sides[Empirical]) -> list[float]:
    """Return the numbers, zero aside, at which either table heaps up, the original's first."""
    found = [law.heaps().tolist()[:MOST_HEAPS] for law in (side.original, *side.synthetic)]
    return list(dict.fromkeys(number for each in found for number in each))


def sides_of(
    name: str, original: TableValues, synthetic: Sequence[TableValues], rule: Rule | None = None
) -> Sides[Empirical] | str:
    """Sort the numbers of a feature in all tables; a text says why it cannot be done."""
    tables = (original, *synthetic)
    for number, table in enumerate(tables):
        if name in table.labelled:
            where = f"synthetic table {number}" if number else "the original"
            return f"{where} holds labels of bins, no numbers"
    (first, *_), *others = (
        distributions(each.columns[name], [each.weights, *_replicates(each, synthetic)])
        for each in tables
    )
    if first is None:
        return "no row of the original has a number"
    known = tuple(found[0] for found in others if found[0] is not None)
    if len(known) < len(synthetic):
        return "a synthetic table has no row with a number"
    again = tuple(each for found in others for each in found[1:] if each is not None)
    dropped = tuple(int(np.isnan(each.columns[name]).sum()) for each in tables)
    return Sides((name,), first, known, again, dropped, rule)


def pair_sides(
    sides: Sequence[Sides[Empirical]], original: TableValues, synthetic: Sequence[TableValues]
) -> list[Sides[Correlation]]:
    """Correlate all pairs of features in all tables; pairs that do not vary are left out.

    Under replicate weights numbers and ranks stay those of the published counts: a replicate
    moves ranks by less than it moves the correlation.
    """
    tables = [original, *synthetic]
    numbers = [{each.name: table.columns[each.name] for each in sides} for table in tables]
    ranks = [
        {
            each.name: _ranks((each.original, *each.synthetic)[place], table.columns[each.name])
            for each in sides
        }
        for place, table in enumerate(tables)
    ]
    found = []
    for measure, columns in zip(CORRELATIONS, (numbers, ranks), strict=True):
        for pair in combinations([each.name for each in sides], 2):
            (first, *_), *others = (
                [
                    correlation(ours[pair[0]], ours[pair[1]], line)
                    for line in (table.weights, *_replicates(table, synthetic))
                ]
                for ours, table in zip(columns, tables, strict=True)
            )
            known = tuple(each[0] for each in others if each[0] is not None)
            if first is not None and len(known) == len(synthetic):
                again = tuple(each for some in others for each in some[1:] if each is not None)
                rule = sides[0].rule
                found.append(Sides(pair, first, known, again, rule=rule, measure=measure))
    return found


def _replicates(table: TableValues, synthetic: Sequence[TableValues]) -> Sequence[Float64]:
    """Return the replicate weights of a table, if it is the only synthetic one and has some."""
    alone = len(synthetic) == 1 and table is synthetic[0] and table.replicates is not None
    return list(table.replicates) if alone and table.replicates is not None else []


def correlation(first: Float64, second: Float64, weights: Float64 | None) -> Correlation | None:
    """Return the correlation of two columns; None where one of them does not vary.

    Notes
    -----
    Influence of a row with standardised numbers u, v: u v - r (u^2 + v^2)/2 (Devlin,
    Gnanadesikan and Kettenring 1975, Robust estimation and outlier detection with correlation
    coefficients, Biometrika 62(3), 531-545, doi:10.1093/biomet/62.3.531). Its mean square over
    n is the variance, whatever the law of the numbers.
    """
    known = np.isfinite(first + second)
    if not known.all():
        first, second = first[known], second[known]
        weights = None if weights is None else weights[known]
    if len(first) < 3:
        return None
    shares = None if weights is None else weights / weights.sum()
    u, v = _standardised(first, shares), _standardised(second, shares)
    if u is None or v is None:
        return None
    influence = u * v
    value = min(max(_mean(influence, shares), -1.0), 1.0)
    np.multiply(u, u, out=u)
    np.multiply(v, v, out=v)
    u += v
    u *= value / 2
    influence -= u
    n = float(len(first)) if shares is None else 1 / float(shares @ shares)
    variance = _mean_square(influence, shares) / n
    if not (math.isfinite(value) and math.isfinite(variance)):
        return None
    return Correlation(value, variance, float(np.abs(influence).max()), n, len(first))


def _standardised(values: Float64, shares: Float64 | None) -> Float64 | None:
    # Divided first: squares of large numbers overflow.
    scale = float(max(values.max(), -values.min()))
    if scale == 0:
        return None
    centred = values / scale
    centred -= _mean(centred, shares)
    deviation = math.sqrt(_mean_square(centred, shares))
    if not deviation > _NO_SPREAD:
        return None
    centred /= deviation
    return centred


def _mean(values: Float64, shares: Float64 | None) -> float:
    return float(values.mean() if shares is None else shares @ values)


def _mean_square(values: Float64, shares: Float64 | None) -> float:
    if shares is None:
        return float(values @ values) / len(values)
    return float(shares @ (values * values))


def _ranks(law: Empirical, values: Float64) -> Float64:
    """Return the share of rows below each number, and half of those that have it."""
    grades = np.append(law.cumulative - law.shares / 2, np.nan)
    places = np.searchsorted(law.support, values)
    return np.asarray(grades[np.where(np.isnan(values), len(law.support), places)])
