"""The chart builder: `plot` draws plain rows (dictionaries) as one of five kinds of chart.

Each kind turns rows into panels. Rows may have any text in them; rows whose figure is missing (None
or NaN) are left out. Every chart colours its `series`, in the order of `order` and then of their
first appearance, so that a series keeps its colour where others are missing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pegsynth.publishing.report.drawing import (
    HEAT,
    INK,
    SERIES,
    SHAPES,
    SOFT,
    Drawing,
    Place,
    Target,
    cut,
    width_of,
)
from pegsynth.publishing.report.panels import Frame, Key, Legend, Names, Numbers, Panel, Sheet
from pegsynth.publishing.report.wording import number, percent, printable

Row = Mapping[str, Any]
Kept = list[dict[str, Any]]

_TEXTS = frozenset(("category", "series", "label", "facet", "text", "column", "line"))
_DASHES = ("2 3", "7 3", "1 2", "9 3 2 3")
_LARGE, _FEW_PANELS, _LOWEST_CELL, _HIGHEST_CELL, _ROW_OF_FOREST, _BESIDE = 100, 4, 9, 28, 15, 80


@dataclass(frozen=True)
class Look:
    """How a chart looks; each kind takes what it has a use for.

    Parameters
    ----------
    order
        Series in the order of their colours; of a heat map the labels of columns and lines.
    title, x_title, y_title
        What is written above all panels, below and beside each.
    columns, width, height
        Panels side by side, and the size of one without its labels; 0: as is usual for the kind.
    as_percent, x_percent
        Whether figures are shares; those across, of a map.
    zero, log_x, log_y
        Whether the scale (of a map the one across) starts at zero; whether axes are logarithmic:
        only what is above zero is drawn then.
    categories
        Categories of histograms in order; by default as they first appear.
    reference, references
        A value to mark in every panel of a forest plot; the dashed lines of curves: rows with
        ``y``, ``series`` (what it is) and ``facet``.
    x_reference, y_reference
        Values of a map to mark with dashed lines, and what to write beside them.
    shared, own_x
        Whether all panels of curves have one vertical scale, and each a horizontal one of its own.
    steps
        Whether a curve stays level until its next point and has no marks there, as that of a
        distribution function; series then differ by their dashes.
    bounds
        Up to six rising bounds between the colours of a heat map.
    """

    order: Sequence[str] = ()
    title: str = ""
    x_title: str = ""
    y_title: str = ""
    columns: int = 0
    width: int = 0
    height: int = 0
    as_percent: bool = False
    x_percent: bool = False
    zero: bool = False
    log_x: bool = False
    log_y: bool = False
    categories: Sequence[str] = ()
    reference: float | None = None
    references: Sequence[Row] = ()
    x_reference: tuple[float | None, str] = (None, "")
    y_reference: tuple[float | None, str] = (None, "")
    shared: bool = False
    own_x: bool = False
    steps: bool = False
    bounds: Sequence[float] = ()


def plot(kind: str | Draw, rows: Iterable[Row], **look: Any) -> Drawing:
    """Draw rows.

    Parameters
    ----------
    kind
        One of ``histograms`` (rows with ``category``, ``value``, ``series`` and ``facet``; an
        ``original`` becomes a tick across the bar), ``forest_plot`` (``label``, ``value``, ``low``,
        ``high``, ``series``), ``curves`` (``x``, ``y``, ``low``, ``high``, ``series``, ``facet``),
        ``heat_map`` (``column``, ``line``, ``value``, ``text``) and ``risk_utility_map`` (``x`` and
        ``y``, their ends as ``x_low``.., ``series``, ``label``, ``text``; points of a series are
        joined in the order of ``path``); or a function that draws another.
    **look
        The fields of `Look`.
    """
    draw = _KINDS[kind] if isinstance(kind, str) else kind
    return draw(rows, Look(**look))


Draw = Callable[[Iterable[Row], Look], Drawing]


def kept_rows(
    rows: Iterable[Row], needed: Sequence[str] = ("value",), above_zero: Sequence[str] = ()
) -> Kept:
    """Copy rows with their texts made safe to draw; leave out those without a needed figure.

    Figures that are to be above zero, for a logarithmic axis, are as good as missing elsewhere.
    """
    kept: Kept = []
    for row in rows:
        copy: dict[str, Any] = {}
        for key, found in row.items():
            if key in _TEXTS:
                if found is not None:
                    copy[key] = printable(str(found))
            elif (
                isinstance(found, int | float)
                and math.isfinite(found)
                and (found > 0 or key not in above_zero)
            ):
                copy[key] = float(found)
        if all(name in copy for name in needed):
            kept.append({"series": "", **copy})
    return kept


def distinct(rows: Iterable[Row], key: str) -> list[str]:
    """List the values of a key in the order of their first appearance."""
    return list(dict.fromkeys(row[key] for row in rows if key in row))


def written(value: float, as_percent: bool) -> str:
    """Write a figure in words of its own."""
    return percent(value) if as_percent else number(value)


def _described(row: Row, about: Sequence[str], figures: str) -> str:
    """Return what a mark says when somebody points at it."""
    if row.get("text"):
        return str(row["text"])
    return f"{', '.join(row[key] for key in about if row.get(key))}: {figures}"


def _with_range(row: Row, as_percent: bool) -> str:
    figure = written(row["value"], as_percent)
    if "low" not in row or "high" not in row:
        return figure
    return f"{figure} ({written(row['low'], as_percent)} to {written(row['high'], as_percent)})"


@dataclass(frozen=True)
class Styles:
    """The series of a chart, each with its place among all that could be there."""

    places: Mapping[str, int]

    @classmethod
    def of(cls, rows: Kept, order: Sequence[str]) -> Styles:
        """Give each series its place: that in `order`, then as they first appear."""
        present = distinct(rows, "series")
        known = list(dict.fromkeys([*map(printable, order), *present]))
        return cls({name: place for place, name in enumerate(known) if name in present})

    @property
    def names(self) -> tuple[str, ...]:
        """The series that are drawn."""
        return tuple(self.places)

    def colour(self, series: str) -> str:
        """Return the colour of a series."""
        return SERIES[self.places[series] % len(SERIES)]

    def shape(self, series: str) -> str:
        """Return its shape, so that colour is never the only difference."""
        place = self.places[series] if len(self.places) > 1 else 0
        return tuple(SHAPES)[place % len(SHAPES)]

    def dash(self, series: str) -> str:
        """Return its dashes; the first has none."""
        place = self.names.index(series) % len(_DASHES)
        return _DASHES[place] if place else "none"

    def legends(self, mark: str) -> list[Legend]:
        """Return the legend with a ``box``, ``point`` or ``line`` for each; none of one series."""
        shapes = {"box": lambda name: "box", "line": self.dash, "point": self.shape}
        keys = [Key(name, self.colour(name), shapes[mark](name)) for name in self.names]
        return [Legend(keys)] if len(keys) > 1 else []


def _by_facet(rows: Kept) -> dict[str, Kept]:
    """Part rows into panels; one without a title where they have no facets."""
    facets = distinct(rows, "facet")
    return {name: [r for r in rows if r.get("facet") == name] for name in facets} or {"": rows}


def _interval(
    frame: Frame, row: Row, side: str, ends: tuple[str, str], **look: str | float
) -> None:
    """Draw an interval through the mark of a row, where it has both ends."""
    if not all(end in row for end in ends):
        return
    x, y = _at(frame, row)
    low, high = (getattr(frame, side)(row[end]) for end in ends)
    if side == "x":
        frame.brush.line((low, y), (high, y), **look)
    else:
        frame.brush.line((x, low), (x, high), **look)


def _at(frame: Frame, row: Row) -> Place:
    """Return where the mark of a row lies."""
    return frame.x(row["x"]), frame.y(row["y"])


def histograms(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw upright bars of shares by category, set apart by series, one panel for each facet."""
    kept = kept_rows(rows)
    ticked = any("original" in row for row in kept)
    styles = Styles.of(kept, look.order)
    names = [printable(name) for name in look.categories] or distinct(kept, "category")
    title = look.y_title or "Share of rows"
    heights = [row[key] for row in kept for key in ("value", "original") if key in row]
    y = Numbers.over(heights, title="share" if ticked else title, as_percent=True, zero=True)
    x = Names(names, printable(look.x_title), slanted=True)
    apart = 1 if ticked else max(1, len(styles.names))

    def paint(frame: Frame) -> None:
        wide = 0.85 * x.band(frame.panel.width) / apart
        for row in facets[frame.panel.title]:
            place = 0 if ticked else styles.names.index(row["series"])
            left = frame.x(row["category"]) - wide * apart / 2 + place * wide
            top, share = frame.y(row["value"]), percent(row["value"])
            says = _described(row, ("category", "series", "facet"), f"{title} {share}")
            if ticked:
                figures = f"{share}, original {percent(row.get('original', 0.0))}"
                says = _described(row, ("facet", "category"), figures)
            size, colour = (wide, max(frame.bottom - top, 0.0)), styles.colour(row["series"])
            frame.brush.box((left, top), size, colour, says=says)
            if "original" in row:
                tick = frame.y(row["original"])
                frame.brush.line((left, tick), (left + wide, tick), stroke=INK, stroke_width=2)

    facets, size = _by_facet(kept), (look.width or 460, look.height or 180)
    panels = [Panel(x, y, *size, paint, facet) for facet in facets]
    return Sheet(look.columns or 2, look.title, styles.legends("box")).arranged(panels)


