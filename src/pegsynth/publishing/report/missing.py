"""What was not computed: every reason is listed once.

A regression that could not be fitted has a record without a value for every coefficient; here
it is one entry. Measures that lack the same thing for the same reason share one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegsynth.publishing.report.measures import FAULTS, titled
from pegsynth.publishing.report.wording import TERM

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Record
    from pegsynth.publishing.report.wording import Lookup

REGRESSION = "Regression"
NO_REASON = "not computed; no reason was saved"
_COEFFICIENTS = ("coefficient", "coefficient_original", "interval_overlap")


def missing_entries(found: Lookup) -> list[tuple[str, str, str]]:
    """List what has no value: title, subject, reason."""
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
