"""Numbers: distribution functions side by side, tables of moments, and of correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegsynth.publishing.report.charts import curves
from pegsynth.publishing.report.figure import Figure, Table, table_of
from pegsynth.publishing.report.measures import figure_text, range_text
from pegsynth.publishing.report.wording import NOT_COMPUTED, TERM, amount, short

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
        lambda: curves(
            rows,
            x_title=name,
            y_title="share of rows",
            log_x=logarithmic,
            log_y=False,
            as_percent=True,
            steps=True,
            order=(ORIGINAL, SYNTHETIC),
            width=_WIDTH,
            height=_HEIGHT,
        ),
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
        record = found.record(name, feature)
        figures = (None, None) if record is None else (record.baseline, record.value)
        if name.startswith("kolmogorov"):
            figures = figures[::-1]
        absent = "none" if name == "value_zeros" else NOT_COMPUTED
        cells += [absent if each is None else _written(name, each) for each in figures]
    return cells


def _dated(found: Lookup, numeric: set[str]) -> list[list[str]]:
    """Return a line for each feature of dates or times: distances, beside those of chance."""
    rows = []
    for record in found.subjects("kolmogorov_distance"):
        if record.subject in numeric or record.value is None:
            continue
        line = [short(record.subject)]
        for name in ("kolmogorov_distance", "wasserstein_distance"):
            one = found.record(name, record.subject)
            figures = (None, None) if one is None else (one.value, one.baseline)
            line += [NOT_COMPUTED if each is None else _written(name, each) for each in figures]
        rows.append(line)
    return rows


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
            correlation = found.record(name, subject)
            figures = (
                (None, None) if correlation is None else (correlation.baseline, correlation.value)
            )
            cells += [NOT_COMPUTED if each is None else f"{each:.3f}" for each in figures]
        rows.append(cells)
    return rows
