"""Smallest number of virtual rows that makes an entry l-diverse (R7).

Weights are integers: category j of an entry weighs scale * n_j + a * w_j. The kernel
finds, for every entry, the smallest integer a for which the entropy of these weights
reaches log l; the entropy is checked at the very integer that is returned.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pegsynth.kernels.arrays import Bools, Float64, Int64, UInt64
from pegsynth.kernels.sampling_arrays import PUBLIC


@njit(cache=True, nogil=True)
def _entropy(
    counts: Float64, weights: Float64, rest: float, rest_log: float, scale: float, a: float
) -> float:
    """Entropy of scale * counts + a * weights, with categories of count 0 summed up.

    `rest` and `rest_log` are the sums of w and of w log w over those categories.
    """
    total = a * rest
    sum_log = a * rest_log
    if a > 0.0:
        sum_log += a * np.log(a) * rest
    for index in range(len(counts)):
        weight = scale * counts[index] + a * weights[index]
        total += weight
        sum_log += weight * np.log(weight)
    return np.log(total) - sum_log / total


@njit(cache=True, nogil=True)
def _smallest(
    counts: Float64,
    weights: Float64,
    rest: float,
    rest_log: float,
    scale: float,
    goal: float,
    most: int,
) -> np.uint64:
    if _entropy(counts, weights, rest, rest_log, scale, 0.0) >= goal:
        return np.uint64(0)
    if _entropy(counts, weights, rest, rest_log, scale, float(most)) < goal:
        return PUBLIC
    low, high = np.int64(0), np.int64(1)
    while _entropy(counts, weights, rest, rest_log, scale, float(high)) < goal:
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = low + (high - low) // 2
        if _entropy(counts, weights, rest, rest_log, scale, float(middle)) >= goal:
            high = middle
        else:
            low = middle
    return np.uint64(high)


@njit(cache=True, nogil=True)
def smallest_multipliers(
    start: Int64,
    codes: Int64,
    counts: Int64,
    weights: Float64,
    forbidden: Bools,
    scale: float,
    goal: float,
    most: int,
    out: UInt64,
) -> None:
    """Write the smallest multiplier of every entry; `PUBLIC` where none is enough.

    Parameters
    ----------
    start, codes, counts
        Cells of entry e at start[e] .. start[e + 1]: category and count, none zero.
    weights, forbidden
        Prior weight of every category, and which categories the draw may not give.
    goal
        The entropy to reach, log l.
    most
        Largest multiplier tried.
    """
    all_weight, all_log = 0.0, 0.0
    for code in range(len(weights)):
        if not forbidden[code]:
            all_weight += weights[code]
            all_log += weights[code] * np.log(weights[code])
    own_counts = np.empty(len(weights), dtype=np.float64)
    own_weights = np.empty(len(weights), dtype=np.float64)
    for entry in range(len(start) - 1):
        size = 0
        rest, rest_log = all_weight, all_log
        for cell in range(start[entry], start[entry + 1]):
            code = codes[cell]
            if forbidden[code]:
                continue
            own_counts[size] = counts[cell]
            own_weights[size] = weights[code]
            rest -= weights[code]
            rest_log -= weights[code] * np.log(weights[code])
            size += 1
        if size == 0:
            out[entry] = PUBLIC
        else:
            if size == len(weights):
                rest, rest_log = 0.0, 0.0
            out[entry] = _smallest(
                own_counts[:size], own_weights[:size], rest, rest_log, scale, goal, most
            )
