"""Drafts: what each kind of column becomes, and that a draft fits the table it came from."""

import csv
import datetime as dt
import itertools
import math
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegsynth import synthesize
from pegsynth.codec.codec import encode
from pegsynth.codec.number_grid import grid_schema
from pegsynth.errors import DataError, ParameterError, SchemaError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.binning import quantile_edges, round_edges, within_type
from pegsynth.schema.draft import draft
from pegsynth.schema.tally import (
    FILE_MISSING,
    MAX_TEXTS,
    ColumnTally,
    LeastHashes,
    QuantileSketch,
)
from pegsynth.schema.toml import dumps, loads

EVERY = {"min_count": 1}
"""Small tables: values that few rows have are listed too."""
NUMBER = st.floats(allow_nan=False, allow_infinity=False)


def csv_feature(tmp_path, values, **options):
    """Draft of a CSV column beside a plain one, so that the table is never all identifiers."""
    path = tmp_path / "table.csv"
    lines = [f'"{value}",a' if value != "" else ",a" for value in values]
    path.write_text("\n".join(["x,plain", *lines, ""]))
    return draft(path, **EVERY | options).columns[0]


def frame_feature(values, **options):
    """Draft of one column of a typed table."""
    frame = pl.DataFrame({"x": values}).with_columns(plain=pl.lit("a"))
    return draft(frame, **EVERY | options).columns[0]


# ---------------------------------------------------------------- CSV columns


def test_few_integers_become_ordinal_in_order(tmp_path):
    feature = csv_feature(tmp_path, ["10", "9", "-1", "9"])
    assert (feature.kind, feature.dtype) == ("ordinal", "int64")
    assert feature.categories == ("-1", "9", "10")
    assert (feature.missing, feature.unknown) == ((), "error")


def test_16_integers_are_ordinal_and_17_are_numeric(tmp_path):
    assert csv_feature(tmp_path, range(16)).kind == "ordinal"
    feature = csv_feature(tmp_path, [*range(17), *range(0, 1700, 100)])
    assert (feature.kind, feature.dtype) == ("numeric", "int64")
    assert (feature.private_edges, feature.edges, feature.decimals) == (True, (), None)
    listed = csv_feature(tmp_path, range(2, 257), binning="equal-width")
    assert listed.edges == tuple(range(0, 261, 20))


@pytest.mark.parametrize("values", [["0.5", "1.5", "0.25"], [0.5, 1.5, 0.25]])
def test_fractions_of_few_values_are_listed_in_order(tmp_path, values):
    frame = pl.DataFrame({"x": values * 10}).with_columns(plain=pl.lit("a"))
    frame.write_csv(tmp_path / "t.csv")
    for data in (frame.cast({"x": pl.Float64}), tmp_path / "t.csv"):
        feature = draft(data).columns[0]
        assert (feature.kind, feature.dtype) == ("ordinal", "double")
        assert feature.categories == ("0.25", "0.5", "1.5")
        assert len(encode(data, draft(data))) == 30


def test_a_fraction_that_is_written_in_two_ways_is_measured(tmp_path):
    assert csv_feature(tmp_path, ["0.5", "0.50", "1.5"] * 9).private_edges


@pytest.mark.parametrize("typed", [True, False])
def test_no_value_that_few_rows_have_is_listed(tmp_path, typed):
    """Broken twin: with a stated threshold of 1 each of them is."""
    many, few = ["a"] * 40 + ["b"] * 40, ["rare"] * 9
    frame = pl.DataFrame(
        {
            "text": [*many, *few],
            "size": [*(["small", "medium"] * 30), *(["large"] * 20), *(["none"] * 9)],
            "count": [*([0, 1] * 40), *([77] * 9)],
            "dx_code": [*([10, 11] * 40), *([77] * 9)],
            "fraction": [*([0.5, 1.5] * 40), *([77.5] * 9)],
            "kept": [*many, *(["c"] * 9)],
        }
    ).with_columns(pl.col("kept").cast(pl.Enum(["a", "b", "c"])))
    data = frame if typed else tmp_path / "t.csv"
    frame.write_csv(tmp_path / "t.csv")
    schema = draft(data)
    text, size, count, code, fraction, kept = schema.columns
    assert (text.categories, text.unknown) == (("a", "b"), "category")
    assert (size.kind, size.categories) == ("ordinal", ("small", "medium", "large"))
    assert (code.kind, code.categories, code.unknown) == ("nominal", ("10", "11"), "category")
    assert count.private_edges
    assert fraction.private_edges
    # The type of a column states what it may hold.
    assert kept.categories == (("a", "b", "c") if typed else ("a", "b"))
    saved = dumps(schema, notes=True)
    assert "fewer than 10 rows have is not listed" in saved
    assert "rare" not in saved.split("[[features]]", 1)[1].replace("rare categories", "")
    assert "77" not in saved
    every = draft(data, min_count=1)
    assert "rare" in every["text"].categories
    assert "77" in every["count"].categories


