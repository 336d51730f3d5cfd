"""Logistic and Poisson regressions by Newton's method, with or without a design matrix.

Without a matrix: a row has one category of each feature, so the second derivatives are
two-way tables of weights, M(M+1)/2 additions a row, whatever the number of categories. A
model is a matrix that turns its coefficients into one score a category. The maximum is that
of any other method; rows are never thinned here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.kernels.binomial import add_derivatives

Slopes = Callable[[Float64], tuple[float, Float64, Float64]]

MOST_SCORES = 4096
_MOST_STEPS = 60
_MOST_HALVINGS = 30
# Twice the likelihood still to be gained; standard errors are on the scale of 1. With a small
# design matrix a further step costs little and gives the last digits.
_SETTLED, _EXACT = 1e-8, 1e-18
_ROUNDING = 1e-12
_SMALLEST_PIVOT = 1e-10
_CHUNK = 1 << 16
# Rows of a design matrix that are worked on at a time.
_IN_CACHE = 1 << 13
_SUMS = 8


@dataclass(frozen=True)
class Rows:
    """Rows to be explained: codes one feature a line, how many of each, and responses."""

    columns: Codes | Float64
    counts: Int64 | Float64
    responses: Float64


@dataclass(frozen=True)
class Maximum:
    """Where the likelihood is largest.

    Parameters
    ----------
    coefficients
        One for each column of the model, the intercept last; 0 for a column that depends on
        others.
    scores
        What they give each category, and the intercept last.
    covariance
        Inverse of the information; 0 for dependent columns.
    rank
        Number of independent columns, with the intercept.
    settled
        Whether the steps came to rest.
    """

    coefficients: Float64
    scores: Float64
    covariance: Float64
    rank: int
    settled: bool


def starts_of(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return where the scores of each feature begin, and the number of all of them."""
    return np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)


def maximise(
    parts: Sequence[Rows], sizes: Sequence[int], model: Float64 | None = None, *, threads: int = 1
) -> Maximum:
    """Fit a logistic regression.

    Parameters
    ----------
    parts
        The rows, in as many parts as is handy; there must be some of either response.
    sizes
        Number of categories of each feature.
    model
        Matrix of categories by coefficients, the intercept aside: what a coefficient of 1
        adds to the score of each category. None: a coefficient for each category, and no
        covariance.
    threads
        Parts of the rows worked on at a time.
    """
    starts = starts_of(sizes)
    with ThreadPoolExecutor(threads) as pool:
        slopes = _by_codes(parts, starts, pool)
        return _climb(slopes, _null_scores(parts, int(starts[-1])), _whole(model))


def _by_codes(parts: Sequence[Rows], starts: NDArray[np.int64], pool: ThreadPoolExecutor) -> Slopes:
    """Return the likelihood of scores of categories, and its derivatives."""
    chunks = [chunk for part in parts for chunk in _chunks(part)]
    # As many sums whatever the threads, so that not even rounding depends on these.
    shares = [chunks[first::_SUMS] for first in range(min(_SUMS, len(chunks)))]

    def slopes(scores: Float64) -> tuple[float, Float64, Float64]:
        found = list(pool.map(lambda share: _slopes(share, starts, scores), shares))
        return (
            sum(each[0] for each in found),
            np.sum([each[1] for each in found], axis=0),
            _symmetric(np.sum([each[2] for each in found], axis=0)),
        )

    return slopes


def maximise_matrix(
    matrix: Float64, counts: Int64 | Float64, responses: Float64, exposures: Float64 | None = None
) -> Maximum:
    """Fit a regression to a design matrix, its last column the intercept.

    It is a logistic one; with exposures, a Poisson regression of counts on the log of the rate.
    """
    rows = Rows(np.ascontiguousarray(matrix.T), counts, responses)
    columns = matrix.shape[1]
    enough = _EXACT if len(counts) <= _IN_CACHE else _SETTLED
    if exposures is not None:
        start = np.zeros(columns)
        start[-1] = np.log(float(counts @ responses) / float(counts @ exposures))
        return _climb(_poisson_slopes(rows, exposures), start, np.eye(columns), enough=enough)
    parts = _chunks(rows, _IN_CACHE)

    def slopes(coefficients: Float64) -> tuple[float, Float64, Float64]:
        likelihood = 0.0
        gradient, information = np.zeros(columns), np.zeros((columns, columns))
        for part in parts:
            lines: Any = part.columns
            scores = coefficients @ lines
            small = np.exp(-np.abs(scores))
            chances = np.where(scores >= 0, 1.0, small) / (1 + small)
            softplus = np.maximum(scores, 0.0) + np.log1p(small)
            likelihood += float(part.counts @ (part.responses * scores - softplus))
            gradient += lines @ (part.counts * (part.responses - chances))
            information += (lines * (part.counts * chances * (1 - chances))) @ lines.T
        return likelihood, gradient, information

    return _climb(slopes, _null_scores([rows], columns - 1), np.eye(columns), enough=enough)


def _poisson_slopes(rows: Rows, exposures: Float64) -> Slopes:
    lines: Any = rows.columns

    def slopes(coefficients: Float64) -> tuple[float, Float64, Float64]:
        scores = coefficients @ lines
        means = exposures * np.exp(scores)
        likelihood = float(rows.counts @ (rows.responses * scores - means))
        gradient = lines @ (rows.counts * (rows.responses - means))
        return likelihood, gradient, (lines * (rows.counts * means)) @ lines.T

    return slopes


