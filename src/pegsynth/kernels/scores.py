"""Linear-Gaussian scores inside bins: moments of coded rows, truncated draws, ranks.

A row has `positions`, one for each categorical feature: the column of the design that is 1,
or -1 for none; and `scores`, one for each number, with `bins` -1 where the number is
missing. Columns of the scores come after those of the categories.
"""

from __future__ import annotations

import math

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64, UInt64
from pegsynth.kernels.compiled import helper, kernel

_ROOT_HALF = math.sqrt(0.5)
_UNIT = 2.0**-53
_SHIFT = np.uint64(11)


@kernel
def add_pairs(positions: Int64, bins: Int64, target: int, gram: Float64) -> None:
    """Add up how often two columns of categories are 1 together, in the upper triangle.

    Rows whose target is missing are left out. This part of the moments does not depend on
    any score.
    """
    for row in range(len(bins)):
        if bins[row, target] < 0:
            continue
        for first in range(positions.shape[1]):
            column = positions[row, first]
            if column < 0:
                continue
            for second in range(first, positions.shape[1]):
                other = positions[row, second]
                if other >= 0:
                    gram[column, other] += 1.0


@kernel
def add_moments(
    positions: Int64,
    bins: Int64,
    scores: Float64,
    target: int,
    columns: int,
    gram: Float64,
    right: Float64,
) -> float:
    """Add up those products that a regression of one score on all else needs which have scores.

    Parameters
    ----------
    positions, bins, scores
        The rows; those whose target is missing are left out.
    target
        Which score is explained.
    columns
        Number of columns that the categories have.
    gram, right
        Upper triangle of the sums of products of columns, and of columns and target.

    Returns
    -------
    float
        Sum of squares of the target.
    """
    square = 0.0
    for row in range(len(bins)):
        if bins[row, target] < 0:
            continue
        wanted = scores[row, target]
        square += wanted * wanted
        for first in range(positions.shape[1]):
            column = positions[row, first]
            if column < 0:
                continue
            right[column] += wanted
            for number in range(scores.shape[1]):
                if number != target and bins[row, number] >= 0:
                    gram[column, columns + number] += scores[row, number]
        for first in range(scores.shape[1]):
            if first == target or bins[row, first] < 0:
                continue
            value = scores[row, first]
            right[columns + first] += value * wanted
            for second in range(first, scores.shape[1]):
                if second != target and bins[row, second] >= 0:
                    gram[columns + first, columns + second] += value * scores[row, second]
    return square


@kernel
def draw_scores(
    positions: Int64,
    bins: Int64,
    starts: Int64,
    bounds: Float64,
    weights: Float64,
    spreads: Float64,
    words: UInt64,
    means: Float64,
    scores: Float64,
) -> None:
    """Draw every score of every row, given its bin and all else in the row, over and over.

    Parameters
    ----------
    starts, bounds
        Bin b of number f reaches from bounds[starts[f] + b] to the next bound.
    weights, spreads
        Regression of every score: weights of all columns, and the residual deviation.
    words
        Random words, a line for each row: one sweep over the numbers after the other.
    means
        Room for one number of each score.
    scores
        Scores so far, which are replaced.
    """
    numbers = scores.shape[1]
    columns = weights.shape[1] - numbers
    sweeps = words.shape[1] // numbers
    for row in range(len(bins)):
        for number in range(numbers):
            mean = 0.0
            for place in range(positions.shape[1]):
                column = positions[row, place]
                if column >= 0:
                    mean += weights[number, column]
            means[number] = mean
        for sweep in range(sweeps):
            for number in range(numbers):
                if bins[row, number] < 0:
                    continue
                mean = means[number]
                for other in range(numbers):
                    if other != number and bins[row, other] >= 0:
                        mean += weights[number, columns + other] * scores[row, other]
                place = starts[number] + bins[row, number]
                unit = (words[row, sweep * numbers + number] >> _SHIFT) * _UNIT
                scores[row, number] = truncated_normal(
                    mean, spreads[number], bounds[place], bounds[place + 1], unit
                )


@kernel
def ranks_in_bins(
    bins: Int64, scores: Float64, starts: Int64, known: Float64, words: UInt64, ranks: Float64
) -> None:
    """Turn the scores of one number into ranks in [0, 1) among known scores of the same bin.

    A score that is as likely as any of the n known ones falls into each of the n + 1 gaps
    between them with the same chance; inside a gap the rank is uniform.

    Parameters
    ----------
    starts, known
        Known scores of bin b, in order, are known[starts[b] : starts[b + 1]].
    """
    for row in range(len(bins)):
        ranks[row] = 0.0
        if bins[row] < 0:
            continue
        low, high = starts[bins[row]], starts[bins[row] + 1]
        gaps = high - low + 1
        first = low
        while low < high:
            middle = (low + high) // 2
            if known[middle] < scores[row]:
                low = middle + 1
            else:
                high = middle
        rank = (low - first + (words[row] >> _SHIFT) * _UNIT) / gaps
        ranks[row] = min(rank, 1.0 - _UNIT)


@helper
def truncated_normal(mean: float, spread: float, low: float, high: float, unit: float) -> float:
    """Return the quantile of a normal variable that is known to lie between two bounds."""
    below, above = (low - mean) / spread, (high - mean) / spread
    sign = 1.0
    if below > 0:
        # Below zero both probabilities are small numbers, known to all their digits.
        below, above, sign, unit = -above, -below, -1.0, 1.0 - unit
    least, most = normal_share(below), normal_share(above)
    share = least + unit * (most - least)
    value = normal_quantile(share) if share > 0.0 else above
    value = min(max(value, below), above)
    return min(max(mean + spread * sign * value, low), high)


@helper
def normal_share(value: float) -> float:
    """Return the share of the normal distribution below a value."""
    return 0.5 * math.erfc(-value * _ROOT_HALF)


@helper
def normal_quantile(share: float) -> float:
    """Return the value below which a share of the normal distribution lies.

    Rational approximations by P. J. Acklam, good to nine digits.
    """
    if share <= 0.0:
        return -math.inf
    if share >= 1.0:
        return math.inf
    if 0.02425 <= share <= 0.97575:
        q = share - 0.5
        r = q * q
        top = -3.969683028665376e01
        for term in (
            2.209460984245205e02,
            -2.759285104469687e02,
            1.383577518672690e02,
            -3.066479806614716e01,
            2.506628277459239e00,
        ):
            top = top * r + term
        bottom = -5.447609879822406e01
        for term in (
            1.615858368580409e02,
            -1.556989798598866e02,
            6.680131188771972e01,
            -1.328068155288572e01,
            1.0,
        ):
            bottom = bottom * r + term
        return q * top / bottom
    tail = min(share, 1.0 - share)
    q = math.sqrt(-2.0 * math.log(tail))
    top = -7.784894002430293e-03
    for term in (
        -3.223964580411365e-01,
        -2.400758277161838e00,
        -2.549732539343734e00,
        4.374664141464968e00,
        2.938163982698783e00,
    ):
        top = top * q + term
    bottom = 7.784695709041462e-03
    for term in (3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0):
        bottom = bottom * q + term
    value = top / bottom
    return value if share < 0.5 else -value
