"""Regressions on the original and on the synthetic tables, as records.

Goes in: formulas and tables. Comes out: the paper's distance, a table of coefficients, and
the overlap of their intervals. The estimates of several synthetic tables are pooled (R16,
plug-in rule); a single table has the interval that an analyst would naively take. What could
not be estimated is a record without a value, with the reason.

Regressions on released numbers have the same form as those on codes, which take a bin by its
midpoint: ``coefficient_original`` is the original's own coefficient. Weighted tables are fitted
with their weights, and with each replicate of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat

import msgspec
import numpy as np

from pegsynth.evaluation.records import (
    SEPARATOR,
    Record,
    mean_record,
    measured,
    not_computed,
)
from pegsynth.inference.combining_rules import Rule, how_pooled, pooled_estimate
from pegsynth.inference.formula import Formula, cuts_a_bin
from pegsynth.inference.model_matrix import INTERCEPT, Column, Sample, columns_of, sample_of
from pegsynth.inference.regression_fit import RegressionFit, fit
from pegsynth.inference.statistics import Estimate, overlap
from pegsynth.inference.value_columns import TableValues
from pegsynth.kernels.arrays import Codes
from pegsynth.schema import Schema

NAMES = ("regression_distance", "interval_overlap")
MOST_ENTRIES = 1 << 25
_ROUNDING = 1e-10
DISTANCE_NOTE = (
    "sum over the coefficients, intercept included, of |(b_synth - b_orig)/b_orig|; unstable where "
    "an original coefficient is near 0: read the coefficients beside it; low and high: smallest "
    "and largest sum while every coefficient stays in its interval; baseline: expected of a "
    "bootstrap of the original with as many rows, sum of sqrt(2/pi) se/|b_orig|"
)
OVERLAP_NOTE = (
    "mean of the overlap of the original's and the synthetic 95 % interval as a share of the one "
    "and as a share of the other (Karr et al. 2006), 0 where they do not meet; baseline: 1, "
    "intervals alike"
)


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
    columns, sample
        The design, and the rows of the original that were used.
    """

    formula: Formula
    names: tuple[str, ...]
    original: dict[str, Estimate | None]
    synthetic: dict[str, Estimate | None]
    fits: tuple[RegressionFit, ...]
    remarks: tuple[str, ...]
    columns: tuple[Column, ...]
    sample: Sample

    @property
    def rows(self) -> int:
        """Rows of the smallest synthetic table that were used."""
        return min(each.rows for each in self.fits[1:])


def has_values(formula: Formula, schema: Schema, tables: Sequence[TableValues]) -> bool:
    """Say whether a formula has numeric features, and all tables have their numbers."""
    names = [
        name for name in formula.features if schema.features[schema.index(name)].kind == "numeric"
    ]
    return bool(names) and all(table.has(name) for table in tables for name in names)