def test_values_of_an_unordered_type_may_be_read_off_the_data():
    """`astype("category")` lists whatever is there, be it of one person."""
    values = ["a"] * 20 + ["b"] * 20 + ["rare"]
    schema = draft(pd.DataFrame({"x": pd.Series(values).astype("category")}))
    assert schema["x"].categories == ("a", "b")
    ordered = pd.Categorical(values, ["a", "b", "rare"], ordered=True)
    assert draft(pd.DataFrame({"x": ordered}))["x"].categories == ("a", "b", "rare")


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        (["0.5", "97.25", "12"], 2),
        (["0.50", "7.100", "12."], 1),
        (["0.5", "1e1"], None),
        (["0.1234567"], None),
        (["-.5", "3.0"], 1),
    ],
)
def test_decimals_are_suggested_and_no_edge_is(tmp_path, values, decimals):
    feature = csv_feature(tmp_path, [*values, ""], min_count=None)
    assert (feature.private_edges, feature.decimals) == (True, decimals)
    assert (feature.dtype, feature.missing) == ("double", FILE_MISSING)
    assert feature.drafted_from_data


@pytest.mark.parametrize(
    ("values", "decimals"),
    [
        ([0.5, 12.25, math.inf, math.nan], 2),
        ([0.1, 1e-7], None),
        (pl.Series(["1.50", "2.00"]).cast(pl.Decimal(10, 2)), 1),
        (pl.Series([0.1, 2.5], dtype=pl.Float32), 1),
    ],
)
def test_decimals_of_typed_numbers(values, decimals):
    assert frame_feature(values, min_count=None).decimals == decimals


def test_private_bins_may_be_stated(tmp_path):
    assert csv_feature(tmp_path, ["0.5", "1.25"], bins=8, min_count=None).bins == 8
    with pytest.raises(ParameterError, match="from 2 to 1,000 if they are private"):
        csv_feature(tmp_path, ["0.5"], bins=1)


def test_decimals_become_numeric_between_round_edges(tmp_path):
    values = ["0.5", "97.25", "12", "1e1"]
    feature = csv_feature(tmp_path, values, binning="equal-width", min_count=None)
    assert (feature.kind, feature.dtype) == ("numeric", "double")
    assert feature.edges == tuple(range(0, 101, 5))


def test_whole_decimals_are_the_whole_numbers_they_stand_for(tmp_path):
    feature = csv_feature(tmp_path, ["10.0", "2.0", "", "1.0", "-3.0", "2.00"])
    assert (feature.kind, feature.dtype) == ("ordinal", "int64")
    assert feature.categories == ("-3", "1", "2", "10")
    values = [f"{i}.0" for i in range(100, 194)] + [""]
    assert csv_feature(tmp_path, values).private_edges
    many = csv_feature(tmp_path, values, binning="equal-width")
    assert (many.kind, many.dtype, many.missing) == ("numeric", "int64", FILE_MISSING)
    assert many.edges == tuple(range(100, 196, 5))


@pytest.mark.parametrize("odd", ["2.5", "-0.0", "1.", "2", "1000000000000000.0"])
def test_decimals_that_are_no_plain_whole_numbers_stay_decimals(tmp_path, odd):
    feature = csv_feature(tmp_path, ["7.0", "8.0", odd])
    assert feature.dtype == "double"
    assert csv_feature(tmp_path, ["7.0", "8.0", odd], min_count=None).kind == "numeric"


def test_rare_whole_decimals_are_counted_whatever_their_zeros(tmp_path):
    feature = csv_feature(tmp_path, ["1.0", "1.00", "2.0", "2.0", ""], min_count=2)
    assert (feature.categories, feature.unknown) == (("1", "2"), "error")
    assert csv_feature(tmp_path, ["1.0", "1.00", "2.0", ""], min_count=2).private_edges


