"""Intervals for shares, means and membership attacks.

Goes in: what was observed for each target. Comes out: an `Estimate`, the figure with an
interval of the wanted level and the number of targets behind it. All are large-sample or
distribution-free formulas of the textbooks, named where they are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A figure, its interval, and how many targets it rests on."""

    value: float
    low: float
    high: float
    n: int


NOTHING = Estimate(math.nan, math.nan, math.nan, 0)


def quantile(level: float) -> float:
    """Return the normal quantile of a two-sided interval of that level."""
    if not 0 < level < 1:
        raise ParameterError(f"level = {level} must lie between 0 and 1")
    return NormalDist().inv_cdf((1 + level) / 2)


def share(value: float, n: int, *, level: float) -> Estimate:
    """Share of n targets, with Wilson's interval.

    For a mean of figures between 0 and 1 it is conservative: no such figure varies more
    than one that is 0 or 1 with the same mean.
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


def mean(values: Floats, weights: NDArray[Any], *, level: float) -> Estimate:
    """Weighted mean, each value standing for `weights` targets, with the normal interval."""
    n = int(weights.sum())
    if n == 0:
        return NOTHING
    value = float(np.dot(values, weights) / n)
    if n == 1:
        return Estimate(value, math.nan, math.nan, n)
    variance = float(np.dot(np.square(values - value), weights) / (n - 1))
    half = quantile(level) * math.sqrt(variance / n)
    return Estimate(value, value - half, value + half, n)


def hull(estimates: list[Estimate]) -> Estimate:
    """Mean of several estimates of one thing, from the lowest to the highest limit."""
    if not estimates:
        return NOTHING
    return Estimate(
        float(np.mean([each.value for each in estimates])),
        min(each.low for each in estimates),
        max(each.high for each in estimates),
        estimates[0].n,
    )


def roc_area(members: Floats, others: Floats, *, level: float) -> Estimate:
    """Chance that a member scores above a non-member, ties counted half.

    The interval is DeLong's. Where the scores separate the two completely its variance is
    zero; Hanley and McNeil's variance, taken at the limit itself as Newcombe does, then
    gives a bound that is not.
    """
    m, n = len(members), len(others)
    if m == 0 or n == 0:
        return NOTHING
    members, others = np.sort(members), np.sort(others)
    below = _placements(members, others)
    above = _placements(others, members)
    area = float(below.mean())
    if min(m, n) < 2:
        return Estimate(area, math.nan, math.nan, m + n)
    deviation = math.sqrt(float(below.var(ddof=1) / m + above.var(ddof=1) / n))
    if deviation == 0:
        return Estimate(area, *_separated(area, m, n, level), m + n)
    half = quantile(level) * deviation
    return Estimate(area, max(0.0, area - half), min(1.0, area + half), m + n)


def advantage(members: Floats, others: Floats, *, level: float) -> Estimate:
    """Largest true positive rate minus false positive rate over all thresholds.

    The interval is distribution-free: each empirical distribution lies within
    sqrt(log(4/(1 - level))/(2 m)) of its own (Dvoretzky, Kiefer, Wolfowitz; Massart's
    constant), both at once with the stated level. The figure itself, a maximum, is never
    negative and lies above 0 by chance alone.
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


def _placements(scores: Floats, others: Floats) -> Floats:
    """Share of `others` below each score, ties counted half; both in increasing order."""
    sides = [np.searchsorted(others, scores, side="left")]
    sides.append(np.searchsorted(others, scores, side="right"))
    return np.asarray(sum(sides) / (2 * len(others)), dtype=np.float64)


def _separated(area: float, m: int, n: int, level: float) -> tuple[float, float]:
    """Limits for an area of 0, 1/2 or 1 without any variation, by bisection."""
    z = quantile(level)

    def covered(limit: float) -> bool:
        first, second = limit / (2 - limit), 2 * limit**2 / (1 + limit)
        spread = limit * (1 - limit) + (m - 1) * (first - limit**2) + (n - 1) * (second - limit**2)
        return abs(area - limit) <= z * math.sqrt(max(spread, 0.0) / (m * n))

    return _edge(covered, area, 0.0), _edge(covered, area, 1.0)


def _edge(covered: Any, inside: float, outside: float) -> float:
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if covered(middle) else (inside, middle)
    return inside
