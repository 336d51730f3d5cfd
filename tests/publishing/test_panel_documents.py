"""Every figure on rows and units that the documents of a release hold, against files and schema."""

from __future__ import annotations

import html
import json
import re

import numpy as np
import polars as pl
import pytest

import pegsynth
from pegsynth.codec.codec import encode
from pegsynth.evaluation.evaluated_tables import read_tables
from pegsynth.publishing import fill_folder
from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import Panel

MOST, UNITS = 3, 70
TOLD = {"method": "pegs-once", "epsilon": 5.0, "delta": 1e-9, "rows": UNITS, "progress": False}
ABOUT = {
    **{"title": "Stays", "owner": "Office", "contact": "a@b.org", "row": "stay", "unit": "patient"},
    **{"purpose": "research", "sector": "Healthcare"},
}
FEATURES = (
    Feature("patient", role="identifier"),
    Feature("sex", categories=("f", "m")),
    Feature("year", kind="numeric", dtype="int64", edges=(2000.0, 2004.0, 2009.0)),
    Feature("ward", categories=("a", "b", "c"), role="sensitive", missing=("",)),
)


@pytest.fixture(scope="module")
def stays():
    """Return rows of people, of whom many have more than count; later ones are in another ward."""
    rng = np.random.default_rng(3)
    lines = []
    for person in range(150):
        years = np.sort(rng.integers(2000, 2010, rng.integers(1, 8)))
        for place, year in enumerate(years.tolist()):
            ward = "c" if place >= MOST else str(rng.choice(["a", "b"]))
            lines.append((f"p{person}", "fm"[person % 2], year, ward))
    frame = pl.DataFrame(lines, schema=["patient", "sex", "year", "ward"], orient="row")
    return frame.sample(fraction=1, shuffle=True, seed=1)


def first_rows(frame):
    """Return the rows of a panel that count; ties are put in order by all values."""
    every = [pl.col(name).cast(pl.String) for name in ("sex", "year", "ward")]
    ordered = frame.sort("patient", "year", *every, maintain_order=True)
    return ordered.group_by("patient", maintain_order=True).head(MOST)


def panel_book(**changes):
    panel = Panel("patient", "year", MOST, ("sex",), **changes)
    return Schema(FEATURES, panel=panel, reviewed=True)


def capped_book():
    return Schema(FEATURES, unit="patient", rows_per_unit=2, reviewed=True)


CASES = {
    "folded": (panel_book(), {}),
    "several": (panel_book(), {"datasets": 2}),
    "pooled": (panel_book(transitions="pooled"), {}),
    "wide": (panel_book(), {"wide": True}),
    "pooled and wide": (panel_book(transitions="pooled"), {"wide": True}),
    "two tables": (panel_book(tables=("people", "stays")), {}),
    "two tables, several": (panel_book(tables=("people", "stays")), {"datasets": 2}),
    "completed": (panel_book(), {"complete": True, "imputations": 2}),
    "capped": (capped_book(), {}),
    "capped, several": (capped_book(), {"datasets": 2}),
}


@pytest.fixture(scope="module", params=CASES)
def released(request, stays, tmp_path_factory):
    """Return the folder of a release, its schema and its case."""
    schema, told = CASES[request.param]
    table = stays
    if schema.panel is not None and schema.panel.tables is not None:
        table = (stays.select("patient", "sex").unique(), stays.drop("sex"))
    folder = tmp_path_factory.mktemp("documents") / "out"
    pegsynth.release(table, schema, folder=folder, about=ABOUT, **TOLD, **told)
    return folder, schema, told


def words_of(path):
    """Return the words of a page, its markup aside."""
    text = re.sub(r"<(script|style|svg).*?</\1>", " ", path.read_text(), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("`", "").split())


def tables_in(folder):
    found = sorted(folder.glob("public/synthetic-*.csv"))
    return {path.name: pl.read_csv(path) for path in found if "-weights" not in path.name}


