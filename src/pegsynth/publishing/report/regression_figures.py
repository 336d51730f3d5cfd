"""Regressions: coefficients of the original and the synthetic tables, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegsynth.publishing.report.charts import forest_plot
from pegsynth.publishing.report.figure import Figure, table_of
from pegsynth.publishing.report.measures import figure_text, range_text
from pegsynth.publishing.report.wording import TERM, short, short_labels

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Record
    from pegsynth.publishing.report.wording import Lookup

MOST_TERMS = 30
_WIDTH = 310
ORIGINAL, SYNTHETIC = "original", "synthetic"
_COLUMNS = ("Term", "Original", "Interval", "Synthetic", "Interval", "Overlap")


@dataclass(frozen=True)
class _Term:
    """One coefficient as both sides estimate it."""

    name: str
    original: Record | None
    synthetic: Record | None
    overlap: Record | None


def regression_figures(found: Lookup) -> list[Figure]:
    """Draw a forest plot for each formula that was fitted to a table at least.

    Beyond `MOST_TERMS` coefficients those whose intervals overlap least are drawn.
    """
    fitted = {
        formula: terms for formula, terms in _formulas(found).items() if any(map(_drawable, terms))
    }
    return [
        _figure(number, formula, terms)
        for number, (formula, terms) in enumerate(fitted.items(), start=1)
    ]


def _formulas(found: Lookup) -> dict[str, list[_Term]]:
    formulas: dict[str, list[_Term]] = {}
    subjects = dict.fromkeys(
        record.subject
        for name in ("coefficient_original", "coefficient")
        for record in found.subjects(name)
    )
    for subject in subjects:
        formula, _, term = subject.partition(TERM)
        records = (
            found.record(name, subject)
            for name in ("coefficient_original", "coefficient", "interval_overlap")
        )
        formulas.setdefault(formula, []).append(_Term(term, *records))
    return formulas


def _figure(place: int, formula: str, terms: list[_Term]) -> Figure:
    drawable = [term for term in terms if _drawable(term)]
    shown = drawable
    caption = "Points are estimates, bars their intervals; every term has a scale of its own."
    found = [term.synthetic for term in drawable if term.synthetic is not None]
    if how := next((record.note for record in found if record.value is not None), ""):
        caption += f" Synthetic: {how}."
    if len(drawable) > MOST_TERMS:
        least = sorted(drawable, key=_agreement)[:MOST_TERMS]
        shown = [term for term in drawable if term in least]
        caption += f" Of {len(drawable):,} terms the {MOST_TERMS} that agree least are drawn."
    labels = short_labels(term.name for term in shown)
    rows = [row for term in shown for row in _points(term, labels[term.name])]
    return Figure(
        f"regression-{place}",
        short(formula),
        caption,
        lambda: forest_plot(rows, order=(ORIGINAL, SYNTHETIC), width=_WIDTH),
        table_of(_COLUMNS, [_line(term) for term in terms]),
    )


def _drawable(term: _Term) -> bool:
    """Say whether one of the two sides has an estimate."""
    sides = (term.original, term.synthetic)
    return any(record is not None and record.value is not None for record in sides)


def _agreement(term: _Term) -> float:
    return term.overlap.value if term.overlap and term.overlap.value is not None else -1.0


def _points(term: _Term, label: str) -> list[dict[str, object]]:
    sides = ((ORIGINAL, term.original), (SYNTHETIC, term.synthetic))
    return [
        {
            "label": label,
            "series": series,
            "value": record.value,
            "low": record.low,
            "high": record.high,
        }
        for series, record in sides
        if record is not None and record.value is not None
    ]


def _line(term: _Term) -> tuple[str, ...]:
    cells = [short(term.name)]
    for record in (term.original, term.synthetic):
        cells.append(figure_text(record.value if record else None, as_percent=False))
        cells.append(range_text(record, as_percent=False))
    overlap = term.overlap.value if term.overlap else None
    return (*cells, figure_text(overlap, as_percent=False))
