"""What regressions say: the paper's distance, coefficient tables, overlap of intervals.

Goes in: formulas fitted to the original and to the synthetic tables. Comes out: records.
The overlap is that of Karr, Kohnen, Oganian, Reiter and Sanil (2006). What could not be
estimated is a record without a value, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from pegsynth.evaluation.comparison import Comparison, Interval
from pegsynth.evaluation.design import INTERCEPT
from pegsynth.evaluation.records import Better, Record
from pegsynth.evaluation.regression import Fit

_ROUNDING = 1e-10
SEPARATOR = " :: "
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
NOTHING_FITTED = "not computed: no formula could be fitted to both tables"
NO_FORMULA = "not computed: no regression formula was given"


def regression_records(comparisons: Sequence[Comparison]) -> list[Record]:
    """Return all records of the regressions: means first, then formula by formula."""
    distances = [_distance(each) for each in comparisons]
    details = [record for each in comparisons for record in _coefficients(each)]
    overlaps = [record for record in details if record.name == "interval_overlap"]
    return [
        _mean(distances, "regression_distance", f"mean over the formulas: {DISTANCE_NOTE}"),
        _mean(overlaps, "interval_overlap", f"mean over all coefficients: {OVERLAP_NOTE}"),
        *distances,
        *details,
    ]


def not_fitted(formula: str, reason: str) -> list[Record]:
    """Return the records of a formula that was not fitted at all."""
    note = f"not computed: {reason}"
    return [
        Record(name="regression_distance", subject=formula, value=None, note=note),
        Record(name="interval_overlap", subject=formula, value=None, better="higher", note=note),
    ]


def overlap(first: Interval, second: Interval) -> float:
    """Mean of the common part of two intervals as a share of each; 0 where they do not meet."""
    if first.low == second.low and first.high == second.high:
        return 1.0
    common = min(first.high, second.high) - max(first.low, second.low)
    widths = (first.high - first.low, second.high - second.low)
    if common <= 0 or min(widths) <= 0:
        return 0.0
    return (common / widths[0] + common / widths[1]) / 2


def _why_not(comparison: Comparison, name: str, fits: Sequence[Fit]) -> str:
    """Say why a coefficient is missing from some of the fits."""
    reasons = []
    for each in fits:
        reason = each.reason or each.absent.get(name, "")
        if reason:
            place = comparison.fits.index(each)
            where = "the original" if place == 0 else f"synthetic table {place}"
            reasons.append(f"{where}: {reason}")
    return "not computed: " + "; ".join(dict.fromkeys(reasons))


def _distance(comparison: Comparison) -> Record:
    shared = comparison.shared
    note = "; ".join(comparison.remarks)
    subject = comparison.formula.text
    absent = [
        name
        for name in comparison.names
        if not (comparison.original[name] and comparison.synthetic[name])
    ]
    if not shared or any(_is_zero(first) for first, _ in shared):
        reason = (
            _why_not(comparison, INTERCEPT, comparison.fits)
            if not shared
            else "not computed: a coefficient of the original is 0"
        )
        return Record(
            name="regression_distance",
            subject=subject,
            value=None,
            n=comparison.rows,
            note=f"{reason}; {note}",
        )
    if absent:
        note = f"{note}; without {', '.join(absent)}, which one of the fits lacks"
    return Record(
        name="regression_distance",
        subject=subject,
        value=sum(abs(second.value - first.value) / abs(first.value) for first, second in shared),
        low=sum(_nearest(first, second) / abs(first.value) for first, second in shared),
        high=sum(_furthest(first, second) / abs(first.value) for first, second in shared),
        baseline=sum(_expected(comparison, first) / abs(first.value) for first, _ in shared),
        n=comparison.rows,
        note=note,
    )


def _is_zero(found: Interval) -> bool:
    """Say whether an estimate is 0 but for rounding."""
    return abs(found.value) <= _ROUNDING * math.sqrt(found.variance)


def _nearest(first: Interval, second: Interval) -> float:
    return max(second.low - first.value, first.value - second.high, 0.0)


def _furthest(first: Interval, second: Interval) -> float:
    return max(second.high - first.value, first.value - second.low)


def _expected(comparison: Comparison, first: Interval) -> float:
    """Return the distance expected of a coefficient of a bootstrap, by the normal law."""
    rows = sum(each.rows for each in comparison.fits[1:])
    return math.sqrt(2 / math.pi * first.variance * comparison.fits[0].rows / max(rows, 1))


def _coefficients(comparison: Comparison) -> Iterable[Record]:
    original_fit, *fits = comparison.fits
    for name in comparison.names:
        subject = f"{comparison.formula.text}{SEPARATOR}{name}"
        first, second = comparison.original[name], comparison.synthetic[name]
        yield _coefficient(
            "coefficient",
            subject,
            second,
            None if first is None else first.value,
            comparison.rows,
            _why_not(comparison, name, fits),
        )
        yield _coefficient(
            "coefficient_original",
            subject,
            first,
            None,
            original_fit.rows,
            _why_not(comparison, name, [original_fit]),
        )
        both = first is not None and second is not None
        yield Record(
            name="interval_overlap",
            subject=subject,
            value=overlap(first, second) if first and second else None,
            baseline=1.0,
            better="higher",
            n=comparison.rows,
            note="" if both else _why_not(comparison, name, comparison.fits),
        )


def _coefficient(
    name: str, subject: str, found: Interval | None, baseline: float | None, rows: int, reason: str
) -> Record:
    return Record(
        name=name,
        subject=subject,
        value=None if found is None else found.value,
        low=None if found is None else found.low,
        high=None if found is None else found.high,
        baseline=baseline,
        n=rows,
        note=reason if found is None else "",
    )


def _mean(records: Sequence[Record], name: str, note: str) -> Record:
    """Return the mean over the records that have a value, saying how many have none."""
    held = [record for record in records if record.value is not None]
    better: Better = "higher" if name == "interval_overlap" else "lower"
    if not held:
        reason = (
            "not computed: no formula could be fitted to both tables" if records else NO_FORMULA
        )
        return Record(name=name, subject="", value=None, better=better, note=reason)
    lacking = len(records) - len(held)
    return Record(
        name=name,
        subject="",
        value=_average([record.value for record in held]),
        low=_average([record.low for record in held]),
        high=_average([record.high for record in held]),
        baseline=_average([record.baseline for record in held]),
        better=better,
        n=min(record.n for record in held),
        note=f"{note}; {lacking} of {len(records)} could not be computed" if lacking else note,
    )


def _average(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None
