"""Passes over coded rows for a logistic regression on categories.

Every category of every feature has a score; a row's scores and the intercept add up to its
log odds. `columns` is an (M, n) matrix, one contiguous row per feature; `starts` says where
the categories of each feature begin in `scores`. Derivatives are with respect to all
scores, so any model that is linear in them can be fitted by multiplying from both sides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pegsynth.kernels.arrays import Codes, Float64, Int64


@njit(cache=True, nogil=True)
def log_odds(columns: Codes, row: int, starts: Int64, scores: Float64, intercept: float) -> float:
    """Add up the scores of a row."""
    total = intercept
    for feature in range(columns.shape[0]):
        total += scores[starts[feature] + columns[feature, row]]
    return total


@njit(cache=True, nogil=True)
def add_derivatives(
    columns: Any,
    counts: Int64 | Float64,
    responses: Float64,
    starts: Int64,
    scores: Float64,
    intercept: float,
    gradient: Float64,
    information: Float64,
) -> float:
    """Add the derivatives of the log-likelihood; return the log-likelihood.

    The last entry of `gradient`, and row and column of `information` (the negative second
    derivatives, of which only the upper half is filled), are the intercept's.
    """
    features = columns.shape[0]
    last = len(gradient) - 1
    # Unsigned, so that no index is checked for counting from the end.
    places = np.empty(features, dtype=np.uint64)
    likelihood = 0.0
    for row in range(columns.shape[1]):
        total = intercept
        for feature in range(features):
            places[feature] = starts[feature] + columns[feature, row]
            total += scores[places[feature]]
        # In this form nothing overflows.
        size = np.exp(-abs(total))
        chance = (1.0 if total > 0 else size) / (1.0 + size)
        count = counts[row]
        likelihood += count * (responses[row] * total - max(total, 0.0) - np.log1p(size))
        residual = count * (responses[row] - chance)
        weight = count * size / (1.0 + size) ** 2
        gradient[last] += residual
        information[last, last] += weight
        for first in range(features):
            place = places[first]
            gradient[place] += residual
            information[place, last] += weight
            information[place, place] += weight
            for second in range(first + 1, features):
                information[place, places[second]] += weight
    return likelihood


@njit(cache=True, nogil=True)
def squared_deviation(
    columns: Codes, starts: Int64, scores: Float64, intercept: float, centre: float
) -> float:
    """Sum the squared differences between every row's fitted chance and `centre`."""
    total = 0.0
    for row in range(columns.shape[1]):
        value = log_odds(columns, row, starts, scores, intercept)
        size = np.exp(-abs(value))
        chance = (1.0 if value > 0 else size) / (1.0 + size)
        total += (chance - centre) ** 2
    return total
