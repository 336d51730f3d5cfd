"""`pegs schema check`, `show` and `review`, and what the command refuses."""

import io
import sys

import pytest

from command import check_refused, pegs
from pegsynth.schema import Feature, Rule, Schema

DRAFT = Schema(
    (
        Feature("person", role="identifier"),
        Feature("sex", categories=("f", "m"), drafted_from_data=True),
        Feature("age", kind="numeric", edges=(0.0, 37.0, 91.0), drafted_from_data=True),
    )
).with_rules(Rule.forbid(sex="m", age="[0, 37)"))


@pytest.fixture
def schema(tmp_path):
    path = tmp_path / "s.toml"
    DRAFT.save(path)
    return path


def answer(monkeypatch, *lines):
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_check_says_what_is_assumed(schema):
    done = pegs("schema", "check", schema)
    assert done.code == 0
    for words in ("valid, 2 features", "One row is protected", "Not reviewed", "Read off the data"):
        assert words in done.out
    schema.write_text("unit = 'x'\n")
    check_refused(pegs("schema", "check", schema), "it belongs under [table]")


def test_show_prints_the_codebook(schema):
    done = pegs("schema", "show", schema)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[0] == "Unit: a row. Reviewed: no."
    assert lines[1].split()[:4] == ["feature", "role", "kind", "levels"]
    assert any(line.startswith("age") and "2 bins from 0 to 91" in line for line in lines)
    assert any(line.startswith("rule") for line in lines)


def test_review_walks_through_what_is_open(schema, monkeypatch):
    answer(monkeypatch, "nobody", "person", "4", "role", "sens", "keep", "edges", "0 18 x")
    done = pegs("schema", "review", schema)
    assert done.code == 0
    assert "Stopped: the file is as it was." in done.err
    assert Schema.load(schema) == DRAFT
    answer(
        monkeypatch,
        *("nobody", "person", "4", "role", "sens", "keep"),
        *("edges", "0 18 x"),
        "later",
    )
    done = pegs("schema", "review", schema)
    assert "Still open" in done.err
    half = Schema.load(schema)
    assert (half.unit, half.rows_per_unit, half["sex"].role) == ("person", 4, "sensitive")
    assert not half.reviewed
    answer(monkeypatch, "", "keep", "keep", "Anna Nowak")
    done = pegs("schema", "review", schema)
    assert "reviewed by Anna Nowak on" in done.err
    whole = Schema.load(schema)
    assert whole.reviewed
    assert whole.reviewer == "Anna Nowak"
    assert whole.drafted_from_data == ("sex", "age")
    check_refused(pegs("schema", "review", schema), "reviewed already")


def test_review_shows_what_the_draft_says_and_forgets_it_in_the_end(schema, monkeypatch):
    from dataclasses import replace

    said = {"sex": "its values repeat: set unit under [table]", "age": 'rare: "90" 1 # row'}
    columns = (
        replace(each, notes=(said[each.name],)) if each.name in said else each
        for each in DRAFT.columns
    )
    DRAFT.with_columns(columns).save(schema)
    answer(monkeypatch, "", "later", "later")
    done = pegs("schema", "review", schema)
    # What tells of units is said before units are asked about, and with its feature.
    assert done.err.index("set unit under [table]") < done.err.index("Column that tells whose")
    assert done.err.count("set unit under [table]") == 2
    assert said["age"] in done.err
    # A review that is not done keeps the comments; the public codebook has none.
    assert said["age"] in schema.read_text()
    answer(monkeypatch, "", "keep", "keep", "Anna Nowak")
    assert "reviewed by Anna Nowak" in pegs("schema", "review", schema).err
    assert "rare" not in schema.read_text()


def test_review_asks_about_rules_that_were_found(schema, monkeypatch):
    from dataclasses import replace

    rules = tuple(replace(rule, drafted_from_data=True) for rule in DRAFT.rules)
    replace(DRAFT, rules=rules).save(schema)
    assert Schema.load(schema).drafted_rules == rules
    answer(monkeypatch, "", "keep", "keep", "no", "")
    assert pegs("schema", "review", schema).code == 0
    assert Schema.load(schema).rules == ()


def test_bad_usage_is_refused(schema, tmp_path):
    check_refused(pegs("schema", "check"), "takes one schema file; a table called check is ./check")
    check_refused(pegs("schema", "a.csv", "b.csv", "-o", tmp_path / "o"), "takes one table")
    check_refused(pegs("schema", "a.csv"), "needs -o FILE")
    check_refused(pegs("schema", "-o", tmp_path / "o"), "takes one table")