@pytest.mark.parametrize("odd", ["007", "-0", "1 ", "+5", "1_000", "12a", "0x1F", "9" * 20])
def test_one_value_that_is_no_plain_number_makes_the_column_text(tmp_path, odd):
    feature = csv_feature(tmp_path, ["7", "8", odd])
    assert feature.kind == ("numeric" if odd == "-0" else "nominal")
    assert odd == "-0" or feature.categories == tuple(sorted(["7", "8", odd]))


def test_text_is_nominal_and_sorted(tmp_path):
    feature = csv_feature(tmp_path, ["b", "a", "é", "B", "a"])
    assert (feature.kind, feature.dtype, feature.role) == ("nominal", "string", "other")
    assert feature.categories == ("B", "a", "b", "é")


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "nan", "NULL", "null", "N/A"])
@pytest.mark.parametrize("value", ["3", "2.5", "text"])
def test_the_list_of_missing_texts_does_not_tell_which_occurred(tmp_path, missing, value):
    feature = csv_feature(tmp_path, [value, missing])
    assert feature.missing == FILE_MISSING
    assert feature.bin_count >= 1 or feature.private_edges
    assert missing not in feature.categories


def test_a_column_of_nothing_but_missing_values(tmp_path):
    feature = csv_feature(tmp_path, ["", "NA"])
    assert (feature.kind, feature.categories, feature.missing) == ("nominal", (), FILE_MISSING)


def test_many_texts_make_an_identifier_with_no_value_listed(tmp_path):
    values = [f"name {i}" for i in range(MAX_TEXTS + 1)]
    feature = csv_feature(tmp_path, values * 2)
    assert feature.role == "identifier"
    assert (feature.categories, feature.edges, feature.missing) == ((), (), ())
    assert csv_feature(tmp_path, values[:-1] * 2).role == "other"


def test_nearly_one_text_per_row_makes_an_identifier(tmp_path):
    assert csv_feature(tmp_path, [f"p{i}" for i in range(21)]).role == "identifier"
    assert csv_feature(tmp_path, [f"p{i}" for i in range(20)]).role == "other"
    assert csv_feature(tmp_path, [f"p{i}" for i in range(90)] + ["p1"] * 10).role == "other"


def test_text_after_many_numbers_is_seen(tmp_path):
    feature = csv_feature(tmp_path, [*range(MAX_TEXTS + 5), "unknown"])
    assert feature.role == "identifier"
    assert csv_feature(tmp_path, [1, 2, 3] * 10 + ["unknown"]).categories == (
        "1",
        "2",
        "3",
        "unknown",
    )


def test_rare_categories_become_other(tmp_path):
    feature = csv_feature(tmp_path, ["a"] * 5 + ["b"] * 4 + ["c"], min_count=5)
    assert (feature.categories, feature.unknown) == (("a",), "category")
    feature = csv_feature(tmp_path, ["a"] * 5 + ["b"] * 5, min_count=5)
    assert (feature.categories, feature.unknown) == (("a", "b"), "error")
    feature = csv_feature(tmp_path, ["a"] * 5 + ["b"], min_count=6)
    assert (feature.categories, feature.unknown) == ((), "category")
    assert feature.notes[0].startswith("no value is in enough rows")


def test_texts_with_the_schemas_own_names_are_not_listed(tmp_path):
    feature = csv_feature(tmp_path, ["(missing)", "(other)", "a", ""])
    assert (feature.categories, feature.unknown) == (("a",), "category")


# ---------------------------------------------------------------- typed columns


def test_typed_text_is_never_a_number():
    feature = frame_feature(["1", "2", "NA"])
    assert (feature.kind, feature.categories) == ("nominal", ("1", "2", "NA"))
    assert (feature.dtype, feature.missing) == ("string", ())


@pytest.mark.parametrize(
    ("dtype", "name"), [(pl.Int8, "int8"), (pl.UInt32, "uint32"), (pl.Int64, "int64")]
)
def test_integer_types_are_kept(dtype, name):
    feature = frame_feature(pl.Series([3, 1, None], dtype=dtype))
    assert (feature.kind, feature.dtype, feature.categories) == ("ordinal", name, ("1", "3"))
    assert feature.missing == ("",)


