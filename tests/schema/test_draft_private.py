"""Drafts from names and declared types alone, and releases under them (R21, R29)."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from command import SECRET, check_refused, done, pegs
from pegsynth.errors import SchemaError
from pegsynth.privacy import Ledger
from pegsynth.schema import Schema
from pegsynth.schema.tally import FILE_MISSING

WORDS = np.random.default_rng(4)
TABLE = pl.DataFrame(
    {
        "person": [f"{SECRET} {number}" for number in range(2_000)],
        "town": np.array([*"ABC"])[WORDS.integers(0, 3, 2_000)],
        "pay": np.exp(WORDS.normal(10, 1, 2_000)).round(2),
        "age": WORDS.integers(18, 90, 2_000),
        "retired": WORDS.random(2_000) < 0.3,
        "since": pl.Series(WORDS.integers(0, 9_000, 2_000)).cast(pl.Int32).cast(pl.Date),
    }
)


def test_typed_tables_declare_what_is_a_number():
    schema = Schema.draft(TABLE, private=True, unit="person")
    kinds = {
        each.name: (each.kind, each.private_categories, each.private_edges)
        for each in schema.features
    }
    assert kinds == {
        "town": ("nominal", True, False),
        "pay": ("numeric", False, True),
        "age": ("numeric", False, True),
        "retired": ("nominal", False, False),
        "since": ("date", False, True),
    }
    assert schema["retired"].categories == ("false", "true")
    assert schema["age"].dtype == "int64"
    assert schema.unit == "person"
    assert (schema.drafted_from_data, schema.reviewed) == ((), False)
    assert all(each.missing == ("",) for each in schema.features)


def test_columns_of_text_files_are_nominal_unless_they_are_declared(tmp_path):
    TABLE.write_csv(tmp_path / "t.csv")
    schema = Schema.draft(tmp_path / "t.csv", private=True)
    assert all(each.private_categories and each.missing == FILE_MISSING for each in schema.features)
    stated = Schema.draft(
        tmp_path / "t.csv", private=True, types={"pay": "double", "retired": "bool"}
    )
    assert stated["pay"].private_edges
    # A text that is no number must not refuse the table: that would tell of a row.
    assert stated["pay"].unknown == stated["retired"].unknown == "category"


def test_no_row_is_read(tmp_path):
    header = ",".join(TABLE.columns)
    full, other = tmp_path / "full.csv", tmp_path / "other.csv"
    TABLE.write_csv(full)
    other.write_text(header + "\nx,1,-,y,-\n1,2\n")
    assert Schema.draft(full, private=True) == Schema.draft(other, private=True)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"unit": "nobody"}, "no column 'nobody'"),
        ({"types": {"nobody": "int64"}}, "no column 'nobody'"),
        ({"types": {"pay": "money"}}, "type 'money' is not known"),
    ],
)
def test_what_is_not_there_is_refused(asked, message):
    with pytest.raises(SchemaError, match=message):
        Schema.draft(TABLE, private=True, **asked)


def test_a_release_without_public_knowledge_of_any_value(tmp_path):
    data, book, out = tmp_path / "t.csv", tmp_path / "schema.toml", tmp_path / "out.csv"
    TABLE.write_csv(data)
    types = ("--types", "age=int64,pay=double")
    told = done("schema", "--private", data, "-o", book, "--unit", "person", *types)
    assert "no row was read" in told.err
    assert SECRET not in book.read_text()
    assert "drafted_from_data" not in book.read_text()
    budget = ("--epsilon", 20, "--delta", 1e-6, "--rows", 500)
    refused = pegs("synthesize", data, "--schema", book, *budget, "-o", out)
    check_refused(refused, "not reviewed")
    book.write_text(book.read_text().replace("reviewed = false", "reviewed = true"))
    done("synthesize", data, "--schema", book, *budget, "-o", out)
    ledger = Ledger.from_json((tmp_path / "out.csv.privacy.json").read_text())
    assert ledger.guarantee.kind == "approximate"
    (reviewed,) = (a for a in ledger.assumptions if a.code == "reviewed-schema")
    assert "categories" not in reviewed.parameters
    assert "edges" not in reviewed.parameters
    drawn = pl.read_csv(out, infer_schema=False)
    assert set(drawn["town"].drop_nulls()) <= {*"ABC", "(other)"}
    assert abs(drawn["age"].cast(pl.Int64).mean() / TABLE["age"].mean() - 1) < 0.1


def test_values_that_fit_no_type_refuse_no_table(tmp_path):
    data, book, out = tmp_path / "t.csv", tmp_path / "schema.toml", tmp_path / "out.csv"
    odd = TABLE.with_columns(pay=pl.col("pay").cast(pl.String), age=pl.col("age").cast(pl.String))
    odd[7, "pay"], odd[9, "age"] = SECRET, "x" * 50
    odd.write_csv(data)
    done("schema", "--private", data, "-o", book, "--types", "age=int64,pay=double,retired=bool")
    book.write_text(book.read_text().replace("reviewed = false", "reviewed = true"))
    budget = ("--epsilon", 20, "--delta", 1e-6, "--rows", 300)
    done("synthesize", data, "--schema", book, *budget, "-o", out)
    assert SECRET not in out.read_text()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--private", "--bins", 5), "reads no row"),
        (("--private", "--min-count", 5), "reads no row"),
        (("--private", "--types", "age"), "age=int64"),
        (("--types", "age=int64"), "requires --private"),
        (("--private", "--types", "age=quantity"), "not known"),
    ],
)
def test_flags_that_do_not_go_together(tmp_path, flags, words):
    TABLE.write_csv(tmp_path / "t.csv")
    refused = pegs("schema", tmp_path / "t.csv", "-o", tmp_path / "s.toml", *flags)
    check_refused(refused, words)
    assert not (tmp_path / "s.toml").exists()
