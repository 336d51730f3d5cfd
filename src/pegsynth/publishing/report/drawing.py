"""A drawing: shapes and words at places, as a file and as a part of a page.

Colours are those of every figure, for paper and for a page that may be dark: a drawing is made
with the colours of `LIGHT`, and on a page each of them becomes a variable of the style sheet, so
that one drawing serves both; `tests` hold the two in step. Every text is escaped where it is put
down, so that a drawing holds nothing but what `Brush` writes. The same shapes give the same text.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from pathlib import Path

Place = tuple[float, float]

INK, SOFT, LINE, PAPER = "#1b2330", "#55606f", "#dde2e9", "#ffffff"
SERIES = (
    "#0072b2",
    "#d97a00",
    "#00805c",
    "#b0478c",
    "#6a51a3",
    "#8c6d1f",
    "#c1272d",
    "#1b8a9a",
    "#5b6770",
    "#7a8f00",
    "#a0522d",
    "#3f51b5",
)
HEAT = ("#eef2f7", "#dbe7f3", "#b3cfe6", "#7fb0d6", "#4a8cc0", "#1f639e", "#0b3c6b")
LIGHT = {
    "ink": INK,
    "soft": SOFT,
    "line": LINE,
    "card": PAPER,
    **{f"series-{i}": colour for i, colour in enumerate(SERIES, start=1)},
    **{f"heat-{i}": colour for i, colour in enumerate(HEAT, start=1)},
}

# Corners of each shape as parts of its radius; a circle has none.
SHAPES: dict[str, tuple[tuple[float, float], ...]] = {
    "circle": (),
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle-up": ((0, -1.15), (1.15, 0.95), (-1.15, 0.95)),
    "diamond": ((0, -1.3), (1, 0), (0, 1.3), (-1, 0)),
    "cross": (
        *((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)),
        *((0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
    ),
    "triangle-down": ((0, 1.15), (1.15, -0.95), (-1.15, -0.95)),
    "triangle-right": ((1.15, 0), (-0.95, 1.15), (-0.95, -1.15)),
    "triangle-left": ((-1.15, 0), (0.95, 1.15), (0.95, -1.15)),
}

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
SIZE = 11
# Widths of letters in thousandths of the size: those of Helvetica, which all fonts above have.
_WIDTHS = {
    letter: width
    for width, letters in {
        222: "ijl",
        278: " !,./:;I[\\]ft|",
        333: "()-`r{}",
        389: "*\"'",
        500: "Jckxvyz^s",
        611: "FTZ",
        667: "&ABEKPSVXY",
        722: "CDHNRUw",
        778: "GOQ",
        833: "Mm",
        889: "%W@",
    }.items()
    for letter in letters
}
_USUAL_WIDTH = 0.584
# Where a machine has none of the fonts its own may be wider.
_OTHER_FONT, _BOLD = 1.12, 1.07

FOCUSABLE = 60
"""The most marks of a figure that the keyboard reaches: those on top."""
_TARGET, _LINE, _LETTER, _LETTERS, _MARGIN = 11, 15, 6.1, 36, 8
_COLOUR = re.compile(f'="({"|".join(LIGHT.values())})"')
_TITLE = re.compile("<title>[^<]*</title>")
_VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
_PNG_SCALE = 2.0
"""A picture of points has twice the size, for sharp print."""


def width_of(text: str, *, size: float = SIZE, bold: bool = False) -> float:
    """Return about how wide a text is drawn."""
    width = sum(_WIDTHS.get(letter, 1000 * _USUAL_WIDTH) for letter in text) / 1000
    return width * size * _OTHER_FONT * (_BOLD if bold else 1.0)


def cut(text: str, room: float) -> str:
    """Return a text that fits, with an ellipsis where it was cut."""
    if width_of(text) <= room:
        return text
    while text and width_of(f"{text}…") > room:
        text = text[:-1]
    return f"{text}…"


@dataclass(frozen=True)
class Target:
    """A mark that somebody may want to point at."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Drawing:
    """What was drawn, and how large it is.

    Parameters
    ----------
    body
        The shapes as SVG, in the colours of `LIGHT`.
    targets
        Its points, where each can be pointed at by itself.
    """

    width: int
    height: int
    body: str
    targets: tuple[Target, ...] = ()

    @property
    def svg(self) -> str:
        """The drawing as a file."""
        size = f'width="{self.width}" height="{self.height}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {self.width} '
            f'{self.height}" font-family="{FONT}" font-size="{SIZE}"><rect {size} fill="{PAPER}"/>'
            f"{self.body}</svg>"
        )

    def inline(self, label: str, *, scale: float = 1.0) -> str:
        """Return the drawing as a part of a page.

        Points get targets that mouse and keyboard reach, each with a label that the style sheet
        shows; no script is needed.

        Parameters
        ----------
        label
            What the figure shows, for those who do not see it.
        scale
            Size on the page, where there is room, over the size as drawn.
        """
        body = _COLOUR.sub(lambda found: f'="{_VARIABLES[found[1]]}"', self.body)
        brush = Brush()
        if self.targets:
            # Each target says what its mark would say.
            body = _TITLE.sub("", body)
        for place, target in enumerate(self.targets):
            self._target(brush, target, focusable=place >= len(self.targets) - FOCUSABLE)
        role = "group" if self.targets else "img"
        return (
            f'<svg class="chart" role="{role}" aria-label="{escape(label)}" '
            f'viewBox="0 0 {self.width} {self.height}" width="{scale * self.width:.0f}" '
            f'height="{scale * self.height:.0f}" font-size="{SIZE}">{body}{brush.body}</svg>'
        )

    def _target(self, brush: Brush, target: Target, *, focusable: bool) -> None:
        lines = textwrap.wrap(target.text, min(_LETTERS, int(self.width / _LETTER) - 4)) or [""]
        wide = max(map(len, lines)) * _LETTER + 2 * _MARGIN
        tall = len(lines) * _LINE + _MARGIN
        right = target.x < self.width / 2
        left = target.x + _TARGET if right else target.x - _TARGET - wide
        left = min(max(left, 0), self.width - wide)
        top = min(max(target.y - tall - 4, 0), self.height - tall)
        named = {"tabindex": "0", "role": "img", "aria-label": target.text} if focusable else {}
        brush.open("g", {"class": "hit", **named})
        brush.put("circle", {"cx": target.x, "cy": target.y, "r": _TARGET})
        brush.open("g", {"class": "tip"})
        brush.put("rect", {"x": left, "y": top, "width": wide, "height": tall, "rx": 4})
        for number, line in enumerate(lines, start=1):
            brush.put("text", {"x": left + _MARGIN, "y": top + number * _LINE}, line)
        brush.close("g", "g")


