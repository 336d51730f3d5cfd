"""One regression: rows, objective and descent, on the kernels.

Fit elastic-net multinomial regressions along a warm-started path of penalties.

The objective is glmnet's, with lambda the penalty and a the mixing::

    - weighted mean log-likelihood + lambda * (a |beta|_1 + (1 - a)/2 |beta|_2^2)

over all coefficients but the intercepts. As in the paper lambda is chosen by
cross-validation; here on a subsample of evenly spaced rows, so that the same table always
gives the same model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64
from pegsynth.kernels.logistic import (
    Layout,
    Rows,
    cell_table,
    descend,
    gathered_softmax,
    observed_counts,
)
from pegsynth.methods.baselines.glm import (
    SCORED_ABOVE,
    GlmModel,
    Regression,
    make_design,
    row_columns,
)
from pegsynth.methods.baselines.target_fits import RowsToFit, spaced_rows
from pegsynth.runtime import Stop
from pegsynth.schema import Schema

_MOST_SWEEPS = 1_000


@dataclass(frozen=True)
class Problem:
    """Rows of one regression: predictors, outcome, weights, observed (cell, class) weights.

    `stop` ends its descents when the caller no longer waits for the result.
    """

    columns: NDArray[np.int32]
    layout: Layout
    outcome: NDArray[np.int64]
    weights: Float64
    counts: Float64
    stop: Stop

    @classmethod
    def make(
        cls,
        columns: NDArray[np.int32],
        layout: Layout,
        outcome: NDArray[np.int64],
        weights: Float64,
        classes: int,
        stop: Stop,
    ) -> Problem:
        """Count the (cell, class) weights and bundle everything."""
        counts = np.empty((int(layout.cell_start[-1]), classes))
        observed_counts(columns, layout, outcome, weights, counts)
        return cls(columns, layout, outcome, weights, counts, stop)

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Problem:
        """Return the problem on some of its rows."""
        columns = np.ascontiguousarray(self.columns[:, chosen])
        return Problem.make(
            columns,
            self.layout,
            self.outcome[chosen],
            self.weights[chosen],
            self.counts.shape[1],
            self.stop,
        )

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def start(self) -> Float64:
        """Return coefficients of the model without predictors."""
        classes = self.counts.shape[1]
        held = np.zeros((len(self.layout.first_cell) - 1, classes))
        mass = np.bincount(self.outcome, self.weights, minlength=classes)
        smooth = 0.0 if (mass > 0).all() else 0.5
        held[-1] = np.log((mass + smooth) / (self.total + smooth * classes))
        return held

    def largest_penalty(self, mixing: float) -> float:
        """Return the penalty from which on every coefficient is zero."""
        shares = np.exp(self.start()[-1])
        surplus = self.counts.sum(axis=1)[:, None] * shares - self.counts
        surplus *= self.layout.values[:, None]
        slopes = np.add.reduceat(surplus, self.layout.first_cell[:-1], axis=0)[:-1]
        return float(np.abs(slopes).max(initial=0.0)) / (mixing * self.total)

    def descend(self, coefficients: Float64, penalty: float, mixing: float, close: float) -> float:
        """Improve coefficients in place; return the objective per unit of weight."""
        scale = penalty * self.total
        value, _ = descend(
            Rows(self.columns, self.outcome, self.weights, self.counts),
            self.layout,
            scale * mixing,
            scale * (1.0 - mixing),
            coefficients,
            close,
            _MOST_SWEEPS,
            self.stop.flag,
        )
        self.stop.check()
        return float(value) / self.total

    def log_loss(self, coefficients: Float64, floor: float) -> float:
        """Return the weighted sum of -log P(outcome), no probability counted below `floor`."""
        table = np.empty((int(self.layout.cell_start[-1]), coefficients.shape[1]))
        cell_table(self.layout, coefficients, table)
        out = np.empty((len(self.outcome), coefficients.shape[1]))
        gathered_softmax(self.columns, self.layout.cell_start, self.layout.order, table, out)
        held = out[np.arange(len(out)), self.outcome]
        return float(-self.weights @ np.log(np.maximum(held, floor)))


SMALLEST_RATIO = 1e-4
MOST_CELLS = 1 << 27
MOST_COEFFICIENTS = 1 << 25
_TOLERANCE = 1e-6
_ROUGH_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Tuning:
    """How features enter, and how the penalty is chosen.

    Parameters
    ----------
    mixing
        Share of the lasso in the penalty, alpha of glmnet.
    rows, folds, path
        Most rows that cross-validation sees, into how many folds they are dealt, and the
        number of penalties on the path.
    penalty
        A penalty to use for every target instead.
    scored_above
        From how many categories on ordinal and numeric predictors enter as scores.
    """

    mixing: float = 0.5
    rows: int = 2_000
    folds: int = 3
    path: int = 8
    penalty: float | None = None
    scored_above: int = SCORED_ABOVE

    @property
    def note(self) -> str:
        """The choice in words; it tells parameters only, nothing of the data."""
        net = f"elastic net, mixing {self.mixing:g}"
        if self.penalty is not None:
            return f"{net}, penalty {self.penalty:g} given for every feature"
        return (
            f"{net}, penalty of each feature chosen from a path of {self.path} by "
            f"{self.folds}-fold cross-validation on at most {self.rows:,} evenly spaced rows, "
            "divided by how many times more rows the final fit has"
        )


def most_rows(schema: Schema) -> int:
    """Return how many rows every feature of a schema can be regressed on."""
    return max(MOST_CELLS // max(schema.category_counts), 1)


def fit_glm(rows: RowsToFit, tuning: Tuning | None = None) -> GlmModel:
    """Regress every target on all other features.

    Raises
    ------
    ParameterError
        A feature has too many categories for a regression.
    """
    tuning = tuning or Tuning()
    codes, schema, weights = rows.codes, rows.schema, rows.weights
    design = make_design(codes, schema, weights=weights, scored_above=tuning.scored_above)
    _check_size(rows, design.columns)
    columns = row_columns(codes)

    def regress(target: int, stop: Stop) -> Regression:
        """Fit one target over the categories that occur."""
        seen, outcome = np.unique(columns[target], return_inverse=True)
        layout, categories = design.layout(target), schema.category_counts[target]
        problem = Problem.make(columns, layout, outcome.astype(np.int64), weights, len(seen), stop)
        penalty = choose_penalty(problem, tuning) if tuning.penalty is None else tuning.penalty
        held = fit_path(problem, penalty, tuning.mixing)
        full = np.zeros((len(held), categories))
        full[-1] = -np.inf
        full[:, seen] = held
        full[design.own_columns(target)] = 0.0
        return Regression(full, 0.5 / (problem.total + 0.5 * categories), penalty)

    # The largest first, so that no thread is left alone with a long fit at the end.
    ordered = sorted(rows.targets, key=lambda target: -schema.category_counts[target])
    regressions = rows.fit_each(ordered, regress, threads=rows.threads)
    limit = "" if rows.max_rows is None else f"; fitted to at most {rows.max_rows:,} rows"
    return GlmModel(schema, design, regressions, tuning.note + limit)


def choose_penalty(problem: Problem, tuning: Tuning) -> float:
    """Choose the penalty with the smallest held-out loss, going down the path while it falls."""
    sample = problem.part(spaced_rows(len(problem.outcome), tuning.rows))
    largest = sample.largest_penalty(tuning.mixing)
    folds = min(tuning.folds, len(sample.outcome))
    if folds < 2 or largest == 0.0 or sample.counts.shape[1] < 2:
        return problem.largest_penalty(tuning.mixing)
    fold = np.arange(len(sample.outcome)) % folds
    pairs = [(sample.part(fold != k), sample.part(fold == k)) for k in range(folds)]
    held = [fitted.start() for fitted, _ in pairs]
    floor = 0.5 / (sample.total + 0.5 * sample.counts.shape[1])
    best, chosen = np.inf, largest
    for penalty in largest * np.geomspace(1.0, SMALLEST_RATIO, tuning.path):
        loss = 0.0
        for (fitted, rest), coefficients in zip(pairs, held, strict=True):
            fitted.descend(coefficients, penalty, tuning.mixing, _ROUGH_TOLERANCE)
            loss += rest.log_loss(coefficients, floor)
        if loss > best:
            break
        best, chosen = loss, float(penalty)
    # A penalty is a prior: against more rows than the folds had it weighs less per row.
    return chosen * (1.0 - 1.0 / folds) * sample.total / problem.total


def fit_path(problem: Problem, penalty: float, mixing: float) -> Float64:
    """Fit at one penalty, warm-started down a path from the empty model."""
    held = problem.start()
    step = 10.0**0.5
    warm = problem.largest_penalty(mixing) / step
    while warm > penalty * step and warm > 0.0:
        if penalty == 0.0 and warm < SMALLEST_RATIO * problem.largest_penalty(mixing):
            break
        problem.descend(held, warm, mixing, _ROUGH_TOLERANCE)
        warm /= step
    problem.descend(held, penalty, mixing, _TOLERANCE)
    return held


def _check_size(rows: RowsToFit, columns: int) -> None:
    for target in rows.targets:
        classes, name = rows.schema.category_counts[target], rows.schema.names[target]
        if len(rows.codes) * classes > MOST_CELLS:
            raise ParameterError(
                f"feature {name!r} has {classes:,} categories, too many for a regression on all "
                f"rows; set max_rows to {MOST_CELLS // classes:,} or less"
            )
        if columns * classes > MOST_COEFFICIENTS:
            raise ParameterError(
                f"feature {name!r}: {columns:,} columns by {classes:,} categories are too many "
                "coefficients; group categories in the schema, or use a method of the pegs family"
            )
