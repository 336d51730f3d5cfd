import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pegsynth.tables.caller_frames import frame_kind, to_kind

FRAME = pl.DataFrame({"i": [1, 2], "g": [1, None], "s": ["x", None], "b": [True, None]})


def test_kinds():
    assert frame_kind(FRAME) == "polars"
    assert frame_kind(FRAME.lazy()) == "polars"
    assert frame_kind(FRAME.to_pandas()) == "pandas"
    assert frame_kind(FRAME.to_arrow()) == "pyarrow"
    assert frame_kind("x.csv") is None
    assert frame_kind(type("Mine", (pd.DataFrame,), {})()) == "pandas"


def test_pandas_types_are_kept_where_values_allow():
    like = pd.DataFrame(
        {
            "i": pd.Series([5], dtype="int32"),
            "g": pd.Series([5], dtype="int64"),
            "s": pd.Series(["q"], dtype=object),
            "b": pd.Series([True]),
        }
    )
    out = to_kind(FRAME, "pandas", like)
    assert [str(t) for t in out.dtypes] == ["int32", "Int64", "object", "boolean"]
    assert out["g"].isna().tolist() == [False, True]
    assert to_kind(FRAME.head(1), "pandas", like)["g"].dtype == "int64"


def test_pandas_categories_come_from_the_frame():
    dtype = pd.CategoricalDtype(["secret", "b", "a"], ordered=True)
    like = pd.DataFrame({"c": pd.Series(["a"], dtype=dtype), "k": pd.Categorical([1])})
    frame = pl.DataFrame(
        {
            "c": pl.Series(["a", None], dtype=pl.Enum(["a", "b"])),
            "k": pl.Series(["2", "1"], dtype=pl.Enum(["1", "2", "3"])),
        }
    )
    out = to_kind(frame, "pandas", like)
    assert out["c"].cat.categories.tolist() == ["a", "b"]
    assert out["c"].cat.ordered
    assert out["k"].cat.categories.tolist() == [1, 2, 3]
    assert out["k"].tolist() == [2, 1]
    assert not out["k"].cat.ordered


def test_pyarrow_and_polars_types():
    like = pa.table({"i": pa.array([1], pa.int8()), "s": pa.array(["x"], pa.string())})
    out = to_kind(FRAME, "pyarrow", like)
    assert out.schema.field("i").type == pa.int8()
    assert out.schema.field("s").type == pa.string()
    assert out.schema.field("g").type == pa.int64()
    shaped = to_kind(FRAME, "polars", pl.DataFrame(schema={"i": pl.Int16, "s": pl.Int8}))
    assert shaped.schema["i"] == pl.Int16
    assert shaped.schema["s"] == pl.String
    assert to_kind(FRAME, None) is FRAME
    assert to_kind(FRAME, "pandas").shape == (2, 4)


def test_polars_categories_never_come_from_the_table():
    like = pl.DataFrame({"c": pl.Series(["secret", "a"], dtype=pl.Categorical)})
    frame = pl.DataFrame({"c": pl.Series(["a"], dtype=pl.Enum(["a", "b"]))})
    out = to_kind(frame, "polars", like)
    assert out["c"].dtype.categories.to_list() == ["a", "b"]
    table = to_kind(frame, "pyarrow", like.to_arrow())
    assert "secret" not in table.column("c").chunk(0).dictionary.to_pylist()


@pytest.mark.parametrize(
    "dtype", ["uint64", "UInt64", pd.ArrowDtype(pa.date32()), pd.ArrowDtype(pa.uint8())]
)
def test_a_type_that_cannot_hold_the_values_is_left(dtype):
    like = pd.DataFrame({"a": pd.Series([], dtype=dtype)})
    back = to_kind(pl.DataFrame({"a": [-1.5, 2.0]}), "pandas", like=like)
    assert back["a"].tolist() == [-1.5, 2.0]