def compare(
    formula: Formula,
    codes: Sequence[Codes],
    schema: Schema,
    values: Sequence[TableValues] = (),
    *,
    rule: Rule | None = None,
    support: str = "",
    threads: int = 1,
) -> Comparison:
    """Fit a formula to the original and to every synthetic table.

    Parameters
    ----------
    codes
        Of the original, then of each synthetic table, one feature a line.
    values
        The numbers and weights of the same tables, row by row; without numbers bins count by their
        midpoints, and without any of it rows of equal codes are counted.
    rule
        How several synthetic tables were made, where that is known.
    support
        What published tables hold of the formula, where that is known.
    """
    numbers: Sequence[TableValues | None] = values or [None] * len(codes)
    samples = [sample_of(formula, *each) for each in zip(codes, repeat(schema), numbers)]
    columns = columns_of(formula, samples, schema)
    rows = max(len(each.counts) for each in samples) if values else 0
    thin = slice(None, None, max(1, -(-rows * (len(columns) + 1) // MOST_ENTRIES)))
    fits = tuple(fit(each.part(thin), columns, formula.kind, threads=threads) for each in samples)
    replicates = []
    if len(values) == 2 and values[1].replicates is not None:
        for line in values[1].replicates:
            # The one synthetic table with a replicate weight in the place of its weights.
            table = replace(values[1], weights=line, replicates=None)
            sample = sample_of(formula, codes[1], schema, table).part(thin)
            replicates.append(fit(sample, columns, formula.kind))
    names = (INTERCEPT, *(column.name for column in columns))
    how = how_pooled(len(fits) - 1, rule=rule, replicates=len(replicates))
    on_numbers = any(each.columns for each in values)
    every = max(each.every for each in values) * thin.step if on_numbers else None
    return Comparison(
        formula,
        names,
        {name: fits[0].estimates.get(name) for name in names},
        {name: _pooled(fits, replicates, name, rule) for name in names},
        fits,
        (*_remarks(formula, fits, schema, every), f"{how}; {support}" if support else how),
        columns,
        samples[0].part(thin),
    )


def regression_records(comparisons: Sequence[Comparison], *, suffix: str = "") -> list[Record]:
    """Return all records of the regressions: means first, then formula by formula.

    Their names end in `suffix`, which tells figures on codes from those on numbers.
    """
    distances = [_distance(each) for each in comparisons]
    details = [record for each in comparisons for record in _coefficients(each)]
    overlaps = [record for record in details if record.name == NAMES[1]]
    reason = "no formula could be fitted to both tables"
    means = []
    for name, ours, of, note in (
        (NAMES[0], distances, "formulas", DISTANCE_NOTE),
        (NAMES[1], overlaps, "coefficients", OVERLAP_NOTE),
    ):
        said = f"mean over {'all' if of == 'coefficients' else 'the'} {of}: {note}"
        if lacking := sum(record.value is None for record in ours):
            said += f"; {lacking} of {len(ours)} could not be computed"
        why = reason if ours else "no regression formula was given"
        means.append(mean_record(name, ours, note=said, reason=why, limits=True))
    records = [*means, *distances, *details]
    return [msgspec.structs.replace(each, name=f"{each.name}{suffix}") for each in records]


def not_fitted(formula: str, reason: str) -> list[Record]:
    """Return the records of a formula that was not fitted at all."""
    return [not_computed(name, formula, reason) for name in NAMES]


def _pooled(
    fits: Sequence[RegressionFit],
    replicates: Sequence[RegressionFit],
    name: str,
    rule: Rule | None,
) -> Estimate | None:
    found = [each.estimates.get(name) for each in fits[1:]]
    estimates = [each for each in found if each is not None]
    if len(estimates) < len(found):
        return None
    again = [each.estimates[name].value for each in replicates if name in each.estimates]
    if len(estimates) == 1 and len(again) < 2:
        return estimates[0]
    share = float(np.mean([each.rows for each in fits[1:]])) / max(fits[0].rows, 1)
    return pooled_estimate(
        [each.value for each in estimates],
        [each.variance for each in estimates],
        share=share,
        rule=rule,
        replicates=again,
    )


def _remarks(
    formula: Formula, fits: Sequence[RegressionFit], schema: Schema, every: int | None
) -> Iterable[str]:
    """Say what was decided; numbers were used of every so manieth row, or bins if None."""
    kind = "linear regression by least squares"
    if formula.kind != "linear":
        kind = "logistic regression by maximum likelihood"
    if every is None:
        yield f"{kind}, bins by their midpoints"
        for term in (formula.response, *formula.parts):
            if cuts_a_bin(term, schema.features[schema.index(term.feature)]):
                yield f"{term.text} cuts a bin, which counts as a whole by its midpoint"
    else:
        yield f"{kind}; bins play no part: the numbers of the tables are used as they stand"
        if every > 1:
            yield f"every {every}th row was used, evenly spaced, of a table too large for all"
    dropped = [each.dropped for each in fits]
    if any(dropped):
        shown = ", ".join(str(number) for number in dropped[1:])
        yield f"rows left out for a missing number: {dropped[0]} original, {shown} synthetic"


def _why_not(comparison: Comparison, name: str, fits: Sequence[RegressionFit]) -> str:
    """Say why a coefficient is missing from some of the fits."""
    reasons = []
    for each in fits:
        reason = each.reason or each.absent.get(name, "")
        if reason:
            place = comparison.fits.index(each)
            where = "the original" if place == 0 else f"synthetic table {place}"
            reasons.append(f"{where}: {reason}")
    return "; ".join(dict.fromkeys(reasons))


def _distance(comparison: Comparison) -> Record:
    name, rows, text = NAMES[0], comparison.rows, comparison.formula.text
    pairs = [(comparison.original[each], comparison.synthetic[each]) for each in comparison.names]
    shared = [(first, second) for first, second in pairs if first and second]
    note, reason = "; ".join(comparison.remarks), ""
    if not shared:
        reason = _why_not(comparison, INTERCEPT, comparison.fits)
    elif any(abs(each.value) <= _ROUNDING * math.sqrt(each.variance) for each, _ in shared):
        reason = "a coefficient of the original is 0"
    if reason or not shared:
        return not_computed(name, text, f"{reason}; {note}", n=rows)
    absent = [each for each, pair in zip(comparison.names, pairs, strict=True) if not all(pair)]
    if absent:
        note = f"{note}; without {', '.join(absent)}, which one of the fits lacks"
    found = Estimate(
        sum(abs(b.value - a.value) / abs(a.value) for a, b in shared),
        sum(max(b.low - a.value, a.value - b.high, 0.0) / abs(a.value) for a, b in shared),
        sum(max(b.high - a.value, a.value - b.low) / abs(a.value) for a, b in shared),
    )
    # Expected of a bootstrap, by the normal distribution.
    original, *released = (each.rows for each in comparison.fits)
    chance = 2 / math.pi * original / max(sum(released), 1)
    baseline = sum(math.sqrt(chance * each.variance) / abs(each.value) for each, _ in shared)
    return measured(name, text, found, baseline=baseline, n=rows, note=note)


def _coefficients(comparison: Comparison) -> Iterable[Record]:
    original_fit, *fits = comparison.fits
    for name in comparison.names:
        subject = f"{comparison.formula.text}{SEPARATOR}{name}"
        first, second = comparison.original[name], comparison.synthetic[name]
        overlapping = Estimate(overlap(first, second)) if first and second else None
        for figure, found, baseline, where in (
            ("coefficient", second, None if first is None else first.value, fits),
            ("coefficient_original", first, None, [original_fit]),
            (NAMES[1], overlapping, 1.0, comparison.fits),
        ):
            n = original_fit.rows if figure == "coefficient_original" else comparison.rows
            note = comparison.remarks[-1] if where is fits else ""
            if not found:
                note = f"not computed: {_why_not(comparison, name, where)}"
            estimate = found or Estimate(math.nan)
            yield measured(figure, subject, estimate, baseline=baseline, n=n, note=note)
