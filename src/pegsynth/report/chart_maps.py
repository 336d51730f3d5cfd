"""Maps: a grid of coloured cells, and risk against utility."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from pegsynth.report.chart_parts import (
    Row,
    axis,
    description,
    finish,
    has_intervals,
    kept_rows,
    log_ticks,
    reference_line,
    series_style,
    written,
)
from pegsynth.report.palette import HEAT, PAPER
from pegsynth.report.words import printable

if TYPE_CHECKING:
    from pegsynth.report.drawing import Chart

_LOWEST_CELL, _HIGHEST_CELL = 9, 28
_CLASS_COLUMN = 105
_NICE = (1, 2, 2.5, 5, 10)


def heat_map(
    rows: Iterable[Row],
    *,
    x: str,
    y: str,
    value: str,
    text: str | None = None,
    order: Sequence[str] = (),
    steps: Sequence[float] = (),
    value_title: str = "",
    title: str = "",
    as_percent: bool = False,
    width: int = 330,
) -> Chart:
    """Draw a grid of cells, coloured in steps.

    Parameters
    ----------
    rows
        One cell each; cells without a row stay blank.
    x, y, value, text
        Keys of a row: its column, its line, its figure and what it says of itself when
        pointed at.
    order
        Labels of columns and lines in order; by default as they first appear.
    steps
        Up to six rising bounds between colours; by default even ones up to the largest figure.
    as_percent
        Whether values are shares.
    width
        Width of the grid, where cells of at least 9 pixels allow it.
    """
    import altair as alt

    keys = {"column": x, "line": y, "value": value, "describe": text}
    kept = kept_rows(rows, keys, needed=("column", "line", "value"))
    for row in kept:
        place = f"{row['line']}, {row['column']}"
        row.setdefault("describe", f"{place}: {written(row['value'], as_percent)}")
    named = [printable(name) for name in order]
    columns, lines = (_in_order([r[side] for r in kept], named) for side in ("column", "line"))
    bounds = list(steps) or _even_steps(max((r["value"] for r in kept), default=1.0))
    classes = _class_names(bounds, as_percent)
    for row in kept:
        row["class"] = classes[bisect_right(bounds, row["value"])]
    legend = alt.Legend(
        title=printable(value_title) or None,
        columns=max(1, width // _CLASS_COLUMN),
        symbolType="square",
        symbolStrokeWidth=0,
    )
    scale = alt.Scale(domain=classes, range=list(HEAT[: len(classes)]))
    look: dict[str, Any] = {"domain": False, "ticks": False, "labelLimit": 110}
    chart = (
        alt.Chart()
        .mark_rect(stroke=PAPER, strokeWidth=1)
        .encode(
            x=alt.X(
                field="column",
                type="nominal",
                sort=columns,
                title=None,
                axis=alt.Axis(labelAngle=-60, **look),
            ),
            y=alt.Y(field="line", type="nominal", sort=lines, title=None, axis=alt.Axis(**look)),
            color=alt.Color(field="class", type="nominal", scale=scale, legend=legend),
            description=description(),
        )
    )
    side = max(_LOWEST_CELL, width / max(1, len(columns)))
    tall = min(side, _HIGHEST_CELL) * max(1, len(lines))
    return finish(chart, kept, title, width=round(side * max(1, len(columns))), height=round(tall))


def risk_utility_map(
    points: Iterable[Row],
    *,
    x: str,
    y: str,
    series: str,
    label: str | None = None,
    text: str | None = None,
    x_low: str | None = None,
    x_high: str | None = None,
    y_low: str | None = None,
    y_high: str | None = None,
    path: str | None = None,
    x_reference: float | None = None,
    y_reference: float | None = None,
    x_reference_title: str = "",
    y_reference_title: str = "",
    x_title: str = "",
    y_title: str = "",
    title: str = "",
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
        Any number of points; on a logarithmic axis only those above zero are drawn.
    x, y, series, label, text
        Keys of a point: its place, its colour and shape, a few letters beside it, and what
        it says of itself when pointed at (by default all of these).
    x_low, x_high, y_low, y_high
        Keys of its intervals.
    path
        Key of a number; the points of a series are joined in its order.
    x_reference, y_reference
        Values to mark with dashed lines.
    x_reference_title, y_reference_title
        What to write beside these lines.
    order
        Series in the order of colours and legend; by default as they first appear.
    x_percent, y_percent
        Whether figures are shares.
    x_zero
        Whether the horizontal axis starts at zero.
    width, height
        Size of the plot without its labels.
    """
    import altair as alt

    keys = {"x": x, "y": y, "series": series, "label": label, "describe": text, "path": path}
    ends = {"x_low": x_low, "x_high": x_high, "y_low": y_low, "y_high": y_high}
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
    layers += reference_line("x", x_reference, x_reference_title)
    layers += reference_line("y", y_reference, y_reference_title)
    spot = base.mark_point(filled=True, size=70, opacity=1)
    layers.append(spot.encode(shape=style.shape(), description=description()))
    if label is not None:
        beside = base.mark_text(dy=-10, fontSize=10)
        layers.append(beside.encode(text=alt.Text(field="label", type="nominal")))
    return finish(alt.layer(*layers), kept, title, width=width, height=height)


def _in_order(found: list[str], order: list[str]) -> list[str]:
    present = dict.fromkeys(found)
    return [name for name in order if name in present] or list(present)


def _class_names(bounds: list[float], as_percent: bool) -> list[str]:
    ends = [f"{100 * bound:.3g}%" if as_percent else f"{bound:.3g}" for bound in bounds]
    between = [f"{low} to {high}" for low, high in itertools.pairwise(ends)]
    return [f"below {ends[0]}", *between, f"{ends[-1]} and more"]


def _even_steps(largest: float) -> list[float]:
    if largest <= 0:
        return [1.0]
    rough = largest / len(HEAT)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(nice * power for nice in _NICE if nice * power >= rough * (1 - 1e-9))
    return [step * k for k in range(1, len(HEAT)) if step * (k - 1) < largest]
