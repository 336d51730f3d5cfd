import datetime as dt

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather, ipc

from pegsynth.errors import DataError
from pegsynth.tables import arrow_read
from pegsynth.tables.table_input import open_table

SECRET = "Zebulon"
TABLE = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int32()),
        "s": ["x", "y", None],
        "d": pa.array([dt.date(2020, 1, 1)] * 3),
        "c": pa.array(["u", "v", "u"]).dictionary_encode(),
    }
)
EXPECTED = {"n": [1, None, 3], "s": ["x", "y", None], "c": ["u", "v", "u"]}


def save(table, path):
    if path.suffix in {".parquet", ".pq"}:
        pq.write_table(table, path)
    elif path.suffix == ".ipc":
        with ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)
    else:
        feather.write_feather(table, str(path))
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".pq", ".arrow", ".feather", ".ipc"])
def test_files(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(arrow_read, "BATCH_ROWS", 2)
    reader = open_table(save(TABLE, tmp_path / f"t{suffix}"))
    assert reader.typed
    assert reader.columns == ("n", "s", "d", "c")
    assert reader.arrow_schema.field("n").type == pa.int32()
    assert reader.dtypes["d"] == pl.Date
    for _ in range(2):
        batches = list(reader.batches(["s", "n", "c"]))
        assert [b.height for b in batches] == [2, 1]
        assert pl.concat(b.cast({"c": pl.String}) for b in batches).to_dict(as_series=False) == {
            name: EXPECTED[name] for name in ("s", "n", "c")
        }


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".ipc"])
@pytest.mark.parametrize("cut", [0, 3, 40, -20])
def test_truncated_and_foreign_files(tmp_path, suffix, cut):
    path = save(pa.table({"a": [SECRET] * 50}), tmp_path / f"t{suffix}")
    path.write_bytes(path.read_bytes()[:cut] if cut else SECRET.encode() * 9)
    with pytest.raises(DataError, match=rf"t{suffix}: the file is truncated or is not") as caught:
        list(open_table(path).batches())
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]]),
        pa.array([{"x": 1}]),
        pa.array([b"Zebulon"]),
        pa.array([b"Zebulon"], pa.large_binary()),
        pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int8())),
    ],
    ids=["list", "struct", "binary", "large_binary", "map"],
)
def test_nested_and_binary_columns(tmp_path, column):
    table = pa.table({"fine": [1], "odd": column})
    for source in (save(table, tmp_path / "t.parquet"), table, table.to_reader()):
        with pytest.raises(DataError, match="column 'odd' holds") as caught:
            open_table(source)
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_no_rows(tmp_path, suffix):
    with pytest.raises(DataError, match="no rows"):
        open_table(save(TABLE.slice(0, 0), tmp_path / f"t{suffix}"))


def test_duplicate_names(tmp_path):
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    for source in (save(table, tmp_path / "t.parquet"), table):
        with pytest.raises(DataError, match="'a' appears twice"):
            open_table(source)


def test_glob_with_drift(tmp_path):
    save(pa.table({"a": [1], "b": ["x"]}), tmp_path / "p1.parquet")
    save(pa.table({"a": [1.5], "b": ["x"]}), tmp_path / "p2.parquet")
    with pytest.raises(DataError, match=r"p2\.parquet: column 'a' has another type"):
        open_table(str(tmp_path / "p*.parquet"))
    (tmp_path / "p2.parquet").unlink()
    (tmp_path / "p3.csv").write_text("a,b\n1,x\n")
    with pytest.raises(DataError, match=r"p3\.csv: the files are of different kinds"):
        open_table(str(tmp_path / "p*"))


FRAME = pl.DataFrame({"n": [1, 2], "s": ["x", None]})


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (FRAME, "polars"),
        (FRAME.lazy(), "polars"),
        (FRAME.to_pandas(), "pandas"),
        (FRAME.to_arrow(), "pyarrow"),
        (FRAME.to_arrow().to_reader(), "pyarrow"),
    ],
    ids=["polars", "lazy", "pandas", "pyarrow", "reader"],
)
def test_frames(data, kind):
    reader = open_table(data)
    assert (reader.frame_kind, reader.source, reader.typed) == (kind, "the table", True)
    for _ in range(2):
        assert pl.concat(reader.batches()).equals(FRAME)
    assert reader.arrow_schema.field("n").type == pa.int64()
    assert pl.concat(reader.batches(["s"])).columns == ["s"]
    with pytest.raises(DataError, match="no column 'z'"):
        list(reader.batches(["z"]))


def test_frames_that_cannot_be_used():
    with pytest.raises(DataError, match="'mix' holds 1 objects") as caught:
        list(open_table(pd.DataFrame({"mix": [1, SECRET, object()]})).batches())
    assert SECRET not in str(caught.value)
    with pytest.raises(DataError, match="'a' appears twice"):
        open_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(DataError, match="no rows"):
        open_table(FRAME.head(0))
    with pytest.raises(DataError, match="no columns"):
        open_table(pl.DataFrame())
    with pytest.raises(DataError, match="'l' holds lists"):
        open_table(pl.DataFrame({"l": [[1]]}))
    with pytest.raises(DataError, match="the table is a dict"):
        open_table({"a": [1]})
    with pytest.raises(DataError, match="lazy frame"):
        list(open_table(FRAME.lazy().select(pl.col("s").cast(pl.Int8))).batches())


def test_pandas_index_and_number_names():
    reader = open_table(pd.DataFrame({0: [1, 2], 1: ["a", "b"]}, index=[7, 7]))
    assert reader.columns == ("0", "1")
    assert pl.concat(reader.batches()).rows() == [(1, "a"), (2, "b")]
