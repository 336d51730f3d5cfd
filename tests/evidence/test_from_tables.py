"""From tables.toml to rows, weights, a model and a release: the command line and Python (R36)."""

from __future__ import annotations

import json

import polars as pl
import pytest
from people_counted import CODES_OF, SCHEMA, written_tables

import command
import pegsynth
from command import check_refused, pegs
from pegsynth import Ledger
from pegsynth.errors import BudgetError, ParameterError

TABLES = ("--from-tables", "tables.toml", "--schema", "schema.toml")


def done(*arguments):
    """Run a command that succeeds; return all that it says."""
    outcome = command.done(*arguments)
    return outcome.out + outcome.err


def refused(*arguments):
    """Run a command that is refused; return the message."""
    outcome = pegs(*arguments)
    check_refused(outcome)
    return outcome.err


@pytest.fixture
def home(tmp_path, monkeypatch):
    written_tables(tmp_path)
    SCHEMA.save(tmp_path / "schema.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of(frame):
    """Return ages and jobs of rows, counted."""
    age = pl.col("age").cast(pl.Float64)
    band = (age >= 18).cast(pl.Int8) + (age >= 65).cast(pl.Int8)
    return dict(frame.group_by(band.alias("age"), "job").len().rows_by_key(["age", "job"]))


def test_a_model_of_tables_gives_rows_that_meet_them(home):
    said = done("fit", *TABLES, "-o", "model.pegs")
    assert "SHAREABLE model of 3 features" in said
    assert "Guarantee: none" in said
    done("sample", "model.pegs", "--rows", "400", "-o", "rows.csv", "--replicates", "4")
    frame = pl.read_csv("rows.csv", schema_overrides={"job": pl.String})
    assert {key: value[0][0] for key, value in of(frame).items()} == {
        key: value for key, value in CODES_OF.items() if value
    }
    assert [name for name in frame.columns if "weight" in name] == [
        "pegs_weight",
        *(f"pegs_weight_{number}" for number in range(1, 5)),
    ]
    shown = done("inspect", "model.pegs")
    assert "made of published tables and of nothing else" in shown
    assert "age x job: 12 cells, exact" in shown
    assert done("tables", "model.pegs", "--of", "age,sex").count("\n") == 7


def test_a_release_of_tables_has_weights_and_says_what_it_is_made_of(home):
    done("release", *TABLES, "-o", "out")
    assert not (home / "out" / "internal").exists()
    ledger = Ledger.from_json((home / "out" / "public" / "privacy.json").read_bytes())
    assert ledger.guarantee.kind == "none"
    files = {event.file: event for event in ledger.events if event.kind == "published-counts"}
    assert set(files) == {"age-sex.csv", "age-job.csv"}
    assert files["age-sex.csv"].error == "rounded to base 5, cells below 5 not shown"
    assert "Office X state: epsilon = 1" in " ".join(ledger.not_covered)
    text = (home / "out" / "public" / "HOW-TO-ANALYSE.md").read_text()
    assert "replicate" in text
    assert "no standard errors" not in text
    table = pegsynth.Release.load("out").frames[0]
    assert table.height == 400


def test_python_does_the_same(home):
    model = pegsynth.fit(None, "schema.toml", from_tables="tables.toml", seed=1)
    table = model.sample(400)
    frames = getattr(table, "frames", [table])
    assert {key: value[0][0] for key, value in of(frames[0]).items()} == {
        key: value for key, value in CODES_OF.items() if value
    }
    assert pegsynth.supported(model, "job ~ age").status == "supported by bins only"
    assert pegsynth.supported(model, "job ~ sex").status == "not supported"
    release = pegsynth.release(None, "schema.toml", from_tables="tables.toml", folder="again")
    assert release.frames[0].height == 400


def test_a_seed_takes_nothing_away(home):
    ledger = pegsynth.fit(None, "schema.toml", from_tables="tables.toml", seed=1).ledger
    assert [getattr(event, "code", "") for event in ledger.events] == ["", ""]


def test_the_event_survives_its_file():
    event = Ledger.from_json(_ledger().to_json()).events[0]
    assert event == _ledger().events[0]
    assert json.loads(_ledger().to_json())["guarantee"]["kind"] == "none"


def _ledger():
    from pegsynth.privacy.noise_events import PublishedCounts

    return Ledger(
        (
            PublishedCounts(
                file="a.csv", sha256="0" * 64, features=("a",), levels=(2,), error="exact"
            ),
        )
    )


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("data.csv",), "and not both"),
        (("--epsilon", "1"), "leave the budget out"),
        (("--method", "pegs-once"), "requires --method pegs-tables"),
    ],
)
def test_what_does_not_go_with_tables_is_refused(home, flags, said):
    assert said in refused("fit", *flags, *TABLES, "-o", "model.pegs")


def test_a_command_without_any_input_is_refused(home):
    assert "--from-tables" in refused("fit", "--schema", "schema.toml", "-o", "model.pegs")
    with pytest.raises(ParameterError, match="from_tables"):
        pegsynth.fit(None, "schema.toml", epsilon=1.0)
    with pytest.raises(BudgetError):
        pegsynth.fit(None, "schema.toml", from_tables="tables.toml", epsilon=1.0)


def test_a_book_takes_no_run_without_a_guarantee(home):
    done("book", "create", "b.book", "--epsilon", "3")
    assert "nothing to book" in refused("release", *TABLES, "-o", "out", "--book", "b.book")


def test_tables_that_contradict_each_other_are_refused(home):
    text = (home / "age-job.csv").read_text().splitlines()
    changed = [*text[:-1], text[-1].rsplit(",", 1)[0] + ",900"]
    (home / "age-job.csv").write_text("\n".join(changed))
    said = refused("fit", *TABLES, "-o", "model.pegs")
    assert "age-sex.csv and age-job.csv differ in age = [65, 110]" in said
