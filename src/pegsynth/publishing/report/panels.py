"""Panels side by side: axes with round ticks, legends, titles, and room for all of their words.

A panel is two axes and a function that paints between them. `Sheet.arranged` gives every panel its
place and makes one drawing of all.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegsynth.publishing.report.drawing import (
    INK,
    LINE,
    SHAPES,
    SIZE,
    SOFT,
    Brush,
    Drawing,
    cut,
    width_of,
)
from pegsynth.publishing.report.wording import printable

Paint = Callable[["Frame"], None]

_SLANT, _LONGEST_NAME, _LONGEST_SLANTED = 50, 170, 90
_TITLE_LINE, _LEGEND_LINE, _BETWEEN, _EDGE = 17, 17, 18, 8
_TICKS, _FEW = 5, 8
_FURTHEST = 4e307
"""Where an axis ends at the latest: the distance of two ends further out would overflow."""
# Decades that a logarithmic axis spans at most, and its ticks within each of them.
_STEPS = (
    (0.5, (1, 1.5, 2, 3, 4, 5, 6, 7, 8)),
    (1.2, (1, 2, 3, 5, 7)),
    (3.2, (1, 2, 5)),
    (math.inf, (1,)),
)


@dataclass(frozen=True)
class Numbers:
    """An axis of figures: its ends, its ticks with texts, and pixels left free at both ends."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str = ""
    log: bool = False
    free: int = 0

    @classmethod
    def over(
        cls,
        values: Sequence[float],
        *,
        title: str = "",
        as_percent: bool = False,
        zero: bool = False,
        log: bool = False,
    ) -> Numbers:
        """Return an axis that holds these values, with round ticks."""
        low = max(min(values, default=0.0), -_FURTHEST)
        high = min(max(values, default=1.0), _FURTHEST)
        if log:
            low, high = min(values, default=0.1), max(values, default=1.0)
            ticks = log_ticks(sorted(set(values)))
            free = 10
        else:
            low, high = (min(low, 0.0), max(high, 0.0)) if zero else (low, high)
            if low == high:
                low, high = (0.0, 1.0) if zero else (low - 0.5, high + 0.5)
            step = _step(low, high)
            first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
            ticks = [each * step for each in range(first, last + 1)]
            low, high, free = ticks[0], ticks[-1], 0 if zero else 4
        shown = tuple((tick, _tick_text(tick, as_percent)) for tick in ticks if low <= tick <= high)
        return cls(low, high, shown, printable(title), log, free)

    def place(self, value: float, length: float) -> float:
        """Return how many pixels from the start a value lies."""
        low, high = self.low, self.high
        at = min(max(value, low), high) if abs(value) > _FURTHEST else value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(at)
        part = 0.5 if high == low else (at - low) / (high - low)
        return self.free + part * (length - 2 * self.free)


@dataclass(frozen=True)
class Names:
    """An axis of names, each with a band of its own; `shown` writes them, `slanted` aslant."""

    names: Sequence[str]
    title: str = ""
    shown: bool = True
    slanted: bool = False

    def band(self, length: float) -> float:
        """Return the width of a band."""
        return length / max(1, len(self.names))

    def place(self, name: str, length: float) -> float:
        """Return the middle of the band of a name."""
        return (self.names.index(name) + 0.5) * self.band(length)

    @property
    def ticks(self) -> tuple[tuple[str, str], ...]:
        """The names as they are written."""
        room = _LONGEST_SLANTED if self.slanted else _LONGEST_NAME
        return tuple((name, cut(name, room)) for name in self.names) if self.shown else ()


Axis = Numbers | Names


@dataclass(frozen=True)
class Panel:
    """Two axes, the size between them, and what paints there."""

    x: Axis
    y: Axis
    width: float
    height: float
    paint: Paint
    title: str = ""