class Brush:
    """Puts shapes and words down, one after another."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.targets: list[Target] = []

    @property
    def body(self) -> str:
        """Everything that was put down."""
        return "".join(self._parts)

    def open(self, name: str, attributes: Mapping[str, float | str]) -> None:
        """Begin an element that holds others."""
        self._parts.append(f"<{name}{_attributes(attributes)}>")

    def close(self, *names: str) -> None:
        """End elements."""
        self._parts += [f"</{name}>" for name in names]

    def put(
        self, name: str, look: Mapping[str, float | str], text: str = "", says: str = ""
    ) -> None:
        """Put one element down: a text, or a shape that says something when pointed at."""
        inside = f"<title>{escape(says)}</title>" if says else ""
        self._parts.append(f"<{name}{_attributes(look)}>{inside}{escape(text)}</{name}>")

    def line(self, start: Place, end: Place, **look: float | str) -> None:
        """Draw a straight line."""
        (x1, y1), (x2, y2) = start, end
        self.put("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2} | _named(look))

    def lines(self, points: Sequence[Place], **look: float | str) -> None:
        """Draw a line through points."""
        path = "L".join(f"{_figure(x)},{_figure(y)}" for x, y in points)
        self.put("path", {"d": f"M{path}", "fill": "none"} | _named(look))

    def box(self, corner: Place, size: Place, colour: str, *, says: str = "") -> None:
        """Draw a filled rectangle from its upper left corner."""
        (x, y), (width, height) = corner, size
        shape = {"x": x, "y": y, "width": width, "height": height}
        self.put("rect", {**shape, "fill": colour}, says=says)

    def point(self, at: Place, shape: str, colour: str, *, radius: float, says: str = "") -> None:
        """Draw a mark of some shape."""
        x, y = at
        if shape == "circle":
            self.put("circle", {"cx": x, "cy": y, "r": radius, "fill": colour}, says=says)
            return
        corners = " ".join(
            f"{_figure(x + radius * a)},{_figure(y + radius * b)}" for a, b in SHAPES[shape]
        )
        self.put("polygon", {"points": corners, "fill": colour}, says=says)

    def words(self, at: Place, text: str, **look: float | str) -> None:
        """Write a text; it has the colour of axes where no `fill` is named."""
        place: dict[str, float | str] = {"x": at[0], "y": at[1], "fill": SOFT}
        self.put("text", place | _named(look), text)


def _named(look: Mapping[str, float | str]) -> dict[str, float | str]:
    return {key.replace("_", "-"): value for key, value in look.items()}


def _attributes(attributes: Mapping[str, float | str]) -> str:
    return "".join(
        f' {key}="{escape(value) if isinstance(value, str) else _figure(value)}"'
        for key, value in attributes.items()
    )


def _figure(value: float) -> str:
    """Write a length to what can be seen."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def save_drawing(drawing: Drawing, stem: str | Path, *, mode: int | None = None) -> list[Path]:
    """Write a drawing as ``.svg``, and as ``.png`` where the extra ``figures`` is installed.

    Parameters
    ----------
    drawing
        What was drawn.
    stem
        The files' path up to the suffix.
    mode
        Permissions of the files; None gives what the umask leaves of 0666.

    Raises
    ------
    OutputError
        The folder is missing or cannot be written to.
    """
    from pegsynth.tables.atomic import atomic_file

    stem, svg = Path(stem), drawing.svg
    contents = {".svg": svg.encode()}
    if find_spec("vl_convert") is not None:
        import vl_convert

        contents[".png"] = vl_convert.svg_to_png(svg, scale=_PNG_SCALE)
    paths = [stem.with_name(stem.name + suffix) for suffix in contents]
    for path, content in zip(paths, contents.values(), strict=True):
        with atomic_file(path, mode=mode) as temporary:
            temporary.write_bytes(content)
    return paths