def test_whole_floats_count_as_integers_and_keep_their_type():
    feature = frame_feature([1.0, 10.0, math.nan, 2.0, None])
    assert (feature.kind, feature.dtype) == ("ordinal", "double")
    assert feature.categories == ("1", "2", "10")
    assert feature.missing == ("",)


def test_other_floats_are_numeric_and_infinities_fall_in_the_end_bins():
    listed = partial(frame_feature, binning="equal-width", min_count=None)
    feature = listed([0.5, 3.5, math.inf, -math.inf, math.nan])
    assert (feature.kind, feature.dtype, feature.missing) == ("numeric", "double", ("",))
    assert (feature.edges[0], feature.edges[-1]) == (0.4, 3.6)
    assert listed([math.inf, -math.inf]).edges == (0, 1)
    assert frame_feature([math.inf, -math.inf]).private_edges


def test_booleans_list_both_values():
    feature = frame_feature([True, True, None], min_count=2)
    assert (feature.kind, feature.dtype) == ("nominal", "bool")
    assert (feature.categories, feature.missing) == (("false", "true"), ("",))


def test_dates_and_times_have_private_edges():
    day = dt.date(2020, 1, 1)
    many = [day + dt.timedelta(days=i) for i in range(MAX_TEXTS + 1)]
    for values in ([day, dt.date(2019, 5, 6)], many * 2):
        feature = frame_feature(values)
        assert (feature.kind, feature.dtype) == ("date", "date32[day]")
        assert (feature.private_edges, feature.lowest, feature.highest) == (True, None, None)
    kinds = {"time": dt.time(1, 2), "datetime": dt.datetime(2020, 1, 1, 3)}
    for kind, value in (kinds | {"duration": dt.timedelta(days=1)}).items():
        feature = frame_feature([value, None])
        assert (feature.kind, feature.private_edges, feature.missing) == (kind, True, ("",))


@pytest.mark.parametrize(
    ("texts", "kind", "form"),
    [
        (["2020-01-31", "1999-12-01"], "date", ""),
        (["31.01.2020", "1.12.1999"], "date", "%d.%m.%Y"),
        (["01/31/2020", "12/01/1999"], "date", "%m/%d/%Y"),
        (["31JAN2020", "01Dec1999"], "date", "%d%b%Y"),
        (["2020-01-31", "2020-01-31T10:00:00"], "datetime", ""),
        (["31.01.2020 10:00", "01.12.1999 9:30"], "datetime", "%d.%m.%Y %H:%M"),
        (["2017-01-01T00:00:42Z", "2016-12-31T10:00:00Z"], "datetime", "%Y-%m-%dT%H:%M:%SZ"),
        (["2017-01-01 00:00+02:00"], "datetime", "%Y-%m-%d %H:%M+02:00"),
        (["2017-01-01T00:00:42+01:00", "2017-07-01T00:00:42+02:00"], "datetime", ""),
        (["10:00", "09:30:15"], "time", ""),
        (["P1D", "PT12H"], "duration", ""),
    ],
)
def test_dates_as_text_are_recognised_and_said_to_be(texts, kind, form):
    feature = frame_feature(texts)
    assert (feature.kind, feature.format, feature.private_edges) == (kind, form, True)
    assert feature.drafted_from_data
    assert not form or any(form in note for note in feature.notes)


def test_a_draft_says_that_offsets_are_left_out():
    notes = frame_feature(["2017-01-01T00:00:42+01:00", "2017-07-01T00:00:42+02:00"]).notes
    assert any("offsets from UTC are left out" in note for note in notes)
    assert any("%z" in note for note in notes)
    assert not any("UTC" in note for note in frame_feature(["2017-01-02", "2016-03-04"]).notes)


def test_a_draft_says_where_day_and_month_could_be_exchanged():
    (note,) = frame_feature(["01/02/2020", "03/04/2020"]).notes
    assert note == (
        "recognised as text of the form %d/%m/%Y; %m/%d/%Y would fit as well, so check it"
    )


@pytest.mark.parametrize(
    "texts", [["2020-02-30", "2020-01-01"], ["20200131"], ["2020-01"], ["2020-01-01", "soon"]]
)
def test_what_is_not_all_dates_is_none(texts):
    assert frame_feature(texts).kind not in ("date", "datetime")


