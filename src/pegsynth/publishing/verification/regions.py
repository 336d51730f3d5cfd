"""What a release says of every coefficient, and how near a part of the original must come.

Goes in: a formula and published tables. Comes out: a region for each coefficient. Nothing
here has seen the original, so the regions are public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.inference.combining_rules import own_noise, replicate_weights
from pegsynth.inference.formula import Formula
from pegsynth.inference.model_matrix import INTERCEPT, Column, columns_of, sample_of
from pegsynth.inference.regression_fit import RegressionFit, fit
from pegsynth.publishing.verification.asked_rows import Rows
from pegsynth.schema import Schema

LEVEL = 0.95
"""Share of the parts that agree where the release is right."""
_QUANTILE = 1.959963984540054
_FEWEST_PARTS, _MOST_PARTS = 10, 50
_ROWS_PER_UNKNOWN = 20
_MOST_STATED = 1_000_000


@dataclass(frozen=True)
class Region:
    """Where the coefficient of a part must lie to agree.

    Parameters
    ----------
    estimate
        The release's own estimate.
    spread
        Standard deviation of its error, as far as the release tells; 0 where it does not.
    of_a_part
        Standard deviation that an estimate from one part has.
    tolerance
        What is added on both sides.
    """

    term: str
    estimate: float
    spread: float
    of_a_part: float
    tolerance: float = 0.0

    @property
    def half_width(self) -> float:
        """Half the width of the region."""
        return _QUANTILE * math.hypot(self.spread, self.of_a_part) + self.tolerance

    def holds(self, value: float) -> bool:
        """Say whether an estimate lies in the region; what is no number does not."""
        return abs(value - self.estimate) <= self.half_width


@dataclass(frozen=True)
class Asked:
    """A question, settled before the original is read.

    Parameters
    ----------
    columns
        The design of the regression, as the release has it.
    regions
        One for each coefficient that is compared.
    parts
        Parts that the original is dealt to.
    """

    formula: Formula
    columns: tuple[Column, ...]
    regions: tuple[Region, ...]
    parts: int


def regions_of(
    formula: Formula,
    tables: Sequence[Rows],
    schema: Schema,
    *,
    rows_in: int | None = None,
    parts: int | None = None,
    terms: Sequence[str] = (),
    tolerance: float = 0.0,
) -> Asked:
    """Settle what is compared with what.

    Parameters
    ----------
    tables
        The release: one table, maybe with replicate weights, or several.
    rows_in
        About how many rows the original has; by default the sum of the weights, or the rows
        of a table of the release.
    parts
        M; by default from 10 to 50, with 20 rows for every coefficient.
    terms
        Coefficients to compare; by default all but the intercept.
    tolerance
        How much further off a part may be and still agree.
    """
    samples = [sample_of(formula, table.codes, schema, table.values) for table in tables]
    columns = columns_of(formula, samples, schema)
    fits = [fit(sample, columns, formula.kind) for sample in samples]
    found = {name for each in fits for name in each.estimates}
    wanted = _wanted(terms, [column.name for column in columns], found)
    first = tables[0].values
    total = rows_in or (len(tables[0]) if first.weights is None else round(first.weights.sum()))
    if parts is None:
        parts = total // (_ROWS_PER_UNKNOWN * (len(columns) + 1))
        parts = min(max(parts, _FEWEST_PARTS), _MOST_PARTS)
    if not 2 <= parts <= _MOST_STATED:
        raise ParameterError(
            f"--parts must be at least 2 and at most {_MOST_STATED}: the original is dealt to parts"
        )
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ParameterError("--tolerance must be a number of at least 0")
    again = [
        fit(sample_of(formula, table.codes, schema, table.values), columns, formula.kind)
        for table in tables[0].replicated()
        if len(tables) == 1
    ]
    regions = [
        _region(name, fits, again, rows=max(total, 1), parts=parts, tolerance=tolerance)
        for name in wanted
    ]
    return Asked(formula, columns, tuple(regions), parts)


def _wanted(terms: Sequence[str], columns: Sequence[str], found: set[str]) -> list[str]:
    known = [INTERCEPT, *columns]
    for term in terms:
        if term not in known:
            raise ParameterError(
                f"--term {term!r} is no coefficient of the formula; it has {', '.join(known)}"
            )
    # A formula without terms has an intercept to compare.
    wanted = list(dict.fromkeys(terms)) or list(columns) or [INTERCEPT]
    lost = [name for name in wanted if name not in found]
    if lost:
        raise ParameterError(
            f"the release itself gives no estimate of {lost[0]!r}; leave it out with --term, or "
            "take another formula"
        )
    return wanted


def _region(
    name: str,
    fits: Sequence[RegressionFit],
    again: Sequence[RegressionFit],
    *,
    rows: int,
    parts: int,
    tolerance: float,
) -> Region:
    own = [each for each in fits if name in each.estimates]
    values = np.array([each.estimates[name].value for each in own])
    # A variance for as many rows as were fitted becomes that of a part of the original.
    usual = float(np.mean([each.estimates[name].variance * each.rows for each in own]))
    repeated = np.array([each.estimates[name].value for each in again if name in each.estimates])
    variance = 0.0
    if len(repeated) > 1:
        variance = float(replicate_weights(repeated[:, np.newaxis], values[:1]).variance[0])
    elif len(values) > 1:
        variance = float(own_noise(values[:, np.newaxis]).variance[0])
    return Region(
        name,
        float(values.mean()),
        math.sqrt(variance),
        math.sqrt(usual * parts / rows),
        tolerance,
    )
