"""Charts from plain rows: what is drawn, and what may stand in a row."""

import re
import struct
from xml.etree import ElementTree as ET

import pytest

from pegsynth.errors import OutputError
from pegsynth.publishing.report.charts import plot
from pegsynth.publishing.report.drawing import LIGHT, SERIES, SHAPES, save_drawing, width_of

HOSTILE = "</text><script>alert(1)</script>\x00\ud800"
SVG = "{http://www.w3.org/2000/svg}"


def marks(chart):
    """Return what every mark says of itself, in order."""
    return [title.text for title in ET.fromstring(chart.svg).iter(f"{SVG}title")]


def texts(chart):
    return [element.text for element in ET.fromstring(chart.svg).iter(f"{SVG}text")]


def rows(**more):
    return [
        {"series": s, "value": v, "low": v - 0.1, "high": v + 0.1, "x": v, "y": 2 * v}
        | dict.fromkeys(("category", "label", "column", "facet"), c)
        | {"line": s, **more}
        for c, s, v in (("a", "one", 0.2), ("a", "two", 0.4), ("b", "one", 0.3), ("b", "two", 0.8))
    ]


LACKING = dict.fromkeys(("category", "label", "column", "facet"), "a")
DRAWN = {
    "histograms": lambda r: plot("histograms", r),
    "heat_map": lambda r: plot("heat_map", r, bounds=(0.25, 0.5)),
    "forest_plot": lambda r: plot("forest_plot", r, reference=0),
    "risk_utility_map": lambda r: plot("risk_utility_map", r),
    "curves": lambda r: plot("curves", r, x_title="x", y_title="y", log_x=True),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_row_is_a_mark(name):
    said = marks(DRAWN[name](rows()))
    assert len(said) == 4
    assert len(set(said)) == 4
    assert all("one" in text or "two" in text for text in said)


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_rows_give_the_same_drawing(name):
    assert DRAWN[name](rows()).svg == DRAWN[name](rows()).svg


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_at_all_is_still_a_drawing(name):
    assert marks(DRAWN[name]([])) == []


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("figure", [None, float("nan"), float("inf")])
def test_what_was_not_computed_is_left_out(name, figure):
    lacking = LACKING | {"series": "three", "line": "three", "value": figure, "x": figure}
    assert len(marks(DRAWN[name]([*rows(), lacking | {"y": figure}]))) == 4


@pytest.mark.parametrize("name", DRAWN)
def test_any_text_is_only_text(name):
    hostile = [row | {key: f"{row[key]} {HOSTILE}" for key in LACKING} for row in rows()]
    chart = DRAWN[name](hostile)
    source = chart.svg
    assert "<script" not in source
    assert "&lt;script&gt;" in source
    assert len(marks(chart)) == 4


@pytest.mark.parametrize("name", DRAWN)
def test_colours_are_those_of_the_palette(name):
    source = DRAWN[name](rows()).svg
    used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', source)) - {"none", "transparent"}
    assert used <= set(LIGHT.values())


def test_a_series_keeps_its_colour_when_others_are_missing():
    order = ("zero", "one", "two")
    few = plot("histograms", rows()[1::2], order=order)
    assert SERIES[2] in few.svg
    assert SERIES[0] not in few.svg


def test_many_series_differ_in_colour_or_shape():
    names = [f"method {i}" for i in range(len(SERIES))]
    points = [{"series": name, "x": i, "y": i} for i, name in enumerate(names)]
    source = plot("risk_utility_map", points).svg
    pairs = {(SERIES[i], tuple(SHAPES)[i % len(SHAPES)]) for i in range(len(names))}
    assert len(pairs) == len(names)
    assert all(colour in source for colour in SERIES)


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show():
    points = [{"x": x, "y": 1, "series": "one"} for x in (0, -1, 0.1, 10)]
    chart = plot("risk_utility_map", points, log_x=True)
    assert len(marks(chart)) == 2
    lines = plot("curves", points, x_title="x", y_title="y", log_x=True, log_y=True)
    assert len(marks(lines)) == 2
    assert {"0.1", "10"} <= set(texts(lines))


def test_a_reference_is_drawn_once():
    chart = plot("risk_utility_map", rows(), y_reference=(0.5, "hold-out"))
    assert chart.svg.count("stroke-dasharray") == 1
    assert texts(chart).count("hold-out") == 1


def test_long_titles_of_panels_go_over_several_lines():
    label = "a measure with a name that is too long for a line: of one feature, another and a third"
    row = {"label": label, "value": 1, "low": 0, "high": 2, "series": "one"}
    lines = [text for text in texts(plot("forest_plot", [row])) if text in label and len(text) > 5]
    assert len(lines) == 2
    assert " ".join(lines) == label


def test_a_title_of_letters_that_are_wide_or_without_spaces_is_cut_into_lines():
    row = {"label": "W" * 150, "value": 1, "series": "one"}
    lines = [text for text in texts(plot("forest_plot", [row])) if text.startswith("W")]
    assert "".join(lines) == row["label"]
    assert len(lines) > 3


def test_heat_classes_have_names_and_bounds():
    shares = (0.005, 0.01, 0.3, 0.9)
    cells = [{"column": str(i), "line": "r", "value": v} for i, v in enumerate(shares)]
    chart = plot("heat_map", cells, bounds=(0.01, 0.4), as_percent=True, y_title="Share")
    assert [t for t in texts(chart) if "%" in (t or "")] == [
        "below 1%",
        "1% to 40%",
        "40% and more",
    ]
    fills = re.findall(r'fill="([^"]+)"><title>r, \d: ', chart.svg)
    heat = [LIGHT[f"heat-{i}"] for i in (1, 2, 3)]
    assert fills == [heat[0], heat[1], heat[1], heat[2]]


def test_saved_as_svg_and_png(tmp_path):
    chart = DRAWN["histograms"](rows())
    svg, png = save_drawing(chart, tmp_path / "figure.v1")
    assert (svg.name, png.name) == ("figure.v1.svg", "figure.v1.png")
    assert svg.read_text() == chart.svg
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    size = ET.fromstring(svg.read_text())
    assert (width, height) == (2 * int(size.get("width")), 2 * int(size.get("height")))


def test_without_the_extra_there_is_an_svg_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("pegsynth.publishing.report.drawing.find_spec", lambda name: None)
    (only,) = save_drawing(DRAWN["curves"](rows()), tmp_path / "figure")
    assert only.name == "figure.svg"


@pytest.mark.parametrize("name", DRAWN)
def test_everything_lies_on_the_drawing(name):
    """Long and short names, many and few rows; texts are taken as wide as the fonts make them."""
    for label in ("a", "a long name of a category " * 9, "W" * 60):
        drawing = DRAWN[name]([row | dict.fromkeys(LACKING, label) for row in rows()])
        for element in ET.fromstring(drawing.svg).iter(f"{SVG}text"):
            if element.get("transform") is None:
                wide, x = width_of(element.text or ""), float(element.get("x"))
                left = x - wide * {"end": 1, "middle": 0.5}.get(element.get("text-anchor"), 0)
                assert left >= -1
                assert left + wide <= drawing.width + 1
            assert 0 <= float(element.get("y")) <= drawing.height
        for element in ET.fromstring(drawing.svg).iter(f"{SVG}rect"):
            assert float(element.get("x", 0)) + float(element.get("width")) <= drawing.width


def test_each_panel_has_ticks_of_its_own():
    points = [
        {"x": x, "y": scale * (1 + x), "series": "one", "facet": facet}
        for facet, scale in (("wide", 1.0), ("low", 1e-4))
        for x in (0.1, 1.0)
    ]
    shown = texts(plot("curves", points, x_title="x", y_title="y", log_x=True, log_y=True))
    assert {"1.1", "2", "0.00011", "0.0002"} <= set(shown)


def test_a_figure_for_the_owner_only(tmp_path):
    for path in save_drawing(DRAWN["histograms"](rows()), tmp_path / "f", mode=0o600):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OutputError, match="its folder does not exist"):
        save_drawing(DRAWN["histograms"](rows()), tmp_path / "none" / "f")
