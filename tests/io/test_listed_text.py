"""Text of Parquet files read by number equals text read as text, whatever is in it."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pegsynth.codec.codec import Decoder, encode, encode_table
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema
from pegsynth.tables.arrow_read import _with_listed, parquet_pieces
from pegsynth.tables.reader import Wanted
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import open_writer

KINDS = {"a": pl.Enum(["x", "y", "größe"]), "b": pl.Enum(["p"])}
SCHEMA = Schema(
    (
        Feature("a", categories=("x", "y", "größe"), missing=("",)),
        Feature("b", categories=("p", "q")),
    )
)


def written(path, frame, **options):
    pq.write_table(frame.to_arrow(), path, **options)
    return path


def frames(path, columns):
    return [piece.frame() for piece in parquet_pieces(path, Wanted(tuple(columns), hints=KINDS))]


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"row_group_size": 2}])
@pytest.mark.parametrize(
    "texts",
    [
        ["x", "y", "x", "größe"],
        ["x", None, "y", None],
        ["x", "not listed", None, "y"],
        [None, None, None, None],
        ["", "x", "", "y"],
    ],
)
def test_the_same_text(tmp_path, options, texts):
    frame = pl.DataFrame({"a": texts, "n": range(4), "b": ["p"] * 4}, schema_overrides={"a": str})
    path = written(tmp_path / "t.parquet", frame, **options)
    found = frames(path, ["n", "b", "a"])
    text = pl.concat([each.with_columns(pl.col("a", "b").cast(pl.String)) for each in found])
    assert text.equals(frame.select("n", "b", "a"))
    assert all(each.schema["b"] == KINDS["b"] for each in found)
    only = pl.concat([each.cast(pl.String) for each in frames(path, ["a"])])
    assert only.equals(frame.select("a"))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32()])
@pytest.mark.parametrize("wrong", [-1, 2, 100])
@pytest.mark.parametrize("gap", [0, None])
def test_numbers_of_texts_that_are_not_there(kind, wrong, gap):
    """Polars would read beyond the texts."""
    column = pa.DictionaryArray.from_arrays(
        pa.array([1, gap, wrong], kind), pa.array(["x", "y"]), safe=False
    )
    batch = pa.record_batch({"a": column})
    with pytest.raises(ValueError, match="not there"):
        _with_listed(batch, {"a": KINDS["a"]})
    good = pa.DictionaryArray.from_arrays(pa.array([1, gap], kind), pa.array(["y", "x"]))
    found = _with_listed(pa.record_batch({"a": good}), {"a": KINDS["a"]})
    assert found.get_column("a").to_list() == ["x", None if gap is None else "y"]


def test_hints_for_columns_that_are_no_text(tmp_path):
    frame = pl.DataFrame({"a": [1, 2], "b": [0.5, None]})
    path = written(tmp_path / "t.parquet", frame)
    assert pl.concat(frames(path, ["a", "b"])).equals(frame)


def test_codes_are_the_same_as_from_a_frame(tmp_path):
    frame = pl.DataFrame({"a": ["x", None, "größe", "y"] * 9, "b": ["p", "q"] * 18})
    path = written(tmp_path / "t.parquet", frame, row_group_size=5)
    assert (encode(path, SCHEMA) == encode(frame, SCHEMA)).all()


def test_values_outside_the_schema_are_counted(tmp_path):
    frame = pl.DataFrame({"a": ["x"] * 5, "b": ["p", "SECRET", None, "q", "SECRET"]})
    path = written(tmp_path / "t.parquet", frame, row_group_size=2)
    with pytest.raises(DataError) as refused:
        list(encode_table(open_table(path), SCHEMA))
    assert "'b': 2 values are not in the schema" in str(refused.value)
    assert "'b': 1 value is missing" in str(refused.value)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, dtype) for name in ("t.parquet", "t.arrow") for dtype in (pl.Int8, pl.Duration)),
        *((name, pl.Enum(["1", "2", "3"])) for name in ("t.parquet", "t.arrow", "t.csv")),
        ("t.csv", pl.Int64),
    ],
)
def test_listed_columns_are_written_as_text(tmp_path, name, dtype):
    """The same table, column types included, whether text was listed or not."""
    other = pl.Series([1, 2, 3]).cast(pl.String if isinstance(dtype, pl.Enum) else pl.Int64)
    plain = pl.DataFrame({"a": ["=x", None, "y"], "b": other.cast(dtype)})
    listed = plain.with_columns(a=pl.col("a").cast(pl.Enum(["y", "=x", "unused"])))
    read = []
    for frame, texts in ((plain, ()), (listed, ("a",))):
        with open_writer(tmp_path / name, texts=texts) as writer:
            writer.write(frame.head(1))
            writer.write(frame.slice(1))
        read.append(pl.concat(list(open_table(tmp_path / name).batches())))
    assert read[0].schema == read[1].schema
    assert read[0].schema["a"] == pl.String
    assert read[0].equals(read[1])


def test_a_decoder_that_lists(tmp_path):
    codes = encode(pl.DataFrame({"a": ["x", None, "y"], "b": ["p", "q", "p"]}), SCHEMA)
    listing, plain = Decoder(SCHEMA, listed=True), Decoder(SCHEMA)
    assert listing.listed == {"a", "b"}
    assert plain.listed == frozenset()
    frame = listing.decode(codes)
    assert frame.schema["a"] == pl.Enum
    assert frame.with_columns(pl.all().cast(pl.String)).equals(plain.decode(codes))
