"""Charts from plain rows: what is drawn, and what may stand in a row."""

import re
import struct
from xml.etree import ElementTree as ET

import pytest

from pegsynth.errors import OutputError
from pegsynth.publishing.report import charts
from pegsynth.publishing.report.drawing import LIGHT, SERIES, SHAPES, save_chart, svg_of

HOSTILE = "</text><script>alert(1)</script>\x00\ud800"
SVG = "{http://www.w3.org/2000/svg}"


def marks(chart):
    """Return what every mark says of itself, in order."""
    root = ET.fromstring(svg_of(chart))
    return [e.get("aria-label") for e in root.iter() if e.get("aria-roledescription") in KINDS]


KINDS = ("bar", "point", "rect mark")


def texts(chart):
    return [element.text for element in ET.fromstring(svg_of(chart)).iter(f"{SVG}text")]


def rows(**more):
    return [
        {"series": s, "value": v, "low": v - 0.1, "high": v + 0.1, "x": v, "y": 2 * v}
        | dict.fromkeys(("category", "label", "column", "facet"), c)
        | {"line": s, **more}
        for c, s, v in (("a", "one", 0.2), ("a", "two", 0.4), ("b", "one", 0.3), ("b", "two", 0.8))
    ]


LACKING = dict.fromkeys(("category", "label", "column", "facet"), "a")
DRAWN = {
    "histograms": charts.histograms,
    "heat_map": lambda r: charts.heat_map(r, steps=(0.25, 0.5)),
    "forest_plot": lambda r: charts.forest_plot(r, reference=0),
    "risk_utility_map": lambda r: charts.risk_utility_map(r, x="x", y="y"),
    "curves": lambda r: charts.curves(r, x_title="x", y_title="y", log_y=False),
}


@pytest.mark.parametrize("name", DRAWN)
def test_every_row_is_a_mark(name):
    said = marks(DRAWN[name](rows()))
    assert len(said) == 4
    assert len(set(said)) == 4
    assert all("one" in text or "two" in text for text in said)


@pytest.mark.parametrize("name", DRAWN)
def test_the_same_rows_give_the_same_drawing(name):
    assert svg_of(DRAWN[name](rows())) == svg_of(DRAWN[name](rows()))


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
    source = svg_of(chart)
    assert "<script" not in source
    assert "&lt;script&gt;" in source
    assert len(marks(chart)) == 4


def test_keys_may_look_like_fields_of_another_language():
    key = "a.b[0]:N{}\\"
    chart = charts.forest_plot([{key: "x", "sum(y):Q": 0.5}], label=key, value="sum(y):Q")
    assert marks(chart) == ["x: 0.5"]


@pytest.mark.parametrize("name", DRAWN)
def test_colours_are_those_of_the_palette(name):
    source = svg_of(DRAWN[name](rows()))
    used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', source)) - {"none", "transparent"}
    assert used <= set(LIGHT.values())


def test_a_series_keeps_its_colour_when_others_are_missing():
    order = ("zero", "one", "two")
    few = charts.histograms(rows()[1::2], order=order)
    assert SERIES[2] in svg_of(few)
    assert SERIES[0] not in svg_of(few)


def test_many_series_differ_in_colour_or_shape():
    names = [f"method {i}" for i in range(len(SERIES))]
    points = [{"series": name, "x": i, "y": i} for i, name in enumerate(names)]
    source = svg_of(charts.risk_utility_map(points, x="x", y="y"))
    pairs = {(SERIES[i], SHAPES[i % len(SHAPES)]) for i in range(len(names))}
    assert len(pairs) == len(names)
    assert all(colour in source for colour in SERIES)


def test_a_logarithmic_axis_leaves_out_what_it_cannot_show():
    points = [{"x": x, "y": 1, "series": "one"} for x in (0, -1, 0.1, 10)]
    chart = charts.risk_utility_map(points, x="x", y="y", log_x=True)
    assert len(marks(chart)) == 2
    lines = charts.curves(points, x_title="x", y_title="y")
    assert len(marks(lines)) == 2
    assert {"0.1", "10"} <= set(texts(lines))


def test_a_reference_is_drawn_once():
    chart = charts.risk_utility_map(rows(), x="x", y="y", y_reference=(0.5, "hold-out"))
    assert svg_of(chart).count("stroke-dasharray") == 1
    assert texts(chart).count("hold-out") == 1


def test_long_titles_of_panels_go_over_several_lines():
    label = "a measure with a long name: of one feature, another and a third"
    row = {"label": label, "value": 1, "low": 0, "high": 2, "series": "one"}
    chart = charts.forest_plot([row])
    root = ET.fromstring(svg_of(chart))
    lines = ["".join(e.itertext()) for e in root.iter(f"{SVG}tspan")]
    assert len(lines) == 2
    assert " ".join(lines) == label


def test_heat_classes_have_names_and_bounds():
    shares = (0.005, 0.01, 0.3, 0.9)
    cells = [{"column": str(i), "line": "r", "value": v} for i, v in enumerate(shares)]
    chart = charts.heat_map(cells, steps=(0.01, 0.4), as_percent=True, value_title="Share")
    assert [t for t in texts(chart) if "%" in (t or "")] == [
        "below 1%",
        "1% to 40%",
        "40% and more",
    ]
    fills = re.findall(r'aria-label="r, \d: [^"]*"[^>]*fill="([^"]+)"', svg_of(chart))
    heat = [LIGHT[f"heat-{i}"] for i in (1, 2, 3)]
    assert fills == [heat[0], heat[1], heat[1], heat[2]]


def test_saved_as_svg_and_png(tmp_path):
    chart = DRAWN["histograms"](rows())
    svg, png = save_chart(chart, tmp_path / "figure.v1")
    assert (svg.name, png.name) == ("figure.v1.svg", "figure.v1.png")
    assert svg.read_text() == svg_of(chart)
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    size = ET.fromstring(svg.read_text())
    assert (width, height) == (2 * int(size.get("width")), 2 * int(size.get("height")))


def test_clip_paths_are_numbered_anew():
    import altair as alt

    line = alt.Chart(alt.InlineData(values=[{"x": 1, "y": 2}])).mark_point(clip=True)
    chart = line.encode(x="x:Q", y="y:Q")
    first = svg_of(chart)
    assert first == svg_of(chart)
    assert 'clip-path="url(#clip1)"' in first
    assert '<clipPath id="clip1"' in first


def test_a_figure_for_the_owner_only(tmp_path):
    for path in save_chart(DRAWN["histograms"](rows()), tmp_path / "f", mode=0o600):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(OutputError, match="its folder does not exist"):
        save_chart(DRAWN["histograms"](rows()), tmp_path / "none" / "f")


def test_no_address_is_ever_fetched():
    import altair as alt

    chart = alt.Chart("https://example.invalid/rows.json").mark_bar()
    with pytest.raises(ValueError, match="not allowed"):
        svg_of(chart)