def between(numbers):
    low, high = min(numbers), max(numbers)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def size_said(folder, schema, told):
    """Return how many tables, rows and units the files have, in the words of the documents."""
    tables, datasets = tables_in(folder), told.get("datasets", 1)
    heights = [table.height for table in tables.values()]
    each = "" if datasets == 1 else " each"
    many = "1 table" if datasets == 1 else f"{datasets} tables"
    if schema.panel is None or told.get("wide"):
        assert set(heights) == {UNITS}
        return f"{many} of {UNITS} rows{each}" + ", one for each unit" * bool(told.get("wide"))
    units = f"{UNITS} units (patient)"
    assert {table["patient"].n_unique() for table in tables.values()} == {UNITS}
    if schema.panel.tables is None:
        return f"{many} with {between(heights)} rows{each}, those of {units}"
    pairs = "2 tables" if datasets == 1 else f"{datasets} pairs of tables"
    rows = between(heights[1::2])
    return f"{pairs}: people with {units}, one in a row, and stays with their {rows} rows{each}"


def test_public_documents_say_how_many_rows_and_units_there_are(released):
    folder, schema, told = released
    public, said = folder / "public", size_said(*released)
    readme = words_of(public / "README.md")
    assert f"## Tables {said}. " in readme
    wide = bool(told.get("wide"))
    two = schema.panel is not None and schema.panel.tables is not None and not wide
    of = " of stays" if two else ""
    assert f"One row{of} stands for one {'patient' if wide else 'stay'}." in readme
    assert f"{said}; " in words_of(public / "dp-registry.yaml")
    catalogue = json.loads((public / "dcat.jsonld").read_text())
    assert f"{said}; " in catalogue["dct:description"]
    heights = sum(table.height for table in tables_in(folder).values())
    assert catalogue["healthdcatap:numberOfRecords"] == heights
    assert f"{said}; " in json.loads((public / "croissant.json").read_text())["description"]
    analyse = words_of(public / "HOW-TO-ANALYSE.md")
    units = schema.panel is not None and not wide
    named = f"{UNITS} units (patient)" if units else f"{UNITS} rows"
    assert named in analyse.split(". ", maxsplit=1)[0]
    assert ("Units come in random order" in analyse) == (units and told.get("datasets", 1) == 1)


def test_public_documents_say_how_many_rows_of_a_unit_count(released):
    folder, schema, told = released
    public = folder / "public"
    most = 2 if schema.panel is None else MOST
    assert f"(at most {most}; the limit was enforced" in words_of(public / "PRIVACY.md")
    quality = json.loads((public / "QUALITY.json").read_text())
    assert quality["rows_per_unit"] == most
    pages = [words_of(public / name) for name in ("QUALITY.md", "QUALITY.html")]
    cut = (
        f"Of the rows of one patient the first {most} count"
        if schema.panel
        else (f"At most {most} rows of one patient were counted")
    )
    assert cut in words_of(public / "HOW-TO-ANALYSE.md")
    assert all(cut in each for each in pages)
    for table in tables_in(folder).values():
        if schema.panel is not None and not told.get("wide"):
            assert table.group_by("patient").len()["len"].max() <= most
    held = {name for pair in quality["pairs_held"] for name in pair}
    measured = {each["feature"] for each in quality["features"]}
    assert held <= measured
    pooled = schema.panel is not None and schema.panel.transitions == "pooled"
    assert ("ward (next)" in measured) == pooled


def test_internal_documents_speak_of_the_rows_that_were_counted(released, stays):
    folder, schema, told = released
    internal = folder / "internal"
    report, signed = (words_of(internal / name) for name in ("report.html", "sign-off.html"))
    assert f"Tables {size_said(*released)}; csv" in signed
    most = 2 if schema.panel is None else MOST
    assert f"with at most {most} rows" in signed
    assert f"Most rows of a unit {most} " in report
    metrics = json.loads((internal / "metrics.json").read_text())
    records = {each["name"]: each for each in metrics["records"] if not each["subject"]}
    if told.get("wide"):
        assert "cap_rows" not in records
        return
    rows = stays.group_by("patient").len()["len"].cast(pl.Int64)
    cut, beyond = int((rows - most).clip(0).sum()), int((rows > most).sum())
    assert records["cap_rows"]["value"] == cut / stays.height
    assert records["cap_units"]["value"] == beyond / len(rows)
    assert f"leaves out {cut / stays.height:.2%} of the original rows ({cut:,} of" in report
    compared = stays.height - cut
    assert records["rows_compared"]["value"] == compared / stays.height
    assert f"{compared:,} rows are compared with the release: those that were counted" in report
    marginals = {each["feature"]: each["original"] for each in metrics["marginals"]}
    if schema.panel is None:
        return
    counted = first_rows(stays)
    assert counted.height == compared
    wards = [(counted["ward"] == ward).sum() / compared for ward in ("a", "b", "c")]
    assert marginals["ward"][:3] == pytest.approx(wards)
    # Nobody is in ward c before the fourth stay.
    assert marginals["ward"][2] == 0