def second_moments(
    parts: Sequence[Rows], sizes: Sequence[int], *, threads: int = 1
) -> tuple[Float64, Float64]:
    """Return how often two categories meet, and the sum of the responses of each.

    The last row and column, and the last sum, are those of all rows together.
    """
    starts = starts_of(sizes)
    with ThreadPoolExecutor(threads) as pool:
        _, residuals, weights = _by_codes(parts, starts, pool)(np.zeros(starts[-1] + 1))
    # At scores of 0 every chance is 1/2, so a row has weight 1/4 and residual y - 1/2.
    meetings = 4 * weights
    return meetings, residuals + meetings[:, -1] / 2


def rank_of(parts: Sequence[Rows], sizes: Sequence[int]) -> int:
    """Return how many coefficients, with the intercept, the rows can tell apart."""
    return len(_independent(second_moments(parts, sizes)[0]))


def _climb(
    slopes: Slopes, scores: Float64, whole: Float64 | None, *, enough: float = _SETTLED
) -> Maximum:
    """Take Newton's steps, each halved until the likelihood does not fall."""
    likelihood, gradient, information = slopes(scores)
    kept = _independent(information if whole is None else whole.T @ information @ whole)
    columns = None if whole is None else whole[:, kept]
    coefficients = np.zeros(len(scores) if whole is None else whole.shape[1])
    coefficients[-1] = scores[-1]
    settled = False
    for _ in range(_MOST_STEPS):
        uphill, curve = _reduced(gradient, information, kept, columns)
        step = _solve(curve, uphill)
        settled = bool(uphill @ step < enough)
        if settled:
            # Its error is of the size of its square: the last digits come for free.
            coefficients[kept] += step
            break
        for halving in range(_MOST_HALVINGS):
            trial = coefficients.copy()
            trial[kept] += step / 2.0**halving
            found = slopes(trial if whole is None else whole @ trial)
            if found[0] >= likelihood - _ROUNDING * abs(likelihood):
                break
        else:
            break
        coefficients = trial
        likelihood, gradient, information = found
    covariance = np.zeros((0, 0))
    if whole is not None:
        covariance = np.zeros((whole.shape[1], whole.shape[1]))
        curve = _reduced(gradient, information, kept, columns)[1]
        covariance[np.ix_(kept, kept)] = _solve(curve, np.eye(len(kept)))
    scores = coefficients if whole is None else whole @ coefficients
    return Maximum(coefficients, scores, covariance, len(kept), settled)


def _whole(model: Float64 | None) -> Float64 | None:
    """Return the model with the intercept as its last row and column."""
    if model is None:
        return None
    whole = np.zeros((len(model) + 1, model.shape[1] + 1))
    whole[:-1, :-1], whole[-1, -1] = model, 1.0
    return whole


def _reduced(
    gradient: Float64, information: Float64, kept: NDArray[np.int64], columns: Float64 | None
) -> tuple[Float64, Float64]:
    """Return the derivatives with respect to the coefficients that are kept."""
    if columns is None:
        return gradient[kept], information[np.ix_(kept, kept)]
    return columns.T @ gradient, columns.T @ information @ columns


def _symmetric(upper: Float64) -> Float64:
    return np.asarray(upper + np.triu(upper, 1).T)


def _independent(information: Float64) -> NDArray[np.int64]:
    """Choose columns that do not depend on each other: the intercept, then the largest."""
    from scipy.linalg.lapack import dpstrf

    beside = information[:-1, -1]
    centred = information[:-1, :-1] - np.outer(beside, beside) / information[-1, -1]
    scale = np.sqrt(np.maximum(np.diag(information)[:-1], 0.0))
    held = np.flatnonzero(scale > 0)
    last = np.array([len(scale)])
    if not len(held):
        return last
    scaled = centred[np.ix_(held, held)] / np.outer(scale[held], scale[held])
    _, order, rank, _ = dpstrf(scaled, tol=_SMALLEST_PIVOT)
    return np.concatenate([np.sort(held[order[:rank] - 1]), last])


def _solve(information: Float64, right: Float64) -> Float64:
    scale = np.sqrt(np.maximum(np.diag(information), np.finfo(float).tiny))
    scaled = information / np.outer(scale, scale)
    # A little ridge: on the way to an infinite coefficient its information vanishes.
    scaled[np.diag_indices_from(scaled)] += 1e-13
    across = scale if right.ndim == 1 else scale[:, np.newaxis]
    return np.asarray(np.linalg.solve(scaled, right / across) / across)


def _null_scores(parts: Sequence[Rows], count: int) -> Float64:
    """Return scores of 0, and the intercept that gives every row the mean response."""
    total = sum(float(part.counts.sum()) for part in parts)
    ones = sum(float(part.counts @ part.responses) for part in parts)
    share = min(max(ones / total, 1e-6), 1 - 1e-6)
    scores = np.zeros(count + 1)
    scores[-1] = np.log(share / (1 - share))
    return scores


def _chunks(part: Rows, size: int = _CHUNK) -> list[Rows]:
    starts = range(0, part.columns.shape[1], size)
    cuts = [slice(start, start + size) for start in starts]
    return [Rows(part.columns[:, cut], part.counts[cut], part.responses[cut]) for cut in cuts]


def _slopes(
    chunks: Sequence[Rows], starts: NDArray[np.int64], scores: Float64
) -> tuple[float, Float64, Float64]:
    gradient, information = np.zeros(len(scores)), np.zeros((len(scores), len(scores)))
    likelihood = 0.0
    for chunk in chunks:
        likelihood += add_derivatives(
            chunk.columns,
            chunk.counts,
            chunk.responses,
            starts,
            scores[:-1],
            scores[-1],
            gradient,
            information,
        )
    return likelihood, gradient, information
