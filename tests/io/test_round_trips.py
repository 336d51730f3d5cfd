"""Values come back in the caller's own types, or are refused by a message of ours."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import pegsynth
from listed_moments import draft_with_listed_moments
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dtypes import as_text, unit_text
from pegsynth.tables.caller_frames import to_kind

LETTERS = ["a", "b", "c"] * 20
TIMES = [dt.time(8), dt.time(9, 30, 0, 5), None] * 20
LARGE = (1 << 60) + 1


def round_trip(column, table=pl.DataFrame, **options):
    """Draft a schema of a column and a companion, and draw rows by it."""
    data = table({"x": column, "y": LETTERS})
    schema = draft_with_listed_moments(data)
    given = {"method": "pegs", "alpha": 1.0, "rows": 60} | options
    return pegsynth.synthesize(data, schema, **given).frames[0]["x"]


def values_of(column):
    return {None if v is None or v is pd.NA or v is pd.NaT else v for v in column.tolist()}


# Polars and PyArrow


def test_times_of_day_survive_with_the_parts_of_a_second():
    found = round_trip(pl.Series(TIMES))
    assert found.dtype == pl.Time
    assert set(found) <= set(TIMES)
    arrow = round_trip(pa.array(TIMES, pa.time64("us")), pa.table)
    assert arrow.type == pa.time64("us")
    assert set(arrow.to_pylist()) <= set(TIMES)


def test_the_text_of_a_time_of_day_tells_it():
    """People whose times differ by less than a second are two units (R12)."""
    times = pl.Series([dt.time(1, 2, 3), dt.time(1, 2, 3, 5), dt.time(0), None])
    wanted = ["01:02:03", "01:02:03.000005", "00:00:00", None]
    assert as_text(times).to_list() == wanted
    assert unit_text(times).to_list() == wanted


def test_categories_come_from_the_schema_as_an_enum():
    found = round_trip(pl.Series(LETTERS, dtype=pl.Categorical))
    assert found.dtype == pl.Enum(["a", "b", "c"])


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64])
def test_whole_numbers_with_gaps_stay_whole_in_polars(dtype):
    found = round_trip(pl.Series([1, None, 3] * 20, dtype=dtype))
    assert found.dtype == dtype
    assert set(found) <= {1, None, 3}


# pandas


def test_periods_survive():
    months = pd.Series(pd.period_range("2020-01", periods=3, freq="M")).repeat(20).reset_index()[0]
    months[5] = pd.NaT
    found = round_trip(months, pd.DataFrame)
    assert found.dtype == months.dtype
    assert values_of(found) <= values_of(months)
    listed = round_trip(months.astype("category"), pd.DataFrame)
    assert isinstance(listed.dtype, pd.CategoricalDtype)
    # Categories are texts of the schema; a period's text is not guessed to be one.
    assert set(listed.dropna().astype(str)) <= {"2020-01", "2020-02", "2020-03"}


def test_intervals_are_refused_by_a_message_of_ours():
    intervals = pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2), (2, 3)] * 20)
    with pytest.raises(DataError, match=r"'x' holds intervals; convert it to text with astype"):
        round_trip(intervals, pd.DataFrame)
    with pytest.raises(DataError, match=r"'x' holds 3 objects that are not text"):
        round_trip(pd.cut(np.arange(60), 3), pd.DataFrame)
    text = pd.Series(intervals).astype(str)
    assert round_trip(text, pd.DataFrame).str.startswith("(").all()


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "Int16", pd.ArrowDtype(pa.int64())], ids=str)
def test_whole_numbers_with_gaps_stay_whole_in_pandas(dtype):
    found = round_trip(pd.array([1, None, 3] * 20, dtype=dtype), pd.DataFrame)
    assert found.dtype == dtype
    assert values_of(found) <= {1, None, 3}


def test_objects_that_are_whole_numbers_stay_whole():
    found = round_trip(pd.Series([1, None, 3] * 20, dtype=object), pd.DataFrame)
    assert found.dtype == object
    assert {type(value) for value in found} <= {int, type(None)}


def test_large_whole_numbers_with_gaps_are_not_rounded():
    """On the way through floating point the last digits would be lost."""
    frame = pl.DataFrame({"x": [LARGE, None]})
    assert to_kind(frame, "pandas")["x"].tolist() == [LARGE, pd.NA]
    for dtype in ("Int64", object, pd.ArrowDtype(pa.int64())):
        like = pd.DataFrame({"x": pd.Series([], dtype=dtype)})
        found = to_kind(frame, "pandas", like)["x"]
        assert found[0] == LARGE
        assert found.isna().tolist() == [False, True]


def test_whole_numbers_that_get_a_gap_are_nullable():
    schema = Schema(
        (Feature("x", categories=("1", "2"), missing=("",), dtype="int64"),), reviewed=True
    )
    data = pd.DataFrame({"x": [1, 2] * 20})
    (frame,) = pegsynth.synthesize(data, schema, method="pegs", alpha=9.0, rows=200).frames
    assert frame["x"].dtype == "Int64"
    assert values_of(frame["x"]) == {1, 2, None}


def test_extension_types_of_polars_are_refused():
    period = pd.DataFrame({"x": pd.period_range("2020-01", periods=3, freq="M")})
    frame = pl.from_pandas(period)
    with pytest.raises(DataError, match="'x' holds lists, structs, bytes or objects"):
        Schema.draft(frame)
