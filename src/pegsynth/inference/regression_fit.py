"""One regression fitted to one table, or the reason why it was not.

Goes in: the distinct rows of a table with their numbers, and the columns that all tables
share. Comes out: a `RegressionFit`. A coefficient that cannot be estimated is missing from
it with a reason; a fit of which nothing can be estimated has a reason of its own. Nothing is
raised, nothing is 0 by default, and no warning escapes.

A linear regression needs no more than sums of squares and products; they are reduced to a
triangle of a few rows. A logistic or Poisson one is fitted by Newton's method (`newton`): to a
design matrix, or without one where it would be large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pegsynth.inference.formula import Kind
from pegsynth.inference.model_matrix import INTERCEPT, Column, Sample
from pegsynth.inference.newton import (
    MOST_SCORES,
    Rows,
    maximise,
    maximise_matrix,
    second_moments,
    starts_of,
)
from pegsynth.inference.statistics import Estimate, interval
from pegsynth.kernels.arrays import Float64
from pegsynth.runtime import in_silence

MOST_COEFFICIENTS = 1000
MOST_ENTRIES = 1 << 21
_SMALLEST_SIZE = 1e-7
_SMALLEST_SHARE = 1e-10
_SMALLEST_GAIN = 1e-7
# Rows of which a linear programme of a few seconds can be made.
_MOST_CONSTRAINTS = 1 << 16
# A standard error this large, in units of the log odds, is that of a few rows that hardly
# ever differ, or of a fit on its way to infinity.
_VAGUE = 30.0
_NOT_FINITE = "the fit gave figures that are not finite"


@dataclass(frozen=True)
class RegressionFit:
    """What one table says about the coefficients.

    Parameters
    ----------
    rows, dropped
        Rows used, and rows left out because a value is missing.
    estimates
        By name of the coefficient, each with its variance and interval.
    degrees_of_freedom
        Those of the intervals; infinite in a logistic regression.
    absent
        Coefficients that could not be estimated, and why.
    reason
        Why nothing could be estimated; empty when something was.
    """

    rows: int
    dropped: int
    estimates: dict[str, Estimate] = field(default_factory=dict)
    degrees_of_freedom: float = np.inf
    absent: dict[str, str] = field(default_factory=dict)
    reason: str = ""


class _Solution(NamedTuple):
    """Coefficients with the intercept first, their variances; or a reason why there are none."""

    values: Float64
    variances: Float64
    freedom: float = np.inf
    reason: str = ""


class _Scores(NamedTuple):
    """A model without a matrix: rows, and what each coefficient adds to a category's score."""

    rows: Rows
    sizes: list[int]
    model: Float64
    scales: Float64


def fit(
    sample: Sample,
    columns: Sequence[Column],
    kind: Kind,
    *,
    threads: int = 1,
) -> RegressionFit:
    """Fit a regression to the distinct rows of a table.

    Parameters
    ----------
    sample
        Distinct rows with their numbers and responses.
    columns
        What explains the response, the intercept aside.
    kind
        Ordinary least squares, a binomial model with the logit link, or a Poisson model with
        the log link.
    threads
        Used where a design matrix would be large.
    """
    if sample.rows == 0:
        return RegressionFit(0, sample.dropped, reason="there is no row without a missing value")
    absent: dict[str, str] = {}
    kept = _varying(sample, columns, absent)
    used = sample
    if kind == "logistic":
        used, kept = _without_pure_categories(sample, kept, absent)
    if not len(used.response) or used.response.min() == used.response.max():
        return RegressionFit(sample.rows, sample.dropped, reason="the response has a single value")
    reason = _impossible(used, kept)
    if not reason:
        values, variances, freedom, reason = _solved(used, kept, kind, threads)
    if reason:
        return RegressionFit(sample.rows, sample.dropped, absent=absent, reason=reason)
    names = [INTERCEPT, *(column.name for column in kept)]
    figures = zip(names, values.tolist(), variances.tolist(), strict=True)
    return RegressionFit(
        sample.rows,
        sample.dropped,
        {name: interval(v, s, freedom, n=used.rows) for name, v, s in figures},
        freedom,
        absent,
    )