def test_the_report_compares_the_rows_that_were_drawn_of_a_unit(stays, tmp_path, monkeypatch):
    seen, written = {}, fill_folder.write_internal

    def remembered(*given, **told):
        seen.update(told)
        written(*given, **told)

    monkeypatch.setattr(fill_folder, "write_internal", remembered)
    made = pegsynth.release(stays, capped_book(), folder=tmp_path / "out", **TOLD)
    drawn = stays.filter(pl.Series(seen["counted"]))
    assert (drawn.group_by("patient").len()["len"] <= 2).all()
    assert drawn.height == stays.group_by("patient").len()["len"].clip(upper_bound=2).sum()
    tables = read_tables(stays, [made.frames[0]], capped_book(), threads=1, counted=seen["counted"])
    assert np.array_equal(tables.original, encode(drawn, capped_book()))
    assert np.array_equal(tables.values[0].columns["year"], drawn["year"].cast(pl.Float64))


def test_evaluating_a_panel_compares_rows_that_count(stays):
    found = pegsynth.evaluate(stays, first_rows(stays), panel_book(), holdout=stays)
    for name in ("sex", "year", "ward"):
        assert found.record("tvd1", name).value == 0
    assert found.record("rows_compared").value == first_rows(stays).height / stays.height
    # A hold-out is cut as well: nobody else has what the original has.
    assert "of the hold-out" not in " ".join(each.note for each in found.records)


def test_rows_that_do_not_count_need_not_fit_the_schema(tmp_path):
    """A release does not look at them, and so must not its report."""
    wards = ["a", "b", "a", "unheard of"]
    lines = [
        (f"p{person}", "f", 2000 + place, wards[place]) for person in range(9) for place in range(4)
    ]
    frame = pl.DataFrame(lines, schema=["patient", "sex", "year", "ward"], orient="row")
    pegsynth.release(frame, panel_book(), folder=tmp_path / "out", **TOLD)
    report = words_of(tmp_path / "out/internal/report.html")
    assert "ward = a value that the schema does not list goes from 25.00% to 0.00%" in report


def test_which_rows_count_does_not_depend_on_batches(stays):
    from pegsynth.codec.folding import CountedRows

    masks = []
    for size, held in ((1000, 1 << 20), (7, 20), (50, 1)):
        rows = CountedRows(panel_book(), most_held=held)
        for first in range(0, stays.height, size):
            rows.add(stays[first : first + size])
        masks.append(rows.mask())
    kept = [sorted(map(str, stays.filter(pl.Series(mask)).rows())) for mask in masks]
    assert kept[0] == kept[1] == kept[2]
    assert kept[0] == sorted(map(str, first_rows(stays).rows()))
    with pytest.raises(ValueError, match="no panel"):
        CountedRows(capped_book())


def test_a_release_of_two_tables_shows_and_saves_itself(stays, tmp_path):
    table = (stays.select("patient", "sex").unique(), stays.drop("sex"))
    made = pegsynth.synthesize(table, panel_book(tables=("people", "stays")), **TOLD)
    units, rows = made.frames[0]
    assert f"2 synthetic tables of {units.height} to {rows.height:,} rows" in repr(made)
    made.save(tmp_path / "out")
    again = pegsynth.Release.load(tmp_path / "out")
    assert [each.height for each in again.frames[0]] == [units.height, rows.height]
    assert f"stays with their {rows.height:,} rows" in words_of(tmp_path / "out/public/README.md")


def test_a_release_in_which_no_unit_has_a_row(tmp_path):
    """Which synthetic units have rows is drawn: none may have one, and the report says so."""
    schema = panel_book(tables=("people", "stays"), least=0)
    people = pl.DataFrame({"patient": [str(n) for n in range(400)], "sex": ["f", "m"] * 200})
    rows = pl.DataFrame({"patient": ["0"], "year": [2001], "ward": ["a"]})
    few = TOLD | {"rows": 3, "epsilon": 50.0}
    pegsynth.release((people, rows), schema, folder=tmp_path / "out", **few)
    tables = list(tables_in(tmp_path / "out").values())
    said = words_of(tmp_path / "out/public/README.md")
    assert f"stays with their {tables[1].height} rows" in said
