"""Estimates with their intervals: forest plots, and lines over a range of settings."""

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
    log_ticks,
    panels,
    reference_line,
    series_style,
    written,
)
from pegsynth.report.words import number

if TYPE_CHECKING:
    from pegsynth.report.drawing import Chart

_LINE = 15


def forest_plot(
    rows: Iterable[Row],
    *,
    label: str,
    value: str,
    low: str,
    high: str,
    series: str,
    reference: float | None = None,
    value_title: str = "",
    title: str = "",
    order: Sequence[str] = (),
    shared_scale: bool = False,
    as_percent: bool = False,
    zero: bool = False,
    width: int = 420,
) -> Chart:
    """Draw estimates with their intervals, one panel a label, each on a scale of its own.

    Parameters
    ----------
    rows
        One estimate each; without an interval only its point is drawn.
    label, value, low, high, series
        Keys of a row: what is estimated, the estimate, its interval and whose it is.
    reference
        A value to mark with a dashed line in every panel.
    order
        Series in the order of colours and legend; by default as they first appear.
    shared_scale
        Whether all panels share one scale.
    as_percent, zero
        Whether values are shares, and whether scales start at zero.
    width
        Width of the plot.
    """
    import altair as alt

    keys = {"label": label, "value": value, "low": low, "high": high, "series": series}
    kept = kept_rows(rows, keys)
    describe(kept, "label", title="", as_percent=as_percent)
    style = series_style(kept, order)
    base = alt.Chart().encode(
        y=alt.Y(field="series", type="nominal", sort=list(style.names), axis=None),
        color=style.colour(width),
    )
    scale: dict[str, Any] = {"title": value_title, "as_percent": as_percent, "zero": zero}
    scale["padding"] = 0 if zero else 8
    layers: list[Any] = []
    layers += reference_line("x", reference)
    if has_intervals(kept, "low", "high"):
        span = base.mark_rule(strokeWidth=2, aria=False)
        layers.append(span.encode(x=axis(alt.X, "low", **scale), x2=alt.X2("high")))
    layers.append(
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=axis(alt.X, "value", **scale),
            shape=style.shape(),
            description=description(),
        )
    )
    panel = alt.layer(*layers).properties(width=width, height=_LINE * len(style.names) + 6)
    chart = panels(panel, kept, "label", 1, spacing=8)
    chart = chart.resolve_scale(x="shared" if shared_scale else "independent")
    return finish(chart, kept, title)


def lines_with_intervals(
    rows: Iterable[Row],
    *,
    x: str,
    y: str,
    series: str,
    low: str | None = None,
    high: str | None = None,
    facet: str | None = None,
    columns: int = 2,
    x_title: str = "",
    y_title: str = "",
    title: str = "",
    reference: float | None = None,
    order: Sequence[str] = (),
    as_percent: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    width: int = 420,
    height: int = 260,
) -> Chart:
    """Draw a line for each series, with an upright bar for each interval.

    Parameters
    ----------
    rows
        One point each; on a logarithmic axis only those above zero are drawn.
    x, y, series, low, high, facet
        Keys of a row: its place, its line, the interval of `y`, and its panel.
    columns
        Panels side by side; each has a vertical scale of its own.
    reference
        A value of `y` to mark with a dashed line.
    order
        Series in the order of colours and legend; by default as they first appear.
    as_percent
        Whether values of `y` are shares.
    width, height
        Size of one panel without its labels.
    """
    import altair as alt

    keys = {"x": x, "y": y, "low": low, "high": high, "series": series, "facet": facet}
    above = [name for name, log in (("x", log_x), ("y", log_y), ("low", log_y)) if log]
    kept = kept_rows(rows, keys, needed=("x", "y"), above_zero=above)
    for row in kept:
        place = f"{row['series']}, {x_title or x} {number(row['x'])}"
        row["describe"] = f"{place}: {y_title or y} {written(row['y'], as_percent)}"
    style = series_style(kept, order)
    across = width * min(columns, len(distinct(kept, "facet"))) if facet else width
    base = alt.Chart().encode(
        x=axis(alt.X, "x", title=x_title, ticks=log_ticks(kept, "x", log=log_x)),
        color=style.colour(across),
    )
    upright: dict[str, Any] = {"title": y_title, "as_percent": as_percent}
    upright["ticks"] = log_ticks(kept, "y", log=log_y)
    layers: list[Any] = [
        base.mark_line(strokeWidth=1.6, aria=False).encode(y=axis(alt.Y, "y", **upright)),
    ]
    if has_intervals(kept, "low", "high"):
        span = base.mark_rule(opacity=0.7, strokeWidth=1.5, aria=False)
        layers.append(span.encode(y=axis(alt.Y, "low", **upright), y2=alt.Y2("high")))
    layers += reference_line("y", reference)
    layers.append(
        base.mark_point(filled=True, size=45, opacity=1).encode(
            y=axis(alt.Y, "y", **upright), shape=style.shape(), description=description()
        )
    )
    panel = alt.layer(*layers).properties(width=width, height=height)
    chart = panels(panel, kept, "facet" if facet else None, columns)
    return finish(chart.resolve_scale(y="independent") if facet else chart, kept, title)
