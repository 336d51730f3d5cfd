"""How single values are read, and tables that are not the same in every pass (R30, R12)."""

import datetime as dt
import itertools
import os
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pegsynth import synthesize
from pegsynth.codec.code_table import CodeTable, HeldRows, least_words
from pegsynth.codec.codec import encode, one_matrix
from pegsynth.errors import DataError
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.draft import draft
from pegsynth.schema.dtypes import as_text, decimal_text, unit_text
from pegsynth.schema.feature import Feature
from pegsynth.tables.caller_frames import object_texts
from pegsynth.tables.table_input import open_table

SECRET = "a-secret-value"
PEOPLE = Schema(
    (Feature("who", role="identifier"), Feature("a", categories=("0", "1"))),
    unit="who",
    reviewed=True,
)


# The text of one value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (" 1.0 ", " 1.0 "),
        (1, "1"),
        (1.0, "1"),
        (-0.0, "0"),
        (2.5, "2.5"),
        (1e19, "1e+19"),
        (float("inf"), "inf"),
        (2**70, str(2**70)),
        (np.int8(3), "3"),
        (np.float64(0.1), "0.1"),
        (True, "true"),
        (np.False_, "false"),
        (Decimal("12.500"), "12.5"),
        (Decimal("1E+3"), "1000"),
        (Decimal("-0.00"), "0"),
        (Decimal("12345678901234567890.1"), "12345678901234567890.1"),
        (dt.date(2020, 2, 29), "2020-02-29"),
        (dt.datetime(2020, 2, 29), "2020-02-29"),
        (dt.datetime(2020, 2, 29, 1, 2, 3), "2020-02-29T01:02:03"),
        (pd.Timestamp("2020-02-29 01:02:03.000000001"), "2020-02-29T01:02:03.000000001"),
        (pd.Timestamp("2020-02-29 01:00", tz="Asia/Tokyo"), "2020-02-28T16:00:00+00:00"),
        (dt.time(1, 2), "01:02:00"),
        (None, None),
        (float("nan"), None),
        (np.float32("nan"), None),
        (Decimal("NaN"), None),
        (pd.NA, None),
        (pd.NaT, None),
    ],
)
def test_the_text_of_an_object_is_its_own(value, text):
    others = ("y", 7, 0.5, None, dt.date(2000, 1, 1), Decimal("0.1"), False)
    for other in others:
        for pair in ([value, other], [other, value], [value, value]):
            column = object_texts(pair, "c")
            assert column[pair.index(value) if pair[0] is value else 1] == text


def test_objects_of_one_type_read_as_a_column_of_that_type():
    columns = (
        [1, None, 3],
        [1.0, 2.5, None],
        ["a", None],
        [True, False],
        [dt.date(2020, 1, 1), None],
        [dt.datetime(2020, 1, 1, 1), dt.datetime(2021, 1, 1)],
        [dt.timedelta(hours=1), None],
    )
    for values in columns:
        assert object_texts(values, "c").equals(as_text(pl.Series("c", values)))


def test_strange_objects_are_counted_and_not_shown():
    with pytest.raises(DataError, match="'c' holds 2 objects") as refused:
        object_texts([SECRET, [SECRET], {SECRET: 1}], "c")
    assert SECRET not in str(refused.value)


def test_a_pandas_column_of_objects_is_text_whatever_it_holds():
    for values in ([1, 2], ["a", None], [1, 2.5], [None, None], [2**64, 1], [True, None]):
        reader = open_table(pd.DataFrame({"c": pd.Series(values, dtype=object)}))
        assert reader.untyped == {"c"}
        assert "c" not in reader.dtypes
        assert pl.concat(reader.batches()).schema == {"c": pl.String}


def test_categories_of_any_type_are_read_one_by_one():
    mixed = pd.Categorical([5, "x", None, 5], categories=pd.Index([5, "x", 2.5], dtype=object))
    for column, texts in (
        (mixed, ["5", "x", None, "5"]),
        (pd.Categorical([2.0, None, 1.5]), ["2", None, "1.5"]),
        (pd.Categorical([2**64, 1]), [str(2**64), "1"]),
        (pd.Categorical([None, None]), [None, None]),
    ):
        reader = open_table(pd.DataFrame({"c": column}))
        assert reader.dtypes == {"c": pl.Categorical()}
        assert pl.concat(reader.batches())["c"].cast(pl.String).to_list() == texts


