"""One regression on the original and on the synthetic tables, coefficient by coefficient.

The estimates of several synthetic tables are pooled (R16, plug-in rule); a single table
has the interval that an analyst would naively take.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.evaluation.cells import Codes
from pegsynth.evaluation.design import INTERCEPT, columns_of, sample_of
from pegsynth.evaluation.formula import Formula, cuts_a_bin
from pegsynth.evaluation.regression import Fit, fit
from pegsynth.inference.rules import Moments, plug_in
from pegsynth.schema import Schema


@dataclass(frozen=True)
class Interval:
    """An estimate with its variance and interval."""

    value: float
    variance: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """One formula, fitted everywhere.

    Parameters
    ----------
    formula
        The regression.
    names
        All coefficients, the intercept first.
    original, synthetic
        Estimates by name, pooled over the synthetic tables; None where there is none.
    fits
        The fit to the original, then one to each synthetic table.
    remarks
        What was decided about this formula.
    """

    formula: Formula
    names: tuple[str, ...]
    original: dict[str, Interval | None]
    synthetic: dict[str, Interval | None]
    fits: tuple[Fit, ...]
    remarks: tuple[str, ...]

    @property
    def shared(self) -> list[tuple[Interval, Interval]]:
        """Original and synthetic of the coefficients that both have."""
        pairs = ((self.original[name], self.synthetic[name]) for name in self.names)
        return [(first, second) for first, second in pairs if first and second]

    @property
    def rows(self) -> int:
        """Rows of the smallest synthetic table that were used."""
        return min(each.rows for each in self.fits[1:])


def compare(
    formula: Formula,
    original: Codes,
    synthetic: Sequence[Codes],
    schema: Schema,
    *,
    level: float = 0.95,
    threads: int = 1,
) -> Comparison:
    """Fit a formula to the original and to every synthetic table, one feature a line."""
    samples = [sample_of(formula, table, schema) for table in (original, *synthetic)]
    columns = columns_of(formula, samples, schema)
    fits = tuple(fit(sample, columns, formula.kind, threads=threads) for sample in samples)
    names = (INTERCEPT, *(column.name for column in columns))
    return Comparison(
        formula,
        names,
        {name: _of_one(fits[0], name, level) for name in names},
        {name: _pooled(fits, name, level) for name in names},
        fits,
        tuple(_remarks(formula, fits, schema)),
    )


def _of_one(fitted: Fit, name: str, level: float) -> Interval | None:
    found = fitted.estimates.get(name)
    if found is None:
        return None
    return _interval(found.value, found.variance, fitted.degrees_of_freedom, level)


def _pooled(fits: Sequence[Fit], name: str, level: float) -> Interval | None:
    found = [each.estimates.get(name) for each in fits[1:]]
    estimates = [each for each in found if each is not None]
    if len(estimates) < len(found):
        return None
    if len(estimates) == 1:
        return _of_one(fits[1], name, level)
    # R16, plug-in: T = (n/N) v + b/K.
    moments = Moments.of(
        np.array([[each.value] for each in estimates]),
        np.array([[each.variance] for each in estimates]),
    )
    share = float(np.mean([each.rows for each in fits[1:]])) / max(fits[0].rows, 1)
    spread = plug_in(moments, share)
    freedom = float(spread.degrees_of_freedom[0])
    return _interval(float(moments.estimate[0]), float(spread.variance[0]), freedom, level)


def _interval(value: float, variance: float, freedom: float, level: float) -> Interval:
    from scipy.special import ndtri, stdtrit

    upper = (1 + level) / 2
    quantile = ndtri(upper) if math.isinf(freedom) else stdtrit(freedom, upper)
    half = float(quantile) * math.sqrt(variance)
    return Interval(value, variance, value - half, value + half)


def _remarks(formula: Formula, fits: Sequence[Fit], schema: Schema) -> Iterable[str]:
    yield (
        "linear regression by least squares, bins by their midpoints"
        if formula.kind == "linear"
        else "logistic regression by maximum likelihood, bins by their midpoints"
    )
    for term in (formula.response, *formula.terms):
        if cuts_a_bin(term, schema.features[schema.index(term.feature)]):
            yield f"{term.text} cuts a bin, which counts as a whole by its midpoint"
    dropped = [each.dropped for each in fits]
    if any(dropped):
        shown = ", ".join(str(number) for number in dropped[1:])
        yield f"rows left out for a missing number: {dropped[0]} original, {shown} synthetic"
    if len(fits) == 2:
        yield (
            "one synthetic table: its interval is the naive one, as if its rows were real; it "
            "leaves out that the table was made from a sample"
        )
    else:
        yield f"{len(fits) - 1} synthetic tables pooled by T = (n/N) v + b/K (plug-in rule)"
