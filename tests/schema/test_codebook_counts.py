"""Counts of rows by a codebook, against counting by hand."""

from __future__ import annotations

import json

import polars as pl
import pytest

from command import check_refused, done, pegs
from pegsynth.codec.codebook_counts import CodebookCounts, count_rows
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.rules import Rule

TABLE = pl.DataFrame(
    {
        "sex": ["f", "m", None, "f", "d", "f"],
        "age": [3, 10, 11, 25, 40, None],
        "pay": [1.5, 2.5, 2.5, 9.0, 100.0, None],
        "town": ["x", "y", "x", None, "z", "x"],
        "id": [1, 2, 3, 4, 5, 6],
    }
)


def codebook(**changes):
    columns = (
        Feature("sex", categories=("f", "m")),
        Feature("age", kind="numeric", edges=(0, 10, 20, 30), missing=("",)),
        Feature("pay", kind="numeric", edges="private", missing=("",)),
        Feature("town", categories="private", missing=("",)),
        Feature("id", role="identifier"),
    )
    rules = (
        Rule.forbid(sex="f", age=["[0, 10)", "[20, 30]"]),
        Rule.forbid(sex="f", town="(other)"),
    )
    return Schema(columns, rules=rules, **changes)


def test_every_level_is_counted_and_nothing_is_refused():
    found = count_rows(TABLE, codebook())
    by_name = {each.name: each for each in found.features}
    assert found.rows == TABLE.height
    sex, age, pay, town = (by_name[name] for name in ("sex", "age", "pay", "town"))
    assert sex.levels == (("f", 3), ("m", 1))
    assert (sex.unlisted, sex.missing, sex.refused) == (1, 1, 2)
    # 40 lies beyond the edges and falls in the end bin, as in a release.
    assert age.levels == (("[0, 10)", 1), ("[10, 20)", 2), ("[20, 30]", 2))
    assert (age.unlisted, age.missing, age.refused) == (0, 1, 0)
    assert town.levels == (("x", 3), ("y", 1), ("z", 1))
    assert (town.settled, pay.settled, sex.settled) == (False, False, True)
    assert sum(rows for _, rows in pay.levels) == 5
    assert "id" not in by_name


def test_rules_are_counted_where_their_levels_are_known():
    found = count_rows(TABLE, codebook())
    broken = sum(
        sex == "f" and age is not None and not 10 <= age < 20
        for sex, age in TABLE.select("sex", "age").iter_rows()
    )
    assert found.broken == (broken, None)


def test_a_codebook_without_any_known_level_is_counted_too():
    schema = Schema((Feature("town", categories="private"), Feature("id", role="identifier")))
    found = count_rows(TABLE.select("town", "id"), schema)
    assert found.rows == 6
    assert dict(found.features[0].levels) == {"x": 3, "y": 1, "z": 1}


def test_unit_parents_and_heads_do_not_hinder():
    columns = (
        Feature("sex", categories=("f", "m"), heads=("town",), shares=(0.5, 0.5)),
        Feature("town", categories=("x", "y"), parent="sex"),
        Feature("id", role="identifier"),
    )
    found = count_rows(TABLE.select("sex", "town", "id"), Schema(columns, unit="id"))
    assert found.features[1].unlisted == 1


def test_the_command_says_what_a_release_would_refuse(tmp_path):
    TABLE.write_csv(tmp_path / "t.csv")
    codebook().save(tmp_path / "s.toml")
    outcome = done(
        "schema", "count", tmp_path / "s.toml", tmp_path / "t.csv", "-o", tmp_path / "c.json"
    )
    assert "sex: 1 values are not listed and 1 are missing" in outcome.out
    assert "3 rows break it" not in outcome.out
    assert "2 rows break it" in outcome.out
    assert "CONFIDENTIAL" in outcome.err
    assert (tmp_path / "c.json").stat().st_mode & 0o777 == 0o600
    assert CodebookCounts.load(tmp_path / "c.json").rows == 6


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"rows": 1, "features": [], "format": 9})])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(DataError, match=r"c\.json"):
        CodebookCounts.load(tmp_path / "c.json")


def test_wrong_words_are_refused(tmp_path):
    check_refused(pegs("schema", "count", tmp_path / "s.toml"), "schema count takes")
    codebook().save(tmp_path / "s.toml")
    check_refused(pegs("schema", "count", tmp_path / "s.toml", tmp_path / "no.csv"), "no.csv")
    TABLE.rename({"sex": "other"}).write_csv(tmp_path / "t.csv")
    check_refused(pegs("schema", "count", tmp_path / "s.toml", tmp_path / "t.csv"), "'sex'")
