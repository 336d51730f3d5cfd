"""A regression by formula of the values of a weighted table, with the regressions of `evaluation`.

The table says what its columns are: numbers, or categories in the order of the codebook where one
is known and of their text elsewhere. Numbers of few values can be taken by category, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

import numpy as np
import polars as pl

from pegsynth.arrays import Codes, Float64
from pegsynth.errors import ParameterError
from pegsynth.evaluation.formula import Formula, Interaction, Kind, read_formula
from pegsynth.evaluation.model_matrix import columns_of
from pegsynth.evaluation.regression_fit import fit
from pegsynth.evaluation.value_columns import TableValues
from pegsynth.evaluation.value_regression import value_sample
from pegsynth.procedures.weighted_statistics import (
    Estimates,
    Prepared,
    Statistic,
    column_of,
    numbers,
)
from pegsynth.schema import Feature, Schema
from pegsynth.schema.feature import number_text

Family: TypeAlias = Literal["gaussian", "binomial", "poisson"]

_KINDS: Final[dict[str, Kind]] = {
    "gaussian": "linear",
    "binomial": "logistic",
    "poisson": "poisson",
}
_MOST_LISTED: Final = 256
"""Distinct numbers of a column that can be taken by category."""


def regression(
    formula: str, *, family: Family | None = None, exposure: str | None = None
) -> Statistic:
    """Return a regression by formula.

    Parameters
    ----------
    formula
        As ``los ~ age + C(sev) + I(age^2)``: `pegsynth.evaluation.formula` says what it may hold.
    family
        "gaussian", "binomial" (the second of two values is explained) or "poisson"; by default
        binomial for a comparison and for a response of two values, and else gaussian.
    exposure
        For poisson: the column that counts are to be divided by.
    """
    if family is not None and family not in _KINDS:
        raise ParameterError(f"family is one of {', '.join(_KINDS)}, not {family!r}")
    if exposure is not None and family != "poisson":
        raise ParameterError('exposure is for counts: state family="poisson", or remove exposure')

    def prepare(frame: pl.DataFrame, _: object, book: Schema | None) -> Prepared:
        return _prepared(formula, frame, book, _KINDS.get(family or ""), exposure)

    return Statistic(prepare, formula)


def _prepared(
    text: str, frame: pl.DataFrame, book: Schema | None, kind: Kind | None, exposure: str | None
) -> Prepared:
    named = [
        name for name in frame.columns if re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", text)
    ]
    described = {name: _described(frame, name, book) for name in named}
    if not described:
        raise ParameterError(f"formula {text!r} names no column of the table")
    schema = Schema(tuple(feature for feature, _, _ in described.values()))
    formula = read_formula(text, schema, kind=kind)
    for part in (formula.response, *formula.parts):
        if part.categorical and schema[part.feature].binned:
            raise ParameterError(
                f"formula {text!r}: {part.feature!r} has more than {_MOST_LISTED} values; take it "
                f"as a number, or compare it, as I({part.feature} > 5)"
            )
    codes = np.stack([codes for _, codes, _ in described.values()])
    columns = {name: found for name, (_, _, found) in described.items() if found is not None}
    times = None if exposure is None else numbers(frame, exposure, least=0.0)
    if formula.kind == "poisson" and np.nanmin(columns[formula.response.feature]) < 0:
        raise ParameterError(f"formula {text!r}: counts of a poisson regression are at least 0")
    values = TableValues(columns)
    plain = value_sample(formula, codes, values, schema, exposures=times)
    design = columns_of(formula, [plain], schema)

    def estimates(weights: Float64) -> Estimates:
        weighted = replace(values, weights=weights)
        found = fit(
            value_sample(formula, codes, weighted, schema, exposures=times), design, formula.kind
        )
        if found.reason:
            raise ParameterError(f"formula {text!r}: {found.reason}")
        return {name: each.value for name, each in found.estimates.items()}

    terms: dict[str, tuple[str, ...]] = {}
    for column in design:
        terms[column.term] = (*terms.get(column.term, ()), column.name)
    return Prepared(estimates, terms, _joint(formula, terms), formula.response.text)


def _joint(formula: Formula, terms: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return what one table must hold for the coefficients of an interaction."""
    return {
        name: f"{formula.response.label} ~ {'*'.join(part.label for part in term.parts)}"
        for term in formula.terms
        if isinstance(term, Interaction)
        for name in terms.get(term.label, ())
    }


def _described(
    frame: pl.DataFrame, name: str, book: Schema | None
) -> tuple[Feature, Codes, Float64 | None]:
    """Return what a column is, its codes, and its numbers where it has some."""
    values = column_of(frame, name)
    known = book[name] if book is not None and name in book.names else None
    if values.dtype.is_numeric() or values.dtype == pl.Boolean or (known and known.binned):
        return _number(name, numbers(frame, name))
    text = values.cast(pl.String)
    found = set(text.drop_nulls().unique().to_list()) - {""}
    order = [label for label in known.labels if label in found] if known else []
    labels = [*order, *sorted(found - set(order))]
    feature = Feature(name, categories=tuple(labels), missing=("",))
    numbered = text.replace_strict(
        labels, list(range(len(labels))), default=len(labels), return_dtype=pl.UInt32
    )
    return feature, numbered.to_numpy(), None


def _number(name: str, found: Float64) -> tuple[Feature, Codes, Float64]:
    inside = np.isfinite(found)
    distinct, place = np.unique(found[inside], return_inverse=True)
    codes = np.zeros(len(found), dtype=np.uint32)
    if 0 < len(distinct) <= _MOST_LISTED:
        labels = tuple(map(number_text, distinct.tolist()))
        feature = Feature(name, kind="ordinal", categories=labels, missing=("",))
        codes[inside] = place
    else:
        low, high = (distinct[0], distinct[-1]) if len(distinct) else (0.0, 1.0)
        feature = Feature(name, kind="numeric", edges=(float(low), float(high)), missing=("",))
    codes[~inside] = feature.bin_count
    return feature, codes, np.where(inside, found, np.nan)
