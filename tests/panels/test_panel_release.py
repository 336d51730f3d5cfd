"""Releases of a panel: whole people in, whole people out, at the price of one row (R24)."""

from __future__ import annotations

import json

import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.datasets import panel, panel_schema
from pegsynth.errors import ParameterError, SchemaError
from pegsynth.schema import Schema
from pegsynth.schema.wide_schema import wide_schema

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
        ({"decode": "labels"}, "goes with wide in a panel"),
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
    with pytest.raises(ParameterError, match="wide goes with"):
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
