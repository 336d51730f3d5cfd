"""Means over repeats with t intervals, and the same for differences and ratios.

Goes in: the values of one measure over independent repeats. Comes out: an `Estimate`. A
single repeat has a value and no interval. Values that could not be computed (NaN) are left
out, and `count` says how many are left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = Sequence[float] | NDArray[np.float64]

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A figure with its interval.

    Parameters
    ----------
    value
        The mean, difference or ratio; NaN when there was nothing to take it of.
    low, high
        Ends of the interval; NaN when there were too few repeats for one.
    count
        Repeats behind it, the smaller number of the two for a comparison.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    count: int = 0

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


@dataclass(frozen=True)
class _Moments:
    """Mean of n values and its estimated variance."""

    mean: float
    variance: float
    count: int


def mean(values: Values) -> Estimate:
    """Return the mean with its t interval."""
    found = _moments(values)
    return _interval(found.mean, found.variance, found.count - 1, found.count)


def difference(first: Values, second: Values) -> Estimate:
    """Return mean(first) - mean(second), with Welch's interval."""
    a, b = _moments(first), _moments(second)
    freedom = _welch((a.variance, a.count), (b.variance, b.count))
    return _interval(a.mean - b.mean, a.variance + b.variance, freedom, min(a.count, b.count))


def ratio(first: Values, second: Values) -> Estimate:
    """Return mean(first) / mean(second), its interval by the delta method on the logarithm.

    Both means must be positive, as those of distances, errors and shares are; where one is
    not, there is no ratio.
    """
    a, b = _moments(first), _moments(second)
    if not (a.mean > 0 and b.mean > 0):
        return Estimate(math.nan, count=min(a.count, b.count))
    relative = (a.variance / a.mean**2, b.variance / b.mean**2)
    freedom = _welch((relative[0], a.count), (relative[1], b.count))
    count = min(a.count, b.count)
    logs = _interval(math.log(a.mean / b.mean), sum(relative), freedom, count)
    return Estimate(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), count)


def _moments(values: Values) -> _Moments:
    kept = np.asarray(values, dtype=np.float64)
    kept = kept[~np.isnan(kept)]
    count = len(kept)
    if count == 0:
        return _Moments(math.nan, math.nan, 0)
    variance = float(kept.var(ddof=1)) / count if count > 1 else math.nan
    return _Moments(float(kept.mean()), variance, count)


def _interval(value: float, variance: float, freedom: float, count: int) -> Estimate:
    from scipy.special import stdtrit

    if not (count > 1 and freedom > 0):
        return Estimate(value, count=count)
    half = float(stdtrit(freedom, 0.5 + LEVEL / 2)) * math.sqrt(variance)
    return Estimate(value, value - half, value + half, count)


def _welch(*parts: tuple[float, int]) -> float:
    """Return Welch's degrees of freedom of a sum of independent variances."""
    total = sum(variance for variance, _ in parts)
    squares = sum(variance**2 / (count - 1) for variance, count in parts if count > 1)
    if squares > 0:
        return total**2 / squares
    return float(min(count for _, count in parts) - 1)
