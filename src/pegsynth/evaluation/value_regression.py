"""Regressions on released numbers, where those on codes take a bin by its midpoint.

Goes in: a formula, codes and numbers of all tables. Comes out: the same `Comparison` as for
codes, so that ``coefficient_original`` is the original's own coefficient; weighted tables are
fitted with their weights, and with each replicate of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pegsynth.arrays import Codes, Float64
from pegsynth.evaluation.formula import Formula, Term, compared, transformed
from pegsynth.evaluation.model_matrix import (
    Sample,
    columns_of,
    numbers_of_codes,
    response_values,
)
from pegsynth.evaluation.numeric import is_numeric
from pegsynth.evaluation.regression_fit import RegressionFit, fit
from pegsynth.evaluation.regression_records import Comparison, comparison_of
from pegsynth.evaluation.statistics import LEVEL
from pegsynth.evaluation.value_columns import TableValues
from pegsynth.inference.combining_rules import Rule
from pegsynth.schema import Schema
from pegsynth.schema.encoding import parsed_number

MOST_ENTRIES = 1 << 25


def has_values(formula: Formula, schema: Schema, tables: Sequence[TableValues]) -> bool:
    """Say whether a formula has numeric features, and all tables have their numbers."""
    names = [
        name for name in formula.features if schema.features[schema.index(name)].kind == "numeric"
    ]
    return bool(names) and all(table.has(name) for table in tables for name in names)


def compare_weighted(
    formula: Formula,
    codes: Sequence[Codes],
    values: Sequence[TableValues],
    schema: Schema,
    **options: Any,
) -> Comparison:
    """Fit a formula to the codes of all tables, by the weights of the rows and their replicates.

    Bins count by their midpoints; options are those of `compare_values`.
    """
    plain = [replace(each, columns={}) for each in values]
    return compare_values(formula, codes, plain, schema, on_codes=True, **options)


def compare_values(
    formula: Formula,
    codes: Sequence[Codes],
    values: Sequence[TableValues],
    schema: Schema,
    *,
    rule: Rule | None = None,
    level: float = LEVEL,
    on_codes: bool = False,
    support: str = "",
) -> Comparison:
    """Fit a formula to the numbers of all tables.

    Parameters
    ----------
    codes, values
        Codes, one feature a line, and numbers: of the original, then of each synthetic table.
    rule
        How several synthetic tables were made, where that is known.
    on_codes
        Whether the tables have no numbers beside their codes.
    support
        What published tables hold of the formula, where that is known.
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
    return comparison_of(
        formula,
        columns,
        fits,
        schema,
        level=level,
        rule=rule,
        replicates=again,
        values=() if on_codes else remarks,
        sample=samples[0],
        support=support,
    )


def value_sample(
    formula: Formula,
    codes: Codes,
    values: TableValues,
    schema: Schema,
    *,
    exposures: Float64 | None = None,
) -> Sample:
    """Return the usable rows of a table, with the numbers that a formula needs of them.

    Of a Poisson regression with exposures, rows without one are left out.
    """
    places = [schema.index(name) for name in formula.features]
    ours = np.ascontiguousarray(codes[places, :: values.every])
    response = _response(formula, ours, values, schema)
    usable = ~np.isnan(response)
    numbers = {}
    for term in formula.parts:
        found = _numbers(term, ours[formula.features.index(term.feature)], values, schema)
        if found is not None:
            numbers[term.text] = found
            usable &= ~np.isnan(found)
    counts = np.ones(len(response)) if values.weights is None else values.weights
    # A row of weight 0 would only stand in the way of a count of rows.
    usable &= counts > 0
    if exposures is not None:
        usable &= exposures > 0
    counts = counts[usable]
    if len(counts):
        counts = counts * (len(counts) / counts.sum())
    return Sample(
        ours[:, usable],
        counts,
        response[usable],
        int(np.count_nonzero(~usable)),
        {name: each[usable] for name, each in numbers.items()},
        None if exposures is None else exposures[usable],
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
    if formula.response.sign or formula.kind != "logistic":
        found = _numbers(formula.response, codes[0], values, schema)
    return response_values(formula, schema)[codes[0]] if found is None else found


def _numbers(term: Term, codes: Codes, values: TableValues, schema: Schema) -> Float64 | None:
    """Return the number of a term in every row; None for a term of categories."""
    feature = schema.features[schema.index(term.feature)]
    number = parsed_number(term.operand) if term.sign else None
    if values.has(term.feature) and is_numeric(feature) and not term.categorical:
        ours = values.columns[term.feature]
        if not term.sign:
            return transformed(term, ours)
        if number is not None:
            return compared(term, ours, number)
    found = numbers_of_codes(term, feature)
    return None if found is None else np.asarray(found[codes])