def test_decimal_numbers_are_numbers():
    feature = frame_feature(pl.Series(["1.50", "2.25"]).cast(pl.Decimal(10, 2)), min_count=None)
    assert (feature.kind, feature.dtype) == ("numeric", "decimal128(10, 2)")


def test_an_all_null_column_has_the_missing_category_only():
    for values in (pl.Series([None, None]), pl.Series([None, None], dtype=pl.Float64)):
        feature = frame_feature(values)
        assert (feature.kind, feature.categories, feature.missing) == ("nominal", (), ("",))


def test_enumerations_keep_their_order_and_unused_categories():
    feature = frame_feature(pl.Series(["hi", "lo"], dtype=pl.Enum(["lo", "mid", "hi"])))
    assert (feature.kind, feature.categories) == ("ordinal", ("lo", "mid", "hi"))
    assert feature.dtype == "dictionary"


@pytest.mark.parametrize("ordered", [True, False])
def test_pandas_categories_keep_their_order(ordered):
    severity = pd.Categorical(["hi", "lo", None], ["lo", "mid", "hi"], ordered=ordered)
    frame = pd.DataFrame({"x": severity, "n": pd.Categorical([3, 1, 3], [3, 2, 1])})
    schema = draft(frame, min_count=1)
    x, n = schema.columns
    assert x.kind == ("ordinal" if ordered else "nominal")
    assert (x.categories, x.missing) == (("lo", "mid", "hi"), ("",))
    assert (n.kind, n.categories) == ("nominal", ("3", "2", "1"))


def test_rare_declared_categories_are_left_out_too():
    values = pl.Series(["hi"] * 3 + ["lo"], dtype=pl.Enum(["lo", "mid", "hi"]))
    feature = frame_feature(values, min_count=2)
    assert (feature.categories, feature.unknown) == (("hi",), "category")


def test_pandas_pyarrow_and_polars_give_the_same_draft():
    frame = pl.DataFrame({"i": [1, 2, 3], "f": [0.5, 1.5, 9.0], "s": ["a", "b", "a"]})
    expected = draft(frame)
    assert draft(frame.to_pandas()) == expected
    assert draft(frame.to_arrow()) == expected
    assert isinstance(frame.to_arrow(), pa.Table)


def test_parquet_files_are_drafted_by_their_types(tmp_path):
    frame = pl.DataFrame({"i": pl.Series([1, 2, 3], dtype=pl.Int16), "s": ["a", "b", "a"]})
    frame.write_parquet(tmp_path / "t.parquet")
    assert draft(tmp_path / "t.parquet") == draft(frame)


# ---------------------------------------------------------------- the whole table


def test_a_draft_is_unreviewed_and_says_where_it_came_from():
    schema = Schema.draft(pl.DataFrame({"b": ["x", "y"], "a": [1, 2]}))
    assert not schema.reviewed
    assert schema.names == ("b", "a")
    assert all(column.drafted_from_data for column in schema.columns)
    assert loads(dumps(schema)) == schema


def test_the_unit_column_is_dropped_and_its_rows_stay_at_one():
    frame = pl.DataFrame({"person": [1, 1, 2], "x": ["a", "b", "a"]})
    schema = draft(frame, unit="person")
    assert (schema.unit, schema.rows_per_unit, schema.names) == ("person", 1, ("x",))
    assert schema.columns[0].categories == ()
    with pytest.raises(SchemaError, match="'patient'"):
        draft(frame, unit="patient")


def test_a_table_of_identifiers_is_refused():
    frame = pl.DataFrame({"a": [f"p{i}" for i in range(50)]})
    with pytest.raises(SchemaError, match="identifier"):
        draft(frame)


def test_an_empty_table_is_refused():
    with pytest.raises(DataError):
        draft(pl.DataFrame({"a": []}, schema={"a": pl.String}))


@pytest.mark.parametrize("options", [{"min_count": 0}, {"bins": 0}, {"binning": "equal"}])
def test_parameters_out_of_range_are_refused(options):
    with pytest.raises(ParameterError, match=next(iter(options))):
        draft(pl.DataFrame({"a": ["x"]}), **options)


