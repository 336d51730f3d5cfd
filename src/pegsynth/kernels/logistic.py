"""The best value of one penalised coefficient, all others held (see `logistic`).

Penalised multinomial logistic regression on categorical predictors, by block descent.

Every row has exactly one active cell (feature, code) per predictor, and every cell has one
column and one value of the design matrix: 1 for an indicator, a standardised number for a
score. The linear predictor is therefore a sum of gathered lines, and a change of the
coefficients of one predictor multiplies the class probabilities of a row by a factor that
depends on its code alone: no exponential per row is needed.

One step improves all coefficients of one predictor. From ``log s <= s - 1`` the negative
log-likelihood after a step d is at most::

    sum over cells, classes of  sums * exp(value * d) - counts * value * d  + constant

with `sums` the fitted and `counts` the observed weight of a (cell, class). The bound
separates over columns and classes and touches at d = 0; minimising it together with the
penalty, one number at a time, can only lower the objective. Without penalty this is
iterative proportional fitting.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from pegsynth.kernels.arrays import Codes, Float64, Int32, Int64

_REACH = 3.0
_STEPS = 30


@njit(cache=True, nogil=True)
def _slope(values: Float64, sums: Float64, counts: Float64, step: float) -> tuple[float, float]:
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
    values: Float64, sums: Float64, counts: Float64, start: float, lasso: float, ridge: float
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
    values: Float64,
    sums: Float64,
    counts: Float64,
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


_FAST = {"reassoc", "contract", "nsz"}


class Layout(NamedTuple):
    """Predictors of one target, the intercept included.

    ``cell_start[f]`` is the first cell of feature f; the cells ``first_cell[k] ..
    first_cell[k + 1]`` share column k; ``first_column[f]`` is the first column of
    feature f. `order` lists the predictors in the order of the steps.
    """

    cell_start: Any
    values: Any
    first_cell: Any
    first_column: Any
    order: Any


class Rows(NamedTuple):
    """Rows of one regression: codes by feature, class and weight of every row.

    `counts` is the observed weight of every (cell, class).
    """

    columns: Any
    outcome: Any
    weights: Any
    counts: Any


@njit(cache=True, nogil=True)
def observed_counts(
    columns: Int32, layout: Layout, outcome: Int64, weights: Float64, out: Float64
) -> None:
    """Add up the weight of every (cell, class)."""
    out[:] = 0.0
    for step in range(len(layout.order)):
        feature = layout.order[step]
        start = layout.cell_start[feature]
        for row in range(len(outcome)):
            out[start + columns[feature, row], outcome[row]] += weights[row]


@njit(cache=True, nogil=True, fastmath=_FAST)
def gathered_softmax(
    columns: Int32, cell_start: Int64, order: Int64, table: Float64, out: Float64
) -> None:
    """Write class probabilities: softmax of the sum of one table line per predictor."""
    classes = out.shape[1]
    for row in range(out.shape[0]):
        line = out[row]
        for c in range(classes):
            line[c] = 0.0
        for step in range(len(order)):
            feature = order[step]
            cell = table[cell_start[feature] + columns[feature, row]]
            for c in range(classes):
                line[c] += cell[c]
        highest = line[0]
        for c in range(1, classes):
            highest = max(highest, line[c])
        total = 0.0
        for c in range(classes):
            line[c] = np.exp(line[c] - highest)
            total += line[c]
        for c in range(classes):
            line[c] /= total


@njit(cache=True, nogil=True)
def cell_table(layout: Layout, coefficients: Float64, out: Float64) -> None:
    """Write the contribution of every cell: its value times the line of its column."""
    for column in range(len(layout.first_cell) - 1):
        for cell in range(layout.first_cell[column], layout.first_cell[column + 1]):
            for c in range(out.shape[1]):
                out[cell, c] = layout.values[cell] * coefficients[column, c]


@njit(cache=True, nogil=True, fastmath=_FAST)
def fitted_sums(codes: Int32, weights: Float64, probabilities: Float64, out: Float64) -> None:
    """Add up the fitted probabilities of all rows, by the code of one predictor."""
    out[:] = 0.0
    for row in range(len(weights)):
        weight = weights[row]
        line = probabilities[row]
        into = out[codes[row]]
        for c in range(len(line)):
            into[c] += weight * line[c]


@njit(cache=True, nogil=True, fastmath=_FAST)
def rescale(codes: Int32, factors: Float64, probabilities: Float64) -> None:
    """Multiply every line by the factors of its code and make it sum to 1 again."""
    for row in range(len(codes)):
        line = probabilities[row]
        by = factors[codes[row]]
        total = 0.0
        for c in range(len(line)):
            line[c] *= by[c]
            total += line[c]
        inverse = 1.0 / total
        for c in range(len(line)):
            line[c] *= inverse


@njit(cache=True, nogil=True)
def improve(
    rows: Rows,
    layout: Layout,
    feature: int,
    sums: Float64,
    coefficients: Float64,
    lasso: float,
    ridge: float,
    factors: Float64,
) -> bool:
    """Take one step in all coefficients of one predictor; say whether any changed."""
    start = layout.cell_start[feature]
    changed = False
    for column in range(layout.first_column[feature], layout.first_column[feature + 1]):
        first, last = layout.first_cell[column], layout.first_cell[column + 1]
        values = layout.values[first:last]
        for c in range(coefficients.shape[1]):
            old = coefficients[column, c]
            fitted = sums[first - start : last - start, c]
            new = best_coefficient(values, fitted, rows.counts[first:last, c], old, lasso, ridge)
            coefficients[column, c] = new
            changed = changed or new != old
            for cell in range(first, last):
                factors[cell - start, c] = np.exp(layout.values[cell] * (new - old))
    return changed


@njit(cache=True, nogil=True)
def objective(
    rows: Rows, probabilities: Float64, coefficients: Float64, lasso: float, ridge: float
) -> float:
    """Return the penalised negative log-likelihood; the last column, the intercept, is free."""
    value = 0.0
    for row in range(len(rows.outcome)):
        value -= rows.weights[row] * np.log(probabilities[row, rows.outcome[row]])
    for column in range(coefficients.shape[0] - 1):
        for c in range(coefficients.shape[1]):
            b = coefficients[column, c]
            value += lasso * abs(b) + 0.5 * ridge * b * b
    return value


@njit(cache=True, nogil=True)
def sweep(
    rows: Rows,
    layout: Layout,
    lasso: float,
    ridge: float,
    coefficients: Float64,
    probabilities: Float64,
    sums: Float64,
    factors: Float64,
    stop: Codes,
) -> None:
    """Take one step in every predictor; the last feature, the intercept, has no penalty."""
    intercept = len(layout.cell_start) - 2
    for feature in layout.order:
        if stop[0]:
            return
        paid = 0.0 if feature == intercept else 1.0
        fitted_sums(rows.columns[feature], rows.weights, probabilities, sums)
        if improve(rows, layout, feature, sums, coefficients, paid * lasso, paid * ridge, factors):
            rescale(rows.columns[feature], factors, probabilities)


@njit(cache=True, nogil=True)
def carry_on(coefficients: Float64, best: Float64, share: float) -> None:
    """Make the coefficients the best ones, then go on by a share of the last change."""
    for column in range(coefficients.shape[0]):
        for c in range(coefficients.shape[1]):
            b = coefficients[column, c]
            coefficients[column, c] = b + share * (b - best[column, c])
            best[column, c] = b


@njit(cache=True, nogil=True)
def descend(
    rows: Rows,
    layout: Layout,
    lasso: float,
    ridge: float,
    coefficients: Float64,
    tolerance: float,
    most_sweeps: int,
    stop: Codes,
) -> tuple[float, int]:
    """Sweep until the objective settles; return it and the number of sweeps.

    Between sweeps the coefficients are carried on in the direction of the last change
    (Nesterov's momentum). When that stops helping, the momentum starts anew from the best
    point; when a sweep without momentum does not help either, the descent is over. The
    last column of `coefficients` is the intercept. Once another thread sets ``stop[0]``
    it ends soon, and what it leaves is of no use.
    """
    classes = coefficients.shape[1]
    widest = np.max(layout.cell_start[1:] - layout.cell_start[:-1])
    sums, factors = np.empty((widest, classes)), np.empty((widest, classes))
    table = np.empty((layout.cell_start[-1], classes))
    probabilities = np.empty((len(rows.outcome), classes))
    best = coefficients.copy()
    before = np.inf
    momentum = 1.0
    for done in range(most_sweeps):
        if stop[0]:
            return before, done
        # Probabilities are made anew from the coefficients, so rounding does not pile up.
        cell_table(layout, coefficients, table)
        gathered_softmax(rows.columns, layout.cell_start, layout.order, table, probabilities)
        sweep(rows, layout, lasso, ridge, coefficients, probabilities, sums, factors, stop)
        now = objective(rows, probabilities, coefficients, lasso, ridge)
        progress = before - now
        if progress > 0.0:
            carry_on(coefficients, best, (momentum - 1.0) / (momentum + 2.0))
            before = now
        if progress > tolerance * abs(now):
            momentum += 1.0
            continue
        coefficients[:] = best
        if momentum == 1.0:
            return before, done + 1
        momentum = 1.0
    coefficients[:] = best
    return before, most_sweeps