@dataclass(frozen=True)
class Frame:
    """A panel in its place: where its figures lie on the drawing."""

    brush: Brush
    panel: Panel
    left: float
    top: float

    def x(self, value: Any) -> float:
        """Return where a value lies across."""
        return self.left + self.panel.x.place(value, self.panel.width)

    def y(self, value: Any) -> float:
        """Return where a value lies: figures rise upward, names follow each other downward."""
        place = self.panel.y.place(value, self.panel.height)
        named = isinstance(self.panel.y, Names)
        return self.top + (place if named else self.panel.height - place)

    @property
    def right(self) -> float:
        """The right end."""
        return self.left + self.panel.width

    @property
    def bottom(self) -> float:
        """The lower end."""
        return self.top + self.panel.height

    def axes(self) -> None:
        """Draw grid lines, ticks and titles."""
        brush, across, upward = self.brush, self.panel.x, self.panel.y
        for value, _ in across.ticks if isinstance(across, Numbers) else ():
            at = self.x(value)
            brush.line((at, self.top), (at, self.bottom), stroke=LINE)
        for value, _ in upward.ticks if isinstance(upward, Numbers) else ():
            at = self.y(value)
            brush.line((self.left, at), (self.right, at), stroke=LINE)
        if across.ticks:
            brush.line((self.left, self.bottom), (self.right, self.bottom), stroke=SOFT)
        if isinstance(upward, Numbers):
            brush.line((self.left, self.top), (self.left, self.bottom), stroke=SOFT)
        free = -math.inf
        for tick, text in across.ticks:
            at, slanted = self.x(tick), isinstance(across, Names) and across.slanted
            wide = SIZE if slanted else width_of(text)
            if at - wide / 2 < free:
                continue
            free = at + wide / 2 + (0 if slanted else 4)
            if slanted:
                turn = f"rotate(-{_SLANT} {at:.2f} {self.bottom + 9:.2f})"
                place = (at, self.bottom + 9)
                brush.words(place, text, text_anchor="end", transform=turn)
            else:
                brush.words((at, self.bottom + 14), text, text_anchor="middle")
        free = math.inf
        labels = [(self.y(tick), text) for tick, text in upward.ticks]
        for at, text in sorted(labels, reverse=True):
            if at > free:
                continue
            free = at - SIZE
            brush.words((self.left - 6, at + 4), text, text_anchor="end")

    def mark(self, side: str, value: float | None, title: str = "") -> None:
        """Draw a dashed line across at a value, with what it is; nothing for None."""
        if value is None:
            return
        look = {"stroke": SOFT, "stroke_dasharray": "4 3", "stroke_width": "1.2"}
        if side == "x":
            at = self.x(value)
            self.brush.line((at, self.top), (at, self.bottom), **look)
            end = width_of(title) + 5 > self.right - at
            place = (at - 5 if end else at + 5, self.top + 10)
            self.brush.words(place, printable(title), text_anchor="end" if end else "start")
            return
        at = self.y(value)
        self.brush.line((self.left, at), (self.right, at), **look)
        self.brush.words(
            (self.left + 4, at - 5 if at > self.top + 16 else at + 13), printable(title)
        )


@dataclass(frozen=True)
class Key:
    """An entry of a legend: a name, its colour, and a shape, a ``box`` or the dashes of a line."""

    name: str
    colour: str
    mark: str = "box"


