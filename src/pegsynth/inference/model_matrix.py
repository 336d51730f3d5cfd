"""Design matrices: the distinct rows of a table, their counts, and the columns of a formula.

Equal rows are counted once, with their number as a frequency weight: the fit is the same
to the last digit, and a million rows are a few thousand lines. All tables get the same
columns, so that their coefficients mean the same.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.tabulation import DENSE_CELLS, numbered
from pegsynth.inference.formula import POWER, SPLINE, Formula, Interaction, Term, unquoted
from pegsynth.inference.value_columns import TableValues, is_numeric, numeric_values
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.schema import Schema
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import parsed_number

INTERCEPT = "Intercept"
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"log": np.log, "log1p": np.log1p, "sqrt": np.sqrt}


@dataclass(frozen=True)
class Column:
    """One coefficient of a regression, the intercept aside.

    Parameters
    ----------
    name
        As results call it: the term, or ``term[category]``.
    feature
        Position in the formula's features.
    values
        The number that each code of that feature stands for.
    category
        The code whose rows it marks; None for a number or a comparison.
    term
        The term of the formula, as it was written.
    factors
        The columns whose product it is, for an interaction; feature and values are those of the
        first.
    """

    name: str
    feature: int
    values: Float64
    category: int | None = None
    term: str = ""
    factors: tuple[Column, ...] = ()

    @property
    def marks(self) -> bool:
        """Whether it is 1 in the rows of a category or a cell, and 0 elsewhere."""
        if self.factors:
            return all(each.marks for each in self.factors)
        return self.category is not None


@dataclass(frozen=True)
class Sample:
    """The usable distinct rows of one table, as a formula sees them.

    Parameters
    ----------
    codes
        One line of codes a feature of the formula, one column a distinct row.
    counts
        Rows of the table that are equal to each.
    response
        The number to be explained; 0 or 1 in a logistic regression.
    dropped
        Rows left out because a number or comparison has no value there.
    numbers
        By name of the column, numbers that take the place of those of the codes.
    exposures
        Of a Poisson regression, what the counts of each row are to be divided by; None: 1.
    """

    codes: Codes
    counts: Int64 | Float64
    response: Float64
    dropped: int
    numbers: Mapping[str, Float64] = field(default_factory=dict)
    exposures: Float64 | None = None

    @property
    def rows(self) -> int:
        """Usable rows."""
        return round(float(self.counts.sum()))

    def values(self, column: Column) -> Float64:
        """Return what a column holds in every row."""
        if column.factors:
            return np.asarray(np.prod([self.values(each) for each in column.factors], axis=0))
        found = self.numbers.get(column.name)
        return column.values[self.codes[column.feature]] if found is None else found

    def matrix(self, columns: Sequence[Column]) -> Float64:
        """Return the design matrix, intercept first."""
        ones = np.ones(self.codes.shape[1])
        return np.column_stack([ones, *map(self.values, columns)])

    def part(self, keep: NDArray[np.bool_] | slice) -> Sample:
        """Return some of the distinct rows."""
        numbers = {name: each[keep] for name, each in self.numbers.items()}
        codes, counts, response = self.codes[:, keep], self.counts[keep], self.response[keep]
        exposures = None if self.exposures is None else self.exposures[keep]
        return Sample(codes, counts, response, self.dropped, numbers, exposures)


def sample_of(
    formula: Formula,
    table: Codes,
    schema: Schema,
    values: TableValues | None = None,
    *,
    exposures: Float64 | None = None,
) -> Sample:
    """Return the rows of a table that a formula can use.

    Parameters
    ----------
    table
        Codes, one feature a line.
    values
        The numbers of its rows and their weights, which are then used row by row; None: distinct
        rows of codes are counted.
    exposures
        Of a Poisson regression; rows without one are left out.
    """
    places = [schema.index(name) for name in formula.features]
    counts: Int64 | Float64
    if values is None:
        codes, counts = distinct_rows(table[places], [schema.category_counts[p] for p in places])
    else:
        codes = np.ascontiguousarray(table[places, :: values.every])
        counts = np.ones(codes.shape[1]) if values.weights is None else values.weights
    response = _response(formula, codes, values, schema)
    # A row of weight 0 would only stand in the way of a count of rows.
    usable = ~np.isnan(response) & (counts > 0)
    numbers = {}
    for term in formula.parts:
        found = _numbers(term, codes[formula.features.index(term.feature)], values, schema)
        if found is not None:
            numbers[term.text] = found
            usable &= ~np.isnan(found)
    if exposures is not None:
        usable &= exposures > 0
    sample = Sample(codes, counts, response, 0, {} if values is None else numbers, exposures)
    if values is None:
        return replace(sample.part(usable), dropped=int(counts[~usable].sum()))
    used = replace(sample.part(usable), dropped=int(np.count_nonzero(~usable)))
    if not len(used.counts):
        return used
    return replace(used, counts=used.counts * (len(used.counts) / used.counts.sum()))


def response_values(formula: Formula, schema: Schema) -> Float64:
    """Return what each code of the response stands for.

    Of a feature of two categories the second is what a logistic regression explains.
    """
    feature = _feature(formula.response, schema)
    if formula.response.sign:
        return truth(formula.response, feature)
    if formula.kind != "logistic":
        return transformed(formula.response, numeric_values(feature))
    values = np.full(feature.category_count, np.nan)
    values[:2] = 0.0, 1.0
    return values


def columns_of(formula: Formula, samples: Sequence[Sample], schema: Schema) -> tuple[Column, ...]:
    """Settle the columns for all tables: numbers as they are, categories as 0 and 1.

    The first category that occurs in every table (and in a logistic regression with both
    responses) is the reference. Categories that occur in no table get no column; missing is
    a category like any other.
    """
    filled = [sample for sample in samples if sample.rows]
    if not filled:
        return ()
    found = {term: _columns(formula, term, filled, schema) for term in formula.parts}
    columns = [column for each in found.values() for column in each]
    for term in formula.terms:
        if isinstance(term, Interaction):
            columns += map(
                partial(_joint, term.label), product(*(found[part] for part in term.parts))
            )
    return tuple(columns)


def _columns(
    formula: Formula, term: Term, filled: Sequence[Sample], schema: Schema
) -> list[Column]:
    """Return the columns of a term that is no interaction."""
    feature = _feature(term, schema)
    place = formula.features.index(term.feature)
    values = numbers_of_codes(term, feature)
    if values is not None:
        return [Column(term.text, place, values, term=term.label)]
    seen = np.array([_seen(s, place, feature.category_count, formula) for s in filled])
    somewhere = np.any(seen > 0, axis=0)
    everywhere = seen.min(axis=0)
    reference = int(np.argmax(everywhere if everywhere.any() else seen[0]))
    return [
        Column(
            f"{term.text}[{feature.labels[code]}]",
            place,
            (np.arange(feature.category_count) == code).astype(np.float64),
            code,
            term.label,
        )
        for code in np.flatnonzero(somewhere).tolist()
        if code != reference
    ]


def _joint(label: str, factors: tuple[Column, ...]) -> Column:
    """Return the product of columns."""
    name = ":".join(each.name for each in factors)
    return Column(name, factors[0].feature, factors[0].values, term=label, factors=factors)


def distinct_rows(columns: Codes, sizes: Sequence[int]) -> tuple[Codes, Int64]:
    """Return the distinct rows of a table, one feature a line, and how many there are of each."""
    keys, space = numbered(columns, sizes, columns.shape[1])
    if space <= DENSE_CELLS:
        counts = np.bincount(keys, minlength=space)
        last = np.zeros(space, dtype=np.int64)
        last[keys] = np.arange(len(keys))
        held = np.flatnonzero(counts)
        return columns[:, last[held]], counts[held].astype(np.int64)
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return columns[:, first], counts.astype(np.int64)


def _feature(term: Term, schema: Schema) -> Feature:
    return schema.features[schema.index(term.feature)]


def numbers_of_codes(term: Term, feature: Feature) -> Float64 | None:
    """Return the numbers of a term's codes; None for a term of categories."""
    if term.sign:
        return truth(term, feature)
    if is_numeric(feature) and not term.categorical:
        return transformed(term, numeric_values(feature))
    return None


