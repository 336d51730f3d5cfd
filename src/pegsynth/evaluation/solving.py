"""The coefficients of a regression: statsmodels on distinct rows, or on what they add up to.

A linear regression needs no more than sums of squares and products; they are reduced to a
triangle of a few rows, which statsmodels solves. A logistic one is fitted to the distinct
rows by statsmodels, or where their design matrix would be large, without it by Newton's
method to the same maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pegsynth.evaluation.design import Column, Sample
from pegsynth.evaluation.formula import Kind
from pegsynth.evaluation.newton import MOST_SCORES, Rows, maximise, second_moments, starts_of
from pegsynth.evaluation.numeric import Floats

MOST_ENTRIES = 1 << 21
_MOST_ITERATIONS = 50
_SMALLEST_SIZE = 1e-7
_SMALLEST_SHARE = 1e-10
_SMALLEST_GAIN = 1e-7
# A standard error this large, in units of the log odds, is that of a few rows that hardly
# ever differ, or of a fit on its way to infinity.
_VAGUE = 30.0


class Solution(NamedTuple):
    """Coefficients with the intercept first, their variances; or a reason why there are none."""

    values: Floats
    variances: Floats
    freedom: float = np.inf
    reason: str = ""


class _Scores(NamedTuple):
    """A model without a matrix: rows, and what each coefficient adds to a category's score."""

    rows: Rows
    sizes: list[int]
    model: Floats
    scales: Floats


def solve(sample: Sample, columns: Sequence[Column], kind: Kind, *, threads: int = 1) -> Solution:
    """Fit a regression; the columns must vary."""
    unknowns = len(columns) + 1
    few_codes = sum(len(column.values) for column in columns) <= MOST_SCORES
    large = len(sample.counts) * unknowns > MOST_ENTRIES and few_codes
    if kind == "logistic" and large:
        return _logistic_by_scores(sample, columns, threads)
    triangle, rank = (
        _triangle_by_scores(sample, columns, threads) if large else _triangle(sample, columns)
    )
    if rank < unknowns:
        return _collinear(unknowns, rank)
    if kind == "linear":
        return _least_squares(triangle, sample.rows)
    return _logistic(sample, sample.matrix(columns))


def _none(reason: str) -> Solution:
    return Solution(np.empty(0), np.empty(0), reason=reason)


def _collinear(unknowns: int, rank: int) -> Solution:
    return _none(f"the terms are collinear: {unknowns} coefficients, rank {rank}")


