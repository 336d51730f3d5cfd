"""Bars: lying, for a few named figures, and upright, for the shares of categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pegsynth.report.chart_parts import (
    Row,
    axis,
    describe,
    description,
    distinct,
    finish,
    has_intervals,
    kept_rows,
    panels,
    reference_line,
    series_style,
)
from pegsynth.report.palette import INK
from pegsynth.report.words import printable

if TYPE_CHECKING:
    from pegsynth.report.drawing import Chart

_BAR, _GAP = 15, 8
_LABEL = 13


def bars(
    rows: Iterable[Row],
    *,
    category: str,
    value: str,
    series: str | None = None,
    low: str | None = None,
    high: str | None = None,
    reference: float | None = None,
    value_title: str = "",
    title: str = "",
    order: Sequence[str] = (),
    as_percent: bool = False,
    width: int = 420,
) -> Chart:
    """Draw horizontal bars, grouped by series, with intervals where rows have them.

    Parameters
    ----------
    rows
        One bar each, in the order to be drawn.
    category, value, series, low, high
        Keys of a row: the label of its group, its length, its colour, its interval.
    reference
        A value to mark with a dashed line.
    order
        Series in the order of colours and legend; by default as they first appear.
    as_percent
        Whether values are shares.
    width
        Width of the plot without its labels.
    """
    import altair as alt

    keys = {"category": category, "value": value, "series": series, "low": low, "high": high}
    kept = kept_rows(rows, keys)
    describe(kept, "category", title=value_title, as_percent=as_percent)
    groups, style = distinct(kept, "category"), series_style(kept, order)
    base = alt.Chart().encode(y=alt.Y(field="category", type="nominal", sort=groups, title=None))
    if len(style.names) > 1:
        offset = alt.YOffset(field="series", type="nominal", sort=list(style.names))
        base = base.encode(yOffset=offset)
    scale: dict[str, Any] = {"title": value_title, "as_percent": as_percent, "zero": True}
    layers: list[Any] = [
        base.mark_bar().encode(
            x=axis(alt.X, "value", **scale), color=style.colour(width), description=description()
        )
    ]
    if has_intervals(kept, "low", "high"):
        span = base.mark_rule(color=INK, strokeWidth=1.5, aria=False)
        layers.append(span.encode(x=axis(alt.X, "low", **scale), x2=alt.X2("high")))
    layers += reference_line("x", reference)
    height = max(1, len(groups)) * (_BAR * max(1, len(style.names)) + _GAP)
    return finish(alt.layer(*layers), kept, title, width=width, height=height)


def histogram_grid(
    rows: Iterable[Row],
    *,
    category: str,
    value: str,
    series: str | None = None,
    facet: str | None = None,
    columns: int = 2,
    categories: Sequence[str] = (),
    order: Sequence[str] = (),
    value_title: str = "",
    category_title: str = "",
    title: str = "",
    as_percent: bool = True,
    width: int = 260,
    height: int = 110,
) -> Chart:
    """Draw upright bars by category, grouped by series, one panel for each value of a facet.

    Parameters
    ----------
    rows
        One bar each.
    category, value, series, facet
        Keys of a row.
    columns
        Panels side by side.
    categories
        Categories in order; by default as they first appear.
    order
        Series in the order of colours and legend; by default as they first appear.
    as_percent
        Whether values are shares.
    width, height
        Size of one panel without its labels.
    """
    import altair as alt

    keys = {"category": category, "value": value, "series": series, "facet": facet}
    kept = kept_rows(rows, keys)
    describe(kept, "category", title=value_title, as_percent=as_percent)
    names = [printable(name) for name in categories] or distinct(kept, "category")
    style = series_style(kept, order)
    crowded = len(names) * _LABEL > width
    look = alt.Axis(labelAngle=-50, labelLimit=90, labelOverlap="greedy" if crowded else False)
    places = alt.X(
        field="category",
        type="nominal",
        sort=names,
        title=printable(category_title) or None,
        axis=look,
        scale=alt.Scale(domain=names),
    )
    across = width * min(columns, len(distinct(kept, "facet"))) if facet else width
    chart: Any = (
        alt.Chart()
        .mark_bar()
        .encode(
            x=places,
            y=axis(alt.Y, "value", title=value_title, as_percent=as_percent, zero=True),
            color=style.colour(across),
            description=description(),
        )
        .properties(width=width, height=height)
    )
    if len(style.names) > 1:
        offset = alt.XOffset(field="series", type="nominal", sort=list(style.names))
        chart = chart.encode(xOffset=offset)
    return finish(panels(chart, kept, "facet" if facet else None, columns), kept, title)