def _seen(sample: Sample, place: int, size: int, formula: Formula) -> Int64:
    """Return 0 for each category that does not occur, 2 for one fit as a reference, else 1."""
    codes = sample.codes[place]
    seen = np.bincount(codes, minlength=size) > 0
    if formula.kind != "logistic":
        return np.asarray(2 * seen, dtype=np.int64)
    yes = np.bincount(codes, sample.response, minlength=size) > 0
    no = np.bincount(codes, 1 - sample.response, minlength=size) > 0
    return seen.astype(np.int64) + (yes & no)


def _response(
    formula: Formula, codes: Codes, values: TableValues | None, schema: Schema
) -> Float64:
    found = None
    if formula.response.sign or formula.kind != "logistic":
        found = _numbers(formula.response, codes[0], values, schema)
    return response_values(formula, schema)[codes[0]] if found is None else found


def _numbers(
    term: Term, codes: Codes, values: TableValues | None, schema: Schema
) -> Float64 | None:
    """Return the number of a term in every row; None for a term of categories."""
    feature = _feature(term, schema)
    number = parsed_number(term.operand) if term.sign else None
    numeric = is_numeric(feature) and not term.categorical
    if values is not None and values.has(term.feature) and numeric:
        ours = values.columns[term.feature]
        if not term.sign:
            return transformed(term, ours)
        if number is not None:
            return compared(term, ours, number)
    found = numbers_of_codes(term, feature)
    return None if found is None else np.asarray(found[codes])


