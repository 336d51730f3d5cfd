"""What all figures share: rows made safe to draw, scales, colours, descriptions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt

from pegsynth.publishing.report.drawing import SERIES, SHAPES, SOFT, configuration
from pegsynth.publishing.report.wording import number, percent, printable

if TYPE_CHECKING:
    from pegsynth.publishing.report.drawing import Chart

Row = Mapping[str, Any]
Kept = list[dict[str, Any]]

DASHED: dict[str, Any] = {"aria": False, "color": SOFT, "strokeDash": [4, 3], "strokeWidth": 1.2}
_TEXTS = ("category", "series", "label", "facet", "describe", "column", "line")
_LEGEND_COLUMN = 125
_FEW, _PANEL_TITLE = 8, 50
_ROWS = "rows"
# Decades that an axis spans at most, and its ticks within each of them.
_STEPS = (
    (0.5, (1, 1.5, 2, 3, 4, 5, 6, 7, 8)),
    (1.2, (1, 2, 3, 5, 7)),
    (3.2, (1, 2, 5)),
    (math.inf, (1,)),
)


@dataclass(frozen=True)
class SeriesStyle:
    """The series of a figure with their colours and shapes."""

    names: tuple[str, ...]
    colours: tuple[str, ...]
    shapes: tuple[str, ...]

    def colour(self, width: int) -> alt.Color | alt.ColorValue:
        """Return the colour channel; a single series needs no legend."""
        if len(self.names) < 2:
            return alt.ColorValue(self.colours[0] if self.colours else SERIES[0])
        scale = alt.Scale(domain=list(self.names), range=list(self.colours))
        return alt.Color(field="series", type="nominal", scale=scale, legend=self.legend(width))

    def legend(self, width: int) -> alt.Legend:
        """Return the legend, in as many columns as there is room for."""
        return alt.Legend(title=None, orient="top", columns=max(1, width // _LEGEND_COLUMN))

    def shape(self) -> alt.Shape | alt.ShapeValue:
        """Return the shape channel, so that colour is never the only difference."""
        if len(self.names) < 2:
            return alt.ShapeValue("circle")
        scale = alt.Scale(domain=list(self.names), range=list(self.shapes))
        return alt.Shape(field="series", type="nominal", scale=scale)


def kept_rows(
    rows: Iterable[Row],
    keys: Mapping[str, str | None] | Sequence[str],
    *,
    needed: Sequence[str] = ("value",),
    above_zero: Sequence[str] = (),
) -> Kept:
    """Copy what is drawn under our own names; leave out rows without a needed figure.

    Parameters
    ----------
    rows
        What the caller has.
    keys
        Our name of each part, and the caller's key for it; None where there is none. A list of
        names where the caller has the same.
    needed
        Our names of what a row cannot do without.
    above_zero
        Our names of the figures on a logarithmic axis; others are as good as missing.
    """
    kept: Kept = []
    pairs = keys if isinstance(keys, Mapping) else {name: name for name in keys}
    for row in rows:
        copy: dict[str, Any] = {}
        for ours, theirs in pairs.items():
            found = row.get(theirs) if theirs is not None else None
            if ours in _TEXTS:
                if found is not None:
                    copy[ours] = printable(str(found))
            elif (figure := _finite(found)) is not None and (figure > 0 or ours not in above_zero):
                copy[ours] = figure
        if all(name in copy for name in needed):
            kept.append({"series": "", **copy})
    return kept


def describe(rows: Kept, about: str, *, title: str, as_percent: bool) -> None:
    """Write what each mark says when somebody points at it."""
    for row in rows:
        who = ", ".join(row[key] for key in (about, "series", "facet") if row.get(key))
        figure = written(row["value"], as_percent)
        if "low" in row and "high" in row:
            span = f"{written(row['low'], as_percent)} to {written(row['high'], as_percent)}"
            figure += f" ({span})"
        row["describe"] = f"{who}: {f'{title} ' if title else ''}{figure}"


def series_style(rows: Kept, order: Sequence[str]) -> SeriesStyle:
    """Give each series its colour: by its place in `order`, then as they first appear."""
    known = list(dict.fromkeys([*map(printable, order), *distinct(rows, "series")]))
    present = set(distinct(rows, "series"))
    places = [index for index, name in enumerate(known) if name in present]
    return SeriesStyle(
        tuple(known[i] for i in places),
        tuple(SERIES[i % len(SERIES)] for i in places),
        tuple(SHAPES[i % len(SHAPES)] for i in places),
    )


def distinct(rows: Kept, key: str) -> list[str]:
    """List the values of a key in the order of their first appearance."""
    return list(dict.fromkeys(row[key] for row in rows if key in row))


def has_intervals(rows: Kept, low: str, high: str) -> bool:
    """Say whether any row has both ends of an interval."""
    return any(low in row and high in row for row in rows)


def written(value: float, as_percent: bool) -> str:
    """Write a figure as the axes do."""
    return percent(value) if as_percent else number(value)


def axis(
    channel: type[Any],
    field: str,
    title: str,
    *,
    as_percent: bool = False,
    zero: bool = False,
    padding: int = 0,
    ticks: Sequence[float] | None = None,
) -> Any:
    """Return a position channel for figures.

    Parameters
    ----------
    channel
        ``alt.X`` or ``alt.Y``.
    zero, padding
        Whether the scale starts at zero, and the pixels it leaves free at its ends.
    ticks
        Ticks of a logarithmic scale; None for a linear one.
    """
    look: dict[str, Any] = {"format": ".3~%" if as_percent else ",.6~g"}
    look |= {"tickCount": 5, "labelOverlap": "greedy", "labelFlush": False}
    scale = alt.Scale(zero=zero, nice=True, padding=padding)
    if ticks is not None:
        look["values"] = list(ticks)
        scale = alt.Scale(type="log", nice=False, padding=padding or 10)
    return channel(
        field=field,
        type="quantitative",
        title=printable(title) or None,
        scale=scale,
        axis=alt.Axis(**look),
    )


def nominal(
    channel: type[Any],
    field: str,
    order: Sequence[Any],
    *,
    title: str = "",
    fixed: bool = False,
    **look: Any,
) -> Any:
    """Return a position channel for names, in order; `fixed` keeps a place for all of them."""
    more: dict[str, Any] = {"axis": alt.Axis(**look)} if look else {}
    if fixed:
        more["scale"] = alt.Scale(domain=order)
    title_or_none = printable(title) or None
    return channel(field=field, type="nominal", sort=order, title=title_or_none, **more)


def log_ticks(rows: Kept, field: str, *, log: bool) -> list[float] | None:
    """Choose ticks of a logarithmic axis: the values themselves if few, else 1, 2, 5, 10..

    Returns None for an axis that is not logarithmic.
    """
    if not log:
        return None
    values = sorted({row[field] for row in rows})
    if len(values) <= _FEW:
        return values
    low, high = (math.floor(math.log10(value)) for value in (values[0], values[-1]))
    steps = (1, 2, 5) if high - low < 3 else (1,)
    return [step * 10.0**power for power in range(low, high + 2) for step in steps]


def decade_ticks(values: Sequence[float]) -> list[float]:
    """Return the ticks of a logarithmic axis: the fewer, the more decades it spans."""
    low, high = math.log10(min(values, default=1.0)), math.log10(max(values, default=1.0))
    steps = next(steps for span, steps in _STEPS if high - low <= span)
    powers = range(math.floor(low) - 1, math.floor(high) + 2)
    return [step * 10.0**power for power in powers for step in steps]


def reference_line(side: str, value: float | None, title: str = "") -> list[Any]:
    """Return a dashed line at a value of ``"x"`` or ``"y"``, with its text; none for None."""
    if value is None:
        return []
    # Aggregated to one row, or the line would be drawn once for every row of the chart.
    once = alt.Chart().transform_aggregate(rows="count()")
    line = once.mark_rule(**DASHED).encode(**{side: alt.datum(value)})
    if not title:
        return [line]
    if side == "x":
        words = once.mark_text(text=printable(title), align="left", fill=SOFT, dx=5)
        return [line, words.encode(x=alt.datum(value), y=alt.value(8))]
    words = once.mark_text(text=printable(title), align="left", fill=SOFT, dy=-7)
    return [line, words.encode(x=alt.value(4), y=alt.datum(value))]


def description() -> alt.Description:
    """Return the channel that carries what a mark says of itself."""
    return alt.Description(field="describe", type="nominal")


def panels(chart: Any, rows: Kept, field: str | None, columns: int, *, spacing: int = 18) -> Any:
    """Split a chart into one panel for each value of a field; None leaves it whole.

    Long titles of panels go over several lines.
    """
    if field is None:
        return chart
    titles = {name: "\n".join(textwrap.wrap(name, _PANEL_TITLE)) for name in distinct(rows, field)}
    for row in rows:
        row["panel"] = titles.get(row.get(field, ""), "")
    header = alt.Header(
        labelAnchor="start", labelPadding=4, labelLimit=0, labelExpr="split(datum.label, '\\n')"
    )
    split = alt.Facet(
        field="panel", type="nominal", sort=list(titles.values()), title=None, header=header
    )
    grid = chart.facet(facet=split, columns=columns, spacing=spacing, data=alt.NamedData(_ROWS))
    # A last row with gaps leaves panels above them without an axis below.
    return grid.resolve_axis(x="independent") if len(titles) % columns else grid


def finish(chart: Any, rows: Kept, title: str = "", **size: int) -> Chart:
    """Give a chart its rows, its size, its title and the look that all share.

    Rows come last and by name: Altair copies and checks whatever a chart holds at each step.
    """
    finished: Chart = chart.properties(**size) if size else chart.copy()
    finished.data = alt.NamedData(_ROWS)
    finished.datasets = {_ROWS: rows}
    finished.config = configuration()
    if title:
        finished.title = printable(title)
    return finished


def _finite(value: Any) -> float | None:
    if value is None or isinstance(value, str) or not math.isfinite(value):
        return None
    return float(value)
