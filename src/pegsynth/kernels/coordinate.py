"""The best value of one penalised coefficient, all others held (see `logistic`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_REACH = 3.0
_STEPS = 30


@njit(cache=True, nogil=True)
def _slope(values: Any, sums: Any, counts: Any, step: float) -> tuple[float, float]:
    """First and second derivative of the bound in one coefficient, at a step from here."""
    first = 0.0
    second = 0.0
    for cell in range(len(values)):
        value = values[cell]
        fitted = value * sums[cell] * np.exp(value * step)
        first += fitted - value * counts[cell]
        second += value * fitted
    return first, second


@njit(cache=True, nogil=True)
def best_coefficient(
    values: Any, sums: Any, counts: Any, start: float, lasso: float, ridge: float
) -> float:
    """Minimise bound + lasso * |b| + ridge * b^2 / 2 over one coefficient b, from b = start.

    The minimum is sought on one side of zero, where the penalty has its kink, and within
    a reach that keeps every factor inside the range of floating point.
    """
    slope, _ = _slope(values, sums, counts, 0.0)
    slope += ridge * start
    if start > 0.0 or (start == 0.0 and slope < -lasso):
        side = lasso
    elif start < 0.0 or (start == 0.0 and slope > lasso):
        side = -lasso
    else:
        return 0.0
    largest = np.max(np.abs(values))
    if largest == 0.0:
        return 0.0
    reach = _REACH / largest
    rising = slope + side > 0.0
    low, high = (start - reach, start) if rising else (start, start + reach)
    if side > 0.0:
        low = max(low, 0.0)
    elif side < 0.0:
        high = min(high, 0.0)
    far = low if rising else high
    slope, _ = _slope(values, sums, counts, far - start)
    slope += ridge * far + side
    if (slope > 0.0) == rising or slope == 0.0:
        return far
    return _newton(values, sums, counts, start, low, high, side, ridge)


@njit(cache=True, nogil=True)
def _newton(
    values: Any,
    sums: Any,
    counts: Any,
    start: float,
    low: float,
    high: float,
    side: float,
    ridge: float,
) -> float:
    """Find where the slope vanishes between low and high; halve where Newton leaves them."""
    close = 1e-9 * (high - low)
    here = start
    for _ in range(_STEPS):
        slope, curve = _slope(values, sums, counts, here - start)
        slope += ridge * here + side
        if slope > 0.0:
            high = here
        else:
            low = here
        curve += ridge
        following = here - slope / curve if curve > 0.0 else low - 1.0
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - here) <= close:
            return following
        here = following
    return here
