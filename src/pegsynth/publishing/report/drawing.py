"""Charts as SVG and PNG, drawn by vl-convert without a browser and without a network.

Colours and fonts are those of every figure, for paper and for a page that may be dark: a figure is
drawn with the colours of `LIGHT`. On a page each of them becomes a variable of the style sheet, so
that one drawing serves light and dark; `tests` hold the two in step.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.errors import OutputError

if TYPE_CHECKING:
    import altair as alt

    Chart = alt.Chart | alt.LayerChart | alt.FacetChart

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
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
    "triangle-left",
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
VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}

# vl-convert carries Liberation Sans, which has the widths of Arial and Helvetica: what was
# measured when a figure was laid out also holds in a browser.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

_PNG_SCALE = 2.0
_LEAST_SPACE = 64 << 30
# A chart brings its rows along; no address is allowed, so nothing can be fetched.
_NO_ADDRESS: list[str] = []
_CLIP = re.compile(r'((?:clip-path="url\(#|<clipPath id="))clip(\d+)')


def configuration() -> dict[str, Any]:
    """Return the look that all figures share, as a Vega-Lite configuration."""
    label = {"labelColor": SOFT, "labelFontSize": 11, "labelFont": FONT}
    title = {"titleColor": INK, "titleFontSize": 12, "titleFontWeight": 600, "titleFont": FONT}
    return {
        "background": PAPER,
        "font": FONT,
        "padding": 6,
        "view": {"stroke": None},
        "axis": {
            **label,
            **title,
            "gridColor": LINE,
            "domainColor": SOFT,
            "tickColor": SOFT,
            "labelLimit": 170,
            "titleLimit": 600,
            "titlePadding": 8,
        },
        "header": {**label, **title, "labelFontSize": 12, "labelColor": INK, "labelLimit": 260},
        "legend": {
            **label,
            **title,
            "labelLimit": 200,
            "orient": "top",
            "symbolLimit": 0,
            "symbolOpacity": 1,
        },
        "title": {"color": INK, "font": FONT, "fontSize": 13, "anchor": "start", "offset": 10},
        "text": {"font": FONT, "fontSize": 11, "fill": INK},
    }


def svg_of(chart: Chart) -> str:
    """Draw a chart as SVG; the same chart gives the same text."""
    import vl_convert

    check_drawing()
    specification = chart.to_dict(validate=False)
    svg: str = vl_convert.vegalite_to_svg(specification, allowed_base_urls=_NO_ADDRESS)
    return _renumbered(svg)


def save_chart(
    chart: Chart, path_without_suffix: str | Path, *, mode: int | None = None
) -> tuple[Path, Path]:
    """Write a chart as ``.svg`` and as ``.png``.

    Parameters
    ----------
    chart
        What to draw.
    path_without_suffix
        The two files' path up to the suffix.
    mode
        Permissions of the files; None gives what the umask leaves of 0666.

    Returns
    -------
    tuple of Path
        The SVG and the PNG.

    Raises
    ------
    OutputError
        The folder is missing or cannot be written to.
    """
    import vl_convert

    from pegsynth.tables.atomic import atomic_file

    stem = Path(path_without_suffix)
    paths = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".png")
    svg = svg_of(chart)
    # Twice the size, for sharp print.
    png: bytes = vl_convert.svg_to_png(svg, scale=_PNG_SCALE)
    for path, content in zip(paths, (svg.encode(), png), strict=True):
        with atomic_file(path, mode=mode) as temporary:
            temporary.write_bytes(content)
    return paths


def check_drawing() -> None:
    """Refuse to draw where a library is not there, or reserves more than it may and would crash."""
    for package in ("altair", "vl_convert"):
        if find_spec(package) is None:
            raise OutputError(f"figures need {package}; install pegsynth again with all it needs")
    try:
        import resource
    except ImportError:
        # Windows has no such limits.
        return
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY and space < _LEAST_SPACE:
        raise OutputError(
            "figures cannot be drawn: the address space is limited (ulimit -v) to less than 64 GiB "
            "and the library that draws reserves more; limit the memory by a control group instead"
        )


def _renumbered(svg: str) -> str:
    """Count clip paths from one; vl-convert counts on from one drawing to the next."""
    numbers: dict[str, int] = {}
    return _CLIP.sub(lambda m: f"{m[1]}clip{numbers.setdefault(m[2], len(numbers) + 1)}", svg)
