"""One regression: rows, objective and descent, on the kernels.

Fit elastic-net multinomial regressions along a warm-started path of penalties.

The objective is glmnet's, with lambda the penalty and a the mixing::

    - weighted mean log-likelihood + lambda * (a |beta|_1 + (1 - a)/2 |beta|_2^2)

over all coefficients but the intercepts. As in the paper lambda is chosen by
cross-validation; here on a subsample of evenly spaced rows, so that the same table always
gives the same model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.kernels.logistic import (
    Layout,
    Rows,
    cell_table,
    descend,
    gathered_softmax,
    observed_counts,
)
from pegsynth.methods.baselines.glm import GlmModel, Regression, Scores, make_design, row_columns
from pegsynth.methods.baselines.target_fits import check_targets, fit_each, kept_rows, spaced_rows
from pegsynth.progress import Progress, quiet
from pegsynth.runtime import Stop

if TYPE_CHECKING:
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
    """How the penalty is chosen.

    Parameters
    ----------
    mixing
        Share of the lasso in the penalty, alpha of glmnet.
    rows, folds, path
        Most rows that cross-validation sees, into how many folds they are dealt, and the
        number of penalties on the path.
    penalty
        A penalty to use for every target instead.
    """

    mixing: float = 0.5
    rows: int = 2_000
    folds: int = 3
    path: int = 8
    penalty: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.mixing <= 1:
            raise ParameterError("mixing must lie above 0 and at most at 1")
        if self.rows < 1 or self.path < 1 or self.folds < 2:
            raise ParameterError("tuning needs tuning_rows and path of at least 1, folds of 2")
        if self.penalty is not None and not (np.isfinite(self.penalty) and self.penalty >= 0):
            raise ParameterError("penalty must be finite and not negative")

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


def fit_glm(
    codes: Codes,
    schema: Schema,
    *,
    targets: Sequence[int] | None = None,
    sample_weight: Float64 | None = None,
    mixing: float = 0.5,
    scores: Scores = "auto",
    tuning_rows: int = 2_000,
    folds: int = 3,
    path: int = 8,
    penalty: float | None = None,
    max_rows: int | None = None,
    threads: int = 1,
    progress: Progress = quiet,
) -> GlmModel:
    """Regress every target on all other features.

    Parameters
    ----------
    codes, schema
        One line of codes per row, and the codebook they follow.
    targets
        Features to be predicted; all by default.
    sample_weight
        Weight of every row; a weight of 2 is the same as the row twice.
    mixing
        Share of the lasso in the penalty, alpha of glmnet.
    scores
        Which ordinal and numeric predictors enter as scores; see `make_design`.
    tuning_rows, folds, path
        Most rows that cross-validation sees, number of folds, length of the path.
    penalty
        Skips cross-validation: the penalty of all targets.
    max_rows
        Most rows to fit to, evenly spaced; all by default.
    threads
        How many targets are fitted at a time.
    progress
        Told of every finished target.

    Raises
    ------
    ParameterError
        A feature has too many categories for a regression, or a parameter makes no sense.
    """
    tuning = Tuning(mixing, tuning_rows, folds, path, penalty)
    chosen = check_targets(targets, schema)
    codes, weights = kept_rows(codes, schema, sample_weight, max_rows)
    design = make_design(codes, schema, weights=weights, scores=scores)
    _check_size(schema, chosen, len(codes), design.columns)
    columns = row_columns(codes)

    def regress(target: int, stop: Stop) -> Regression:
        held = _regress(
            columns,
            design.layout(target),
            schema.category_counts[target],
            weights,
            target,
            tuning,
            stop,
        )
        held.coefficients[design.own_columns(target)] = 0.0
        return held

    # The largest first, so that no thread is left alone with a long fit at the end.
    ordered = sorted(chosen, key=lambda target: -schema.category_counts[target])
    regressions = fit_each(ordered, regress, threads=threads, progress=progress)
    limit = "" if max_rows is None else f"; fitted to at most {max_rows:,} rows"
    return GlmModel(schema, design, regressions, tuning.note + limit)


def _regress(
    columns: NDArray[np.int32],
    layout: Layout,
    categories: int,
    weights: Float64,
    target: int,
    tuning: Tuning,
    stop: Stop,
) -> Regression:
    """Fit one target over the categories that occur."""
    seen, outcome = np.unique(columns[target], return_inverse=True)
    problem = Problem.make(columns, layout, outcome.astype(np.int64), weights, len(seen), stop)
    penalty = choose_penalty(problem, tuning) if tuning.penalty is None else tuning.penalty
    held = fit_path(problem, penalty, tuning.mixing)
    full = np.zeros((len(held), categories))
    full[-1] = -np.inf
    full[:, seen] = held
    return Regression(full, 0.5 / (problem.total + 0.5 * categories), penalty)


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


def _check_size(schema: Schema, targets: Sequence[int], rows: int, columns: int) -> None:
    for target in targets:
        classes = schema.category_counts[target]
        name = schema.names[target]
        if rows * classes > MOST_CELLS:
            raise ParameterError(
                f"feature {name!r} has {classes:,} categories, too many for a regression on all "
                f"rows; set max_rows to {MOST_CELLS // classes:,} or less"
            )
        if columns * classes > MOST_COEFFICIENTS:
            raise ParameterError(
                f"feature {name!r}: {columns:,} columns by {classes:,} categories are too many "
                "coefficients; group categories in the schema, or use a method of the pegs family"
            )
