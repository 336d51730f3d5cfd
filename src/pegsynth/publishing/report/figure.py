"""A drawn figure as part of a page: cleaned, coloured by the style sheet, with hover.

Goes in: SVG as vl-convert draws it. Comes out: SVG with the elements and attributes listed
here and no others, colours as variables of the page, and a title on every mark that says
something of itself. A map also gets targets that mouse and keyboard reach, each with a
label that the style sheet shows; no script is needed. Colour bars keep their gradients, under
names that no other figure of the page has. The same figure gives the same text.

A figure of a page: how to draw it at any width, and the same figures as a table.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from pegsynth.publishing.report.drawing import VARIABLES, svg_of
from pegsynth.views import Kind

if TYPE_CHECKING:
    from pegsynth.publishing.report.drawing import Chart


_SVG = "{http://www.w3.org/2000/svg}"
_ELEMENTS = {"svg", "g", "path", "rect", "line", "text", "tspan"}
_ATTRIBUTES = (
    *("d", "x", "y", "x1", "y1", "x2", "y2", "dx", "dy", "width", "height", "transform"),
    *("fill", "stroke", "stroke-width", "stroke-dasharray"),
    *("opacity", "fill-opacity", "stroke-opacity", "font-size", "font-weight", "text-anchor"),
)
_NO_CHANGE = {"opacity": "1", "transform": "translate(0,0)"}
_GRADIENT = ("x1", "y1", "x2", "y2")
_REFERENCE = re.compile(r"url\(#(.*)\)")
_NAME_LENGTH = 12
_DECIMALS = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_TRANSLATE = re.compile(r"translate\(([-\d.e]+),([-\d.e]+)\)")

FOCUSABLE = 60
_TARGET, _LINE, _LETTER, _LETTERS, _MARGIN = 11, 15, 6.1, 36, 8


@dataclass(frozen=True)
class _Target:
    """A mark that can be pointed at."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class _Drawing:
    """What the parts of one figure share: its gradients by name, and the marks found."""

    gradients: Mapping[str, str]
    titles: bool
    found: list[_Target] = field(default_factory=list)


def inline_svg(svg: str, *, label: str, targets: bool = False, scale: float = 1.0) -> str:
    """Turn a drawn figure into a part of a page.

    Parameters
    ----------
    svg
        As drawn.
    label
        What the figure shows, for those who do not see it.
    targets
        Whether its marks are points that somebody may want to point at one by one. Those on
        top, drawn last, are also reached by keyboard: `FOCUSABLE` at most.
    scale
        Size on the page, where there is room, over the size as drawn.
    """
    root = ET.fromstring(svg)
    width, height = (round(float(root.get(side, "0"))) for side in ("width", "height"))
    gradients = _gradients(root, label)
    drawing = _Drawing({name: new for name, (new, _) in gradients.items()}, not targets)
    children = list(root)
    if children and children[0].tag == f"{_SVG}rect":
        children = children[1:]
    inside = "".join(text for _, text in gradients.values())
    inside += "".join(_cleaned(child, 0.0, 0.0, drawing) for child in children)
    role = "group" if targets else "img"
    hits = _targets(drawing.found, width, height) if targets else ""
    return (
        f'<svg class="chart" role="{role}" aria-label="{escape(label)}" '
        f'viewBox="0 0 {width} {height}" width="{scale * width:.0f}" '
        f'height="{scale * height:.0f}">{inside}{hits}</svg>'
    )


def _gradients(root: ET.Element, label: str) -> dict[str, tuple[str, str]]:
    """Return each gradient by its name in the drawing: its name on the page, and its text.

    A name on the page is made of the figure's label and of what the gradient is: drawings
    count theirs alike, and all figures of a page share one space of names.
    """
    gradients = {}
    for element in root.iter(f"{_SVG}linearGradient"):
        stops = "".join(
            f'<stop offset="{escape(stop.get("offset", "0"))}" '
            f'stop-color="{escape(_coloured(stop.get("stop-color", "none")))}"/>'
            for stop in element.iter(f"{_SVG}stop")
        )
        place = "".join(_plain(element, key) for key in _GRADIENT)
        digest = hashlib.sha256(f"{label}\n{place}{stops}".encode(errors="replace")).hexdigest()
        name = f"gradient-{digest[:_NAME_LENGTH]}"
        text = f'<linearGradient id="{name}"{place}>{stops}</linearGradient>'
        gradients[element.get("id", "")] = name, text
    return gradients


def _cleaned(element: ET.Element, x: float, y: float, drawing: _Drawing) -> str:
    name = element.tag.removeprefix(_SVG)
    if name not in _ELEMENTS or element.get("display") == "none" or _is_blank(element):
        return ""
    if shift := _TRANSLATE.match(element.get("transform", "")):
        x, y = x + float(shift[1]), y + float(shift[2])
    inside = "".join(_cleaned(child, x, y, drawing) for child in element)
    says = element.get("aria-label", "") if name in ("path", "rect") else ""
    if says:
        drawing.found.append(_Target(x, y, says))
        inside += f"<title>{escape(says, quote=False)}</title>" if drawing.titles else ""
    inside += escape(element.text or "", quote=False)
    if name == "g" and not inside:
        return ""
    attributes = "".join(_attribute(element, key, drawing) for key in _ATTRIBUTES)
    if name == "g" and not attributes:
        return inside
    return f"<{name}{attributes}>{inside}</{name}>" if inside else f"<{name}{attributes}/>"


