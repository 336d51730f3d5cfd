"""Weights tilted so that sums over rows agree with measured ones (R26).

Of all weights that give the wanted sums those are taken that are nearest to the given ones, so
that everything else moves as little as possible: w ~ w_0 exp(lambda f), where lambda solves a
concave problem of as many unknowns as there are sums. The noise of the sums enters as a penalty.
All of it is post-processing of what was paid for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from pegsynth.arrays import Float64

PENALTY = 0.002
"""How much of the noise's variance is held against a tilt. With all of it weights would stay at
the given ones where these are as likely as the noise; they are not that likely."""
MOST_STEPS = 30
_MOST_EXPONENT = 1.0
_CLOSE = 1e-9
_RIDGE = 1e-10


class Products(Protocol):
    """What every row adds to every sum, a part of the rows at a time."""

    @property
    def size(self) -> int:
        """Number of sums."""
        ...

    def parts(self) -> Iterator[tuple[slice, Float64]]:
        """Yield rows, and what they add."""
        ...


def calibrated(
    weights: Float64,
    products: Products,
    sums: Float64,
    deviations: Float64,
    start: Float64 | None = None,
) -> tuple[Float64, Float64]:
    """Return weights of the same total whose sums are close to the measured ones, and lambda.

    Parameters
    ----------
    weights
        Weights of the rows, as the published tables have them.
    products
        What every row adds.
    sums, deviations
        The measured sums, and the deviation of their noise.
    start
        Where to look for lambda first.
    """
    total = float(weights.sum())
    penalty = PENALTY * deviations**2 / total
    wanted = sums / total
    tilt = np.zeros(products.size) if start is None else start
    state = _State.of(weights, products, tilt)
    for _ in range(MOST_STEPS):
        slope = wanted - state.mean - penalty * tilt
        curve = state.spread + np.diag(penalty)
        # Sums of columns that are the same in all rows can be moved by no tilt.
        curve[np.diag_indices_from(curve)] += _RIDGE * (1 + np.trace(curve) / len(curve))
        step: Float64 = np.linalg.solve(curve, slope).astype(np.float64)
        gain = float(slope @ step)
        if gain < _CLOSE:
            break
        state, tilt = _moved(weights, products, state, tilt, step, wanted, penalty, gain)
    return state.weights * (total / state.weights.sum()), tilt


def _moved(
    weights: Float64,
    products: Products,
    state: _State,
    tilt: Float64,
    step: Float64,
    wanted: Float64,
    penalty: Float64,
    gain: float,
) -> tuple[_State, Float64]:
    """Take a step of Newton, shorter where it would not help."""
    before = _value(state, tilt, wanted, penalty)
    length = min(1.0, _MOST_EXPONENT / max(float(np.abs(step).max()) * 1e-2, np.sqrt(gain)))
    while True:
        tried = tilt + length * step
        found = _State.of(weights, products, tried)
        if _value(found, tried, wanted, penalty) >= before or length < _CLOSE:
            return found, tried
        length /= 2


def _value(state: _State, tilt: Float64, wanted: Float64, penalty: Float64) -> float:
    """Return what is to be made large."""
    return float(tilt @ wanted - state.logarithm - 0.5 * (penalty * tilt**2).sum())


class _State:
    """Weights under a tilt, their logarithm, and mean and spread of what rows add."""

    def __init__(self, weights: Float64, logarithm: float, mean: Float64, spread: Float64) -> None:
        self.weights, self.logarithm, self.mean, self.spread = weights, logarithm, mean, spread

    @classmethod
    def of(cls, weights: Float64, products: Products, tilt: Float64) -> _State:
        exponents = np.empty(len(weights))
        for rows, added in products.parts():
            exponents[rows] = added @ tilt
        highest = float(exponents.max(initial=0.0))
        tilted = weights * np.exp(exponents - highest)
        whole = float(tilted.sum())
        mean, square = np.zeros(products.size), np.zeros((products.size, products.size))
        for rows, added in products.parts():
            heavy = added * tilted[rows, None]
            mean += heavy.sum(axis=0)
            square += added.T @ heavy
        mean /= whole
        logarithm = highest + float(np.log(whole / weights.sum()))
        return cls(tilted, logarithm, mean, square / whole - np.outer(mean, mean))
