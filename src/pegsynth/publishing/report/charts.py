"""The chart builder: each function takes plain rows (dictionaries) and gives an Altair chart.

Rows may have any keys and any text in them: what is drawn is copied under names of our own,
so no value is ever read as a field, a format or a link. Rows whose figure is missing (None or
NaN) are left out. Every chart colours its `series`, in the order of `order` and then of their
first appearance, so that a series keeps its colour where others are missing.
"""

from __future__ import annotations

import copy
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import altair as alt

from pegsynth.publishing.report.chart_parts import (
    Row,
    SeriesStyle,
    axis,
    decade_ticks,
    describe,
    description,
    distinct,
    finish,
    has_intervals,
    kept_rows,
    log_ticks,
    nominal,
    panels,
    reference_line,
    series_style,
    written,
)
from pegsynth.publishing.report.drawing import HEAT, INK, PAPER, SOFT
from pegsynth.publishing.report.wording import number, printable

if TYPE_CHECKING:
    from pegsynth.publishing.report.drawing import Chart

_DASHES = ([2, 3], [7, 3], [1, 2], [9, 3, 2, 3])
_REFERENCE_COLUMN, _CLASS_COLUMN = 190, 105
_FEW_PANELS, _BETWEEN = 4, 26
_LOWEST_CELL, _HIGHEST_CELL = 9, 28
_LABEL, _LINE = 13, 15


@dataclass(frozen=True)
class Specification:
    """A chart that is a Vega-Lite specification already, and is drawn like any other.

    Altair checks every panel of a chart again and again; many panels that differ only in
    their rows and ticks are copies of one.
    """

    content: dict[str, Any]

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """Return the specification; there is nothing left to validate."""
        return self.content


def histograms(
    rows: Iterable[Row],
    *,
    categories: Sequence[str] = (),
    order: Sequence[str] = (),
    x_title: str = "",
    y_title: str = "Share of rows",
    title: str = "",
    columns: int = 2,
    width: int = 460,
    height: int = 180,
) -> Chart:
    """Draw upright bars of shares by category, grouped by series, one panel for each facet.

    Parameters
    ----------
    rows
        ``category``, ``value``, ``series`` and ``facet``; where rows have an ``original`` it
        is drawn as a tick across the bar, and the bars of a category are not set apart.
    categories
        Categories in order; by default as they first appear.
    columns
        Panels side by side.
    width, height
        Size of one panel without its labels.
    """
    kept = kept_rows(rows, ("category", "value", "original", "series", "facet"))
    ticked = any("original" in row for row in kept)
    describe(kept, "category", title=y_title, as_percent=True)
    for row in kept if ticked else ():
        shown = f"{row['facet']}, {row['category']}: {written(row['value'], True)}"
        row["describe"] = f"{shown}, original {written(row.get('original', 0.0), True)}"
    names = [printable(name) for name in categories] or distinct(kept, "category")
    style, faceted = series_style(kept, order), bool(distinct(kept, "facet"))
    look: dict[str, Any] = {"labelAngle": -50, "labelLimit": 90, "labelOverlap": False}
    if ticked:
        look |= {"labelLimit": 80, "labelFontSize": 9}
    elif len(names) * _LABEL > width:
        look["labelOverlap"] = "greedy"
    places = nominal(alt.X, "category", names, title=x_title, fixed=True, **look)
    shares: dict[str, Any] = {"title": "share" if ticked else y_title}
    shares |= {"as_percent": True, "zero": True}
    shapes = alt.Chart().mark_bar(opacity=0.85) if ticked else alt.Chart().mark_bar()
    bars: Any = shapes.encode(
        x=places,
        y=axis(alt.Y, "value", **shares),
        color=style.colour(width * (columns if faceted else 1)),
        description=description(),
    )
    if ticked:
        ticks = alt.Chart().mark_tick(color=INK, thickness=2, aria=False)
        bars = alt.layer(bars, ticks.encode(x=places, y=axis(alt.Y, "original", **shares)))
    elif len(style.names) > 1:
        offset = alt.XOffset(field="series", type="nominal", sort=list(style.names))
        bars = bars.encode(xOffset=offset)
    panel = bars.properties(width=width, height=height)
    split = panels(panel, kept, "facet" if faceted else None, columns, spacing=10)
    return finish(split, kept, title)


