"""Arrow streams, datasets of PyArrow and iterators of chunks are tables like any other."""

from itertools import islice

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import dataset

import pegsynth
from checks.doors.readers import Exported
from pegsynth.errors import DataError
from pegsynth.schema import Feature, Schema
from pegsynth.tables.table_input import open_table
from small_release import small_schema, small_table

TABLE = small_table(200)
SCHEMA = small_schema()


class Once:
    """Gives its stream a single time."""

    def __init__(self, table):
        self._stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())

    def __arrow_c_stream__(self, requested_schema=None):
        if self._stream is None:
            raise pa.ArrowInvalid("taken")
        stream, self._stream = self._stream, None
        return stream.__arrow_c_stream__(requested_schema)


class Restless:
    """Gives other rows every time."""

    def __init__(self, *tables):
        self._tables = iter(tables)

    def __arrow_c_stream__(self, requested_schema=None):
        return next(self._tables).__arrow_c_stream__(requested_schema)


def pandas_chunks(frame=TABLE, rows=30):
    whole = frame.to_pandas()
    return (whole.iloc[first : first + rows] for first in range(0, len(whole), rows))


def every_stream(frame=TABLE):
    """The same rows behind every door, made anew; the kind of frame that comes out."""
    arrow = frame.to_arrow()
    return {
        "stream": (lambda: Exported(arrow), pa.Table),
        "dataset": (lambda: dataset.dataset(arrow), pa.Table),
        "Polars chunks": (lambda: frame.iter_slices(30), pl.DataFrame),
        "pandas chunks": (lambda: pandas_chunks(frame), pd.DataFrame),
        "record batches": (lambda: iter(arrow.to_batches(max_chunksize=30)), pa.Table),
        "lazy chunks": (lambda: (each.lazy() for each in frame.iter_slices(30)), pl.DataFrame),
    }


streams = pytest.mark.parametrize("name", every_stream())
METHODS = [("pegs", {}), ("pegs-once", {"epsilon": 5.0}), ("mi", {}), ("bootstrap", {})]


def drawn(data, method="pegs", schema=SCHEMA, **options):
    given = {"rows": 40, "seed": 3} | options
    if method == "pegs":
        # Two passes: pair counts for the order, then blocks.
        given = {"epsilon": 30.0, "order": "private"} | given
    return pegsynth.synthesize(data, schema, method=method, **given).frames[0]


@streams
@pytest.mark.parametrize(("method", "options"), METHODS)
def test_streams_give_what_a_table_gives(name, method, options):
    make, kind = every_stream()[name]
    found = drawn(make(), method, **options)
    assert isinstance(found, kind)
    wanted = drawn(TABLE, method, **options)
    assert pl.DataFrame(found).rows() == wanted.rows()


@streams
def test_units_are_bounded(name):
    people = small_table(200, units=30)
    make, _ = every_stream(people)[name]
    schema = small_schema(rows_per_unit=2)
    release = pegsynth.synthesize(make(), schema, method="pegs", epsilon=30.0, rows=20)
    assert release.ledger.guarantee.rows_per_unit == 2
    assert len(release.frames[0]) == 20


@streams
def test_other_calls_take_streams(name):
    make, kind = every_stream()[name]
    assert Schema.draft(make()).names == SCHEMA.names
    found = pegsynth.evaluate(make(), [make(), make()], SCHEMA)
    assert found.summary["tvd1"] == 0
    fitted = pegsynth.PeGS(method="pegs", epsilon=30.0, rows=20).fit(make(), SCHEMA)
    assert isinstance(fitted.sample(5), kind)
    (partly,) = pegsynth.synthesize(make(), SCHEMA, method="cart", synthesize=["a"]).frames
    assert isinstance(partly, kind)
    assert pl.DataFrame(partly).drop("a").rows() == TABLE.drop("a").rows()


def test_duckdb_relations():
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("rows", TABLE.to_arrow())
    relation = connection.sql("SELECT * FROM rows")
    assert pl.DataFrame(drawn(relation)).rows() == drawn(TABLE).rows()


def test_a_stream_that_is_given_once_is_read_once():
    arrow = TABLE.to_arrow()
    assert drawn(Once(arrow), "pegs-once", epsilon=5.0).num_rows == 40
    with pytest.raises(DataError, match="was read before; give a table that holds its rows"):
        drawn(Once(arrow))


def test_other_rows_in_a_second_pass_are_refused():
    arrow = TABLE.to_arrow()
    with pytest.raises(DataError, match="the rows came differently the second time"):
        drawn(Restless(arrow, arrow.slice(1)))
    assert drawn(Restless(arrow, arrow)).num_rows == 40


def test_a_second_pass_over_chunks_is_refused():
    reader = open_table(iter([TABLE]))
    assert sum(batch.height for batch in reader.batches()) == 200
    with pytest.raises(DataError, match="can be read once, and its rows are needed again"):
        list(reader.batches())


def test_chunks_are_read_one_at_a_time():
    asked = []

    def chunks():
        for number in range(5):
            asked.append(number)
            yield TABLE

    batches = open_table(chunks()).batches(["b"])
    assert asked == [0]
    assert [batch.columns for batch in islice(batches, 2)] == [["b"]] * 2
    assert asked == [0, 1]


