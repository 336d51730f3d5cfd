"""Releases under a schema whose edges are measured: they are paid for inside the total."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.errors import BudgetError, ModelError, ParameterError
from pegsynth.methods import methods
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import settle
from pegsynth.privacy import Ledger, NoisyCounts
from pegsynth.schema import Feature, Schema
from pegsynth.storage.model_file import load_model

ROWS = 4000
SCHEMA = Schema(
    (
        Feature("sex", categories=("f", "m")),
        Feature("income", "numeric", edges="private", dtype="int64"),
        Feature("age", "numeric", edges="private", lowest=0, highest=110, bins=6, dtype="int64"),
    ),
    reviewed=True,
)


def table(rows=ROWS, seed=1):
    """Return a table with many zeros, and an income that depends on sex and age."""
    words = np.random.default_rng(seed)
    sex = words.integers(0, 2, rows)
    age = words.integers(18, 90, rows)
    income = np.exp(words.normal(10 + 0.3 * sex, 0.6, rows)).astype(int)
    income[words.random(rows) < 0.4] = 0
    return pl.DataFrame({"sex": np.array(["f", "m"])[sex], "income": income, "age": age})


TABLE = table()


def test_more_heads_than_other_features_are_refused(tmp_path):
    TABLE.head(50).write_csv(tmp_path / "t.csv")
    SCHEMA.save(tmp_path / "s.toml")
    told = ("--schema", tmp_path / "s.toml", "--method", "pegs-once", "--epsilon", 1, "--rows", 10)
    outcome = pegs("release", tmp_path / "t.csv", *told, "--heads", 3, "-o", tmp_path / "r")
    check_refused(outcome, "--heads 3", "between 0 and 2 other features")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    "method", [each.name for each in methods() if each.has_proof], ids=lambda name: name
)
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_every_private_method_pays_for_edges_inside_its_total(method, delta):
    release = pegsynth.synthesize(TABLE, SCHEMA, method=method, epsilon=20.0, delta=delta, rows=200)
    guarantee = release.ledger.guarantee
    assert guarantee.kind == ("pure" if delta is None else "approximate")
    assert 19.0 < guarantee.epsilon <= 20.0
    paid = [e for e in release.ledger.events if isinstance(e, NoisyCounts) and e.purpose == "edges"]
    assert {name for event in paid for name in event.features} == {"income", "age"}
    assert release.frames[0].schema == TABLE.schema


@pytest.mark.parametrize("method", ["bootstrap", "mi", "cart"])
def test_methods_without_a_guarantee_measure_exactly(method):
    release = pegsynth.synthesize(TABLE, SCHEMA, method=method, rows=2000)
    assert release.ledger.guarantee.kind == "none"
    zeros = float((release.frames[0]["income"] == 0).mean())
    # A share of 0.4 in 2,000 rows: 6 standard errors, false alarm below 1e-8.
    assert abs(zeros - 0.4) < 0.07


def test_zeros_and_shape_survive():
    frame = pegsynth.synthesize(
        TABLE, SCHEMA, method="pegs-once", epsilon=5.0, delta=1e-6, rows=ROWS
    ).frames[0]
    # Noise and sampling together stay below 6 standard errors of 4,000 rows (2e-9).
    assert abs(float((frame["income"] == 0).mean()) - 0.4) < 0.06
    assert abs(frame["age"].mean() / TABLE["age"].mean() - 1) < 0.05
    assert frame["age"].min() >= 0
    assert frame["age"].max() < 111


@pytest.mark.parametrize("decode", ["model", "values", "labels", None])
def test_ways_of_decoding(decode):
    release = pegsynth.synthesize(
        TABLE, SCHEMA, method="pegs-once", epsilon=5.0, rows=300, decode=decode
    )
    assert release.frames[0]["age"].dtype == (pl.String if decode == "labels" else pl.Int64)


def test_a_model_needs_measured_numbers():
    plain = SCHEMA.with_feature("income", edges=(0, 10, 1e9)).with_feature(
        "age", edges=(0, 50, 120)
    )
    asked = {"method": "pegs-once", "epsilon": 5.0, "decode": "model", "rows": 30}
    with pytest.raises(ParameterError, match="decode model requires numbers that were measured"):
        pegsynth.synthesize(TABLE, replace(plain, reviewed=True), **asked)


def test_a_seed_repeats_every_value():
    asked = {"method": "pegs-once", "epsilon": 5.0, "rows": 300, "seed": 3}
    first, again = (pegsynth.synthesize(TABLE, SCHEMA, **asked).frames[0] for _ in range(2))
    assert first.equals(again)


@pytest.mark.parametrize("budget", [{"epsilon_per_row": 1.0}, {"l": 1.5}, {"alpha": 1.0}])
def test_only_a_total_pays_for_edges(budget):
    with pytest.raises(BudgetError, match=r"'income'.*give epsilon, or list the edges"):
        pegsynth.synthesize(TABLE, SCHEMA, method="pegs", rows=10, **budget)


def test_a_table_that_is_read_once_is_refused():
    with pytest.raises(ParameterError, match="take two passes"):
        pegsynth.synthesize(iter([TABLE]), SCHEMA, method="pegs-once", epsilon=1.0, rows=10)


def test_the_plan_is_settled_before_any_data_is_read():
    settled = settle(SCHEMA, Request(method="pegs-once", epsilon=1.0, rows=1000))
    assert Ledger(settled.plan.events).guarantee.epsilon < 1.0
    planned = pegsynth.plan(SCHEMA, epsilon=1.0, rows=1000)
    assert {each.method for each in planned.predictions} >= {"pegs-once", "pegs-capped"}
    release = pegsynth.synthesize(TABLE, SCHEMA, epsilon=1.0, rows=1000)
    assert release.frames[0].height == 1000


def test_units_pay_for_all_their_rows():
    columns = (*SCHEMA.columns, Feature("person", role="identifier"))
    book = Schema(columns, unit="person", rows_per_unit=3, reviewed=True)
    people = TABLE.with_columns(person=pl.Series(np.arange(ROWS) // 2).cast(pl.String))
    alone, three = (
        next(e for e in each.ledger.events if isinstance(e, NoisyCounts) and e.purpose == "edges")
        for each in (
            # So many rows that the share of the budget for edges is the same for both.
            pegsynth.synthesize(
                data, schema, method="pegs-once", epsilon=5.0, rows=50, rows_in=10**9
            )
            for data, schema in ((TABLE, SCHEMA), (people, book))
        )
    )
    scale = three.scale_numerator / three.scale_denominator
    assert scale == pytest.approx(3 * alone.scale_numerator / alone.scale_denominator)


def test_edges_that_are_measured_are_no_assumption():
    ledger = pegsynth.synthesize(TABLE, SCHEMA, method="pegs-once", epsilon=5.0, rows=10).ledger
    (reviewed,) = (a for a in ledger.assumptions if a.code == "reviewed-schema")
    # Where the ages end was stated by somebody; where incomes do was not.
    assert "age" in json.dumps(reviewed.parameters["bounds"])
    assert "income" not in json.dumps(reviewed.parameters["bounds"])
    assert "edges" not in reviewed.parameters


# Through files


@pytest.fixture
def home(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    TABLE.write_csv(tmp_path / "data.csv")
    return tmp_path


def test_a_model_file_holds_the_shapes(home):
    model, out = home / "m.pegs", home / "t.csv"
    flags = ("--schema", home / "schema.toml", "--method", "pegs-once", "--epsilon", 5)
    done("fit", home / "data.csv", *flags, "-o", model)
    assert set(load_model(model).shapes) == {"income", "age"}
    done("sample", model, "--rows", 2000, "-o", out)
    zeros = float((pl.read_csv(out)["income"] == 0).mean())
    assert abs(zeros - 0.4) < 0.1
    assert load_model(model).schema["age"].edges


def test_a_release_folder_publishes_the_edges_it_paid_for(home):
    flags = ("--schema", home / "schema.toml", "--epsilon", 5, "--rows", 300, "--public-only")
    done("release", home / "data.csv", *flags, "-o", home / "run")
    book = Schema.load(home / "run" / "public" / "schema.toml")
    assert not book.unsettled
    page = (home / "run" / "public" / "HOW-TO-ANALYSE.md").read_text()
    assert "measured with noise (purpose `edges` in" in page
    assert "nothing finer than a bin is information" not in page
    done("plan", "--schema", home / "schema.toml", "--rows", 100, "--epsilon", 1)


def test_a_model_without_a_budget_is_refused(home):
    told = pegs("fit", home / "data.csv", "--schema", home / "schema.toml", "-o", home / "m.pegs")
    check_refused(told, "income")
    assert not (home / "m.pegs").exists()


def test_damaged_shapes_are_refused(home):
    from pegsynth.storage.model_file import shape_arrays, stored_shapes

    model = pegsynth.fit(TABLE, SCHEMA, method="pegs-once", epsilon=5.0)
    model.save(home / "m.pegs")
    loaded = load_model(home / "m.pegs")
    arrays = shape_arrays(loaded.shapes)
    assert set(stored_shapes(arrays, loaded.schema)) == {"income", "age"}
    for name, array in arrays.items():
        nonsense = np.full_like(array, np.nan if array.dtype.kind == "f" else -(2**60))
        for wrong in (array[:-1], array.astype(np.float32), nonsense):
            with pytest.raises(ModelError, match="does not fit the schema"):
                stored_shapes({**arrays, name: wrong}, loaded.schema)
        less = {key: value for key, value in arrays.items() if key != name}
        with pytest.raises(ModelError, match="does not fit the schema"):
            stored_shapes(less, loaded.schema)
