from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from pegsynth.codec.codec import encode
from pegsynth.errors import DataError
from pegsynth.evaluation.evaluated_tables import read_tables
from pegsynth.schema import Feature, Schema

SCHEMA = Schema(
    (
        Feature("a", categories=("x", "y"), role="quasi-identifier", heads=("b",)),
        Feature("b", categories=("p", "q", "r"), not_applicable=("-",), missing=("",)),
        Feature("n", kind="numeric", edges=(0.0, 10.0, 20.0)),
        Feature("id", role="identifier"),
    )
)
ORIGINAL = pl.DataFrame(
    {"a": ["x", "y", "x"], "b": ["p", "-", None], "n": [1.0, 15.0, 3.0], "id": ["1", "2", "3"]}
)


def read(*synthetic, holdout=None):
    return read_tables(ORIGINAL, synthetic, SCHEMA, holdout=holdout, threads=2)


def named(tables):
    return {(record.name, record.subject): record for record in tables.records}


def test_tables_that_fit_are_as_the_encoder_reads_them(tmp_path):
    labels = pl.DataFrame({"a": ["y"], "b": ["q"], "n": ["[0, 10)"]})
    labels.write_csv(tmp_path / "s.csv")
    tables = read(ORIGINAL, str(tmp_path / "s.csv"), tmp_path / "s.csv")
    np.testing.assert_array_equal(tables.original, encode(ORIGINAL, SCHEMA))
    np.testing.assert_array_equal(tables.synthetic[0], tables.original)
    np.testing.assert_array_equal(tables.synthetic[1], [[1, 1, 0]])
    np.testing.assert_array_equal(tables.synthetic[2], [[1, 1, 0]])
    assert tables.schema.names == ("a", "b", "n")
    assert not tables.records
    assert tables.roles == ("a",)


def test_values_without_a_code_become_a_category_of_their_own():
    strange = pl.DataFrame({"a": ["x", "z", None], "b": ["p", "?", None], "n": ["3", "high", None]})
    tables = read(ORIGINAL, strange)
    a, b, n = tables.schema.features
    assert a.labels == ("x", "y", "(other)")
    assert b.labels == ("p", "q", "r", "(other)", "-", "(missing)")
    assert n.labels == ("[0, 10)", "[10, 20]", "(other)")
    # Codes of the original move with the categories.
    np.testing.assert_array_equal(tables.original, [[0, 0, 0], [1, 4, 1], [0, 5, 0]])
    np.testing.assert_array_equal(tables.synthetic[0], tables.original)
    np.testing.assert_array_equal(tables.synthetic[1], [[0, 0, 0], [2, 3, 2], [2, 5, 2]])
    found = named(tables)
    record = found["unknown_values", "a"]
    assert record.value == pytest.approx(np.mean([0, 2 / 3]))
    assert (record.low, record.high, record.baseline) == (0, pytest.approx(2 / 3), 0)
    assert found["unknown_values", "b"].value == pytest.approx(1 / 6)
    assert "z" not in " ".join(record.note for record in tables.records).split()


def test_256_categories_leave_room_for_one_more():
    schema = Schema((Feature("a", categories=tuple(f"c{i}" for i in range(256))),))
    original = pl.DataFrame({"a": ["c255"]})
    tables = read_tables(original, [pl.DataFrame({"a": ["?", "c0"]})], schema, threads=1)
    assert tables.original.tolist() == [[255]]
    assert tables.synthetic[0].tolist() == [[256], [0]]


def test_a_missing_column_is_left_out_and_said():
    tables = read(ORIGINAL, ORIGINAL.drop("b"))
    assert tables.schema.names == ("a", "n")
    assert tables.missing == ("b",)
    assert tables.original.shape == (3, 2)
    assert "not in synthetic table 2" in named(tables)["missing_column", "b"].note


def test_no_column_in_common():
    with pytest.raises(DataError, match="no column in common with the original"):
        read(pl.DataFrame({"z": [1, 2]}))