def _triangle(sample: Sample, columns: Sequence[Column]) -> tuple[Floats, int]:
    """Return the triangular factor of the weighted design with the response last, and its rank.

    It holds all that least squares needs, whatever the number of rows.
    """
    factor: Any = np.empty((0, len(columns) + 2))
    step = max(MOST_ENTRIES // (len(columns) + 2), len(columns) + 2)
    for start in range(0, len(sample.counts), step):
        part = sample.part(slice(start, start + step))
        block = np.column_stack([part.matrix(columns), part.response])
        block *= np.sqrt(part.counts)[:, np.newaxis]
        factor = np.linalg.qr(np.vstack([factor, block]), mode="r")
    scaled = factor[:, :-1] / np.sqrt(np.square(factor[:, :-1]).sum(axis=0))
    sizes = np.linalg.svd(scaled, compute_uv=False)
    return np.asarray(factor), int(np.count_nonzero(sizes > _SMALLEST_SIZE))


def _triangle_by_scores(
    sample: Sample, columns: Sequence[Column], threads: int
) -> tuple[Floats, int]:
    """Return the same from two-way tables of counts, without a matrix of all rows."""
    scores = _scores(sample, columns)
    squares, products = second_moments([scores.rows], scores.sizes, threads=threads)
    order = [-1, *range(len(columns))]
    whole = np.zeros((len(squares), len(columns) + 1))
    whole[:-1, 1:], whole[-1, 0] = scores.model, 1.0
    joint = np.empty((len(columns) + 2, len(columns) + 2))
    joint[:-1, :-1] = whole.T @ squares @ whole
    joint[:-1, -1] = joint[-1, :-1] = whole.T @ products
    joint[-1, -1] = sample.counts @ np.square(sample.response)
    size = np.sqrt(np.diag(joint))
    joint /= np.outer(size, size)
    centred = joint[1:-1, 1:-1] - np.outer(joint[0, 1:-1], joint[0, 1:-1])
    rank = 1 + int(np.count_nonzero(np.linalg.eigvalsh(centred) > _SMALLEST_SHARE))
    if rank < len(order):
        return joint, rank
    # A response that is explained wholly would leave a root of a rounding error.
    joint[-1, -1] += np.finfo(float).eps * len(joint)
    lengths = size * np.append(scores.scales[order], 1.0)
    return np.linalg.cholesky(joint).T * lengths, rank


def _least_squares(triangle: Floats, rows: int) -> Solution:
    from statsmodels.regression.linear_model import OLS

    result = OLS(triangle[:, -1], triangle[:, :-1]).fit()
    # The triangle has few rows; the spread is that of all rows of the table.
    freedom = float(rows - triangle.shape[1] + 1)
    variances = np.diag(result.normalized_cov_params) * result.ssr / freedom
    return Solution(np.asarray(result.params), variances, freedom)


def _logistic(sample: Sample, matrix: Floats) -> Solution:
    from statsmodels.genmod.families import Binomial
    from statsmodels.genmod.generalized_linear_model import GLM

    model = GLM(sample.response, matrix, family=Binomial(), freq_weights=sample.counts)
    try:
        result: Any = model.fit(maxiter=_MOST_ITERATIONS, wls_method="qr", tol=1e-12, rtol=1e-13)
    except (np.linalg.LinAlgError, ValueError, FloatingPointError):
        result = None
    settled = result is not None and bool(result.converged)
    vague = not settled or (result.bse * np.abs(matrix).max(axis=0)).max() > _VAGUE
    reason = _failure(sample, matrix, settled) if vague else ""
    if reason:
        return _none(reason)
    return Solution(np.asarray(result.params), np.square(np.asarray(result.bse)))


def _logistic_by_scores(sample: Sample, columns: Sequence[Column], threads: int) -> Solution:
    scores = _scores(sample, columns)
    found = maximise([scores.rows], scores.sizes, scores.model, threads=threads)
    unknowns = len(columns) + 1
    if found.rank < unknowns:
        return _collinear(unknowns, found.rank)
    variances = np.diag(found.covariance)
    vague = not found.settled or variances.max() > _VAGUE**2
    reason = _failure(sample, sample.matrix(columns), found.settled) if vague else ""
    if reason:
        return _none(reason)
    order = [-1, *range(len(columns))]
    return Solution(
        (found.coefficients / scores.scales)[order], (variances / scores.scales**2)[order]
    )


def _scores(sample: Sample, columns: Sequence[Column]) -> _Scores:
    """Write a model as scores of categories, every column scaled to a largest value of 1."""
    used = sorted({column.feature for column in columns})
    sizes = [int(sample.codes[feature].max()) + 1 for feature in used]
    starts = starts_of(sizes)
    model = np.zeros((int(starts[-1]), len(columns)))
    scales = np.ones(len(columns) + 1)
    for number, column in enumerate(columns):
        place = used.index(column.feature)
        # Codes without a number do not occur in the rows.
        values = np.nan_to_num(column.values[: sizes[place]])
        scales[number] = 1 / np.abs(values).max()
        model[starts[place] : starts[place + 1], number] = values * scales[number]
    counts = sample.counts.astype(np.float64)
    rows = Rows(np.ascontiguousarray(sample.codes[used]), counts, sample.response)
    return _Scores(rows, sizes, model, 1 / scales)


def _failure(sample: Sample, matrix: Floats, settled: bool) -> str:
    """Say why there is no maximum.

    There is none where some direction never points against a response and sometimes points
    along (Albert and Anderson 1984); a linear programme decides (Konis 2007).
    """
    from scipy.optimize import linprog

    along = np.where(sample.response > 0, 1.0, -1.0)[:, np.newaxis] * matrix
    along /= np.abs(matrix).max(axis=0)
    found = linprog(
        -along.sum(axis=0), A_ub=-along, b_ub=np.zeros(len(along)), bounds=(-1, 1), method="highs"
    )
    if found.status == 0 and -found.fun > _SMALLEST_GAIN:
        return "the terms separate the responses, so that no fit exists"
    return "" if settled else "the fit did not converge"
