"""Regressions on released numbers, where those on codes take a bin by its midpoint.

Goes in: a formula, codes and numbers of all tables. Comes out: the same `Comparison` as for
codes, so that ``coefficient_original`` is the original's own coefficient; weighted tables are
fitted with their weights, and with each replicate of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from pegsynth.arrays import Codes, Float64
from pegsynth.evaluation.chance import rows_judged
from pegsynth.evaluation.formula import Formula, Term, compared
from pegsynth.evaluation.model_matrix import (
    INTERCEPT,
    Column,
    Sample,
    columns_of,
    numbers_of_codes,
    response_values,
)
from pegsynth.evaluation.numeric import is_numeric
from pegsynth.evaluation.regression_fit import RegressionFit, fit
from pegsynth.evaluation.regression_records import Comparison, comparison_of
from pegsynth.evaluation.statistics import LEVEL, Estimate
from pegsynth.evaluation.value_columns import TableValues
from pegsynth.inference.combining_rules import Rule
from pegsynth.schema import Schema
from pegsynth.schema.encoding import parsed_number

MOST_ENTRIES = 1 << 25


@dataclass(frozen=True)
class CoefficientSides:
    """One coefficient of the original and of the synthetic tables.

    Parameters
    ----------
    formula, term
        Which regression, and which coefficient of it.
    original, value
        The original's estimate, and that of the synthetic tables.
    robust
        Gives the variances of the original's estimates, by name, whatever the law of the errors;
        called for a coefficient that is far off.
    rows, released
        Rows of the original and of the smallest synthetic table.
    """

    formula: str
    term: str
    original: Estimate
    value: float
    robust: Callable[[], dict[str, float]]
    rows: int
    released: int

    @property
    def variance(self) -> float:
        """The larger of the two variances of the original's estimate."""
        return max(self.original.variance, self.robust().get(self.term, 0.0))

    def allowance(self, alpha: float) -> float:
        """Return how far a fresh sample as large as the release may be off, for many rows."""
        from scipy.special import ndtri

        n = rows_judged(self.rows, self.released)
        return float(-ndtri(alpha / 2)) * math.sqrt(self.variance * self.rows / n)


def has_values(formula: Formula, schema: Schema, tables: Sequence[TableValues]) -> bool:
    """Say whether a formula has numeric features, and all tables have their numbers."""
    names = [
        name for name in formula.features if schema.features[schema.index(name)].kind == "numeric"
    ]
    return bool(names) and all(table.has(name) for table in tables for name in names)


def compare_values(
    formula: Formula,
    codes: Sequence[Codes],
    values: Sequence[TableValues],
    schema: Schema,
    *,
    rule: Rule | None = None,
    level: float = LEVEL,
) -> tuple[Comparison, list[CoefficientSides]]:
    """Fit a formula to the numbers of all tables.

    Parameters
    ----------
    codes, values
        Codes, one feature a line, and numbers: of the original, then of each synthetic table.
    rule
        How several synthetic tables were made, where that is known.

    Returns
    -------
    tuple
        The comparison, and what is needed to judge every coefficient but the intercept.
    """
    samples = [value_sample(formula, *each, schema) for each in zip(codes, values, strict=True)]
    columns = columns_of(formula, samples, schema)
    thin = max(1, *(-(-len(each.counts) * (len(columns) + 1) // MOST_ENTRIES) for each in samples))
    samples = [each.part(slice(None, None, thin)) for each in samples]
    fits = tuple(fit(sample, columns, formula.kind, level=level) for sample in samples)
    again: tuple[RegressionFit, ...] = ()
    if len(values) == 2 and values[1].replicates is not None:
        again = tuple(
            fit(each, columns, formula.kind, level=level)
            for each in _replicates(formula, codes[1], values[1], schema, thin)
        )
    every = max(each.every for each in values) * thin
    remarks = ["bins play no part: the numbers of the tables are used as they stand"]
    if every > 1:
        remarks.append(f"every {every}th row was used, evenly spaced, of a table too large for all")
    found = comparison_of(
        formula, columns, fits, schema, level=level, rule=rule, replicates=again, values=remarks
    )
    return found, _sides(found, samples[0], columns)


def value_sample(formula: Formula, codes: Codes, values: TableValues, schema: Schema) -> Sample:
    """Return the usable rows of a table, with the numbers that a formula needs of them."""
    places = [schema.index(name) for name in formula.features]
    ours = np.ascontiguousarray(codes[places, :: values.every])
    response = _response(formula, ours, values, schema)
    usable = ~np.isnan(response)
    numbers = {}
    for term in formula.terms:
        found = _numbers(term, ours[formula.features.index(term.feature)], values, schema)
        if found is not None:
            numbers[term.text] = found
            usable &= ~np.isnan(found)
    counts = np.ones(len(response)) if values.weights is None else values.weights
    # A row of weight 0 would only stand in the way of a count of rows.
    usable &= counts > 0
    counts = counts[usable]
    if len(counts):
        counts = counts * (len(counts) / counts.sum())
    return Sample(
        ours[:, usable],
        counts,
        response[usable],
        int(np.count_nonzero(~usable)),
        {name: each[usable] for name, each in numbers.items()},
    )


def _replicates(
    formula: Formula, codes: Codes, values: TableValues, schema: Schema, thin: int
) -> list[Sample]:
    lines = values.replicates if values.replicates is not None else ()
    tables = (replace(values, weights=line, replicates=None) for line in lines)
    return [
        value_sample(formula, codes, table, schema).part(slice(None, None, thin))
        for table in tables
    ]


def _response(formula: Formula, codes: Codes, values: TableValues, schema: Schema) -> Float64:
    found = None
    if formula.response.sign or formula.kind == "linear":
        found = _numbers(formula.response, codes[0], values, schema)
    return response_values(formula, schema)[codes[0]] if found is None else found


def _numbers(term: Term, codes: Codes, values: TableValues, schema: Schema) -> Float64 | None:
    """Return the number of a term in every row; None for a term of categories."""
    feature = schema.features[schema.index(term.feature)]
    number = parsed_number(term.operand) if term.sign else None
    if values.has(term.feature) and is_numeric(feature) and not term.categorical:
        ours = values.columns[term.feature]
        if not term.sign:
            return ours
        if number is not None:
            return compared(term, ours, number)
    found = numbers_of_codes(term, feature)
    return None if found is None else np.asarray(found[codes])


def _sides(found: Comparison, sample: Sample, columns: Sequence[Column]) -> list[CoefficientSides]:
    robust = cache(partial(_sandwich, found, sample, columns))
    sides = []
    for name in found.names:
        first, second = found.original[name], found.synthetic[name]
        if name == INTERCEPT or first is None or second is None:
            continue
        sides.append(
            CoefficientSides(
                found.formula.text,
                name,
                first,
                second.value,
                robust,
                found.fits[0].rows,
                found.rows,
            )
        )
    return sides


def _sandwich(found: Comparison, sample: Sample, columns: Sequence[Column]) -> dict[str, float]:
    """Return the variances of the original's coefficients that hold whatever the errors' law.

    Notes
    -----
    White (1980), A heteroskedasticity-consistent covariance matrix estimator, Econometrica
    48(4), 817-838, doi:10.2307/1912934; it is the variance of a bootstrap of rows.
    """
    estimates = found.fits[0].estimates
    kept = [column for column in columns if column.name in estimates]
    names = [INTERCEPT, *(column.name for column in kept)]
    if not estimates or any(name not in estimates for name in names):
        return {}
    matrix = sample.matrix(kept)
    scores = matrix @ np.array([estimates[name].value for name in names])
    if found.formula.kind == "linear":
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