def test_columns_that_nobody_described_are_passed_over_and_said():
    tables = read(ORIGINAL.with_columns(pl.lit(1).alias("weight")))
    assert "weight" in named(tables)["extra_columns", "synthetic table 1"].note
    assert tables.schema.names == ("a", "b", "n")


def test_an_empty_table_is_left_out_and_said(tmp_path):
    (tmp_path / "empty.csv").write_text("a,b,n\n")
    tables = read(ORIGINAL, tmp_path / "empty.csv", ORIGINAL.clear())
    assert len(tables.synthetic) == 1
    assert ("empty_table", "synthetic table 2") in named(tables)
    assert ("empty_table", "synthetic table 3") in named(tables)


def test_the_original_must_fit():
    strange = ORIGINAL.with_columns(pl.lit("z").alias("a"))
    with pytest.raises(DataError, match="'a': 3 values are not in the schema"):
        read_tables(strange, [ORIGINAL], SCHEMA, threads=1)
    with pytest.raises(DataError, match="column 'n' of the schema is not in the table"):
        read_tables(ORIGINAL.drop("n"), [ORIGINAL], SCHEMA, threads=1)


def test_the_holdout_has_all_columns_and_some_rows():
    tables = read(ORIGINAL, holdout=ORIGINAL.with_columns(pl.Series("a", ["x", "z", "z"])))
    assert tables.schema.features[0].labels == ("x", "y", "(other)")
    assert tables.holdout[:, 0].tolist() == [0, 2, 2]
    assert named(tables)["unknown_values", "a"].value == 0
    with pytest.raises(DataError, match="the hold-out lacks the column 'n'"):
        read(ORIGINAL, holdout=ORIGINAL.drop("n"))
    with pytest.raises(DataError, match="the hold-out has no rows"):
        read(ORIGINAL, holdout=ORIGINAL.clear())


def test_a_category_that_is_called_other_leaves_no_room():
    schema = Schema((Feature("a", categories=("x", "(other)")),))
    original = pl.DataFrame({"a": ["x"]})
    with pytest.raises(DataError, match="column 'a': 1 values are not in the schema"):
        read_tables(original, [pl.DataFrame({"a": ["?", "x"]})], schema, threads=1)


WIDE = Schema(
    (
        Feature("a", categories=("x", "y"), unknown="category", missing=("", "-9")),
        Feature("n", kind="numeric", edges=(0.0, 10.0), unknown="category", not_applicable=("-",)),
        Feature("f", categories="private"),
    )
)
FOUND = replace(WIDE, columns=(*WIDE.columns[:2], replace(WIDE["f"], private_categories=False)))
FULL = pl.DataFrame({"a": ["x", "z", None], "n": ["3", "?", "-"], "f": ["s", "t", "t"]})


@pytest.mark.parametrize(
    ("column", "values", "listed"),
    [
        ("a", ["u", "v", "-9"], False),
        ("a", ["u", None, ""], False),
        # "(other)" is what a release calls values that are not listed, and is listed as such.
        ("a", ["(other)", "(other)", "(other)"], True),
        ("a", ["(other)", "u", None], False),
        ("a", [None, None, "-9"], True),
        ("a", ["u", "v", "x"], True),
        ("n", ["high", "low", "high"], False),
        ("n", ["high", "-", "high"], True),
        ("n", [None, None, None], True),
        # No category was found, so that there is none to be listed.
        ("f", ["s", "t", "u"], True),
    ],
)
def test_columns_without_a_listed_value_are_refused_or_left_out(column, values, listed):
    table = FULL.with_columns(pl.Series(column, values))
    cases = {"the original": (table, [FULL]), "synthetic table 2": (FULL, [FULL, table])}
    for role, (original, synthetic) in cases.items():
        tables = read_tables(original, synthetic, FOUND, threads=1, lenient=True)
        assert (column in tables.missing) == (not listed)
        assert (("unlisted_column", column) in named(tables)) == (not listed)
        if listed:
            read_tables(original, synthetic, FOUND, threads=1)
            continue
        assert role in named(tables)["unlisted_column", column].note
        with pytest.raises(DataError, match=f"column '{column}' of {role}: none of its values"):
            read_tables(original, synthetic, FOUND, threads=1)