def _is_blank(element: ET.Element) -> bool:
    if element.get("class") not in ("background", "foreground"):
        return False
    return element.get("stroke") is None and element.get("fill") is None


def _attribute(element: ET.Element, key: str, drawing: _Drawing) -> str:
    if reference := _REFERENCE.fullmatch(element.get(key, "")):
        name = drawing.gradients.get(reference[1])
        return f' {key}="{f"url(#{name})" if name else "none"}"'
    return _plain(element, key)


def _plain(element: ET.Element, key: str) -> str:
    value = element.get(key)
    if value is None or value == _NO_CHANGE.get(key):
        return ""
    value = _DECIMALS.sub(lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), _coloured(value))
    return f' {key}="{escape(value)}"'


def _coloured(value: str) -> str:
    """Return a colour of the palette as a variable of the page, and anything else as it is."""
    return VARIABLES.get(value, value)


def _targets(found: list[_Target], width: int, height: int) -> str:
    return "".join(
        _target(target, width, height, focusable=place >= len(found) - FOCUSABLE)
        for place, target in enumerate(found)
    )


def _target(target: _Target, width: int, height: int, *, focusable: bool) -> str:
    lines = textwrap.wrap(target.text, min(_LETTERS, int(width / _LETTER) - 4)) or [""]
    wide = max(map(len, lines)) * _LETTER + 2 * _MARGIN
    tall = len(lines) * _LINE + _MARGIN
    left = target.x + _TARGET if target.x < width / 2 else target.x - _TARGET - wide
    left = min(max(left, 0), width - wide)
    top = min(max(target.y - tall - 4, 0), height - tall)
    spans = "".join(
        f'<tspan x="{left + _MARGIN:.0f}" y="{top + (i + 1) * _LINE:.0f}">'
        f"{escape(line, quote=False)}</tspan>"
        for i, line in enumerate(lines)
    )
    named = f' tabindex="0" role="img" aria-label="{escape(target.text)}"' if focusable else ""
    return (
        f'<g class="hit"{named}>'
        f'<circle cx="{target.x:.1f}" cy="{target.y:.1f}" r="{_TARGET}"/>'
        f'<g class="tip"><rect x="{left:.0f}" y="{top:.0f}" width="{wide:.0f}" '
        f'height="{tall:.0f}" rx="4"/><text>{spans}</text></g></g>'
    )


# A number, with a sign, unit or interval; what was not computed; nothing.
_FIGURE = re.compile(r"(?:[<>~≤≥≈(\[]?\s*[-+]?[\d.][^a-zA-Z]{0,24}|n/a|)$|-?[\d.,%]+ to ")


@dataclass(frozen=True)
class Table:
    """A table of text; the first column names its rows.

    Parameters
    ----------
    columns
        Headings.
    rows
        Cells as text, as many in each row as there are columns.
    caption
        What it shows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    @property
    def figures(self) -> tuple[bool, ...]:
        """Say of each column but the first whether it holds short figures and no words."""
        return tuple(
            place > 0 and all(_FIGURE.match(row[place]) for row in self.rows)
            for place in range(len(self.columns))
        )


@dataclass(frozen=True)
class Figure:
    """One figure.

    Parameters
    ----------
    name
        A word for its anchor and its files.
    title, caption
        Heading, and what to see in it.
    chart
        A chart, or a function that makes one when it is needed.
    table
        The same in figures, for those who do not see it; None where another figure has it.
    targets
        Whether its points can be pointed at one by one.
    """

    name: str
    title: str
    caption: str
    chart: Chart | Callable[[], Chart]
    table: Table | None = None
    targets: bool = False


def chart(kind: Kind, rows: Sequence[Mapping[str, Any]], **options: Any) -> Callable[[], Chart]:
    """Return what draws rows by a function of the chart builder, once it is needed.

    The builder is loaded then, too: records are turned into figures and tables without it.
    """

    def made() -> Chart:
        builder = import_module("pegsynth.publishing.report.charts")
        found: Chart = getattr(builder, kind)(rows, **options)
        return found

    return made


def chart_of(figure: Figure) -> Chart:
    """Return the chart of a figure."""
    return figure.chart() if callable(figure.chart) else figure.chart


def drawn(figure: Figure, *, scale: float = 1.0) -> dict[str, Any]:
    """Draw a figure for the page, at `scale` times its size where there is room."""
    svg = svg_of(chart_of(figure))
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "svg": inline_svg(svg, label=figure.title, targets=figure.targets, scale=scale),
        "table": figure.table,
    }


def table_of(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", most: int = 200
) -> Table:
    """Make a table of at most so many rows; the caption says when there are more."""
    kept = tuple(tuple(row) for row in rows[:most])
    if len(rows) > most:
        caption = f"{caption} (the first {most:,} of {len(rows):,} rows)".strip()
    return Table(tuple(columns), kept, caption)
