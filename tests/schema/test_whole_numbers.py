"""Codes by table equal codes by search and by text, for every whole number and type."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.codec.codec import encode
from pegsynth.codec.encoding import (
    MISS,
    ColumnEncoder,
    WholeNumbers,
    binned_numbers,
    listed_numbers,
)
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema

NUMERIC = Feature(
    "n",
    kind="numeric",
    edges=(0.0, 2.5, 7.0, 100.0),
    missing=("-9",),
    not_applicable=("998", "x"),
)
ORDINAL = Feature("n", kind="ordinal", categories=("3", "1", "10", "other", "007"), missing=("",))
TYPES = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32]


def by_search(feature, values):
    """The same without a table."""
    encoder = ColumnEncoder(feature)
    encoder._whole = None
    return encoder.encode(values).tolist(), encoder.unknown, encoder.absent


def by_table(feature, values):
    encoder = ColumnEncoder(feature)
    assert encoder._whole is not None
    return encoder.encode(values).tolist(), encoder.unknown, encoder.absent


@given(
    values=st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-20, 1100)),
    feature=st.sampled_from([NUMERIC, ORDINAL]),
)
def test_any_numbers_and_gaps(values, feature):
    series = pl.Series("n", values, dtype=pl.Int64)
    assert by_table(feature, series) == by_search(feature, series)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("feature", [NUMERIC, ORDINAL], ids=["numeric", "ordinal"])
def test_every_type(dtype, feature):
    low = -128 if dtype.is_signed_integer() else 0
    series = pl.Series("n", [*range(low, 128), None], dtype=dtype)
    assert by_table(feature, series) == by_search(feature, series)


def test_tables_that_would_be_too_large_or_empty():
    assert binned_numbers(np.array([0.0, 1e7]), {}) is None
    assert binned_numbers(np.array([]), {}) is None
    assert listed_numbers({"a": 0, "1.5": 1}) is None
    assert listed_numbers({"0": 0, str(10**9): 1}) is None


def test_a_hand_made_table():
    table = listed_numbers({"2": 5, "4": 6, "02": 7})
    assert table.low == 1
    assert table.codes.tolist() == [MISS, 5, MISS, 6, MISS]
    numbers = pl.Series([2, 4, None, 3, -(2**40), 2**40, None])
    assert table.encode(numbers, 9).tolist() == [5, 6, 9, -1, -1, -1, 9]
    assert table.encode(pl.Series([2.0]), 0) is None
    assert WholeNumbers(0, np.array([0, 1], dtype=np.int32)).encode(pl.Series(["1"]), 0) is None


def test_a_number_that_is_not_listed_is_counted():
    schema = Schema((Feature("n", kind="ordinal", categories=("1", "2")),))
    with pytest.raises(DataError, match="2 values are not in the schema"):
        encode(pl.DataFrame({"n": [1, 2, 3, 4]}), schema)