def test_true_and_false_are_found_in_any_spelling():
    schema = Schema((Feature("c", categories=("True", "False")),))
    frame = pd.DataFrame({"c": pd.Series([True, False, "TRUE", "false"], dtype=object)})
    assert encode(frame, schema)[:, 0].tolist() == [0, 1, 0, 1]


def test_decimals_are_exact():
    ids = [Decimal(f"1234567890123456789.{i:03}") for i in range(1000)]
    assert len(set(unit_text(pl.Series(ids, dtype=pl.Decimal(38, 3))))) == 1000
    texts = pl.Series(["12.50", "7.00", "1000", "-0.0", "NaN", None, "0.010"])
    assert decimal_text(texts).to_list() == ["12.5", "7", "1000", "0", None, None, "0.01"]
    for text in ("12.5", "0.001", "-3", "1000000"):
        exact = as_text(pl.Series([Decimal(text)], dtype=pl.Decimal(20, 4)))
        assert exact.to_list() == [text] == as_text(pl.Series([float(text)])).to_list()


def test_times_that_clocks_show_twice_are_two_units():
    moments = pl.Series([0, 3600 * 10**6]) + 1_603_585_800 * 10**6
    local = moments.cast(pl.Datetime("us", "UTC")).dt.convert_time_zone("Europe/Berlin")
    assert as_text(local).n_unique() == 1
    assert unit_text(local).n_unique() == 2


def test_a_text_that_spells_nan_keeps_its_meaning(tmp_path):
    feature = Feature(
        "a",
        "numeric",
        edges=(0, 10, 20),
        missing=("",),
        not_applicable=("NaN",),
        unknown="category",
        dtype="double",
    )
    schema = Schema((feature, Feature("b", categories=("x",))))
    codes = []
    for more in ("", "abc,x\n"):
        (tmp_path / "t.csv").write_text("a,b\nNaN,x\n5,x\n,x\n" + more)
        codes.append(encode(str(tmp_path / "t.csv"), schema)[:3, 0].tolist())
    assert codes[0] == codes[1]
    assert codes[0][0] == feature.not_applicable_code


# What is published


def test_types_come_from_the_schema(tmp_path):
    frame = pd.DataFrame({"c": pd.Series([1, 2, None] * 50, dtype=object), "d": "x"})
    stated = draft(frame)
    assert stated.features[0].dtype == "int64"
    release = synthesize(frame, stated, rows=20, method="bootstrap")
    assert {type(value) for value in release.frames[0]["c"].dropna()} <= {int, float}
    for folder in ("ward=1", "ward=02", "ward=none"):
        (tmp_path / folder).mkdir()
        pl.DataFrame({"a": [1, 2]}).write_parquet(tmp_path / folder / "part.parquet")
    reader = open_table(str(tmp_path))
    assert reader.dtypes == {"a": pl.Int64()}
    assert pl.concat(reader.batches())["ward"].to_list() == ["02", "02", "1", "1", "none", "none"]


def test_the_order_of_columns_does_not_follow_the_first_of_several_files(tmp_path):
    schema = Schema((Feature("a", categories=("1",)), Feature("b", categories=("2",))))
    orders = {"1.csv": "b,a\n2,1\n", "2.csv": "a,b\n1,2\n"}
    for name, text in orders.items():
        (tmp_path / name).write_text(text)
    for source in (str(tmp_path), str(tmp_path / "*.csv"), str(tmp_path / "2*.csv")):
        tables = synthesize(source, schema, rows=2, method="bootstrap").frames
        assert tables[0].columns == ["a", "b"]
    one = synthesize(str(tmp_path / "1.csv"), schema, rows=2, method="bootstrap")
    assert one.frames[0].columns == ["b", "a"]


# Tables that are not the same in every pass


