"""How a page names each measure, what it means, and what its baseline is.

A measure that is not listed here still has its place on the page, under its own name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pegsynth.publishing.report.wording import NOT_COMPUTED, number, percent, short

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Record
    from pegsynth.publishing.report.wording import Lookup

Group = Literal["utility", "risk"]


@dataclass(frozen=True)
class Measure:
    """How a page speaks of a measure.

    Parameters
    ----------
    title, meaning
        A name and half a sentence.
    reference
        What its baseline is.
    share
        Whether it is a share of rows, and is written in percent.
    group
        Whether it speaks of utility or of risk.
    """

    title: str
    meaning: str = ""
    reference: str = "reference"
    share: bool = False
    group: Group = "utility"


def _risk(title: str, meaning: str, reference: str = "bootstrap", *, share: bool = True) -> Measure:
    return Measure(title, meaning, reference, share, "risk")


_RESAMPLE = "plain resample"
MEASURES = {
    "tvd1": Measure(
        "One-way tables", "rows out of place, mean over features", _RESAMPLE, share=True
    ),
    "tvd2": Measure("Two-way tables", "rows out of place, mean over pairs", _RESAMPLE, share=True),
    "tvd2_weighted": Measure(
        "Two-way tables by information",
        "rows out of place, mean over pairs that counts columns by how much they vary",
        _RESAMPLE,
        share=True,
    ),
    "new_combinations": Measure("Combinations that the original lacks", share=True),
    "drafted_rule": Measure("Draft of a rule"),
    "tvd3": Measure(
        "Three-way tables", "rows out of place, mean over triples", _RESAMPLE, share=True
    ),
    "marginal_distance": Measure(
        "Marginal distance", "squared differences of shares, mean over features", _RESAMPLE
    ),
    "conditional_distance": Measure(
        "Conditional distance",
        "squared differences of conditional shares, mean over ordered pairs",
        _RESAMPLE,
    ),
    "regression_distance": Measure(
        "Regression distance", "relative differences of coefficients, summed", _RESAMPLE
    ),
    "transition_distance": Measure(
        "From one row to the next", "rows out of place, mean over features", _RESAMPLE, share=True
    ),
    "rows_per_unit_distance": Measure(
        "Rows of a unit", "units out of place", _RESAMPLE, share=True
    ),
    "first_row_distance": Measure(
        "First rows", "units out of place, mean over features", _RESAMPLE, share=True
    ),
    "last_row_distance": Measure(
        "Last rows", "units out of place, mean over features", _RESAMPLE, share=True
    ),
    "gap_distance": Measure("Time between rows", "rows out of place", _RESAMPLE, share=True),
    "inconsistent_units": Measure("Inconsistent units", "that cannot be", "none", share=True),
    "reappearing_histories": _risk(
        "Histories that reappear", "whole histories of exactly one unit", "the original's own"
    ),
    "interval_overlap": Measure(
        "Interval overlap", "of the coefficients' intervals, 1 when they agree", "same intervals"
    ),
    "kolmogorov_distance": Measure(
        "Kolmogorov distance",
        "largest distance of distribution functions of numbers, mean over numeric features",
        _RESAMPLE,
    ),
    "wasserstein_distance": Measure(
        "Wasserstein distance",
        "how far numbers have moved, in standard deviations, mean over numeric features",
        _RESAMPLE,
    ),
    "pearson_distance": Measure(
        "Correlations (Pearson)", "mean difference over pairs of numeric features", _RESAMPLE
    ),
    "spearman_distance": Measure(
        "Rank correlations (Spearman)", "mean difference over pairs of numeric features", _RESAMPLE
    ),
    "utility_faults": Measure(
        "What is off", "faults of the release, by the rules of the verdict", "none"
    ),
    "value_mean": Measure("Mean", reference="original"),
    "value_sd": Measure("Standard deviation", reference="original"),
    "value_quantile": Measure("Quantile", reference="original"),
    "value_zeros": Measure("Zeros", reference="original", share=True),
    "value_heap": Measure("Rows at one number", reference="original", share=True),
    "value_tail": Measure("Rows in a tail", reference="original", share=True),
    "pearson_correlation": Measure("Pearson correlation", reference="original"),
    "spearman_correlation": Measure("Spearman correlation", reference="original"),
    "pmse": Measure("Propensity error", "how well a model tells the two tables apart", "by chance"),
    "pmse_ratio": Measure(
        "Propensity ratio", "propensity error over what chance gives", "by chance"
    ),
    "auc_synthetic": Measure(
        "Prediction, trained on synthetic", "area under the curve on real rows", "trained on real"
    ),
    "cap_rows": Measure("Rows that the cap leaves out", share=True),
    "cap_units": Measure("Units that the cap cuts", share=True),
    "rows_compared": Measure("Rows that are compared", share=True),
    "cap_effect": Measure("What the cap moves", share=True),
    "values_bounded": Measure("Numbers bounded", share=True),
    "values_unlisted": Measure("Values counted as one category", share=True),
    "values_recoded": Measure("Values recoded", share=True),
    "effective_rows": Measure(
        "Effective rows", "rows of equal weight that say as much", "rows of the table"
    ),
    "empty_table": Measure("Empty table"),
    "missing_column": Measure("Missing column"),
    "unlisted_column": Measure("Column without a listed value"),
    "extra_columns": Measure("Columns that the schema does not describe"),
    "unknown_values": Measure("Values that the schema does not list", share=True),
    "holdout_in_original": Measure("Hold-out rows among the original rows", share=True),
    "auc_real": Measure("Prediction, trained on real", "area under the curve on real rows"),
    "uniqueness": _risk("Unique rows", "alone with their quasi-identifiers", "original"),
    "intruder_error": _risk(
        "Intruder's error", "wrong guesses of a sensitive value from what is known"
    ),
    "intruder_matched": _risk(
        "Targets with a match", "people of whom a released row agrees with all that is known"
    ),
    "reappearing_uniques": _risk(
        "Uniques that reappear", "unique originals whose combination is released"
    ),
    "reappearing_as_unique": _risk(
        "Uniques that reappear alone", "unique originals whose combination is released exactly once"
    ),
    "reiter_risk": _risk(
        "Expected match risk (Reiter)",
        "chance that a matching released row is right, mean over people",
    ),
    "reiter_true_match_rate": _risk("True matches (Reiter)", "a single match, and right"),
    "reiter_false_match_rate": _risk("False matches (Reiter)", "wrong ones among single matches"),
    "membership_auc": _risk(
        "Membership, area under the curve",
        "whether a row was in the original, guessed from the release",
        "by chance",
        share=False,
    ),
    "membership_advantage": _risk(
        "Membership advantage", "right guesses beyond chance", "by chance", share=False
    ),
}
_AMOUNTS = "mean absolute error"
FAULTS = (
    *("empty_table", "missing_column", "unlisted_column", "extra_columns", "unknown_values"),
    "holdout_in_original",
)
CONTROLS = ("_holdout", "_control")
_PARTS = {
    "_holdout": "the part for the hold-out",
    "_control": "the part for people never given",
    "_bootstrap": "the part for the bootstrap",
    "_others": "the part for other people of the original",
}


def measure(name: str) -> Measure:
    """Return what is known of a measure; a variant is spoken of as its stem."""
    if name in MEASURES:
        return MEASURES[name]
    stems = [stem for stem in MEASURES if name.startswith(stem + "_")]
    if stems:
        return MEASURES[max(stems, key=len)]
    return Measure(short(name.replace("_", " ")))


def titled(name: str) -> str:
    """Return the title of a measure; that of a variant says which part of it is meant."""
    title = measure(name).title
    if name in MEASURES:
        return title
    return next((f"{title}, {words}" for end, words in _PARTS.items() if name.endswith(end)), title)


def has_control(found: Lookup, record: Record) -> bool:
    """Say whether its baseline is a hold-out: people who were never given."""
    others = [other for end in CONTROLS for other in found.named(record.name + end)]
    return any(
        other.value is not None and (not record.subject or other.subject == record.subject)
        for other in others
    )


def limits(record: Record) -> tuple[float, float]:
    """Return the interval of a record; its value where it has none."""
    value = record.value or 0.0
    return (
        value if record.low is None else record.low,
        value if record.high is None else record.high,
    )


def control_range(found: Lookup, record: Record) -> tuple[float, float]:
    """Return the interval of the hold-out behind a baseline; the baseline itself where none is."""
    ends = [record.baseline or 0.0]
    for end in CONTROLS:
        other = found.record(record.name + end, record.subject)
        if other is not None and other.value is not None:
            ends += [other.value, *limits(other)]
    return min(ends), max(ends)


def reference_of(found: Lookup, record: Record) -> str:
    """Say in a word or two what the baseline of a record is."""
    if record.baseline is None:
        return ""
    if has_control(found, record):
        return "hold-out" if record.name.startswith("intruder") else "people never given"
    return measure(record.name).reference


def in_percent(name: str, record: Record | None = None) -> bool:
    """Say whether a figure is written in percent: a share, unless it is an amount."""
    if not measure(name).share:
        return False
    if record is None:
        return True
    figures = (record.value, record.low, record.high, record.baseline)
    amounts = _AMOUNTS in record.note or any(f is not None and abs(f) > 1 for f in figures)
    return not amounts


def figure_text(value: float | None, *, as_percent: bool) -> str:
    """Write a figure in its own unit; what is missing is not zero."""
    if value is None:
        return NOT_COMPUTED
    return percent(value) if as_percent else number(value)


def range_text(record: Record | None, *, as_percent: bool) -> str:
    """Write the interval of a record; empty when there is none."""
    if record is None or record.low is None or record.high is None:
        return ""
    low, high = (figure_text(end, as_percent=as_percent) for end in (record.low, record.high))
    return f"{low} to {high}"