def forest_plot(
    rows: Iterable[Row],
    *,
    label: str = "label",
    value: str = "value",
    reference: float | None = None,
    order: Sequence[str] = (),
    as_percent: bool = False,
    zero: bool = False,
    width: int = 420,
) -> Chart:
    """Draw estimates with their intervals, one panel a label, each on a scale of its own.

    Parameters
    ----------
    rows
        ``series``, ``low`` and ``high`` beside what the next two name; without an interval
        only the point is drawn.
    label, value
        Keys of what is estimated, and of the estimate.
    reference
        A value to mark with a dashed line in every panel.
    as_percent, zero
        Whether values are shares, and whether scales start at zero.
    """
    keys = {"label": label, "value": value, "low": "low", "high": "high", "series": "series"}
    kept = kept_rows(rows, keys)
    describe(kept, "label", title="", as_percent=as_percent)
    style = series_style(kept, order)
    base = alt.Chart().encode(
        y=alt.Y(field="series", type="nominal", sort=list(style.names), axis=None),
        color=style.colour(width),
    )
    scale: dict[str, Any] = {"title": "", "as_percent": as_percent, "zero": zero}
    scale["padding"] = 0 if zero else 8
    layers: list[Any] = reference_line("x", reference)
    if has_intervals(kept, "low", "high"):
        span = base.mark_rule(strokeWidth=2, aria=False)
        layers.append(span.encode(x=axis(alt.X, "low", **scale), x2=alt.X2("high")))
    spot = base.mark_point(filled=True, size=60, opacity=1)
    layers.append(
        spot.encode(x=axis(alt.X, "value", **scale), shape=style.shape(), description=description())
    )
    panel = alt.layer(*layers).properties(width=width, height=_LINE * len(style.names) + 6)
    chart = panels(panel, kept, "label", 1, spacing=8)
    return finish(chart.resolve_scale(x="independent"), kept)


def curves(
    rows: Iterable[Row],
    *,
    references: Iterable[Row] = (),
    x_title: str,
    y_title: str,
    columns: int = 3,
    log_x: bool = True,
    log_y: bool = True,
    shared: bool = False,
    as_percent: bool = False,
    steps: bool = False,
    order: Sequence[str] = (),
    width: int = 230,
    height: int = 170,
) -> Chart:
    """Draw a line with intervals for each series, and dashed lines for what it is held against.

    Parameters
    ----------
    rows
        Points: ``x``, ``y``, ``low``, ``high``, ``series`` and, for several panels, ``facet``.
    references
        Dashed lines: ``y``, ``series`` (what it is) and ``facet``.
    columns
        Panels side by side.
    log_x, log_y
        Whether an axis is logarithmic; only what is above zero is then drawn.
    shared
        Whether all panels have one vertical scale.
    as_percent
        Whether values are shares.
    steps
        Whether a line stays level until its next point and has no marks there, as that of a
        distribution function; series then differ by their dashes.
    """
    above = [name for name, log in (("x", log_x), ("y", log_y), ("low", log_y)) if log]
    names = ("x", "y", "low", "high", "series", "facet")
    kept = kept_rows(rows, names, needed=("x", "y"), above_zero=above)
    for row in kept:
        place = ", ".join(filter(None, (row.get("facet"), row["series"])))
        row["describe"] = f"{place}, {x_title} {number(row['x'])}: {written(row['y'], as_percent)}"
    lines = kept_rows(
        references,
        {"level": "y", "line": "series", "facet": "facet"},
        needed=("level", "line"),
        above_zero=("level",) if log_y else (),
    )
    everything = [*kept, *lines]
    facets = distinct(kept, "facet")
    # Many small panels say once, above them, what their axes are.
    many = len(facets) > _FEW_PANELS
    heading = f"{y_title}, against {x_title}" if many else ""
    x = axis(alt.X, "x", "" if many else x_title, ticks=log_ticks(kept, "x", log=log_x))
    upright: dict[str, Any] = {"title": "" if many else y_title, "as_percent": as_percent}
    upright["ticks"] = decade_ticks(_heights(everything)) if log_y else None
    upright["zero"] = steps
    across = width * min(columns, len(facets)) if facets else width
    spans = has_intervals(kept, "low", "high")
    style = series_style(kept, order)
    layers = (
        _step_layers(x, upright, style, across)
        if steps
        else _curve_layers(x, upright, style, across, spans=spans)
    )
    if lines:
        layers.insert(0, _dashed_lines(upright, distinct(lines, "line"), across))
    panel = alt.layer(*layers).properties(width=width, height=height)
    if not facets or shared:
        split = panels(panel, everything, "facet" if facets else None, columns, spacing=_BETWEEN)
        return finish(split.resolve_scale(y="shared") if facets else split, everything, heading)
    grid = alt.concat(panel, columns=columns, spacing=_BETWEEN)
    grid = grid.resolve_scale(color="shared", shape="shared", strokeDash="shared")
    specification = finish(grid, everything, heading).to_dict(validate=False)
    (template,) = specification["concat"]
    specification["concat"] = [
        _own_panel(template, facet, _heights(everything, facet) if log_y else None)
        for facet in facets
    ]
    return cast("Chart", Specification(specification))