def lazy_people(rows=20_000, units=50):
    frame = pl.DataFrame(
        {"who": [f"p{i % units}" for i in range(rows)], "a": ["0", "1"] * (rows // 2)}
    )
    return frame.lazy()


def shuffled(frame):
    """A lazy frame whose rows come in another order in every execution."""
    count = itertools.count()
    return frame.map_batches(lambda whole: whole.sample(fraction=1, shuffle=True, seed=next(count)))


def test_units_of_a_lazy_frame_are_bounded_in_one_execution():
    one_row = shuffled(pl.concat([lazy_people(400, 1), lazy_people(100, 100)]))
    for lazy in (lazy_people(), one_row, lazy_people().unique(), shuffled(lazy_people())):
        table = CodeTable(open_table(lazy), PEOPLE, RandomStream())
        units = lazy.select(pl.col("who").n_unique()).collect().item()
        first, second = (one_matrix(table.batches()) for _ in range(2))
        assert len(first) == units
        assert (first == second).all()


def test_the_same_rows_are_kept_of_a_lazy_frame_as_of_its_rows():
    frame = lazy_people(2_000, 70)
    kept = [
        one_matrix(CodeTable(open_table(data), PEOPLE, RandomStream(5)).batches())
        for data in (frame, frame.collect())
    ]
    assert (kept[0] == kept[1]).all()


def test_held_codes_are_those_with_the_least_words():
    generator = np.random.default_rng(1)
    units = pl.Series([f"u{i}" for i in generator.integers(0, 40, 3_000)])
    words = generator.integers(0, 1 << 63, 3_000).astype(np.uint64)
    codes = generator.integers(0, 200, (3_000, 3)).astype(np.uint8)
    whole = pl.DataFrame({"unit": units, "word": words, "row": np.arange(3_000)})
    wanted = codes[np.sort(least_words(whole, 2)["row"].to_numpy())]
    for most in (10, 100, 10_000):
        held = HeldRows(partial(least_words, rows_per_unit=2), most)
        rows = whole.with_columns(pl.Series("codes", codes))
        for at in range(0, 3_000, 130):
            held.add(rows[at : at + 130])
        kept = held.frame().sort("row").get_column("codes").to_numpy()
        assert (kept == wanted).all()


def test_missing_units_of_a_lazy_frame_are_refused():
    lazy = pl.LazyFrame({"who": ["a", None, " "], "a": ["0", "0", "0"]})
    with pytest.raises(DataError, match="2 values are missing"):
        CodeTable(open_table(lazy), PEOPLE, RandomStream())
    lazy = pl.LazyFrame({"who": ["a", "b"], "a": ["0", SECRET]})
    with pytest.raises(DataError, match="column 'a': 1 value is not in the schema"):
        CodeTable(open_table(lazy), PEOPLE, RandomStream())


def test_a_lazy_frame_may_change_its_order_but_not_its_rows():
    schema = Schema(PEOPLE.features, reviewed=True)
    same = CodeTable(open_table(shuffled(lazy_people().select("a"))), schema, RandomStream())
    assert [len(one_matrix(same.batches())) for _ in range(2)] == [20_000, 20_000]
    # Rows that are drawn would be the same rows twice in 4 of 100 runs.
    calls = itertools.count()
    other = pl.LazyFrame({"a": ["0"] * 200}).with_columns(
        pl.col("a").map_elements(lambda _: "01"[next(calls) < 100], return_dtype=pl.String)
    )
    changing = CodeTable(open_table(other), schema, RandomStream())
    one_matrix(changing.batches())
    with pytest.raises(DataError, match=r"came differently the second time.*collect"):
        one_matrix(changing.batches())


def test_kept_columns_of_a_lazy_frame_stay_with_their_rows():
    schema = Schema((Feature("a", categories=("0", "1")), Feature("b", categories=("0", "1"))))
    rows = pl.DataFrame({"a": ["0", "1"] * 500, "b": ["0", "1"] * 500})
    lazy = shuffled(rows.lazy())
    release = synthesize(lazy, schema, method="cart", synthesize="b")
    assert (release.frames[0]["a"] == release.frames[0]["b"]).mean() > 0.99


@pytest.mark.parametrize("change", ["longer", "same size", "replaced"])
def test_a_file_that_changes_between_passes_is_refused(tmp_path, change):
    path = tmp_path / "t.csv"
    path.write_text("a\n0\n1\n")
    table = CodeTable(open_table(str(path)), Schema(PEOPLE.features), RandomStream())
    for _ in range(2):
        assert len(one_matrix(table.batches())) == 2
    if change == "longer":
        path.write_text("a\n0\n1\n1\n")
    elif change == "same size":
        before = path.stat().st_mtime_ns
        path.write_text("a\n1\n1\n")
        os.utime(path, ns=(before + 1, before + 1))
    else:
        (tmp_path / "new").write_text("a\n1\n1\n")
        (tmp_path / "new").replace(path)
    with pytest.raises(DataError, match="changed while it was read"):
        one_matrix(table.batches())


def test_arrow_decimals_name_their_units_exactly():
    ids = [Decimal(9007199254740992 + i) for i in range(1000)]
    column = pa.array(ids, pa.decimal128(20, 0))
    table = pa.table({"who": column, "a": ["0"] * 1000})
    kept = CodeTable(open_table(table), PEOPLE, RandomStream())
    assert len(one_matrix(kept.batches())) == 1000
