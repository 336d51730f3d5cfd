"""Releases of a panel: whole people in, whole people out, at the price of one row (R24)."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace

import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.codec.codec import encode
from pegsynth.codec.unfolding import Unfolding
from pegsynth.datasets import panel, panel_schema
from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.panel import Panel
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.table_output import open_writer

PEOPLE = 600
ONCE = {"method": "pegs-once", "epsilon": 8.0, "delta": 1e-9, "seed": 3, "progress": False}


@pytest.fixture(scope="module")
def table():
    return panel(PEOPLE, seed=1)


def check_people(frame, people, most=4):
    """No person is inconsistent."""
    schema = panel_schema()
    assert frame["patient"].to_list() == sorted(frame["patient"].to_list())
    assert frame["patient"].unique().sort().to_list() == list(range(1, people + 1))
    if frame["admitted"].dtype == pl.String:
        frame = frame.with_columns(pl.col("admitted").str.to_date())
    groups = frame.group_by("patient").agg(
        pl.len(),
        pl.col("sex", "born").n_unique(),
        back=(pl.col("admitted").diff().dt.total_days() < 0).any(),
    )
    assert groups["len"].max() <= most
    assert groups["sex"].max() == groups["born"].max() == 1
    assert not groups["back"].any()
    for name in ("ward", "severity", "payer", "outcome"):
        assert set(frame[name].cast(pl.String)) <= set(schema[name].categories)


def test_a_release_has_whole_people(table):
    release = pegsynth.synthesize(table, panel_schema(), rows=400, **ONCE)
    frame = release.frames[0]
    assert frame.schema == table.schema
    check_people(frame, 400)
    assert release.schema == panel_schema()


def test_the_ledger_names_the_unit_at_the_price_of_one_row(table):
    told = {key: value for key, value in ONCE.items() if key != "seed"}
    ledger = pegsynth.synthesize(table, panel_schema(), rows=50, **told).ledger
    promise = ledger.guarantee
    assert (promise.unit, promise.rows_per_unit) == ("unit", 1)
    assert promise.epsilon == pytest.approx(8.0)
    (assumed,) = [each for each in ledger.assumptions if each.code == "panel"]
    assert assumed.parameters == {
        "column": "patient",
        "time": "admitted",
        "most": 4,
        "fixed": ["sex", "born"],
    }
    assert "of which at most 4 count: they were folded into one row" in ledger.statement()
    assert "were folded into one; it cost nothing" in ledger.explain()


@pytest.mark.parametrize("method", ["pegs", "pegs-rs", "pegs-capped", "marginal", "cart"])
def test_other_methods_keep_people_whole(table, method):
    told = {} if method == "cart" else {"epsilon": 50.0, "delta": 1e-6}
    found = pegsynth.synthesize(
        table, panel_schema(), rows=60, method=method, progress=False, **told
    )
    check_people(found.frames[0], 60)


def test_a_saved_model_gives_people_too(table, tmp_path):
    model = pegsynth.fit(table, panel_schema(), rows=100, **ONCE)
    check_people(model.sample(80), 80)
    model.save(tmp_path / "m.pegs")
    again = pegsynth.load(tmp_path / "m.pegs")
    check_people(again.sample(120), 120)


def test_replicate_weights_are_those_of_people(table):
    told = {**ONCE, "rows": 150, "replicates": 3}
    frame = pegsynth.synthesize(table, panel_schema(), **told).frames[0]
    check_people(frame.drop("pegs_weight", "pegs_weight_1", "pegs_weight_2", "pegs_weight_3"), 150)
    assert (
        frame.group_by("patient")
        .agg(pl.col("pegs_weight", "pegs_weight_3").n_unique())["pegs_weight"]
        .max()
        == 1
    )


def test_completed_tables_have_the_same_people(table):
    holes = table.with_columns(payer=pl.when(pl.col("severity") > 3).then(None).otherwise("payer"))
    schema = panel_schema().with_feature("payer", missing=("",))
    schema = Schema(**{**vars_of(schema), "reviewed": True})
    release = pegsynth.synthesize(holes, schema, rows=100, complete=True, **ONCE)
    completed = release.completed[0][0]
    check_people(completed, 100)
    assert completed["payer"].null_count() == 0 < release.frames[0]["payer"].null_count()
    assert completed.height == release.frames[0].height


def vars_of(schema):
    return {name: getattr(schema, name) for name in Schema.__dataclass_fields__}


@pytest.mark.parametrize("wide", [False, True], ids=["long", "wide"])
def test_the_command_writes_a_release(table, tmp_path, wide):
    table.write_csv(tmp_path / "stays.csv")
    panel_schema().save(tmp_path / "schema.toml")
    flags = ["--wide"] if wide else []
    done(
        *("release", tmp_path / "stays.csv", "--schema", tmp_path / "schema.toml"),
        *("--method", "pegs-once", "--epsilon", 4, "--delta", 1e-9, "--rows", 200, *flags),
        *("-o", tmp_path / "out"),
    )
    public = tmp_path / "out" / "public"
    frame = pl.read_csv(public / "synthetic-1.csv", infer_schema_length=None)
    book = Schema.load(public / "schema.toml")
    if wide:
        assert frame.height == 200
        assert list(frame.columns) == list(wide_schema(panel_schema()).names)
        assert book.panel is None
    else:
        assert frame.columns == table.columns
        check_people(frame, 200)
        assert book.panel == panel_schema().panel
    promise = json.loads((public / "privacy.json").read_text())["guarantee"]
    assert (promise["unit"], promise["rows_per_unit"]) == ("unit", 1)
    assert "folded into one row" in (public / "PRIVACY.md").read_text()
    assert (tmp_path / "out" / "internal" / "report.html").exists()


def test_a_plan_says_whom_it_protects(tmp_path):
    panel_schema().save(tmp_path / "schema.toml")
    shown = done("plan", "--schema", tmp_path / "schema.toml", "--epsilon", 1, "--rows", 1000)
    assert "one 'patient' with all its rows, at most 4, at the price of one row" in shown.out


def test_numbers_and_categories_that_are_measured_fold_too(table):
    schema = panel_schema()
    columns = [
        column
        if column.name != "admitted"
        else type(column)("admitted", kind="date", edges="private", role=column.role)
        for column in schema.columns
    ]
    columns = [type(c)("ward", categories="private") if c.name == "ward" else c for c in columns]
    private = Schema(
        tuple(columns),
        panel=type(schema.panel)("patient", "admitted", 3, ("sex", "born")),
        reviewed=True,
    )
    frame = pegsynth.synthesize(table, private, rows=150, **{**ONCE, "epsilon": 30.0}).frames[0]
    assert frame.columns == table.columns
    assert frame.group_by("patient").len()["len"].max() <= 3


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"decode": "labels"}, "requires wide in a panel"),
        ({"synthesize": ("ward",), "method": "cart"}, "those of a panel are folded"),
    ],
)
def test_what_a_panel_cannot_do_is_refused(table, told, message):
    given = {"rows": 10, **ONCE, **told}
    if "synthesize" in told:
        given = {"method": "cart", "synthesize": ("ward",)}
    with pytest.raises(ParameterError, match=message):
        pegsynth.synthesize(table, panel_schema(), **given)


def test_wide_needs_a_panel_and_a_folded_codebook_is_none(table):
    with pytest.raises(SchemaError, match="that of a folded panel"):
        pegsynth.synthesize(table, wide_schema(panel_schema()), rows=10, **ONCE)
    plain = Schema(tuple(panel_schema().features), reviewed=True)
    with pytest.raises(ParameterError, match="wide requires"):
        pegsynth.synthesize(table.drop("patient"), plain, rows=10, wide=True, **ONCE)


def test_a_row_without_a_unit_stops_the_command(table, tmp_path):
    broken = table.with_columns(patient=pl.when(pl.col("patient") > 3).then("patient"))
    broken.write_csv(tmp_path / "stays.csv")
    panel_schema().save(tmp_path / "schema.toml")
    outcome = pegs(
        *("synthesize", tmp_path / "stays.csv", "--schema", tmp_path / "schema.toml"),
        *("--method", "pegs-once", "--epsilon", 4, "--rows", 20, "-o", tmp_path / "out.csv"),
    )
    check_refused(outcome, "unit column 'patient'")


# Released rows are read by their own schema

CODED = Schema(
    (
        Feature("person", role="identifier"),
        Feature("when", kind="numeric", edges=(0.0, 2.5, 20.0), dtype="double"),
        Feature("code", categories=("1", "2", "3"), dtype="double"),
        Feature("day", categories=("2020-01-01", "2020-01-02T10:00:00"), dtype="timestamp[us]"),
        Feature("flag", categories=("false", "true"), dtype="bool"),
        Feature(
            "dose",
            kind="numeric",
            edges=(0.0, 0.5, 1.75, 9.0),
            missing=("none",),
            keep_missing_codes=True,
        ),
        Feature("size", kind="numeric", edges=(0.25, 2.5, 9.5), dtype="double"),
    ),
    panel=Panel("person", "when", 3),
    reviewed=True,
)


@pytest.mark.parametrize(
    ("dialect", "extension"),
    [
        *((Dialect(), extension) for extension in ("csv", "parquet", "sav", "xlsx")),
        # Cells of a workbook have no type, and the dialect would be that of their texts.
        *((Dialect(separator=";", decimal=","), name) for name in ("csv", "parquet", "sav")),
    ],
    ids=str,
)
def test_rows_of_a_panel_are_read_again(tmp_path, dialect, extension):
    """Absent positions turn columns into text on the way; nothing may be lost in it."""
    schema = replace(CODED, dialect=dialect)
    days = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 10)]
    rows = [
        (
            f"p{n % 40}",
            n / 16,
            1.0 + n % 3,
            days[n % 2],
            n % 2 == 0,
            ("none", n / 50)[n % 2],
            n / 25,
        )
        for n in range(10, 110)
    ]
    data = pl.DataFrame(
        {
            each.name: pl.Series(
                [str(v) if each.name == "dose" else v for v in values], strict=False
            )
            for each, values in zip(CODED.columns, zip(*rows, strict=True), strict=True)
        }
    )
    if dialect.decimal == ",":
        data = data.with_columns(pl.col("dose").str.replace(".", ",", literal=True))
    release = pegsynth.synthesize(
        data, schema, rows=60, method="pegs-once", epsilon=50.0, seed=1, progress=False
    )
    (frame,) = release.frames
    assert frame.null_count().sum_horizontal().item() == 0
    assert {name: frame.schema[name] for name in ("when", "code", "day", "flag", "size")} == {
        name: data.schema[name] for name in ("when", "code", "day", "flag", "size")
    }
    path = tmp_path / f"out.{extension}"
    with open_writer(path, codebook=release.schema) as writer:
        writer.write(frame)
    flat = replace(release.schema, panel=None)
    wanted = encode(frame, flat)
    assert (encode(path, flat) == wanted).all()
    assert len(set(map(tuple, wanted.tolist()))) > 5


@pytest.mark.parametrize(
    ("missing", "wanted"),
    [
        (("-9",), [[1, 8, 19], [19, 20, 20], [-9, -9, -9]]),
        (("-9", "8"), [[1, 9, 20], [19, 20, 20], [-9, -9, -9]]),
        (("-9", "19", "20"), [[1, 8, 8], [19, -9, -9], [-9, -9, -9]]),
        (("", "19"), [[1, 8, 20], [19, None, None], [0, 7, 18]]),
    ],
)
def test_no_sum_of_times_means_missing(missing, wanted):
    when = {"kind": "numeric", "edges": (0.0, 20.0), "dtype": "int64", "keep_missing_codes": True}
    columns = (Feature("person", role="identifier"), Feature("when", missing=missing, **when))
    schema = Schema(columns, panel=Panel("person", "when", 3), reviewed=True)
    firsts = [1, 19, -9 if "-9" in missing else 0]
    wide = {"when_1": firsts, "when_2": [7, 1, 7], "when_3": [11, 4, 11]}
    wide = pl.DataFrame({schema.panel.count: ["3"] * 3, **wide})
    long = Unfolding(wide_schema(schema)).rows(wide)
    found = [group["when"].to_list() for _, group in long.group_by("person", maintain_order=True)]
    assert found == wanted


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize(
    ("missing", "kept"),
    [
        (("-9", "none"), True),
        (("-9", "-8"), True),
        (("", "-9"), True),
        (("-9",), False),
        (("7",), True),
        (("19", "20"), True),
    ],
)
def test_times_with_missing_codes_are_read_again(tmp_path, missing, kept, decimal, integer):
    """A time after one that is not known is missing, and is written as the schema says it."""
    when = Feature(
        "when",
        kind="numeric",
        edges=(0.0, 3.0, 20.0),
        missing=missing,
        keep_missing_codes=kept,
        dtype="int64" if integer else "",
    )
    schema = Schema(
        (Feature("person", role="identifier"), when, Feature("code", categories=("1", "2"))),
        panel=Panel("person", "when", 3),
        reviewed=True,
        dialect=Dialect(separator=";", decimal=decimal),
    )
    path = tmp_path / "data.csv"
    times = [str(n // 12 if integer else n / 16).replace(".", decimal) for n in range(10, 190)]
    times[::7] = [missing[place % len(missing)] for place in range(len(times[::7]))]
    rows = [f"p{n % 60};{time};{1 + n % 2}" for n, time in enumerate(times)]
    path.write_text("\n".join(["person;when;code", *rows, ""]))
    release = pegsynth.synthesize(
        path, schema, rows=60, method="pegs-once", epsilon=50.0, seed=1, progress=False
    )
    (frame,) = release.frames
    flat = replace(release.schema, panel=None)
    found = encode(frame, flat)[:, 0]
    assert (found >= when.bin_count).any()
    out = tmp_path / "out.csv"
    with open_writer(out, codebook=release.schema) as writer:
        writer.write(frame)
    assert (encode(out, flat)[:, 0] == found).all()
    texts = frame["when"].cast(pl.String).str.replace(",", ".", literal=True)
    known = frame.select("person", when=texts.cast(pl.Float64, strict=False))
    known = known.filter(pl.Series(found < when.bin_count))
    assert known["when"].is_between(0, 20).all()
    assert known.group_by("person").agg(pl.col("when").diff().min() >= 0)["when"].all()