# Types are declared


def test_a_stream_declares_its_types():
    table = pa.table({"a": pa.array([1], pa.int8()), "t": pa.array([1], pa.time64("us"))})
    reader = open_table(Exported(table))
    assert reader.dtypes == {"a": pl.Int8(), "t": pl.Time()}
    assert reader.arrow_schema == table.schema
    # A stream has types without any row; only reading tells that it is empty.
    assert open_table(Exported(table.slice(1))).dtypes == reader.dtypes
    with pytest.raises(DataError, match="has no rows"):
        list(open_table(Exported(table.slice(1))).batches())


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (pd.DataFrame({"a": [1.5]}), "chunk 2: column 'a' has another type than in the first"),
        (pd.DataFrame({"a": ["x"]}, dtype=object), "chunk 2: column 'a' has another type"),
        (pd.DataFrame({"b": [1]}), "chunk 2: column 'a' is not in all chunks"),
        (pd.DataFrame({"a": [1], "b": [1]}), "chunk 2: column 'b' is not in all chunks"),
        ([1], "a stream of list objects"),
        (pd.DataFrame(), "the table has no columns"),
    ],
)
def test_chunks_that_differ_are_refused(second, message):
    with pytest.raises(DataError, match=message):
        list(open_table(iter([pd.DataFrame({"a": [1]}), second])).batches())


def test_text_that_only_its_values_tell_is_not_text_that_a_chunk_declares():
    """An object column is read value by value, in every chunk or in none."""
    declared = pd.DataFrame({"a": ["x"]}, dtype="str")
    with pytest.raises(DataError, match="chunk 2: column 'a' has another type"):
        list(open_table(iter([declared, declared.astype(object)])).batches())


def test_an_empty_first_chunk_and_another_order_of_columns():
    chunks = [TABLE.head(0), TABLE.select(reversed(TABLE.columns)), TABLE]
    frame = pl.concat(list(open_table(iter(chunks)).batches()))
    assert frame.equals(pl.concat([TABLE, TABLE]))


def test_datasets_whose_types_were_guessed_are_refused(tmp_path):
    """A cell, or the name of one folder, would decide how all other rows are read (R30)."""
    (tmp_path / "csv").mkdir()
    TABLE.write_csv(tmp_path / "csv" / "x.csv")
    cells = dataset.dataset(tmp_path / "csv", format="csv")
    with pytest.raises(DataError, match="guesses the types of CSV and JSON datasets"):
        open_table(cells)
    for ward in ("1", "2"):
        folder = tmp_path / "wards" / f"ward={ward}"
        folder.mkdir(parents=True)
        pq.write_table(TABLE.to_arrow(), folder / "x.parquet")
    wards = dataset.dataset(tmp_path / "wards", partitioning="hive")
    with pytest.raises(DataError, match="that the names of folders give"):
        open_table(wards)
    with pytest.raises(DataError, match="that the names of folders give"):
        open_table(wards.replace_schema(wards.schema))
    plain = dataset.dataset(tmp_path / "wards")
    with pytest.raises(DataError, match="that the names of folders give"):
        open_table(dataset.dataset([plain, wards]))
    assert open_table(plain).columns == tuple(TABLE.columns)
    assert pl.DataFrame(drawn(plain)).height == 40


# What is no table


class Nothing:
    def __arrow_c_stream__(self, requested_schema=None):
        return pl.Series([1]).__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (iter([]), "the table has no rows"),
        (iter([TABLE.head(0)]), "the table has no rows"),
        (iter([["a", "b"]]), "a stream of list objects; give a stream of pandas"),
        (Nothing(), "the stream cannot be read, is no table"),
        (object(), "the table is a object; give a file name"),
        (Exported(pa.table({"a": [[1]]})), "column 'a' holds list values"),
        (Exported(pa.table({"a": [b"x"]})), "column 'a' holds bytes"),
        (iter([pl.DataFrame({"a": [[1]]})]), "chunk 1: column 'a' holds lists"),
    ],
    ids=lambda case: case if isinstance(case, str) else type(case).__name__,
)
def test_what_cannot_be_read_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        list(open_table(data).batches())


def test_lines_of_an_open_file_are_no_table(tmp_path):
    (tmp_path / "x.csv").write_text("a\nx\n")
    with (tmp_path / "x.csv").open() as file, pytest.raises(DataError, match="stream of str"):
        open_table(file)


def test_values_beyond_the_calendar_are_refused():
    far = pa.table({"a": pa.array([1 << 40], pa.timestamp("s"))})
    with pytest.raises(DataError, match="outside the years 1 to 9999"):
        list(open_table(Exported(far)).batches())


def test_values_of_chunks_are_encoded_by_the_schema():
    schema = Schema((Feature("n", "numeric", edges=(0, 10, 20), dtype="int64"),), reviewed=True)
    chunks = (pd.DataFrame({"n": [number]}) for number in (1, 15))
    (frame,) = pegsynth.synthesize(chunks, schema, method="pegs", alpha=1.0, rows=30).frames
    assert frame["n"].dtype == "int64"