@dataclass(frozen=True)
class Legend:
    """Names with the marks that stand for them."""

    keys: Sequence[Key]
    title: str = ""

    def drawn(self, brush: Brush, top: float, total: float) -> float:
        """Draw it in as many columns as there is room for; return where it ends."""
        if self.title:
            top += _LEGEND_LINE
            brush.words((_EDGE, top - 5), self.title, fill=INK, font_size=12, font_weight=600)
        names = [cut(key.name, 200) for key in self.keys]
        column = max(map(width_of, names), default=0.0) + 40
        across = max(1, int(total // column))
        for place, (name, key) in enumerate(zip(names, self.keys, strict=True)):
            x, y = _EDGE + place % across * column, top + place // across * _LEGEND_LINE + 8
            if key.mark == "box":
                brush.box((x + 10, y - 6), (12, 12), key.colour)
            elif key.mark in SHAPES:
                brush.point((x + 14, y), key.mark, key.colour, radius=4)
            else:
                look = {"stroke": key.colour, "stroke_width": "1.8", "stroke_dasharray": key.mark}
                brush.line((x, y), (x + 24, y), **look)
            brush.words((x + 28, y + 4), name)
        return top + -(-len(names) // across) * _LEGEND_LINE + 4


@dataclass
class Sheet:
    """Panels side by side under a title and legends."""

    columns: int = 1
    title: str = ""
    legends: list[Legend] = field(default_factory=list)

    def arranged(self, panels: Sequence[Panel]) -> Drawing:
        """Put the panels into their places and paint them."""
        brush = Brush()
        columns = max(1, min(self.columns, len(panels)))
        left = max((_left_of(each) for each in panels), default=0.0)
        right = max((_right_of(each) for each in panels), default=0.0)
        wide = max((each.width for each in panels), default=100.0)
        span = left + wide + right
        total = columns * span + (columns - 1) * _BETWEEN
        top = float(_EDGE)
        for line in _wrapped(printable(self.title), total, bold=True):
            top += _TITLE_LINE
            brush.words((_EDGE, top - 4), line, fill=INK, font_size=13, font_weight=600)
        for legend in self.legends:
            top = legend.drawn(brush, top, total)
        for start in range(0, len(panels), columns):
            row = panels[start : start + columns]
            titles = [_wrapped(each.title, each.width + left) for each in row]
            above = max(map(len, titles)) * _TITLE_LINE + _EDGE
            for place, (panel, lines) in enumerate(zip(row, titles, strict=True)):
                x = _EDGE + place * (span + _BETWEEN)
                for line_number, line in enumerate(lines, start=1):
                    at = (x + left, top + line_number * _TITLE_LINE - 4)
                    at = (x, at[1]) if width_of(line, size=12) > panel.width else at
                    brush.words(at, line, fill=INK, font_size=12)
                frame = Frame(brush, panel, x + left, top + above)
                frame.axes()
                _write_titles(frame, left)
                panel.paint(frame)
            top += above + max(each.height + _below(each) for each in row)
        width = round(total + 2 * _EDGE)
        return Drawing(width, round(top + _EDGE), brush.body, tuple(brush.targets))


def _write_titles(frame: Frame, left: float) -> None:
    panel = frame.panel
    look = {"fill": INK, "font_size": "12", "font_weight": "600", "text_anchor": "middle"}
    if panel.x.title:
        at = ((frame.left + frame.right) / 2, frame.bottom + _below(panel) - 5)
        text = cut(panel.x.title, panel.width)
        frame.brush.words(at, text, **look)
    if panel.y.title:
        x, y = frame.left - left + 10, (frame.top + frame.bottom) / 2
        text, turn = cut(panel.y.title, panel.height + 20), f"rotate(-90 {x:.2f} {y:.2f})"
        frame.brush.words((x, y), text, transform=turn, **look)


def _left_of(panel: Panel) -> float:
    """Return the room that labels need beside a panel."""
    wide = max((width_of(text) for _, text in panel.y.ticks), default=0.0)
    room = (wide + 8 if wide else 2) + (18 if panel.y.title else 0)
    if isinstance(panel.x, Names) and panel.x.slanted:
        aslant = math.cos(math.radians(_SLANT))
        for place, (_, text) in enumerate(panel.x.ticks):
            middle = (place + 0.5) * panel.x.band(panel.width)
            room = max(room, width_of(text) * aslant + 8 - middle)
    elif panel.x.ticks:
        room = max(room, width_of(panel.x.ticks[0][1]) / 2)
    return room


def _right_of(panel: Panel) -> float:
    if isinstance(panel.x, Names):
        return 4
    return max((width_of(text) / 2 for _, text in panel.x.ticks[-1:]), default=0.0) + 2


def _below(panel: Panel) -> float:
    """Return the room that labels need below a panel."""
    tall = 20.0 if panel.x.ticks else 4.0
    if isinstance(panel.x, Names) and panel.x.slanted:
        longest = max((width_of(text) for _, text in panel.x.ticks), default=0.0)
        tall = longest * math.sin(math.radians(_SLANT)) + 16
    return tall + (20 if panel.x.title else 4)


def _wrapped(text: str, room: float, *, bold: bool = False) -> list[str]:
    """Part a text into lines that fit about."""
    if not text:
        return []
    letter = width_of(text, size=13 if bold else 12, bold=bold) / len(text)
    return textwrap.wrap(text, max(10, int(room / letter)))


def _step(low: float, high: float) -> float:
    """Return the round distance between about five ticks."""
    rough = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(
        (step for bound, step in ((7.07, 10), (3.16, 5), (1.41, 2)) if rough / power >= bound), 1
    )


def log_ticks(values: Sequence[float]) -> list[float]:
    """Return the ticks of a logarithmic axis: the values themselves if few, else round ones.

    The more decades it spans the fewer there are in each.
    """
    if len(values) <= _FEW:
        return list(values)
    low, high = math.log10(values[0]), math.log10(values[-1])
    steps = next(steps for span, steps in _STEPS if high - low <= span)
    powers = range(math.floor(low) - 1, math.floor(high) + 2)
    return [step * 10.0**power for power in powers for step in steps]


def _tick_text(value: float, as_percent: bool) -> str:
    if as_percent:
        return f"{100 * value:.3g}%"
    return f"{value:,.0f}" if 1e5 <= abs(value) < 1e12 else f"{value:,.6g}"
