"""The paper's regressions on many small tables.

The rows, columns and meanings are those of `pegsynth.evaluation`; only the solvers are
lighter: least squares, and Newton's steps for the logistic model. A fit that does not exist
(terms that do not vary or are collinear, responses that are separated) has no coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.evaluation.design import INTERCEPT, Column, Sample, columns_of, sample_of
from pegsynth.evaluation.formula import Formula, read_formula
from pegsynth.schema import Schema

Codes = NDArray[np.unsignedinteger[Any]]
Floats = NDArray[np.float64]

_STEPS = 60
_SETTLED = 1e-10
_FAR = 30.0
_SMALLEST_PIVOT = 1e-10


@dataclass(frozen=True)
class Regression:
    """A regression and what the original says about it.

    Parameters
    ----------
    formula, columns, schema
        The model, its coefficients but for the intercept, and the codebook.
    original
        Coefficients of the original by name.
    """

    formula: Formula
    columns: tuple[Column, ...]
    schema: Schema
    original: dict[str, float]

    @classmethod
    def of(cls, text: str, table: Codes, schema: Schema) -> Regression:
        """Fit a formula to the original, one feature a row."""
        formula = read_formula(text, schema)
        sample = sample_of(formula, table, schema)
        columns = columns_of(formula, [sample], schema)
        return cls(formula, columns, schema, _fitted(sample, columns, formula.kind))

    @property
    def kind(self) -> str:
        """Linear or logistic."""
        return self.formula.kind

    def fit(self, table: Codes) -> dict[str, float]:
        """Return the coefficients that a table gives, NaN where it gives none."""
        sample = sample_of(self.formula, table, self.schema)
        return _fitted(sample, self.columns, self.formula.kind)

    def distance(self, found: dict[str, float]) -> float:
        """Return the paper's regression distance: sum of |(b_synth - b_orig)/b_orig|."""
        terms = ((found[term] - value) / value for term, value in self.original.items())
        return float(sum(map(abs, terms)))


def _fitted(sample: Sample, columns: tuple[Column, ...], kind: str) -> dict[str, float]:
    names = [INTERCEPT, *(column.name for column in columns)]
    values = np.full(len(names), math.nan)
    if sample.rows > len(names):
        matrix, weights = sample.matrix(columns), sample.counts.astype(np.float64)
        # Columns of one size keep the equations well conditioned.
        sizes = np.maximum(np.abs(matrix).max(axis=0), 1e-300)
        solve = _least_squares if kind == "linear" else _logistic
        values = solve(matrix / sizes, sample.response, weights) / sizes
    return dict(zip(names, values.tolist(), strict=True))


def _least_squares(matrix: Floats, response: Floats, weights: Floats) -> Floats:
    return _solved(matrix.T @ (matrix * weights[:, np.newaxis]), matrix.T @ (weights * response))


def _logistic(matrix: Floats, response: Floats, weights: Floats) -> Floats:
    values = np.zeros(matrix.shape[1])
    for _ in range(_STEPS):
        score = matrix @ values
        if np.abs(score).max() > _FAR:
            break
        chance = 1 / (1 + np.exp(-score))
        curvature = matrix * (weights * chance * (1 - chance))[:, np.newaxis]
        step = _solved(matrix.T @ curvature, matrix.T @ (weights * (response - chance)))
        values = values + step
        if not np.abs(step).max() > _SETTLED * max(1.0, float(np.abs(values).max())):
            return values
    return np.full(matrix.shape[1], math.nan)


def _solved(equations: Floats, right: Floats) -> Floats:
    """Solve symmetric equations; NaN where they have no single solution."""
    scale = np.sqrt(np.maximum(np.diag(equations), 1e-300))
    pivots, vectors = np.linalg.eigh(equations / np.outer(scale, scale))
    if not pivots[0] > _SMALLEST_PIVOT:
        return np.full(len(right), math.nan)
    solution: Floats = vectors @ ((vectors.T @ (right / scale)) / pivots) / scale
    return solution