def robust_variances(
    found: RegressionFit, sample: Sample, columns: Sequence[Column], kind: Kind
) -> dict[str, float]:
    """Return the variances of coefficients that hold whatever the distribution of the errors.

    Notes
    -----
    White (1980), A heteroskedasticity-consistent covariance matrix estimator, Econometrica
    48(4), 817-838, doi:10.2307/1912934; it is the variance of a bootstrap of rows.
    """
    estimates = found.estimates
    kept = [column for column in columns if column.name in estimates]
    names = [INTERCEPT, *(column.name for column in kept)]
    if any(name not in estimates for name in names):
        return {}
    matrix = sample.matrix(kept)
    scores = matrix @ np.array([estimates[name].value for name in names])
    if kind == "linear":
        errors, curve = sample.response - scores, np.ones(len(scores))
    else:
        chances = 1 / (1 + np.exp(-scores))
        errors, curve = sample.response - chances, chances * (1 - chances)
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1.0
    matrix = matrix / scale
    bread = np.linalg.pinv(matrix.T @ (matrix * (sample.counts * curve)[:, np.newaxis]))
    meat = matrix.T @ (matrix * (sample.counts * errors * errors)[:, np.newaxis])
    variances = np.diag(bread @ meat @ bread) / scale**2
    known = dict(zip(names, variances.tolist(), strict=True))
    return {name: each for name, each in known.items() if math.isfinite(each)}


def _varying(sample: Sample, columns: Sequence[Column], absent: dict[str, str]) -> list[Column]:
    """Return the columns that vary; note the others."""
    kept = []
    for column in columns:
        values = sample.values(column)
        if values.min() < values.max():
            kept.append(column)
        elif not column.marks:
            absent[column.name] = "it has a single value"
        else:
            absent[column.name] = "the category does not occur"
    return kept


def _without_pure_categories(
    sample: Sample, columns: list[Column], absent: dict[str, str]
) -> tuple[Sample, list[Column]]:
    """Leave out categories whose rows all have the same response, until there is none.

    Their coefficient is infinite, and in the limit their rows say nothing about the others.
    """
    while True:
        pure = [column for column in columns if _is_pure(sample, column)]
        if not pure:
            return sample, columns
        for column in pure:
            absent[column.name] = "all rows of the category have the same response (separated)"
            sample = sample.part(sample.values(column) == 0)
        columns = _varying(sample, [c for c in columns if c not in pure], absent)
        if not len(sample.counts):
            return sample, []


def _is_pure(sample: Sample, column: Column) -> bool:
    if not column.marks:
        return False
    responses = sample.response[sample.values(column) > 0]
    return not len(responses) or bool(responses.min() == responses.max())


def _impossible(sample: Sample, columns: list[Column]) -> str:
    """Say why a fit cannot be made; nothing when it can."""
    unknowns = len(columns) + 1
    if sample.rows <= unknowns:
        return f"too few rows: {sample.rows} for {unknowns} coefficients"
    if unknowns > MOST_COEFFICIENTS:
        return f"too large: {unknowns} coefficients, and at most {MOST_COEFFICIENTS} are fitted"
    return ""


def _solved(sample: Sample, columns: Sequence[Column], kind: Kind, threads: int) -> _Solution:
    """Fit a regression in silence; numbers too large to be squared give a reason."""
    try:
        with in_silence():
            found = _solve(sample, columns, kind, threads)
    except (ArithmeticError, ValueError):
        # What is not finite on the way, decompositions refuse.
        return _none(_NOT_FINITE)
    figures = np.concatenate([found.values, found.variances])
    if not (np.isfinite(figures).all() and (found.variances >= 0).all()):
        return _none(_NOT_FINITE)
    return found