def test_batches_do_not_matter():
    frame = pl.DataFrame(
        {
            "i": np.arange(3000) % 300,
            "f": np.linspace(-3, 17.5, 3000),
            "s": [f"c{i % 40}" for i in range(3000)],
            "m": [None if i % 2 else i % 7 for i in range(3000)],
        }
    )
    for name in frame.columns:
        whole, parts = ColumnTally(name, True), ColumnTally(name, True)
        whole.add(frame[name])
        for part in frame.iter_slices(171):
            parts.add(part[name])
        assert whole.texts is None or whole.texts.sort("value").equals(parts.texts.sort("value"))
        assert (whole.rows, whole.lowest, whole.highest) == (
            parts.rows,
            parts.lowest,
            parts.highest,
        )
        assert (whole.numeric, whole.whole) == (parts.numeric, parts.whole)


def test_many_distinct_numbers_are_drafted():
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"i": rng.permutation(100_000) + 5, "f": rng.normal(size=100_000)})
    for binning in ("equal-width", "quantile"):
        i, f = draft(frame, binning=binning).columns
        assert i.kind == f.kind == "numeric"
        assert i.dtype == "int64"
        assert 8 <= f.bin_count <= 20


# ---------------------------------------------------------------- notes for the reviewer


def test_a_column_of_mostly_different_texts_or_whole_numbers_is_noted(tmp_path):
    (note,) = csv_feature(tmp_path, [f"N{i % 190}" for i in range(344)]).notes
    assert note.startswith('its values repeat: if it names people, set unit = "x" under [table].')
    assert "30 different values in 30 rows" in csv_feature(tmp_path, range(2, 32)).notes[0]
    assert "1,000 different values in 1,000 rows" in frame_feature(range(7, 1007)).notes[0]
    assert "30 different" in csv_feature(tmp_path, [f"{i}.0" for i in range(5, 35)] + [""]).notes[0]


def test_numbers_of_rows_are_dropped(tmp_path):
    for first in (0, 1):
        for size in (30, 5_000):
            assert frame_feature(range(first, first + size)).role == "identifier"
            assert csv_feature(tmp_path, range(first, first + size)).role == "identifier"
    assert frame_feature(range(20)).role == "other"
    assert frame_feature([*range(30), 29]).role == "other"


def test_few_rows_repeated_values_and_fractions_are_no_identifiers(tmp_path):
    assert csv_feature(tmp_path, range(20)).notes == ()
    (note,) = csv_feature(tmp_path, [*range(3), *range(9)] * 2).notes
    assert note.startswith("rows of rare categories:")
    assert csv_feature(tmp_path, [*range(30), *range(30)]).notes == ()
    assert csv_feature(tmp_path, [f"{i}.5" for i in range(100)]).notes == ()
    assert frame_feature([i % 3_000 for i in range(9_000)]).notes == ()


def test_more_values_than_are_listed_are_counted_nearly():
    (note,) = frame_feature(range(7, 20_007)).notes
    count = re.search(r"about ([0-9,]+) different values in 20,000 rows", note)
    assert 18_000 < int(count[1].replace(",", "")) <= 20_000


@pytest.mark.parametrize("size", [1, 4_095, 4_096, 30_000])
def test_least_hashes_count_distinct_values_whatever_the_batches(size):
    whole, parts = LeastHashes(), LeastHashes()
    values = pl.Series(np.arange(size, dtype=float))
    whole.add(values)
    for part in np.array_split(values.to_numpy(), 7):
        parts.add(pl.Series(part))
        parts.add(pl.Series(part))
    assert whole.estimate == parts.estimate
    assert abs(whole.estimate - size) <= (0 if size < 4_096 else 0.1 * size)


def test_a_bin_that_holds_nearly_all_values_is_noted(tmp_path):
    wide = [0.5, 1.25] * 48 + [100.0] * 4
    # Fractions that few rows have are not listed, but binned.
    listed = partial(frame_feature, binning="equal-width", min_count=50)
    assert listed(wide).notes == ("96 % of the values lie in one bin; set edges by hand",)
    assert frame_feature(wide, binning="quantile", min_count=50).notes == ()
    assert frame_feature(wide, min_count=50).notes == ()
    assert listed(wide, bins=1).notes == ()
    assert listed([0.5] * 80 + [99.5] * 20).notes == ()
    assert listed([0.5] * 81 + [99.5] * 19).notes[0].startswith("81 %")
    assert listed([0.5] * 9).notes == ()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-50, 150), min_size=1, max_size=40), st.integers(1, 8))
