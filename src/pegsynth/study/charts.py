"""Charts that only the study needs: curves with their floors, and histograms.

Each takes plain rows and gives an Altair chart in the look that all figures share.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pegsynth.report.chart_parts import (
    SeriesStyle,
    axis,
    description,
    distinct,
    finish,
    has_intervals,
    kept_rows,
    log_ticks,
    panels,
    series_style,
    written,
)
from pegsynth.report.palette import INK, SOFT
from pegsynth.report.words import number, printable

if TYPE_CHECKING:
    from pegsynth.report.drawing import Chart

Row = Mapping[str, Any]

_DASHES = ([2, 3], [7, 3], [1, 2], [9, 3, 2, 3])
_REFERENCE_COLUMN = 190
_FEW_PANELS = 4
_BETWEEN = 26
_STEPS = (
    (0.5, (1, 1.5, 2, 3, 4, 5, 6, 7, 8)),
    (1.2, (1, 2, 3, 5, 7)),
    (3.2, (1, 2, 5)),
    (math.inf, (1,)),
)
"""Decades that an axis spans at most, and its ticks within each of them."""


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


def curves(
    rows: Iterable[Row],
    *,
    references: Iterable[Row] = (),
    x_title: str,
    y_title: str,
    order: Sequence[str] = (),
    columns: int = 3,
    log_x: bool = True,
    log_y: bool = True,
    shared: bool = False,
    as_percent: bool = False,
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
    order
        Series in the order of their colours.
    columns
        Panels side by side.
    log_x, log_y
        Whether an axis is logarithmic; only what is above zero is then drawn.
    shared
        Whether all panels have one vertical scale.
    as_percent
        Whether values are shares.
    """
    import altair as alt

    keys = {name: name for name in ("x", "y", "low", "high", "series", "facet")}
    above = [name for name, log in (("x", log_x), ("y", log_y), ("low", log_y)) if log]
    kept = kept_rows(rows, keys, needed=("x", "y"), above_zero=above)
    for row in kept:
        place = ", ".join(filter(None, (row.get("facet"), row["series"])))
        row["describe"] = f"{place}, {x_title} {number(row['x'])}: {written(row['y'], as_percent)}"
    lines = kept_rows(
        references,
        {"level": "y", "line": "series", "facet": "facet"},
        needed=("level", "line"),
        above_zero=("level",) if log_y else (),
    )
    style = series_style(kept, order)
    names = distinct(kept, "facet")
    across = width * min(columns, len(names)) if names else width
    # Many small panels say once, above them, what their axes are.
    many = len(names) > _FEW_PANELS
    x = axis(alt.X, "x", title="" if many else x_title, ticks=log_ticks(kept, "x", log=log_x))
    upright: dict[str, Any] = {"title": "" if many else y_title, "as_percent": as_percent}
    upright["ticks"] = _upright_ticks(_heights(kept, lines)) if log_y else None
    layers = _curve_layers(x, upright, style, across, spans=has_intervals(kept, "low", "high"))
    if lines:
        layers.insert(0, _reference_layer(upright, _dashes(distinct(lines, "line"), across)))
    panel = alt.layer(*layers).properties(width=width, height=height)
    heading = f"{y_title}, against {x_title}" if many else ""
    if not names or shared:
        everything = [*kept, *lines]
        split = panels(panel, everything, "facet" if names else None, columns, spacing=_BETWEEN)
        chart = split.resolve_scale(y="shared") if names else split
        return finish(chart, everything, heading)
    grid = alt.concat(panel, columns=columns, spacing=_BETWEEN)
    grid = grid.resolve_scale(color="shared", shape="shared", strokeDash="shared")
    specification = finish(grid, [*kept, *lines], heading).to_dict(validate=False)
    (template,) = specification["concat"]
    specification["concat"] = [
        _own_panel(template, name, _heights(kept, lines, facet=name) if log_y else None)
        for name in names
    ]
    return cast("Chart", Specification(specification))


def _own_panel(template: dict[str, Any], facet: str, heights: list[float] | None) -> dict[str, Any]:
    """Copy a panel for one facet, with the ticks that suit its own figures."""
    panel = copy.deepcopy(template)
    panel["title"] = {"text": facet, "fontSize": 12, "fontWeight": "normal"}
    panel["transform"] = [{"filter": {"field": "facet", "equal": facet}}]
    for layer in panel["layer"] if heights is not None else ():
        layer["encoding"]["y"]["axis"]["values"] = _upright_ticks(heights or [])
    return panel


