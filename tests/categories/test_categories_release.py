"""Releases under a schema whose categories are found: paid for inside the total (R29)."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.codec import finding_categories as finding
from pegsynth.errors import BudgetError, ParameterError, SchemaError
from pegsynth.methods import methods
from pegsynth.pipeline.request import Request
from pegsynth.pipeline.settling import settle
from pegsynth.privacy import CategoriesFound, Ledger
from pegsynth.schema import Feature, Schema
from pegsynth.schema.toml import loads
from pegsynth.schema.toml_text import dumps
from pegsynth.storage.model_file import load_model

ROWS = 4_000
TOWN = Feature("town", categories="private", missing=("", "NA"))
SCHEMA = Schema(
    (
        TOWN,
        Feature("sex", categories=("f", "m")),
        Feature("income", "numeric", edges="private", dtype="int64"),
    ),
    reviewed=True,
)
PUBLIC = SCHEMA.with_feature("income", edges=(0, 10_000, 50_000, 10_000_000))
PUBLIC = replace(PUBLIC, reviewed=True)
PAID = {"epsilon": 20.0, "delta": 1e-6}


def table(rows=ROWS, seed=1):
    """Return a table with five frequent towns, many rare ones and one row of each secret."""
    words = np.random.default_rng(seed)
    towns = np.array([*"ABCDE"])[words.integers(0, 5, rows)].astype(object)
    rare = words.random(rows) < 0.1
    towns[rare] = [f"secret {number}" for number in range(int(rare.sum()))]
    towns[words.random(rows) < 0.05] = "NA"
    income = np.exp(words.normal(10, 0.6, rows)).astype(int)
    sex = np.array(["f", "m"])[words.integers(0, 2, rows)]
    return pl.DataFrame({"town": list(towns), "sex": sex, "income": income})


TABLE = table()


@pytest.mark.parametrize("method", [each.name for each in methods() if each.has_proof])
def test_every_private_method_finds_categories_inside_its_total(method):
    release = pegsynth.synthesize(TABLE, SCHEMA, method=method, rows=300, **PAID)
    guarantee = release.ledger.guarantee
    assert guarantee.kind == "approximate"
    assert guarantee.delta == 1e-6
    assert 19.0 < guarantee.epsilon <= 20.0
    (event,) = (e for e in release.ledger.events if isinstance(e, CategoriesFound))
    assert event.features == ("town",)
    # A secret stands in one row: found with a chance of at most 1e-7 each.
    assert set(release.frames[0]["town"].drop_nulls()) <= {*"ABCDE", "(other)"}


@pytest.mark.parametrize("method", ["bootstrap", "mi"])
def test_methods_without_a_guarantee_list_what_is_frequent(method, monkeypatch):
    monkeypatch.setattr(finding, "MOST_FOUND", 5)
    release = pegsynth.synthesize(TABLE, SCHEMA, method=method, rows=500)
    assert release.ledger.guarantee.kind == "none"
    assert set(release.frames[0]["town"].drop_nulls()) == {*"ABCDE", "(other)"}


def test_found_categories_stand_in_text_order_and_shares_survive():
    turned = TABLE.reverse()
    release = pegsynth.synthesize(turned, PUBLIC, method="pegs-once", rows=ROWS, **PAID)
    assert release.schema["town"].categories == tuple("ABCDE")
    assert release.schema["town"].unknown == "category"
    share = float((release.frames[0]["town"] == "(other)").mean())
    # About a tenth of 4,000 rows; 6 standard errors of both tables, false alarm below 1e-8.
    assert abs(share - 0.095) < 0.04


def test_the_most_frequent_are_kept_by_noisy_counts(monkeypatch):
    monkeypatch.setattr(finding, "MOST_FOUND", 3)
    release = pegsynth.synthesize(TABLE, PUBLIC, method="pegs-once", rows=10, **PAID)
    assert len(release.schema["town"].categories) == 3


def test_a_search_is_the_same_whatever_was_put_out_before():
    # The ledger states what it takes of delta, so that must not follow a noisy number of rows.
    events = []
    for data in (TABLE.head(60), TABLE, pl.concat([TABLE] * 5)):
        asked = {"method": "pegs-once", "rows": 10, "epsilon": 1.0, "delta": 1e-6}
        ledger = pegsynth.synthesize(data, SCHEMA, **asked).ledger
        events += [event for event in ledger.events if isinstance(event, CategoriesFound)]
    assert len(events) == 3
    assert len(set(events)) == 1


def test_a_seed_repeats_what_is_found():
    asked = {"method": "pegs-once", "rows": 200, "seed": 3, "epsilon": 1.0, "delta": 1e-6}
    first, again = (pegsynth.synthesize(TABLE, SCHEMA, **asked).frames[0] for _ in range(2))
    assert first.equals(again)


@pytest.mark.parametrize("budget", [{"epsilon_per_row": 1.0}, {"l": 1.5}, {"alpha": 1.0}])
def test_only_a_total_pays(budget):
    with pytest.raises(BudgetError, match=r"'town'.*give epsilon for the whole release, or list"):
        pegsynth.synthesize(TABLE, PUBLIC, method="pegs", rows=10, **budget)


@pytest.mark.parametrize("schema", [PUBLIC, SCHEMA])
def test_without_a_delta_it_is_refused(schema):
    with pytest.raises(BudgetError, match=r"'town'.*and a delta; give delta, or list"):
        pegsynth.synthesize(TABLE, schema, method="pegs-once", epsilon=1.0, rows=10)
    with pytest.raises(BudgetError, match="'town'"):
        pegsynth.plan(schema, epsilon=1.0, rows=100)


def test_a_model_without_a_budget_is_refused():
    with pytest.raises(BudgetError, match="'town'"):
        settle(PUBLIC, Request(method="pegs"), saved=True)


def test_a_table_that_is_read_once_is_refused():
    with pytest.raises(ParameterError, match="take two passes"):
        pegsynth.synthesize(iter([TABLE]), PUBLIC, method="pegs-once", rows=10, **PAID)


def test_units_pay_for_all_their_rows_and_are_bounded():
    columns = (*PUBLIC.columns, Feature("person", role="identifier"))
    book = Schema(columns, unit="person", rows_per_unit=2, reviewed=True)
    # One person has a town of his own a thousand times; two of these rows count.
    loud = pl.DataFrame({"town": ["Z"] * 1000, "sex": ["f"] * 1000, "income": [20_000] * 1000})
    person = [*map(str, range(ROWS)), *["loud"] * 1000]
    people = pl.concat([TABLE, loud]).with_columns(person=pl.Series(person))
    release = pegsynth.synthesize(people, book, method="pegs-once", rows=200, **PAID)
    assert release.schema["town"].categories == tuple("ABCDE")
    alone = pegsynth.synthesize(TABLE, PUBLIC, method="pegs-once", rows=10, **PAID)
    (two,), (one,) = (
        [e for e in each.ledger.events if isinstance(e, CategoriesFound)]
        for each in (release, alone)
    )
    ratio = two.variance_numerator / two.variance_denominator
    assert ratio == pytest.approx(4 * one.variance_numerator / one.variance_denominator)
    assert two.threshold > 2 * one.threshold - 2
    assert release.ledger.guarantee.epsilon <= 20.0


def test_categories_that_are_found_are_no_assumption():
    ledger = pegsynth.synthesize(TABLE, SCHEMA, method="pegs-once", rows=10, **PAID).ledger
    (reviewed,) = (a for a in ledger.assumptions if a.code == "reviewed-schema")
    assert reviewed.parameters["categories"] == ["sex"]
    assert "secret" not in ledger.to_json()


def test_the_plan_is_settled_before_any_data_is_read():
    settled = settle(SCHEMA, Request(method="pegs-once", rows=1000, **PAID))
    assert Ledger(settled.plan.events, delta=1e-6).guarantee.epsilon < 20.0
    planned = pegsynth.plan(SCHEMA, rows=1000, **PAID)
    assert {each.method for each in planned.predictions} >= {"pegs-once", "pegs-capped"}


# The schema


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ('kind = "ordinal"\ncategories = "private"', "requires a nominal feature"),
        ('kind = "numeric"\ncategories = "private"', "requires a nominal feature"),
        ('categories = "secret.csv"', "secret.csv"),
        ('categories = "private"\ngroups = { x = ["a"] }', "recodings are of public categories"),
        ('categories = "private"\nshares = [1.0]', "shares are of public categories"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(lines, word):
    with pytest.raises(SchemaError, match=word):
        loads(f'[[features]]\nname = "town"\n{lines}\n')


def test_the_schema_is_written_and_read_back():
    assert loads(dumps(SCHEMA)) == SCHEMA
    assert SCHEMA.unsettled == ("town", "income")
    with pytest.raises(SchemaError, match=r"'town'.*categories are private"):
        _ = SCHEMA.category_counts
    listed = SCHEMA.with_feature("town", categories=("A", "B"))
    assert not listed["town"].private_categories
    assert listed.with_feature("town", categories="private").unsettled == ("town", "income")


def test_rules_may_name_special_categories_only():
    text = dumps(PUBLIC)
    ok = loads(text + '[[rules]]\nforbid = { town = ["(other)"], sex = ["f"] }\n')
    release = pegsynth.synthesize(
        TABLE, replace(ok, reviewed=True), method="pegs-once", rows=500, **PAID
    )
    frame = release.frames[0]
    assert frame.filter((pl.col("town") == "(other)") & (pl.col("sex") == "f")).is_empty()
    with pytest.raises(SchemaError, match="categories are private"):
        loads(text + '[[rules]]\nforbid = { town = ["A"], sex = ["f"] }\n')
    with pytest.raises(SchemaError, match="allow_only cannot say"):
        loads(text + '[[rules]]\nwhen = { sex = ["f"] }\nallow_only = { town = ["(other)"] }\n')


# Through files


@pytest.fixture
def home(tmp_path):
    SCHEMA.save(tmp_path / "schema.toml")
    TABLE.write_csv(tmp_path / "data.csv")
    return tmp_path


def flags(home, *more):
    """Return the flags that a release takes."""
    return ("--schema", home / "schema.toml", "--epsilon", 20, "--delta", 1e-6, *more)


def test_the_command_line_finds_them(home):
    out = home / "out.csv"
    done("synthesize", home / "data.csv", *flags(home, "--rows", 200), "-o", out)
    ledger = json.loads((home / "out.csv.privacy.json").read_text())
    assert any(event["kind"] == "private-categories" for event in ledger["events"])
    assert set(pl.read_csv(out)["town"].drop_nulls()) <= {*"ABCDE", "(other)"}


@pytest.mark.parametrize("method", ["pegs-once", "pegs-rs"])
def test_a_saved_model_needs_no_data(home, method):
    model, out = home / "town.pegs", home / "out.csv"
    rows = () if method == "pegs-once" else ("--rows", 100)
    done("fit", home / "data.csv", *flags(home, "--method", method, *rows), "-o", model)
    (home / "data.csv").unlink()
    assert load_model(model).schema["town"].categories == tuple("ABCDE")
    done("sample", model, "--rows", 100, "-o", out)
    assert set(pl.read_csv(out)["town"].drop_nulls()) <= {*"ABCDE", "(other)"}
    ledger = Ledger.from_json((home / "out.csv.privacy.json").read_text())
    assert ledger.guarantee.epsilon <= 20.0


def test_a_release_folder_publishes_the_list_it_paid_for(home):
    done(
        "release",
        home / "data.csv",
        *flags(home, "--rows", 300, "--public-only"),
        "-o",
        home / "run",
    )
    book = Schema.load(home / "run" / "public" / "schema.toml")
    assert book["town"].categories == tuple("ABCDE")
    assert "secret" not in (home / "run" / "public" / "schema.toml").read_text()


def test_the_command_line_refuses_without_a_delta(home):
    asked = ("--schema", home / "schema.toml", "-o", home / "out.csv")
    data = home / "data.csv"
    check_refused(pegs("synthesize", data, *asked, "--rows", 9, "--epsilon", 1), "--delta", "town")
    check_refused(pegs("fit", data, *asked, "--method", "pegs"), "town")
    check_refused(pegs("plan", *asked[:2], "--rows", 9, "--epsilon", 1), "--delta", "town")
    assert not (home / "out.csv").exists()


def test_the_plan_says_what_the_codec_costs(home):
    shown = done("plan", *flags(home, "--rows", 1000)).out
    said = "finding the categories of 1 feature takes 4.0% of the budget and 1e-7 of delta"
    assert said in shown
    assert "measuring the edges or shapes of 1 feature takes at most 15.0%" in shown


def test_show_and_check_say_that_they_are_private(home):
    assert "categories found privately" in done("schema", "show", home / "schema.toml").out
    assert (
        "Categories are found by noisy counts" in done("schema", "check", home / "schema.toml").out
    )