def test_weights_of_bins_are_those_of_a_histogram(values, bins):
    edges = tuple(np.linspace(0, 100, bins + 1))
    sketch = QuantileSketch()
    counted = pl.Series("value", values).value_counts()
    sketch.add(counted["value"], counted["count"])
    counts = np.histogram(values, [-100, *edges[1:-1], 200])[0]
    assert sketch.weights(edges) == counts.tolist()


def test_notes_are_comments_of_the_draft_file_and_nowhere_else(tmp_path):
    ids = {"nick": [f"N{i % 40}" for i in range(60)], "name": [f"p{i}" for i in range(60)]}
    schema = draft(pl.DataFrame({**ids, "x": ["a", "b"] * 30}))
    path = tmp_path / "draft.toml"
    schema.save(path)
    text = path.read_text()
    assert "[[features]]\n# its values repeat: if it names people, set unit" in text
    assert "# more than 1,000 distinct texts or nearly one per row; dropped\nname =" in text
    assert "its values repeat" not in dumps(schema) + repr(schema)
    loaded = Schema.load(path)
    assert loaded == schema
    assert all(column.notes == () for column in loaded.columns)
    replace(schema, reviewed=True).save(path)
    assert "its values repeat" not in path.read_text()


def test_a_note_holds_no_control_characters():
    """A draft of a file with such values could not be read again: found by a hostile SAS file."""
    schema = Schema((Feature("x", categories=("a",), notes=('rows: "\x7f\x85\x1b" 1',)),))
    assert '# rows: "\\u007f \\u001b" 1\nname' in dumps(schema, notes=True)
    assert loads(dumps(schema, notes=True)) == schema


def test_a_note_stays_one_comment():
    schema = Schema((Feature("x", categories=("a",), notes=("one\ntwo = 2\r\n",)),))
    assert "# one two = 2\nname" in dumps(schema, notes=True)
    assert loads(dumps(schema, notes=True)) == schema


# ---------------------------------------------------------------- bins


def test_quantile_bins_are_flagged_and_hold_about_equal_shares():
    values = np.random.default_rng(2).exponential(size=10_000)
    feature = frame_feature(values, binning="quantile", bins=10)
    assert "quantile" in feature.label
    assert feature.bin_count == 10
    shares = np.histogram(values, feature.edges)[0] / len(values)
    assert np.all(np.abs(shares - 0.1) < 0.001)
    assert frame_feature(values).label == ""


def test_quantiles_of_repeated_values_are_merged():
    feature = frame_feature([0.5] * 90 + [1.5, 2.5], min_count=5, binning="quantile", bins=10)
    assert feature.edges == (0.5, 2.5)


def test_a_full_sketch_merges_pairs_and_stays_close():
    sketch = QuantileSketch(limit=1_000)
    values = np.random.default_rng(3).permutation(20_000).astype(float)
    for part in np.split(values, 10):
        sketch.add(pl.Series(part), pl.Series(np.ones(len(part), dtype=np.uint32)))
    found = np.array(sketch.quantiles(4))
    assert np.all(np.abs(found - [5_000, 10_000, 15_000]) < 500)


@settings(max_examples=300, deadline=None)
@given(NUMBER, NUMBER, st.integers(1, 50), st.booleans())
def test_round_edges_cover_any_range_in_few_bins(first, second, bins, whole):
    low, high = min(first, second), max(first, second)
    edges = round_edges(low, high, bins, whole=whole)
    assert 2 <= len(edges) <= bins + 1
    assert all(a < b for a, b in itertools.pairwise(edges))
    assert all(map(math.isfinite, edges))
    assert edges[0] <= low
    assert high <= edges[-1]
    assert not whole or all(edge == int(edge) for edge in edges)


@settings(max_examples=100, deadline=None)
@given(st.lists(NUMBER, min_size=1, max_size=20))
def test_quantile_edges_increase_and_cover(values):
    values.sort()
    edges = quantile_edges(values[0], values[1:-1], values[-1], whole=False)
    assert all(a < b for a, b in itertools.pairwise(edges))
    assert edges[0] <= values[0]
    assert values[-1] <= edges[-1]


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int16", -(2**15), 2**15 - 1), ("uint16", 0, 2**16 - 1), ("int64", -(2**63), 2**63 - 1)],
)
def test_edges_stay_inside_the_integer_type(dtype, low, high):
    edges = within_type(round_edges(low, high, 20, whole=True), dtype)
    assert low <= edges[0]
    assert int(edges[-1]) <= high
    assert all(edge == int(edge) for edge in edges)


