"""Texts that spell the same category are read as that category, each by itself."""

import datetime as dt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.codec.encoding import ColumnEncoder
from pegsynth.schema import Feature
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.number_text import candidates, spelt

NONE = -1


def codes(values, *, dtype="", categories=("1", "2", "0.5"), **options):
    """Codes of values, -1 for those that have none."""
    feature = Feature("x", categories=categories, dtype=dtype, **options)
    column = values if isinstance(values, pl.Series) else pl.Series(values, dtype=pl.String)
    found = ColumnEncoder(feature, spare=True).encode(column)
    return [NONE if code == feature.category_count else code for code in found.tolist()]


@pytest.mark.parametrize("dtype", ["", "double", "float", "int64", "decimal128(9, 2)"])
def test_zeros_at_the_end_of_decimals_do_not_count(dtype):
    texts = ["1", "1.0", "1.00", "1.", "2.0", "0.5", "0.50", "1.0 "]
    assert codes(texts, dtype=dtype) == [0, 0, 0, 0, 1, 2, 2, 0]
    other = ["01", "1.01", "01.0", "1.0.0", "1,0", ".50", "1e0", "+1.0", "x1.0", "1.0x"]
    assert codes(other, dtype=dtype) == [NONE] * len(other)


def test_text_is_taken_at_its_word():
    assert codes(["1", "1.0", "0.50"], dtype="string") == [0, NONE, NONE]
    assert codes(["1", "1.0"], dtype="dictionary") == [0, NONE]


def test_what_is_listed_comes_before_its_spelling():
    assert codes(["1", "1.0", "1.00"], categories=("1.0", "1")) == [1, 0, 0]
    assert codes(pl.Series([1.0, 2.5]), categories=("1.0", "2.50")) == [0, 1]
    assert codes(pl.Series([1, 2]), categories=("1.0", "2")) == [0, 1]


def test_codes_of_missing_values_have_spellings_too():
    kept = {"missing": ("-9", "-8"), "keep_missing_codes": True, "not_applicable": ("77",)}
    assert codes(["-9.0", "-8.00", "77.0"], **kept) == [4, 5, 3]
    assert codes(["-9.0", ""], missing=("", "-9")) == [3, 3]


def test_truth_values_by_any_name():
    texts = ["true", "TRUE", "True", "1", "1.0", "false", "0"]
    for categories in (("false", "true"), ("FALSE", "TRUE"), ("0", "1")):
        found = codes(texts, dtype="bool", categories=categories)
        assert found == [1, 1, 1, 1, 1, 0, 0]
        assert codes(pl.Series([True, False]), dtype="bool", categories=categories) == [1, 0]
    # A column of truth values says so itself; one of text has no numbers.
    assert codes(pl.Series([True, False]), categories=("0", "1")) == [1, 0]
    assert codes(["TRUE", "1"], dtype="string", categories=("false", "true")) == [1, NONE]


def test_truth_values_of_one_part_do_not_change_how_another_is_read():
    """Row-wise reading (R30): a part of truth values says so for itself alone."""
    feature = Feature("x", categories=("0", "1"), dtype="")
    for first in (pl.Series([True]), pl.Series(["1"])):
        encoder = ColumnEncoder(feature, spare=True)
        assert encoder.encode(first).tolist() == [1]
        assert encoder.encode(pl.Series(["TRUE", "0"])).tolist() == [2, 0]


def test_moments_of_another_zone_are_told_by_the_clocks_of_the_schema():
    zoned = "timestamp[us, tz=Europe/Berlin]"
    moments = pl.Series([dt.datetime(2020, 1, 1, 23, 30)]).dt.replace_time_zone("UTC")
    listed = {"categories": ("2020-01-02T00:30:00", "2020-01-01T23:30:00")}
    assert codes(moments, dtype=zoned, **listed) == [0]
    assert codes(moments, **listed) == [1]
    days = {"kind": "date", "edges": ("2020-01-01", "2020-01-02", "2020-01-03")}
    for dtype, wanted in ((zoned, 1), ("", 0)):
        encoder = ColumnEncoder(Feature("x", dtype=dtype, **days))
        assert encoder.encode(moments).tolist() == [wanted]


@given(st.lists(st.sampled_from(["1", "1.0", "1.00", "2.50", "2.5", "x", "-0.0", "0", "01", " 1"])))
def test_a_value_is_read_whatever_stands_beside_it(texts):
    """Row-wise reading (R30)."""
    together = codes(texts, categories=("0", "1", "2.5"))
    assert together == [codes([text], categories=("0", "1", "2.5"))[0] for text in texts]


@given(st.floats(allow_nan=False, allow_infinity=False, width=32).map(float))
def test_the_spelling_of_a_typed_number_is_its_text(number):
    """Files of floats and of texts agree, and what a release finds is read again."""
    feature = Feature("x", categories=("a",))
    text = as_text(pl.Series([number]))
    assert spelt(text, feature, truth=False).to_list() == text.to_list()
    if "e" not in repr(number):
        longer = pl.Series([repr(number) + "00" if "." in repr(number) else f"{number}.0"])
        assert spelt(longer, feature, truth=False).to_list() == text.to_list()


def test_found_categories_are_those_that_are_read():
    feature = Feature("x", categories="private", dtype="double")
    texts = pl.Series(["1", "1.0", "2.50", "x", "'=y"])
    assert candidates(texts, feature).to_list() == ["1", "1", "2.5", "x", "=y"]
    assert candidates(pl.Series([1.0, 2.5]), feature).to_list() == ["1", "2.5"]
    text = Feature("x", categories="private", dtype="string")
    assert candidates(texts, text).to_list() == ["1", "1.0", "2.50", "x", "=y"]