def heat_map(
    rows: Iterable[Row],
    *,
    steps: Sequence[float],
    value: str = "value",
    order: Sequence[str] = (),
    value_title: str = "",
    as_percent: bool = False,
    width: int = 330,
) -> Chart:
    """Draw a grid of cells, coloured in steps.

    Parameters
    ----------
    rows
        One cell each: ``column``, ``line``, the figure that `value` names, and under the same
        name with ``_text`` what it says of itself when pointed at. Other cells stay blank.
    steps
        Up to six rising bounds between colours.
    order
        Labels of columns and lines in order; by default as they first appear.
    width
        Width of the grid, where cells of at least 9 pixels allow it.
    """
    keys = {"column": "column", "line": "line", "value": value, "describe": f"{value}_text"}
    kept = kept_rows(rows, keys, needed=("column", "line", "value"))
    classes = _class_names(steps, as_percent)
    for row in kept:
        place = f"{row['line']}, {row['column']}"
        row.setdefault("describe", f"{place}: {written(row['value'], as_percent)}")
        row["class"] = classes[bisect_right(steps, row["value"])]
    named = [printable(name) for name in order]
    columns, lines = (
        [name for name in named if name in found] or found
        for found in (distinct(kept, "column"), distinct(kept, "line"))
    )
    legend = alt.Legend(
        title=printable(value_title) or None,
        columns=max(1, width // _CLASS_COLUMN),
        symbolType="square",
        symbolStrokeWidth=0,
    )
    scale = alt.Scale(domain=classes, range=list(HEAT[: len(classes)]))
    look: dict[str, Any] = {"domain": False, "ticks": False, "labelLimit": 110}
    cells = alt.Chart().mark_rect(stroke=PAPER, strokeWidth=1)
    chart = cells.encode(
        x=nominal(alt.X, "column", columns, labelAngle=-60, **look),
        y=nominal(alt.Y, "line", lines, **look),
        color=alt.Color(field="class", type="nominal", scale=scale, legend=legend),
        description=description(),
    )
    side = max(_LOWEST_CELL, width / max(1, len(columns)))
    tall = min(side, _HIGHEST_CELL) * max(1, len(lines))
    return finish(chart, kept, width=round(side * max(1, len(columns))), height=round(tall))


def risk_utility_map(
    points: Iterable[Row],
    *,
    x: str,
    y: str,
    series: str = "series",
    path: str | None = None,
    x_reference: tuple[float | None, str] = (None, ""),
    y_reference: tuple[float | None, str] = (None, ""),
    x_title: str = "",
    y_title: str = "",
    order: Sequence[str] = (),
    x_percent: bool = False,
    y_percent: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    x_zero: bool = False,
    width: int = 560,
    height: int = 340,
) -> Chart:
    """Draw points of risk against utility, by series, with intervals where points have them.

    Parameters
    ----------
    points
        Any number; ``label`` is a few letters beside a point, ``text`` what it says of itself
        when pointed at. On a logarithmic axis only points above zero are drawn.
    x, y
        Keys of the two figures; the same with ``_low`` and ``_high`` are their intervals.
    series, path
        Keys of a point's colour and shape, and of a number in whose order the points of a
        series are joined.
    x_reference, y_reference
        Values to mark with dashed lines, and what to write beside them.
    x_percent, y_percent, x_zero
        Whether figures are shares, and whether the horizontal axis starts at zero.
    """
    keys = {"x": x, "y": y, "series": series, "label": "label", "describe": "text", "path": path}
    ends = {f"x_{e}": f"{x}_{e}" for e in ("low", "high")}
    ends |= {f"y_{e}": f"{y}_{e}" for e in ("low", "high")}
    above = (("x", "x_low") if log_x else ()) + (("y", "y_low") if log_y else ())
    kept = kept_rows(points, keys | ends, needed=("x", "y"), above_zero=above)
    for row in kept:
        about = ", ".join(row[key] for key in ("series", "label") if row.get(key))
        first = f"{x_title or x} {written(row['x'], x_percent)}"
        second = f"{y_title or y} {written(row['y'], y_percent)}"
        row.setdefault("describe", f"{about}: {first}, {second}")
    style = series_style(kept, order)
    across: dict[str, Any] = {"title": x_title, "as_percent": x_percent, "zero": x_zero}
    upward: dict[str, Any] = {"title": y_title, "as_percent": y_percent}
    across["ticks"] = log_ticks(kept, "x", log=log_x)
    upward["ticks"] = log_ticks(kept, "y", log=log_y)
    base = alt.Chart().encode(
        x=axis(alt.X, "x", **across), y=axis(alt.Y, "y", **upward), color=style.colour(width)
    )
    layers: list[Any] = []
    if path is not None:
        joined = base.mark_line(strokeWidth=1.2, opacity=0.6, aria=False)
        layers.append(joined.encode(order=alt.Order(field="path", type="quantitative")))
    span = base.mark_rule(opacity=0.6, strokeWidth=1.5, aria=False)
    if has_intervals(kept, "x_low", "x_high"):
        layers.append(span.encode(x=axis(alt.X, "x_low", **across), x2=alt.X2("x_high")))
    if has_intervals(kept, "y_low", "y_high"):
        layers.append(span.encode(y=axis(alt.Y, "y_low", **upward), y2=alt.Y2("y_high")))
    layers += reference_line("x", *x_reference) + reference_line("y", *y_reference)
    spot = base.mark_point(filled=True, size=70, opacity=1)
    layers.append(spot.encode(shape=style.shape(), description=description()))
    if any(row.get("label") for row in kept):
        # In ink: some colours of points are too faint for letters.
        beside = base.mark_text(dy=-10, fontSize=11)
        label = alt.Text(field="label", type="nominal")
        layers.append(beside.encode(text=label, color=alt.value(INK)))
    return finish(alt.layer(*layers), kept, width=width, height=height)


def _curve_layers(
    x: Any, upright: dict[str, Any], style: SeriesStyle, across: int, *, spans: bool
) -> list[Any]:
    """Return the lines, intervals and points of one panel."""
    points = alt.Chart().transform_filter("isValid(datum.y)")
    base = points.encode(x=x, color=style.colour(across))
    y = axis(alt.Y, "y", **upright)
    layers: list[Any] = [base.mark_line(strokeWidth=1.5, aria=False).encode(y=y)]
    if spans:
        span = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.6, aria=False)
        layers.append(span.encode(y=axis(alt.Y, "low", **upright), y2=alt.Y2("high")))
    spot = base.mark_point(filled=True, size=32, opacity=1)
    layers.append(spot.encode(y=y, shape=style.shape(), description=description()))
    return layers