def forest_plot(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw estimates with their intervals, one panel a label, each on a scale of its own."""
    kept = kept_rows(rows, ("value", "label"))
    styles = Styles.of(kept, look.order)
    size = look.width or 420, _ROW_OF_FOREST * max(1, len(styles.names)) + 6
    labels = {name: [r for r in kept if r["label"] == name] for name in distinct(kept, "label")}

    def paint(frame: Frame) -> None:
        frame.mark("x", look.reference)
        for row in labels[frame.panel.title]:
            row |= {"x": row["value"], "y": row["series"]}
            colour, shape = styles.colour(row["series"]), styles.shape(row["series"])
            _interval(frame, row, "x", ("low", "high"), stroke=colour, stroke_width=2)
            says = _described(row, ("label", "series"), _with_range(row, look.as_percent))
            frame.brush.point(_at(frame, row), shape, colour, radius=4, says=says)

    def across(ours: Kept) -> Numbers:
        values = [row[key] for row in ours for key in ("value", "low", "high") if key in row]
        values += [] if look.reference is None else [look.reference]
        return Numbers.over(values, as_percent=look.as_percent, zero=look.zero)

    y = Names(styles.names, shown=False)
    panels = [Panel(across(ours), y, *size, paint, label) for label, ours in labels.items()]
    return Sheet(1, look.title, styles.legends("point")).arranged(panels)


def curves(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw a line with intervals for each series, and dashed lines for what it is held against."""
    logs = {"x": look.log_x, "y": look.log_y, "low": look.log_y}
    above = [name for name, log in logs.items() if log]
    kept = kept_rows(rows, ("x", "y"), above)
    held = kept_rows(look.references, ("y", "series"), above)
    styles, facets = Styles.of(kept, look.order), _by_facet(kept)
    dashes = {
        name: _DASHES[place % len(_DASHES)] for place, name in enumerate(distinct(held, "series"))
    }
    # Many small panels say once, above them, what their axes are.
    many = len(facets) > _FEW_PANELS
    heading = f"{look.y_title}, against {look.x_title}" if many and look.y_title else look.title
    x_title, y_title = ("", "") if many else (look.x_title, look.y_title)

    def across(facet: str) -> Numbers:
        ours = facets[facet] if look.own_x else kept
        return Numbers.over([row["x"] for row in ours], title=x_title, log=look.log_x)

    def lines_of(facet: str) -> Kept:
        return [row for row in held if row.get("facet", "") == facet]

    def upward(facet: str) -> Numbers:
        ours = [*kept, *held] if look.shared else [*facets[facet], *lines_of(facet)]
        values = [row[key] for row in ours for key in ("y", "low", "high") if key in row]
        scale = {"as_percent": look.as_percent, "zero": look.steps, "log": look.log_y}
        return Numbers.over(values, title=y_title, **scale)

    def paint(frame: Frame) -> None:
        for row in lines_of(frame.panel.title):
            at, dash = frame.y(row["y"]), dashes[row["series"]]
            held_at = {"stroke": SOFT, "stroke_width": "1.4", "stroke_dasharray": dash}
            frame.brush.line((frame.left, at), (frame.right, at), **held_at)
        for name in styles.names:
            ours = [row for row in facets[frame.panel.title] if row["series"] == name]
            _curve(frame, sorted(ours, key=lambda row: row["x"]), look, styles)

    legends = styles.legends("line" if look.steps else "point")
    legends += [Legend([Key(name, SOFT, dash) for name, dash in dashes.items()])] if dashes else []
    size = look.width or 230, look.height or 170
    panels = [Panel(across(facet), upward(facet), *size, paint, facet) for facet in facets]
    return Sheet(look.columns or 3, heading, legends).arranged(panels)


def _curve(frame: Frame, rows: Kept, look: Look, styles: Styles) -> None:
    """Draw one series: its line, its intervals and its points; or its steps."""
    if not rows:
        return
    series, places = rows[0]["series"], [_at(frame, row) for row in rows]
    colour = styles.colour(series)
    if look.steps:
        corners = [(after[0], before[1]) for before, after in pairwise(places)]
        path = [at for pair in zip(places, [*corners, places[-1]], strict=True) for at in pair]
        dash = styles.dash(series)
        frame.brush.lines(path, stroke=colour, stroke_width=1.8, stroke_dasharray=dash)
        return
    frame.brush.lines(places, stroke=colour, stroke_width=1.5)
    for row, at in zip(rows, places, strict=True):
        _interval(frame, row, "y", ("low", "high"), stroke=colour, stroke_width=1.6)
        figures = f"{look.x_title} {number(row['x'])}: {written(row['y'], look.as_percent)}"
        says = ", ".join(filter(None, (row.get("facet"), series, figures)))
        frame.brush.point(at, styles.shape(series), colour, radius=3.2, says=says)


def heat_map(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw a grid of cells, coloured in steps; cells without a row stay blank.

    Its width holds where cells of at least 9 pixels allow it.
    """
    kept = kept_rows(rows, ("column", "line", "value"))
    named = [printable(name) for name in look.order]
    columns, lines = (
        [name for name in named if name in found] or found
        for found in (distinct(kept, "column"), distinct(kept, "line"))
    )
    wide = max(_LOWEST_CELL, (look.width or 330) / max(1, len(columns)))
    height = look.height / max(1, len(lines)) if look.height else wide
    tall = max(_LOWEST_CELL, min(height, _HIGHEST_CELL))

    def paint(frame: Frame) -> None:
        for row in kept:
            corner = frame.x(row["column"]) - wide / 2, frame.y(row["line"]) - tall / 2
            colour = HEAT[bisect_right(look.bounds, row["value"])]
            says = _described(row, ("line", "column"), written(row["value"], look.as_percent))
            frame.brush.box(corner, (wide - 1, tall - 1), colour, says=says)

    names = class_names(look.bounds, look.as_percent)
    legend = Legend([Key(name, HEAT[place]) for place, name in enumerate(names)], look.y_title)
    size = wide * max(1, len(columns)), tall * max(1, len(lines))
    panel = Panel(Names(columns, slanted=True), Names(lines), *size, paint)
    return Sheet(1, look.title, [legend]).arranged([panel])


def class_names(bounds: Sequence[float], as_percent: bool) -> list[str]:
    """Return what each colour of a heat map stands for."""
    scaled = [100 * bound if as_percent else bound for bound in bounds]
    unit = "%" if as_percent else ""
    ends = [f"{end:,.0f}{unit}" if end >= _LARGE else f"{end:.3g}{unit}" for end in scaled]
    between = [f"{low} to {high}" for low, high in pairwise(ends)]
    return [f"below {ends[0]}", *between, f"{ends[-1]} and more"]


def risk_utility_map(rows: Iterable[Row], look: Look) -> Drawing:
    """Draw points of risk against utility, by series, with intervals where points have them."""
    logs = (("x", look.log_x), ("x_low", look.log_x), ("y", look.log_y), ("y_low", look.log_y))
    kept = kept_rows(rows, ("x", "y"), [name for name, log in logs if log])
    styles = Styles.of(kept, look.order)

    def along(side: str, value: float | None) -> list[float]:
        keys = (side, f"{side}_low", f"{side}_high")
        found = [row[key] for row in kept for key in keys if key in row]
        return found if value is None else [*found, value]

    across, upward = along("x", look.x_reference[0]), along("y", look.y_reference[0])
    scale = {"as_percent": look.x_percent, "zero": look.zero, "log": look.log_x}
    x = Numbers.over(across, title=look.x_title, **scale)
    y = Numbers.over(upward, title=look.y_title, as_percent=look.as_percent, log=look.log_y)

    def paint(frame: Frame) -> None:
        brush = frame.brush
        for name in styles.names:
            ours = [row for row in kept if row["series"] == name and "path" in row]
            path = [_at(frame, row) for row in sorted(ours, key=lambda row: row["path"])]
            if path:
                brush.lines(path, stroke=styles.colour(name), stroke_width=1.2, opacity=0.6)
        for row in kept:
            for side in ("x", "y"):
                ends, colour = (f"{side}_low", f"{side}_high"), styles.colour(row["series"])
                _interval(frame, row, side, ends, stroke=colour, stroke_width=1.5, opacity=0.6)
        frame.mark("x", *look.x_reference)
        frame.mark("y", *look.y_reference)
        for row in kept:
            first = f"{look.x_title or 'x'} {written(row['x'], look.x_percent)}"
            second = f"{look.y_title or 'y'} {written(row['y'], look.as_percent)}"
            says = _described(row, ("series", "label"), f"{first}, {second}")
            at, colour = _at(frame, row), styles.colour(row["series"])
            brush.point(at, styles.shape(row["series"]), colour, radius=4.6, says=says)
            brush.targets.append(Target(*at, says))
        for row in kept:
            if label := cut(row.get("label", ""), _BESIDE):
                half = width_of(label) / 2
                x = min(max(frame.x(row["x"]), frame.left + half), frame.right - half)
                # In ink: some colours of points are too faint for letters.
                place = x, frame.y(row["y"]) - 8
                brush.words(place, label, fill=INK, text_anchor="middle")

    panel = Panel(x, y, look.width or 560, look.height or 340, paint)
    return Sheet(1, look.title, styles.legends("point")).arranged([panel])


_KINDS: dict[str, Draw] = {
    "histograms": histograms,
    "forest_plot": forest_plot,
    "curves": curves,
    "heat_map": heat_map,
    "risk_utility_map": risk_utility_map,
}