# ---------------------------------------------------------------- drafts fit their tables

MISSING_CELLS = ["", " ", "NA", " NA", "nan", "(missing)"]
NUMBER_CELLS = [
    "1",
    "2",
    "1.0",
    "1.00",
    "-2.0",
    "-0.0",
    "1.",
    "-0",
    "007",
    "1e3",
    ".5",
    "9" * 20,
    "inf",
]
TEXT_CELLS = [
    "=x",
    "'=x",
    "'-5",
    "-a",
    "(other)",
    "a",
    "b ",
    '"',
    "é",
    "true",
    "None",
    "2020-01-01",
]
CELL = st.sampled_from([*MISSING_CELLS, *NUMBER_CELLS, *TEXT_CELLS])


@settings(max_examples=150, deadline=None)
@given(st.lists(CELL, min_size=1, max_size=6), st.sampled_from([1, 2]))
def test_every_csv_fits_its_own_draft(tmp_path_factory, cells, min_count):
    path = tmp_path_factory.mktemp("draft") / "t.csv"
    with path.open("w", newline="") as handle:
        csv.writer(handle, quoting=csv.QUOTE_ALL).writerows([["x"], *([cell] for cell in cells)])
    schema = loads(dumps(draft(path, min_count=min_count)))
    # Edges that a release measures take any number; cells of a grid stand in for them.
    schema = grid_schema(schema) if schema.unsettled else schema
    codes = encode(path, schema)
    assert codes.shape == (len(cells), 1)
    assert codes.max() < schema.category_counts[0]


COLUMNS = {
    "text": ["a", "", "  ", "NA", None, "(missing)", "1"],
    "whole floats": [1.0, math.nan, None, -3.0, 1e14],
    "floats": [0.1, 1e300, -1e300, math.inf, math.nan],
    "large floats": [1e15, 2e15, 3.0],
    "integers": pl.Series([0, 2**64 - 1, None], dtype=pl.UInt64),
    "small integers": pl.Series([-128, 127], dtype=pl.Int8),
    "many integers": pl.Series(range(-400, 400), dtype=pl.Int16),
    "booleans": [True, None, False],
    "dates": [dt.date(2020, 1, 1), None],
    "times": [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 3, 4, 5, 6)],
    "zones": pl.Series([dt.datetime(2020, 1, 1, 1)]).dt.replace_time_zone("Europe/Lisbon"),
    "clock": [dt.time(1, 2, 3)],
    "decimals": pl.Series(["1.50", "2.00"]).cast(pl.Decimal(10, 2)),
    "whole decimals": pl.Series(["1.00", "2.00"]).cast(pl.Decimal(10, 2)),
    "categories": pl.Series(["a", None, "b", ""], dtype=pl.Categorical),
    "enumeration": pl.Series(["b", "a"], dtype=pl.Enum(["b", "a", "", "(missing)"])),
    "nulls": [None, None],
    "floats of 32 bits": pl.Series([0.1, 2.5], dtype=pl.Float32),
}


@pytest.mark.parametrize("binning", ["private", "equal-width", "quantile"])
@pytest.mark.parametrize("values", COLUMNS.values(), ids=COLUMNS.keys())
def test_every_typed_column_fits_its_own_draft(values, binning):
    frame = pl.DataFrame({"x": values})
    schema = loads(dumps(draft(frame, binning=binning)))
    schema = grid_schema(schema) if schema.unsettled else schema
    codes = encode(frame, schema)
    assert len(codes) == frame.height
    assert codes.max() < schema.category_counts[0]


def test_a_column_without_any_value_is_drafted_and_released():
    """Its only category is "missing", so its type says nothing of it."""
    frame = pl.DataFrame({"sex": ["f", "m"] * 50, "gone": [None] * 100}).with_columns(
        pl.col("gone").cast(pl.Float64)
    )
    schema = replace(Schema.draft(frame), reviewed=True)
    (drawn,) = synthesize(frame, schema, method="pegs-once", epsilon=1.0, rows=20).frames
    assert drawn["gone"].null_count() == 20
