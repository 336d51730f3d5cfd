"""Numbers: distribution functions side by side, moments, correlations, and regressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pegsynth.publishing.report.figure import Figure, Table, table_of
from pegsynth.publishing.report.measures import figure_text, range_text
from pegsynth.publishing.report.wording import NOT_COMPUTED, TERM, amount, short, short_labels

if TYPE_CHECKING:
    from pegsynth.evaluation.records import Cumulative, Record
    from pegsynth.publishing.report.wording import Lookup

MOST_DRAWN = 24
MOST_PAIRS = 20
_WIDTH, _HEIGHT = 330, 170
_LOGARITHMIC = 6.0
ORIGINAL, SYNTHETIC = "original", "synthetic"
_OVERVIEW = (
    ("value_mean", "Mean"),
    ("value_sd", "SD"),
    ("value_zeros", "Zeros"),
    ("kolmogorov_distance", "Kolmogorov"),
)
_DETAILS = ("value_mean", "value_sd", "value_quantile", "value_zeros", "value_heap", "value_tail")
_WORDS = {
    "value_mean": "mean",
    "value_sd": "standard deviation",
    "value_quantile": "quantile",
    "value_zeros": "zeros",
    "value_heap": "rows at",
    "value_tail": "rows",
}
_SHARES = ("value_zeros", "value_heap", "value_tail")
_COLUMNS = ("Figure", "Original", "Synthetic", "Interval")
MOST_TERMS = 30
_FOREST_WIDTH = 310
_TERM_COLUMNS = ("Term", "Original", "Interval", "Synthetic", "Interval", "Overlap")
_CORRELATIONS = ("pearson_correlation", "spearman_correlation")


def number_figures(found: Lookup) -> list[Figure]:
    """Draw the distribution functions of numeric features, the furthest apart if there are many."""
    curves_found = found.metrics.distributions
    kept = sorted(range(len(curves_found)), key=lambda i: (-_distance(found, curves_found[i]), i))
    return [_figure(found, place + 1, curves_found[place]) for place in sorted(kept[:MOST_DRAWN])]


def number_tables(found: Lookup) -> list[Table]:
    """Return the tables of the section: moments of every feature, and correlations."""
    tables = []
    features = [
        record.subject for record in found.subjects("value_mean") if record.value is not None
    ]
    if features:
        columns = ["Feature"]
        for name, title in _OVERVIEW:
            second = "floor" if name.startswith("kolmogorov") else "synthetic"
            columns += [title, f"{title}, {second}"]
        rows = [_overview(found, feature) for feature in features]
        caption = "Numbers of every feature, original and synthetic"
        tables.append(table_of(columns, rows, caption=caption))
    dated = _dated(found, set(features))
    if dated:
        columns = [
            "Feature",
            "Kolmogorov",
            "Kolmogorov, floor",
            "Wasserstein",
            "Wasserstein, floor",
        ]
        caption = "Dates and times; Wasserstein distances are in the unit of the feature"
        tables.append(table_of(columns, dated, caption=caption))
    pairs = _pairs(found)
    if pairs:
        caption = "Correlations, the furthest apart first"
        columns = ["Features", "Pearson", "Pearson, synthetic", "Spearman", "Spearman, synthetic"]
        tables.append(table_of(columns, pairs, caption=caption, most=MOST_PAIRS))
    return tables


def _figure(found: Lookup, place: int, cumulative: Cumulative) -> Figure:
    logarithmic = _wants_logarithms(cumulative)
    rows = [
        {"x": value, "y": share, "series": series}
        for series, shares in ((ORIGINAL, cumulative.original), (SYNTHETIC, cumulative.synthetic))
        for value, share in zip(cumulative.values, shares, strict=True)
    ]
    caption = f"{short(cumulative.label)}. " if cumulative.label else ""
    caption += "Share of rows up to each value"
    if logarithmic:
        caption += "; the axis is logarithmic, and a line starts at its share of zeros"
    distance = found.record("kolmogorov_distance", cumulative.feature)
    if distance is not None and distance.value is not None:
        caption += (
            f"; furthest apart by {figure_text(distance.value, as_percent=False)}, by chance "
            f"{figure_text(distance.baseline, as_percent=False)}"
        )
    name = short(cumulative.feature)
    return Figure(
        f"numbers-{place:03d}",
        name,
        f"{caption}.",
        "curves",
        rows,
        {
            "x_title": name,
            "y_title": "share of rows",
            "log_x": logarithmic,
            "as_percent": True,
            "steps": True,
            "order": (ORIGINAL, SYNTHETIC),
            "width": _WIDTH,
            "height": _HEIGHT,
        },
        table_of(_COLUMNS, _details(found, cumulative.feature)),
    )


def _wants_logarithms(cumulative: Cumulative) -> bool:
    """Say whether numbers above zero have a long tail, and none is below."""
    if not cumulative.values or cumulative.values[0] < 0:
        return False
    pairs = list(zip(cumulative.values, cumulative.original, strict=True))
    start = max((share for value, share in pairs if value <= 0), default=0.0)
    middle, high = (
        next((value for value, share in pairs if value > 0 and share >= level), 0.0)
        for level in (start + part * (1 - start) for part in (0.5, 0.95))
    )
    return middle > 0 and high / middle > _LOGARITHMIC


def _distance(found: Lookup, cumulative: Cumulative) -> float:
    record = found.record("kolmogorov_distance", cumulative.feature)
    return 0.0 if record is None or record.value is None else record.value


def _overview(found: Lookup, feature: str) -> list[str]:
    cells = [short(feature)]
    for name, _ in _OVERVIEW:
        absent = "none" if name == "value_zeros" else NOT_COMPUTED
        both = _both(found, name, feature, partial(_written, name), absent=absent)
        cells += both[::-1] if name.startswith("kolmogorov") else both
    return cells


def _dated(found: Lookup, numeric: set[str]) -> list[list[str]]:
    """Return a line for each feature of dates or times: distances, beside those of chance."""
    rows = []
    for record in found.subjects("kolmogorov_distance"):
        if record.subject not in numeric and record.value is not None:
            line = [short(record.subject)]
            for name in ("kolmogorov_distance", "wasserstein_distance"):
                line += _both(found, name, record.subject, partial(_written, name))[::-1]
            rows.append(line)
    return rows


def _both(
    found: Lookup,
    name: str,
    subject: str,
    write: Callable[[float], str],
    *,
    absent: str = NOT_COMPUTED,
) -> list[str]:
    """Write what a record compares with, and its value."""
    record = found.record(name, subject)
    figures = (None, None) if record is None else (record.baseline, record.value)
    return [absent if each is None else write(each) for each in figures]


def _details(found: Lookup, feature: str) -> list[list[str]]:
    rows = []
    for name in _DETAILS:
        for record in found.named(name):
            of, _, detail = record.subject.partition(TERM)
            if of == feature and record.value is not None:
                rows.append(_line(name, detail, record))
    return rows


def _line(name: str, detail: str, record: Record) -> list[str]:
    figures = [_written(name, each) for each in (record.baseline or 0.0, record.value or 0.0)]
    ends = range_text(record, as_percent=name in _SHARES)
    return [f"{_WORDS[name]} {detail}".strip(), *figures, ends]


def _written(name: str, value: float) -> str:
    if name in _SHARES:
        return figure_text(value, as_percent=True)
    return figure_text(value, as_percent=False) if name.startswith("kolmogorov") else amount(value)


def _pairs(found: Lookup) -> list[list[str]]:
    apart: dict[str, float] = {}
    for name in _CORRELATIONS:
        for record in found.subjects(name):
            if record.value is not None and record.baseline is not None:
                off = abs(record.value - record.baseline)
                apart[record.subject] = max(apart.get(record.subject, 0.0), off)
    rows = []
    for subject in sorted(apart, key=lambda each: -apart[each]):
        cells = [short(subject)]
        for name in _CORRELATIONS:
            cells += _both(found, name, subject, "{:.3f}".format)
        rows.append(cells)
    return rows


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
        _forest(number, formula, terms)
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


def _forest(place: int, formula: str, terms: list[_Term]) -> Figure:
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
        "forest_plot",
        rows,
        {"order": (ORIGINAL, SYNTHETIC), "width": _FOREST_WIDTH},
        table_of(_TERM_COLUMNS, [_term_line(term) for term in terms]),
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


def _term_line(term: _Term) -> tuple[str, ...]:
    cells = [short(term.name)]
    for record in (term.original, term.synthetic):
        cells.append(figure_text(record.value if record else None, as_percent=False))
        cells.append(range_text(record, as_percent=False))
    overlap = term.overlap.value if term.overlap else None
    return (*cells, figure_text(overlap, as_percent=False))
