"""How a page names each measure, what it means, and what its baseline is.

A measure that is not listed here still has its place on the page, under its own name.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from pegsynth.publishing.report.wording import NOT_COMPUTED, TERM, number, percent, short

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


@cache
def measures() -> dict[str, Measure]:
    """Return what is known of every measure, in the order in which pages name them."""
    text = files("pegsynth.publishing.report").joinpath("measures.toml").read_text("utf-8")
    return {name: Measure(**words) for name, words in tomllib.loads(text).items()}


REGRESSION = "Regression"
NO_REASON = "not computed; no reason was saved"
_COEFFICIENTS = ("coefficient", "coefficient_original", "interval_overlap")
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
    known = measures()
    if name in known:
        return known[name]
    stems = [stem for stem in known if name.startswith(stem + "_")]
    if stems:
        return known[max(stems, key=len)]
    return Measure(short(name.replace("_", " ")))


def titled(name: str) -> str:
    """Return the title of a measure; that of a variant says which part of it is meant."""
    title = measure(name).title
    if name in measures():
        return title
    return next((f"{title}, {words}" for end, words in _PARTS.items() if name.endswith(end)), title)


def titled_form(record: Record) -> str:
    """Return the title of a measure, and in which of its forms it was taken."""
    title = measure(record.name).title
    return f"{title}: {short(record.subject)}" if record.subject else title


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


def meaning_of(record: Record | None, words: Measure) -> str:
    """Say what a measure means; of one that was taken in several forms, which is shown."""
    if record is None or not record.subject:
        return words.meaning
    shown = short(record.subject)
    return f"{words.meaning}; shown: {shown}" if words.meaning else shown


def missing_entries(found: Lookup) -> list[tuple[str, str, str]]:
    """List what has no value, every reason once: title, subject, reason.

    A regression that could not be fitted has a record without a value for every coefficient; here
    it is one entry. Measures that lack the same thing for the same reason share one.
    """
    fitted = {
        formula_of(record)
        for record in found.subjects("interval_overlap")
        if record.value is not None
    }
    regressions: dict[str, str] = {}
    others: dict[tuple[str, str], list[str]] = {}
    for record in found.metrics.records:
        if record.value is not None or record.name in FAULTS:
            continue
        about = _regression(record, fitted)
        if not about:
            others.setdefault((record.subject, reason_of(record)), []).append(titled(record.name))
        # The overlap speaks of both tables, the coefficients of one each.
        elif about not in regressions or record.name == "interval_overlap":
            regressions[about] = reason_of(record)
    entries = [(REGRESSION, about, reason) for about, reason in regressions.items()]
    entries += [
        ("; ".join(dict.fromkeys(titles)), subject, reason)
        for (subject, reason), titles in others.items()
    ]
    return entries


def formula_of(record: Record) -> str:
    """Return the formula that a record about a regression speaks of."""
    return record.subject.partition(TERM)[0]


def reason_of(record: Record | None) -> str:
    """Say why a record has no value."""
    return record.note if record is not None and record.note else NO_REASON


def _regression(record: Record, fitted: set[str]) -> str:
    """Return what the entry of a regression is about; empty for any other measure."""
    formula = formula_of(record)
    if not formula:
        return ""
    if record.name in _COEFFICIENTS:
        return record.subject if formula in fitted else formula
    return formula if record.name == "regression_distance" and formula not in fitted else ""
