"""One regression fitted to one table, or the reason why it was not.

Goes in: the distinct rows of a table with their numbers, and the columns that all tables
share. Comes out: a `Fit`. A coefficient that cannot be estimated is missing from it with a
reason; a fit of which nothing can be estimated has a reason of its own. Nothing is raised,
nothing is 0 by default, and no warning escapes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pegsynth.evaluation.design import INTERCEPT, Column, Sample
from pegsynth.evaluation.formula import Kind
from pegsynth.evaluation.solving import solve

MOST_COEFFICIENTS = 1000


@dataclass(frozen=True)
class Estimate:
    """A coefficient and its variance."""

    value: float
    variance: float


@dataclass(frozen=True)
class Fit:
    """What one table says about the coefficients.

    Parameters
    ----------
    rows, dropped
        Rows used, and rows left out because a value is missing.
    estimates
        By name of the coefficient.
    degrees_of_freedom
        Those of the intervals; infinite in a logistic regression.
    absent
        Coefficients that could not be estimated, and why.
    reason
        Why nothing could be estimated; empty when something was.
    """

    rows: int
    dropped: int
    estimates: dict[str, Estimate] = field(default_factory=dict)
    degrees_of_freedom: float = np.inf
    absent: dict[str, str] = field(default_factory=dict)
    reason: str = ""


def fit(sample: Sample, columns: Sequence[Column], kind: Kind, *, threads: int = 1) -> Fit:
    """Fit a regression to the distinct rows of a table.

    Parameters
    ----------
    sample
        Distinct rows with their numbers and responses.
    columns
        What explains the response, the intercept aside.
    kind
        Ordinary least squares, or a binomial model with the logit link.
    threads
        Used where a design matrix would be large.
    """
    if sample.rows == 0:
        return Fit(0, sample.dropped, reason="there is no row without a missing value")
    absent: dict[str, str] = {}
    kept = _varying(sample, columns, absent)
    used = sample
    if kind == "logistic":
        used, kept = _without_pure_categories(sample, kept, absent)
    if len(np.unique(used.response)) < 2:
        return Fit(sample.rows, sample.dropped, reason="the response has a single value")
    reason = _impossible(used, kept)
    if reason:
        return Fit(sample.rows, sample.dropped, absent=absent, reason=reason)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values, variances, freedom, reason = solve(used, kept, kind, threads=threads)
    if not reason and not (np.isfinite(values).all() and np.isfinite(variances).all()):
        reason = "the fit gave figures that are not finite"
    if reason:
        return Fit(sample.rows, sample.dropped, absent=absent, reason=reason)
    names = [INTERCEPT, *(column.name for column in kept)]
    return Fit(
        sample.rows,
        sample.dropped,
        {n: Estimate(float(v), float(s)) for n, v, s in zip(names, values, variances, strict=True)},
        freedom,
        absent,
    )


def _varying(sample: Sample, columns: Sequence[Column], absent: dict[str, str]) -> list[Column]:
    """Return the columns that vary; note the others."""
    kept = []
    for column in columns:
        values = column.values[sample.codes[column.feature]]
        if values.min() < values.max():
            kept.append(column)
        elif column.category is None:
            absent[column.name] = "it has a single value"
        else:
            absent[column.name] = "the category does not occur"
    return kept


def _without_pure_categories(
    sample: Sample, columns: list[Column], absent: dict[str, str]
) -> tuple[Sample, list[Column]]:
    """Leave out categories whose rows all have the same response, until there is none.

    Their coefficient is infinite, and in the limit their rows say nothing about the others.
    """
    while True:
        pure = [column for column in columns if _is_pure(sample, column)]
        if not pure:
            return sample, columns
        for column in pure:
            absent[column.name] = "all rows of the category have the same response (separated)"
            sample = sample.part(sample.codes[column.feature] != column.category)
        columns = _varying(sample, [c for c in columns if c not in pure], absent)
        if not len(sample.counts):
            return sample, []


def _is_pure(sample: Sample, column: Column) -> bool:
    if column.category is None:
        return False
    responses = sample.response[sample.codes[column.feature] == column.category]
    return len(np.unique(responses)) < 2


def _impossible(sample: Sample, columns: list[Column]) -> str:
    """Say why a fit cannot be made; nothing when it can."""
    unknowns = len(columns) + 1
    if sample.rows <= unknowns:
        return f"too few rows: {sample.rows} for {unknowns} coefficients"
    if unknowns > MOST_COEFFICIENTS:
        return f"too large: {unknowns} coefficients, and at most {MOST_COEFFICIENTS} are fitted"
    return ""
