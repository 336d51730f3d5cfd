"""Estimates with intervals: shares, means and areas under the curve.

Goes in: what was observed for each target or test row. Comes out: an `Estimate`.
All intervals are large-sample, t or distribution-free formulas of the textbooks, named and
cited where they are used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64, Int64

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval.

    Parameters
    ----------
    value
        The figure; NaN when there was nothing to take it of.
    low, high
        Ends of the interval; NaN when there is none.
    n
        Targets, rows or repeats behind it.
    variance
        Of the figure, where it has been estimated; else NaN.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    variance: float = math.nan

    @property
    def known(self) -> bool:
        """Whether there is a value at all."""
        return not math.isnan(self.value)

    def above(self, bound: float) -> bool:
        """Say whether the whole interval lies above a bound."""
        return self.low > bound

    def below(self, bound: float) -> bool:
        """Say whether the whole interval lies below a bound."""
        return self.high < bound


NOTHING = Estimate(math.nan)


def quantile(level: float) -> float:
    """Return the normal quantile of a two-sided interval of that level."""
    if not 0 < level < 1:
        raise ParameterError(f"level = {level} must lie between 0 and 1")
    return NormalDist().inv_cdf((1 + level) / 2)


def interval(
    value: float, variance: float, freedom: float, *, n: int = 0, level: float = LEVEL
) -> Estimate:
    """Return an estimate with its t interval; infinite degrees of freedom give the normal one."""
    from scipy.special import ndtri, stdtrit

    upper = (1 + level) / 2
    factor = ndtri(upper) if math.isinf(freedom) else stdtrit(freedom, upper)
    half = float(factor) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, n, variance)


def overlap(first: Estimate, second: Estimate) -> float:
    """Mean of the common part of two intervals as a share of each; 0 where they do not meet.

    Notes
    -----
    Karr, Kohnen, Oganian, Reiter and Sanil (2006), A framework for evaluating the utility of
    data altered to protect confidentiality, The American Statistician 60(3), 224-232,
    doi:10.1198/000313006X124640.
    """
    if first.low == second.low and first.high == second.high:
        return 1.0
    common = min(first.high, second.high) - max(first.low, second.low)
    widths = (first.high - first.low, second.high - second.low)
    if common <= 0 or min(widths) <= 0:
        return 0.0
    return (common / widths[0] + common / widths[1]) / 2


def share(value: float, n: int, *, level: float) -> Estimate:
    """Share of n targets, with Wilson's interval.

    For a mean of figures between 0 and 1 it is conservative: no such figure varies more
    than one that is 0 or 1 with the same mean.

    Notes
    -----
    Wilson (1927), Probable inference, the law of succession, and statistical inference,
    Journal of the American Statistical Association 22(158), 209-212,
    doi:10.1080/01621459.1927.10502953.
    """
    if n == 0:
        return NOTHING
    value = min(max(value, 0.0), 1.0)
    z = quantile(level) ** 2
    middle = (value + z / (2 * n)) / (1 + z / n)
    half = math.sqrt(z * (value * (1 - value) + z / (4 * n)) / n) / (1 + z / n)
    # The interval holds the share itself; only rounding could put it outside.
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return Estimate(value, min(low, value), max(high, value), n)


def lumped_share(value: float, n: int, variance: float, *, lump: float, level: float) -> Estimate:
    """Share of n rows that change sides in lumps, with its score interval.

    Parameters
    ----------
    variance
        Of the number of rows.
    lump
        Rows that change sides together. Where all rows, or none, are on one side, the variance is
        zero, but a few lumps more or fewer would be no surprise.

    Notes
    -----
    Wilson's interval (see `share`) for n/lump lumps, with this variance in the place of the
    binomial one and terms of order 1/n^2 left out. Its middle lies towards 1/2; here that widens
    the interval on one side and narrows it nowhere, as what it is compared with is a share of
    another sample, which may have none of the lumps either.
    """
    z = quantile(level)
    shift = lump * z * z * (1 - 2 * value) / (2 * n)
    half = z * math.sqrt(variance + (lump * z / 2) ** 2) / n
    low, high = value + min(shift, 0.0) - half, value + max(shift, 0.0) + half
    return Estimate(value, max(low, 0.0), min(high, 1.0), n)


def weighted_mean(values: Float64, weights: Int64, *, level: float) -> Estimate:
    """Mean of values that stand for `weights` targets each, with the normal interval."""
    n = int(weights.sum())
    if n == 0:
        return NOTHING
    value = float(np.dot(values, weights) / n)
    if n == 1:
        return Estimate(value, n=n)
    variance = float(np.dot(np.square(values - value), weights) / (n - 1))
    half = quantile(level) * math.sqrt(variance / n)
    return Estimate(value, value - half, value + half, n)


def spread(values: Sequence[float], *, n: int) -> Estimate:
    """Mean of a figure over tables, from the smallest to the largest; a single one has no range."""
    if not values:
        return NOTHING
    ends = (min(values), max(values)) if len(values) > 1 else (math.nan, math.nan)
    return Estimate(float(np.mean(values)), *ends, n)


def jackknife(changes: Iterable[tuple[float, float]], *, rows: int) -> float:
    """Return the jackknife variance of a count.

    Parameters
    ----------
    changes
        How a count changes without a row, and for how many rows it does so.
    rows
        All rows; those not listed change nothing.

    Notes
    -----
    For independent rows it is too large on average rather than too small: Efron and Stein (1981),
    The jackknife estimate of variance, Annals of Statistics 9(3), 586-596,
    doi:10.1214/aos/1176345462.
    """
    parts = list(changes)
    mean = sum(change * count for change, count in parts) / rows
    squares = sum(change * change * count for change, count in parts) - rows * mean * mean
    return max(squares, 0.0) * (rows - 1) / rows


def hull(estimates: Sequence[Estimate]) -> Estimate:
    """Mean of several estimates of one thing, from the lowest to the highest limit."""
    if not estimates:
        return NOTHING
    return Estimate(
        float(np.mean([each.value for each in estimates])),
        min(each.low for each in estimates),
        max(each.high for each in estimates),
        estimates[0].n,
    )


def placements(scores: Float64, others: Float64) -> Float64:
    """Share of `others`, in increasing order, below each score, ties counted half."""
    left = np.searchsorted(others, scores, side="left")
    right = np.searchsorted(others, scores, side="right")
    return np.asarray((left + right) / (2 * len(others)), dtype=np.float64)


def roc_area(members: Float64, others: Float64, *, level: float) -> Estimate:
    """Chance that a member scores above a non-member, ties counted half.

    Notes
    -----
    The interval is that of DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44(3),
    837-845, doi:10.2307/2531595. Where the scores separate the two completely its variance is
    zero; the variance of Hanley and McNeil (1982), Radiology 143(1), 29-36,
    doi:10.1148/radiology.143.1.7063747, taken at the limit itself, then gives a bound. Where few
    are above the rest, a small sample of one kind may hold none of them, and its own variance is
    zero; the variance is therefore never taken below that of scores that tell nothing (Mann and
    Whitney 1947, The Annals of Mathematical Statistics 18(1), 50-60, with ties).
    """
    m, n = len(members), len(others)
    if m == 0 or n == 0:
        return NOTHING
    members, others = np.sort(members), np.sort(others)
    below, above = placements(members, others), placements(others, members)
    area = float(below.mean())
    if min(m, n) < 2:
        return Estimate(area, n=m + n)
    deviation = math.sqrt(float(below.var(ddof=1) / m + above.var(ddof=1) / n))
    if deviation == 0:
        return Estimate(area, *_separated(area, m, n, level), m + n)
    _, ties = np.unique(np.concatenate((members, others)), return_counts=True)
    total = float(m + n)
    spared = float(np.sum(ties.astype(np.float64) ** 3 - ties)) / (total * (total - 1))
    half = quantile(level) * max(deviation, math.sqrt((total + 1 - spared) / (12 * m * n)))
    return Estimate(area, max(0.0, area - half), min(1.0, area + half), m + n)


def advantage(members: Float64, others: Float64, *, level: float) -> Estimate:
    """Largest true positive rate minus false positive rate over all thresholds.

    The figure, a maximum, is never negative and lies above 0 by chance alone.

    Notes
    -----
    The interval is distribution-free: each empirical distribution lies within
    sqrt(log(4/(1 - level))/(2 m)) of its own (Dvoretzky, Kiefer and Wolfowitz 1956, with the
    constant of Massart 1990, The Annals of Probability 18(3), 1269-1283,
    doi:10.1214/aop/1176990746), both at once with the stated level.
    """
    m, n = len(members), len(others)
    if m == 0 or n == 0:
        return NOTHING
    # The largest difference is reached with the score of a member as the threshold.
    members, others = np.sort(members), np.sort(others)
    missed = np.searchsorted(members, members, side="left") / m
    spared = np.searchsorted(others, members, side="left") / n
    value = max(0.0, float(np.max(spared - missed)))
    half = sum(math.sqrt(math.log(4 / (1 - level)) / (2 * size)) for size in (m, n))
    return Estimate(value, max(0.0, value - half), min(1.0, value + half), m + n)


def _separated(area: float, m: int, n: int, level: float) -> tuple[float, float]:
    """Limits for an area of 0, 1/2 or 1 without any variation, by bisection."""
    z = quantile(level)

    def covered(limit: float) -> bool:
        first, second = limit / (2 - limit), 2 * limit**2 / (1 + limit)
        spread = limit * (1 - limit) + (m - 1) * (first - limit**2) + (n - 1) * (second - limit**2)
        return abs(area - limit) <= z * math.sqrt(max(spread, 0.0) / (m * n))

    return _edge(covered, area, 0.0), _edge(covered, area, 1.0)


def _edge(covered: Callable[[float], bool], inside: float, outside: float) -> float:
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if covered(middle) else (inside, middle)
    return inside
