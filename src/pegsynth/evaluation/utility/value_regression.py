"""Regressions on released numbers, where those on codes take a bin by its midpoint.

Goes in: a formula, codes and numbers of all tables. Comes out: the same `Comparison` as for
codes, so that ``coefficient_original`` is the original's own coefficient; weighted tables are
fitted with their weights, and with each replicate of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pegsynth.evaluation.utility.regression_records import Comparison, comparison_of
from pegsynth.inference.combining_rules import Rule
from pegsynth.inference.formula import Formula
from pegsynth.inference.model_matrix import Sample, columns_of, value_sample
from pegsynth.inference.regression_fit import RegressionFit, fit
from pegsynth.inference.statistics import LEVEL
from pegsynth.inference.value_columns import TableValues
from pegsynth.kernels.arrays import Codes
from pegsynth.schema import Schema

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


def _replicates(
    formula: Formula, codes: Codes, values: TableValues, schema: Schema, thin: int
) -> list[Sample]:
    lines = values.replicates if values.replicates is not None else ()
    tables = (replace(values, weights=line, replicates=None) for line in lines)
    return [
        value_sample(formula, codes, table, schema).part(slice(None, None, thin))
        for table in tables
    ]