def _step_layers(x: Any, upright: dict[str, Any], style: SeriesStyle, across: int) -> list[Any]:
    """Return lines of steps, told apart by colour and dashes."""
    line = alt.Chart().mark_line(strokeWidth=1.8, interpolate="step-after", aria=False)
    encoded = line.encode(x=x, y=axis(alt.Y, "y", **upright), color=style.colour(across))
    if len(style.names) < 2:
        return [encoded]
    dashes = [[1, 0], *_DASHES[1:]]
    scale = alt.Scale(
        domain=list(style.names), range=[dashes[i % len(dashes)] for i in range(len(style.names))]
    )
    # Like that of the colours, or there would be two legends.
    legend = style.legend(across)
    dash = alt.StrokeDash(field="series", type="nominal", scale=scale, legend=legend)
    return [encoded.encode(strokeDash=dash)]


def _dashed_lines(upright: dict[str, Any], names: list[str], across: int) -> Any:
    """Return the level lines, told apart by their dashes."""
    dashes = alt.StrokeDash(
        field="line",
        type="nominal",
        scale=alt.Scale(domain=names, range=[_DASHES[i % len(_DASHES)] for i in range(len(names))]),
        legend=alt.Legend(
            title=None, orient="top", columns=max(1, across // _REFERENCE_COLUMN), symbolSize=300
        ),
    )
    lines = alt.Chart().transform_filter("isValid(datum.level)")
    rule = lines.mark_rule(color=SOFT, strokeWidth=1.4, aria=False)
    return rule.encode(y=axis(alt.Y, "level", **upright), strokeDash=dashes)


def _own_panel(template: dict[str, Any], facet: str, heights: list[float] | None) -> dict[str, Any]:
    """Copy a panel for one facet, with the ticks that suit its own figures."""
    panel = copy.deepcopy(template)
    panel["title"] = {"text": facet, "fontSize": 12, "fontWeight": "normal"}
    panel["transform"] = [{"filter": {"field": "facet", "equal": facet}}]
    for layer in panel["layer"] if heights is not None else ():
        layer["encoding"]["y"]["axis"]["values"] = decade_ticks(heights or [])
    return panel


def _heights(rows: Sequence[Row], facet: str | None = None) -> list[float]:
    """Return what a vertical axis must span, in all panels or in one."""
    ours = (row for row in rows if facet is None or row.get("facet") == facet)
    return [row["y"] if "y" in row else row["level"] for row in ours]


def _class_names(bounds: Sequence[float], as_percent: bool) -> list[str]:
    ends = [f"{100 * bound:.3g}%" if as_percent else f"{bound:.3g}" for bound in bounds]
    between = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    return [f"below {ends[0]}", *between, f"{ends[-1]} and more"]