def _heights(kept: Sequence[Row], lines: Sequence[Row], facet: str | None = None) -> list[float]:
    """Return what an axis must span, in all panels or in one."""
    rows = [row for row in (*kept, *lines) if facet is None or row.get("facet") == facet]
    return [row["y"] if "y" in row else row["level"] for row in rows]


def _curve_layers(
    x: Any, upright: dict[str, Any], style: SeriesStyle, across: int, *, spans: bool
) -> list[Any]:
    """Return the lines, intervals and points of one panel."""
    import altair as alt

    points = alt.Chart().transform_filter("isValid(datum.y)")
    base = points.encode(x=x, color=style.colour(across))
    layers: list[Any] = [
        base.mark_line(strokeWidth=1.5, aria=False).encode(y=axis(alt.Y, "y", **upright))
    ]
    if spans:
        span = base.transform_filter("isValid(datum.low)").mark_rule(strokeWidth=1.6, aria=False)
        layers.append(span.encode(y=axis(alt.Y, "low", **upright), y2=alt.Y2("high")))
    spot = base.mark_point(filled=True, size=32, opacity=1)
    layers.append(
        spot.encode(y=axis(alt.Y, "y", **upright), shape=style.shape(), description=description())
    )
    return layers


def histograms(
    rows: Iterable[Row],
    *,
    categories: Sequence[str],
    x_title: str,
    columns: int = 2,
    width: int = 330,
    height: int = 90,
) -> Chart:
    """Draw upright bars of shares, one panel a facet, with the original's shares as ticks.

    Parameters
    ----------
    rows
        ``category``, ``value``, ``original``, ``series`` (a colour) and ``facet``.
    """
    import altair as alt

    keys = {n: n for n in ("category", "value", "original", "series", "facet")}
    kept = kept_rows(rows, keys, needed=("category", "value"))
    for row in kept:
        shown = f"{row['facet']}, {row['category']}: {written(row['value'], True)}"
        row["describe"] = f"{shown}, original {written(row.get('original', 0.0), True)}"
    style = series_style(kept, ())
    names = [printable(name) for name in categories]
    look = alt.Axis(labelAngle=-50, labelLimit=80, labelOverlap=False, labelFontSize=9)
    places = alt.X(
        field="category",
        type="nominal",
        sort=names,
        title=x_title,
        axis=look,
        scale=alt.Scale(domain=names),
    )
    scale: dict[str, Any] = {"title": "share", "as_percent": True, "zero": True}
    bars = alt.Chart().mark_bar(opacity=0.85)
    ticks = alt.Chart().mark_tick(color=INK, thickness=2, aria=False)
    panel = alt.layer(
        bars.encode(
            x=places,
            y=axis(alt.Y, "value", **scale),
            color=style.colour(width * columns),
            description=description(),
        ),
        ticks.encode(x=places, y=axis(alt.Y, "original", **scale)),
    ).properties(width=width, height=height)
    return finish(panels(panel, kept, "facet", columns, spacing=10), kept, "")


def _upright_ticks(values: Sequence[float]) -> list[float]:
    """Return the ticks of a logarithmic axis: the fewer, the more decades it spans."""
    low, high = math.log10(min(values, default=1.0)), math.log10(max(values, default=1.0))
    steps = next(steps for span, steps in _STEPS if high - low <= span)
    powers = range(math.floor(low) - 1, math.floor(high) + 2)
    return [step * 10.0**power for power in powers for step in steps]


def _dashes(names: list[str], across: int) -> Any:
    """Return the channel that tells dashed lines apart."""
    import altair as alt

    return alt.StrokeDash(
        field="line",
        type="nominal",
        scale=alt.Scale(domain=names, range=[_DASHES[i % len(_DASHES)] for i in range(len(names))]),
        legend=alt.Legend(
            title=None, orient="top", columns=max(1, across // _REFERENCE_COLUMN), symbolSize=300
        ),
    )


def _reference_layer(upright: dict[str, Any], dashes: Any) -> Any:
    import altair as alt

    lines = alt.Chart().transform_filter("isValid(datum.level)")
    rule = lines.mark_rule(color=SOFT, strokeWidth=1.4, aria=False)
    return rule.encode(y=axis(alt.Y, "level", **upright), strokeDash=dashes)
