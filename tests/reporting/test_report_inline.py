"""Drawings as part of a page: only what is listed comes through."""

import re
from importlib import resources
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.publishing.report.charts import risk_utility_map
from pegsynth.publishing.report.drawing import LIGHT, svg_of
from pegsynth.publishing.report.figure import FOCUSABLE, inline_svg

NAMESPACE = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
CSS = (resources.files("pegsynth.publishing") / "templates" / "report.css").read_text()


def drawing(inside, *, width=400, height=300):
    return f'<svg {NAMESPACE} width="{width}" height="{height}"><rect fill="white"/>{inside}</svg>'


def points(count):
    places = [(f"{i} <b>", 10 * (i % 40), 10 * (i // 40)) for i in range(count)]
    return "".join(
        f'<g transform="translate({x},{y})"><path aria-label="{text.replace("<", "&lt;")}" '
        'transform="translate(3,4)" d="M0,0" fill="#0072b2"/></g>'
        for text, x, y in places
    )


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        "<style>@import 'x'</style>",
        '<a href="https://example.invalid"/>',
        '<image href="https://example.invalid/x.png"/>',
        "<foreignObject><p>x</p></foreignObject>",
        '<use xlink:href="#x"/>',
        '<g onload="alert(1)"/>',
        '<path class="background" d="M0,0h0v0h0Z"/>',
        '<path class="foreground" display="none" d="" stroke="#000"/>',
    ],
)
def test_what_is_not_listed_is_left_out(inside):
    assert inline_svg(drawing(inside), label="x").endswith("></svg>")


def test_attributes_that_are_not_listed_are_left_out():
    mark = '<rect width="1" height="2" onclick="x()" style="fill:url(#a)" class="y" id="z"/>'
    assert inline_svg(drawing(mark), label="x").endswith('><rect width="1" height="2"/></svg>')


def test_texts_are_escaped():
    source = inline_svg(
        drawing('<text fill="#1b2330">&lt;script&gt;</text>'), label='"><script>alert(1)</script>'
    )
    assert "<script" not in source
    assert 'aria-label="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in source
    assert '<text fill="var(--ink)">&lt;script&gt;</text>' in source


def test_numbers_are_kept_to_what_can_be_seen():
    mark = '<path d="M1.23456,-0.0001L10.5,2e-16" fill="none"/>'
    assert 'd="M1.23,-0L10.5,2e-16"' in inline_svg(drawing(mark), label="x")


def test_a_mark_says_its_title_and_an_image_is_one_image():
    root = ET.fromstring(inline_svg(drawing(points(2)), label="two points"))
    assert (root.get("role"), root.get("aria-label")) == ("img", "two points")
    assert [element.text for element in root.iter("title")] == ["0 <b>", "1 <b>"]


def test_targets_lie_on_their_marks():
    root = ET.fromstring(inline_svg(drawing(points(2)), label="x", targets=True))
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("circle")]
    assert circles == [(3, 4), (13, 4)]
    assert root.get("role") == "group"
    assert [g.get("aria-label") for g in root.iter("g") if g.get("tabindex")] == ["0 <b>", "1 <b>"]


def test_the_keyboard_reaches_the_points_on_top():
    root = ET.fromstring(inline_svg(drawing(points(FOCUSABLE + 5)), label="x", targets=True))
    hits = [g for g in root.iter("g") if g.get("class") == "hit"]
    assert [g.get("tabindex") for g in hits] == [None] * 5 + ["0"] * FOCUSABLE


@given(
    st.integers(0, 400),
    st.integers(0, 300),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=150),
)
def test_labels_stay_inside_the_figure(x, y, text):
    mark = ET.Element("path", {"aria-label": text, "transform": f"translate({x},{y})", "d": "M0,0"})
    source = inline_svg(drawing(ET.tostring(mark, encoding="unicode")), label="x", targets=True)
    box = next(g for g in ET.fromstring(source).iter("g") if g.get("class") == "tip").find("rect")
    left, top, width, height = (float(box.get(k)) for k in ("x", "y", "width", "height"))
    assert left >= -1
    assert left + width <= 401
    assert top >= -1
    assert top + height <= 301


def test_a_drawn_map_has_no_colour_of_its_own():
    rows = [{"x": i, "y": i, "s": f"series {i}"} for i in range(1, 4)]
    chart = risk_utility_map(rows, x="x", y="y", series="s", y_reference=(2, ""))
    source = inline_svg(svg_of(chart), label="map", targets=True)
    assert not re.search(r'(fill|stroke)="#', source)
    assert source == inline_svg(svg_of(chart), label="map", targets=True)


GRADIENT = (
    '<path d="M0,0h9v9h-9Z" fill="url(#gradient_0)"/><defs><linearGradient id="gradient_0" x1="0" '
    'x2="1" onload="x()"><stop offset="0.25" stop-color="rgb(238, 242, 247)"/>'
    '<stop offset="1" stop-color="#0b3c6b"/><script/></linearGradient></defs>'
)


def test_a_colour_bar_keeps_its_gradient_under_a_name_of_its_own():
    first, second = (inline_svg(drawing(GRADIENT), label=label) for label in ("one", "two"))
    names = []
    for source in (first, second):
        root = ET.fromstring(source)
        gradient = root.find("linearGradient")
        assert root.find("path").get("fill") == f"url(#{gradient.get('id')})"
        assert set(gradient.keys()) == {"id", "x1", "x2"}
        assert [dict(stop.items()) for stop in gradient] == [
            {"offset": "0.25", "stop-color": "rgb(238, 242, 247)"},
            {"offset": "1", "stop-color": "var(--heat-7)"},
        ]
        names.append(gradient.get("id"))
    assert names[0] != names[1]
    assert first == inline_svg(drawing(GRADIENT), label="one")


def test_a_reference_that_leads_nowhere_is_dropped():
    mark = '<path d="M0,0" fill="url(#elsewhere)"/>'
    assert 'fill="none"' in inline_svg(drawing(mark), label="x")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first, second):
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def variables(block):
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))


def test_the_style_sheet_has_the_colours_of_the_palette_and_a_dark_one_for_each():
    light, dark = (variables(part) for part in CSS.split("prefers-color-scheme: dark", 1))
    dark = variables(CSS.split("prefers-color-scheme: dark", 1)[1].split("* {", 1)[0])
    assert {name: light[name] for name in LIGHT} == LIGHT
    assert set(LIGHT) <= set(dark)
    for theme in (light, dark):
        for name in LIGHT:
            if name.startswith("series"):
                assert contrast(theme[name], theme["card"]) >= 3, (name, theme[name])
