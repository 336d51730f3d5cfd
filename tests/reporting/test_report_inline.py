"""Drawings as part of a page: texts are texts, colours are the page's, points can be reached."""

import re
from importlib import resources
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from pegsynth.publishing.report.charts import plot
from pegsynth.publishing.report.drawing import FOCUSABLE, LIGHT, Brush, Drawing, Target

CSS = (resources.files("pegsynth.publishing") / "templates" / "report.css").read_text()
HOSTILE = '"><script>alert(1)</script>'


def points(count):
    return tuple(Target(10 * (i % 40) + 3, 10 * (i // 40) + 4, f"{i} <b>") for i in range(count))


def test_texts_are_escaped():
    brush = Brush()
    brush.words((1, 2), HOSTILE, fill="#1b2330")
    brush.box((1, 2), (3, 4), "#0072b2", says=HOSTILE)
    source = Drawing(9, 9, brush.body).inline(HOSTILE)
    assert "<script" not in source
    assert 'aria-label="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"' in source
    root = ET.fromstring(source)
    assert [root.find("text").text, root.find("rect/title").text] == [HOSTILE, HOSTILE]


def test_a_text_that_looks_like_a_colour_stays_a_text():
    brush = Brush()
    brush.words((1, 2), 'fill="#1b2330"', fill="#1b2330")
    (text,) = ET.fromstring(Drawing(9, 9, brush.body).inline("x"))
    assert (text.text, text.get("fill")) == ('fill="#1b2330"', "var(--ink)")


def test_numbers_are_kept_to_what_can_be_seen():
    brush = Brush()
    brush.lines([(1.23456, -0.0001), (10.5, 2e-16)], stroke="#0072b2")
    assert 'd="M1.23,0L10.5,0"' in brush.body


def test_a_mark_says_its_title_and_an_image_is_one_image():
    brush = Brush()
    for text in ("0 <b>", "1 <b>"):
        brush.point((1, 2), "diamond", "#0072b2", radius=3, says=text)
    root = ET.fromstring(Drawing(9, 9, brush.body).inline("two points"))
    assert (root.get("role"), root.get("aria-label")) == ("img", "two points")
    assert [element.text for element in root.iter("title")] == ["0 <b>", "1 <b>"]


def test_targets_lie_on_their_marks():
    root = ET.fromstring(Drawing(400, 300, "", points(2)).inline("x"))
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in root.iter("circle")]
    assert circles == [(3, 4), (13, 4)]
    assert root.get("role") == "group"
    assert [g.get("aria-label") for g in root.iter("g") if g.get("tabindex")] == ["0 <b>", "1 <b>"]


def test_the_keyboard_reaches_the_points_on_top():
    root = ET.fromstring(Drawing(400, 300, "", points(FOCUSABLE + 5)).inline("x"))
    hits = [g for g in root.iter("g") if g.get("class") == "hit"]
    assert [g.get("tabindex") for g in hits] == [None] * 5 + ["0"] * FOCUSABLE


@given(
    st.integers(0, 400),
    st.integers(0, 300),
    st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=150),
)
def test_labels_stay_inside_the_figure(x, y, text):
    source = Drawing(400, 300, "", (Target(x, y, text),)).inline("x")
    box = next(g for g in ET.fromstring(source).iter("g") if g.get("class") == "tip").find("rect")
    left, top, width, height = (float(box.get(k)) for k in ("x", "y", "width", "height"))
    assert left >= -1
    assert left + width <= 401
    assert top >= -1
    assert top + height <= 301


def test_a_drawn_map_has_no_colour_of_its_own():
    rows = [{"x": i, "y": i, "series": f"series {i}"} for i in range(1, 4)]
    drawing = plot("risk_utility_map", rows, y_reference=(2, ""))
    source = drawing.inline("map")
    assert not re.search(r'(fill|stroke)="#', source)
    assert "<title>" not in source
    assert source == drawing.inline("map")


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