def truth(term: Term, feature: Feature) -> Float64:
    """Return 1 where a code fulfils a comparison, 0 where not, NaN where it has no answer.

    A bin is judged by its midpoint. Categories that are names are compared as text, and
    those of an ordinal feature also by their order. Missing, not applicable and unknown
    have no answer.
    """
    number = parsed_number(term.operand)
    if is_numeric(feature) and number is not None:
        return compared(term, numeric_values(feature), number)
    places = np.arange(feature.category_count, dtype=np.float64)
    places[feature.bin_count :] = np.nan
    return compared(term, places, feature.labels.index(unquoted(term.operand)))


def compared(term: Term, numbers: Float64, operand: float) -> Float64:
    """Return 1 where a number fulfils a comparison, 0 where not, NaN where there is none."""
    answers = np.asarray(_COMPARE[term.sign](numbers, operand), dtype=np.float64)
    answers[np.isnan(numbers)] = np.nan
    return answers


def transformed(term: Term, numbers: Float64) -> Float64:
    """Return what a term makes of numbers; NaN where that is no finite number.

    Notes
    -----
    The spline is linear beyond its outer knots, and its columns are divided by the square of the
    distance between these: Harrell (2015), Regression Modeling Strategies, 2nd edition, 2.4.5.
    """
    if not term.function:
        return numbers
    with np.errstate(all="ignore"):
        if term.function == POWER:
            found = numbers ** int(term.numbers[0])
        elif term.function == SPLINE:
            found = _spline(numbers, [float(knot) for knot in term.numbers], term.column)
        else:
            found = _FUNCTIONS[term.function](numbers)
    return np.where(np.isfinite(found), found, np.nan)


def _spline(numbers: Float64, knots: list[float], column: int) -> Float64:
    if column == 1:
        return numbers
    *_, before, last = knots
    knot, width = knots[column - 2], last - knots[0]

    def cubed(at: float) -> Float64:
        return np.asarray(np.maximum((numbers - at) / width, 0.0) ** 3 * width)

    return np.asarray(
        cubed(knot)
        - cubed(before) * ((last - knot) / (last - before))
        + cubed(last) * ((before - knot) / (last - before))
    )