def _solve(sample: Sample, columns: Sequence[Column], kind: Kind, threads: int) -> _Solution:
    """Fit a regression; the columns must vary."""
    unknowns = len(columns) + 1
    few_codes = sum(len(column.values) for column in columns) <= MOST_SCORES
    plain = not sample.numbers and not any(column.factors for column in columns)
    large = len(sample.counts) * unknowns > MOST_ENTRIES and few_codes and plain
    if kind != "linear":
        by_scores = large and kind == "logistic"
        return _likelihood(sample, columns, kind, threads if by_scores else None)
    triangle, rank = (
        _triangle_by_scores(sample, columns, threads) if large else _triangle(sample, columns)
    )
    if rank < unknowns:
        return _collinear(unknowns, rank)
    return _least_squares(triangle, sample.rows)


def _none(reason: str) -> _Solution:
    return _Solution(np.empty(0), np.empty(0), reason=reason)


def _collinear(unknowns: int, rank: int) -> _Solution:
    return _none(f"the terms are collinear: {unknowns} coefficients, rank {rank}")


def _triangle(sample: Sample, columns: Sequence[Column]) -> tuple[Float64, int]:
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
) -> tuple[Float64, int]:
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


def _least_squares(triangle: Float64, rows: int) -> _Solution:
    from scipy.linalg import solve_triangular

    unknowns = triangle.shape[1] - 1
    inverse = solve_triangular(triangle[:unknowns, :unknowns], np.eye(unknowns))
    # The triangle has few rows; the spread is that of all rows of the table.
    freedom = float(rows - unknowns)
    spread = float(np.square(triangle[unknowns:, -1]).sum()) / freedom
    variances = np.square(inverse).sum(axis=1) * spread
    return _Solution(inverse @ triangle[:unknowns, -1], variances, freedom)


def _likelihood(
    sample: Sample, columns: Sequence[Column], kind: Kind, threads: int | None
) -> _Solution:
    """Fit a logistic or Poisson regression; without threads by a design matrix."""
    if threads is None:
        # The intercept last, and columns of one size, as a model by scores has them.
        matrix = np.roll(sample.matrix(columns), -1, axis=1)
        scales = np.abs(matrix).max(axis=0)
        exposures = sample.exposures
        if kind == "poisson" and exposures is None:
            exposures = np.ones(len(sample.counts))
        found = maximise_matrix(matrix / scales, sample.counts, sample.response, exposures)
    else:
        scores = _scores(sample, columns)
        scales = scores.scales
        found = maximise([scores.rows], scores.sizes, scores.model, threads=threads)
    unknowns = len(columns) + 1
    if found.rank < unknowns:
        return _collinear(unknowns, found.rank)
    variances = np.diag(found.covariance)
    vague = not found.settled or not variances.max() <= _VAGUE**2
    reason = ""
    if vague and kind == "logistic":
        reason = _failure(sample, sample.matrix(columns), found.settled)
    elif vague:
        reason = "the fit did not converge"
    if reason:
        return _none(reason)
    values = np.roll(found.coefficients / scales, 1)
    return _Solution(values, np.roll(variances / scales**2, 1))


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
        scales[number] = np.abs(values).max()
        model[starts[place] : starts[place + 1], number] = values / scales[number]
    counts = sample.counts.astype(np.float64)
    rows = Rows(np.ascontiguousarray(sample.codes[used]), counts, sample.response)
    return _Scores(rows, sizes, model, scales)


def _failure(sample: Sample, matrix: Float64, settled: bool) -> str:
    """Say why there is no maximum.

    Notes
    -----
    There is none where some direction never points against a response and sometimes points
    along (Albert and Anderson 1984, Biometrika 71(1), 1-10, doi:10.1093/biomet/71.1.1); a
    linear programme decides (Konis 2007).
    """
    from scipy.optimize import linprog

    if len(matrix) > _MOST_CONSTRAINTS:
        return "" if settled else "the fit did not converge, or the terms separate the responses"
    along = np.where(sample.response > 0, 1.0, -1.0)[:, np.newaxis] * matrix
    along /= np.abs(matrix).max(axis=0)
    found = linprog(
        -along.sum(axis=0), A_ub=-along, b_ub=np.zeros(len(along)), bounds=(-1, 1), method="highs"
    )
    if found.status == 0 and -found.fun > _SMALLEST_GAIN:
        return "the terms separate the responses, so that no fit exists"
    return "" if settled else "the fit did not converge"
