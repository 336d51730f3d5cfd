"""Repeats of a study: their mean, and the difference and ratio of two means, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pegsynth.inference.statistics import Estimate, interval
from pegsynth.kernels.arrays import Float64

Values = Sequence[float] | Float64


def mean(values: Values) -> Estimate:
    """Return the mean of repeats with its t interval; repeats without a value are left out."""
    found = _moments(values)
    return _compared(found.mean, found.variance, found.n - 1, found.n)


def difference(first: Values, second: Values) -> Estimate:
    """Return mean(first) - mean(second) of repeats, with Welch's interval."""
    a, b = _moments(first), _moments(second)
    freedom = _welch((a.variance, a.n), (b.variance, b.n))
    return _compared(a.mean - b.mean, a.variance + b.variance, freedom, min(a.n, b.n))


def ratio(first: Values, second: Values) -> Estimate:
    """Return mean(first) / mean(second), its interval by the delta method on the logarithm.

    Both means must be positive, as those of distances, errors and shares are; where one is
    not, there is no ratio.
    """
    a, b = _moments(first), _moments(second)
    n = min(a.n, b.n)
    if not (a.mean > 0 and b.mean > 0):
        return Estimate(math.nan, n=n)
    relative = (a.variance / a.mean**2, b.variance / b.mean**2)
    freedom = _welch((relative[0], a.n), (relative[1], b.n))
    logs = _compared(math.log(a.mean / b.mean), sum(relative), freedom, n)
    return Estimate(math.exp(logs.value), math.exp(logs.low), math.exp(logs.high), n)


class _Moments(NamedTuple):
    """Mean of n values and its estimated variance."""

    mean: float
    variance: float
    n: int


def _moments(values: Values) -> _Moments:
    kept = np.asarray(values, dtype=np.float64)
    kept = kept[~np.isnan(kept)]
    if not len(kept):
        return _Moments(math.nan, math.nan, 0)
    variance = float(kept.var(ddof=1)) / len(kept) if len(kept) > 1 else math.nan
    return _Moments(float(kept.mean()), variance, len(kept))


def _compared(value: float, variance: float, freedom: float, n: int) -> Estimate:
    """Return an estimate with its interval; a single repeat has none."""
    if not (n > 1 and freedom > 0):
        return Estimate(value, n=n)
    return interval(value, variance, freedom, n=n)


def _welch(*parts: tuple[float, int]) -> float:
    """Return Welch's degrees of freedom of a sum of independent variances."""
    total = sum(variance for variance, _ in parts)
    squares = sum(variance**2 / (n - 1) for variance, n in parts if n > 1)
    return total**2 / squares if squares > 0 else float(min(n for _, n in parts) - 1)
