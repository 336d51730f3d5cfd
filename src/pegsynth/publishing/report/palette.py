"""Colours and fonts of every figure, for paper and for a page that may be dark.

A figure is drawn with the colours of `LIGHT`. On a page each of them becomes a variable of
the style sheet, so that one drawing serves light and dark; `tests` hold the two in step.
"""

from __future__ import annotations

from typing import Any

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
