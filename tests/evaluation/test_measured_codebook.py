"""Tables are judged under schemas that leave edges and categories to a release."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import pegsynth
from command import done
from pegsynth.errors import ParameterError
from pegsynth.evaluation.evaluate import measured_codebook
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect

WORDS = np.random.default_rng(3)
TABLE = pl.DataFrame(
    {
        "town": np.array([*"ABC", "NA"])[WORDS.integers(0, 4, 900)],
        "pay": np.where(WORDS.random(900) < 0.1, -9, WORDS.integers(0, 50_000, 900)),
        "sex": np.array(["f", "m"])[WORDS.integers(0, 2, 900)],
    }
)
SCHEMA = Schema(
    (
        Feature("town", categories="private", missing=("", "NA")),
        Feature("pay", "numeric", edges="private", missing=("", "-9"), dtype="int64"),
        Feature("sex", categories=("f", "m")),
    )
)


def test_missing_codes_are_read_as_the_dialect_writes_them():
    """A code that no bin is made for, with a decimal comma; and a date of that kind."""
    table = pl.DataFrame(
        {"x": ["1,5", "2,5", "-99,5"] * 9, "d": ["2001-02-03", "9999-12-31"] * 13 + [""]}
    )
    columns = (
        Feature("x", "numeric", edges="private", missing=("-99,5",)),
        Feature("d", "date", edges="private", missing=("", "9999-12-31")),
    )
    book = measured_codebook(table, Schema(columns, dialect=Dialect(separator=";", decimal=",")))
    assert book["x"].edges[0] == 1.5
    assert book["d"].edges[-1] < 20_000


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_what_is_open_is_read_off_the_original(tmp_path, kind):
    TABLE.write_csv(tmp_path / "t.csv")
    book = measured_codebook(TABLE if kind == "frame" else tmp_path / "t.csv", SCHEMA)
    assert not book.unsettled
    assert book["town"].categories == ("A", "B", "C")
    assert 10 <= book["pay"].bin_count <= 12
    assert book["pay"].edges[0] >= 0


def test_a_schema_that_is_complete_stays_as_it_is():
    complete = Schema((Feature("sex", categories=("f", "m")),))
    assert measured_codebook(None, complete) is complete


def test_dates_and_differences_are_measured_too():
    days = WORDS.integers(0, 900, 300)
    start = pl.Series(days).cast(pl.Int32).cast(pl.Date)
    frame = pl.DataFrame({"start": start, "end": start + dt.timedelta(days=3)})
    dates = {"kind": "date", "edges": "private", "dtype": "date32"}
    schema = Schema((Feature("start", **dates), Feature("end", after="start", **dates)))
    book = measured_codebook(frame, schema)
    assert (book["start"].edges[0], book["start"].edges[-1]) == (days.min(), days.max())
    assert book["end"].edges[0] >= 0
    assert pegsynth.evaluate(frame, frame, schema).records


def test_a_table_that_is_read_once_is_refused():
    with pytest.raises(ParameterError, match="takes two passes"):
        measured_codebook(iter([TABLE]), SCHEMA)


def test_evaluation_under_an_open_schema(tmp_path):
    found = pegsynth.evaluate(TABLE, TABLE.sample(900, seed=1), SCHEMA)
    assert found.records
    TABLE.write_csv(tmp_path / "t.csv")
    SCHEMA.save(tmp_path / "s.toml")
    data = tmp_path / "t.csv"
    done("evaluate", data, data, "--schema", tmp_path / "s.toml", "--json", tmp_path / "m.json")
    assert (tmp_path / "m.json").is_file()
