"""Small files that claim, or unpack to, more than memory holds."""

import contextlib
import datetime as dt
import decimal
import io
import struct
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from pegsynth.errors import DataError
from pegsynth.tables import arrow_read as arrow_messages
from pegsynth.tables import parquet_pages
from pegsynth.tables.arrow_read import check_messages
from pegsynth.tables.parquet_pages import CODECS as NAMES
from pegsynth.tables.parquet_pages import MOST_TEXT, check_pages, row_groups
from pegsynth.tables.table_input import open_table

CODECS = ("none", "zstd", "snappy", "gzip", "brotli", "lz4")


def parquet(table, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink


def pages_of(sink, **options):
    return check_pages(sink, **options)


def repeated(text, rows):
    """A text that a file holds once and that stands in every row."""
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    return pa.table({"a": column})


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("page_version", ["1.0", "2.0"])
def test_the_longest_shared_text_is_found(codec, page_version):
    texts = ["x", "yy" * 300, "z" * 50] * 10
    sink = parquet(pa.table({"a": texts}), compression=codec, data_page_version=page_version)
    assert pages_of(sink, texts=("a",)) == 600
    assert pages_of(sink) == 0


def test_texts_that_are_written_one_by_one_are_not_shared():
    sink = parquet(pa.table({"a": ["x" * 500] * 9}), use_dictionary=False)
    assert pages_of(sink, texts=("a",)) == 0


def test_texts_that_share_their_beginning_are_shared():
    table = pa.table({"a": ["x" * 500 + str(i) for i in range(50)]})
    sink = parquet(table, use_dictionary=False, column_encoding="DELTA_BYTE_ARRAY")
    assert pages_of(sink, texts=("a",)) >= 500


def test_long_statistics_and_many_pages_are_walked():
    words = [f"{i:04}" * 900 for i in range(200)]
    table = pa.table({"a": words, "b": range(200)})
    sink = parquet(table, data_page_size=1000, write_batch_size=1, use_dictionary=False)
    chunk = row_groups(sink)[0][0]
    pages = list(parquet_pages._pages(sink, chunk, sink.seek(0, 2)))
    assert len(pages) > 50
    assert sum(page.values for page in pages) == 200
    assert sum(page.unpacked for page in pages) >= 200 * 3600


def test_files_of_another_writer_are_walked(tmp_path):
    frame = pl.DataFrame({"a": ["x", "yyy"] * 500, "n": range(1000)})
    frame.write_parquet(tmp_path / "p.parquet")
    with (tmp_path / "p.parquet").open("rb") as handle:
        found = check_pages(handle, texts=("a",))
    assert found == 3
    assert sum(b.height for b in open_table(tmp_path / "p.parquet").batches()) == 1000


def test_pages_that_unpack_to_too_much(tmp_path, monkeypatch):
    path = tmp_path / "p.parquet"
    pq.write_table(
        pa.table({"a": ["x" * (1 << 22)]}), path, use_dictionary=False, compression="zstd"
    )
    assert path.stat().st_size < 1 << 13
    assert next(open_table(path).batches()).height == 1
    small = check_pages.__kwdefaults__ | {"most": 1 << 20}
    monkeypatch.setattr(check_pages, "__kwdefaults__", small)
    with pytest.raises(DataError, match=r"p\.parquet: row group 1 unpacks to more than 1 MiB"):
        list(open_table(path).batches())


def test_a_page_that_is_longer_than_its_file(tmp_path, monkeypatch):
    """Reading it would ask for as much memory as it claims."""
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": ["x", "y"]}), path)
    shipped = parquet_pages._pages

    def claiming(handle, chunk, size):
        for page in shipped(handle, chunk, size):
            yield replace(page, packed=1 << 40)

    monkeypatch.setattr(parquet_pages, "_pages", claiming)
    with path.open("rb") as handle, pytest.raises(ValueError, match="longer than its file"):
        parquet_pages.check_pages(handle, ["a"], texts=["a"])


def test_a_text_that_stands_in_every_row(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(repeated("x" * (1 << 20), 200_000), path, store_schema=False, compression="zstd")
    assert path.stat().st_size < 1 << 12
    with pytest.raises(DataError, match=f"'a' holds a text of more than {MOST_TEXT:,} bytes"):
        list(open_table(path).batches())


def test_a_shared_text_makes_batches_small(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(repeated("x" * MOST_TEXT, 20_000), path, store_schema=False)
    heights = [batch.height for batch in open_table(path).batches()]
    assert sum(heights) == 20_000
    assert max(heights) * MOST_TEXT <= parquet_pages.MOST_BYTES


def test_texts_outside_a_list_stay_shared(tmp_path):
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"a": ["x", "y", "other", None]}), path)
    hints = {"a": pl.Enum(["x", "y"])}
    (frame,) = open_table(path).batches(hints=hints)
    assert frame["a"].dtype == pl.String
    assert frame["a"].to_list() == ["x", "y", "other", None]


@pytest.mark.parametrize("header", [b"\x00", b"\xff" * 40, b"\x1c" * 40, b"\x15\xff" * 40])
def test_damaged_page_headers(header):
    sink = parquet(pa.table({"a": ["x", "y"]}), compression="none")
    data = bytearray(sink.getvalue())
    data[4 : 4 + len(header)] = header
    with pytest.raises((ValueError, DataError)):
        check_pages(io.BytesIO(bytes(data)))


@pytest.mark.parametrize("codec", CODECS)
def test_the_footer_says_what_pyarrow_says(codec):
    table = pa.table({"a": ["x", None, "y"] * 7, "n": range(21), "l": [[1], [], None] * 7})
    sink = parquet(table, row_group_size=8, compression=codec)
    metadata = pq.ParquetFile(sink).metadata
    groups = row_groups(sink)
    assert len(groups) == metadata.num_row_groups == 3
    for number, group in enumerate(groups):
        for index, ours in enumerate(group):
            theirs = metadata.row_group(number).column(index)
            first = theirs.dictionary_page_offset or theirs.data_page_offset
            assert ours.column == theirs.path_in_schema.split(".")[0]
            assert (ours.start, ours.end) == (first, first + theirs.total_compressed_size)
            assert ours.values == theirs.num_values
            assert (ours.kind == 6) == (theirs.physical_type == "BYTE_ARRAY")
            assert NAMES.index(ours.codec) in (0, *range(1, 8))
            assert ours.codec.startswith(theirs.compression.lower().replace("none", "un"))


@pytest.mark.parametrize("spot", range(9, 400, 23))
def test_damaged_footers_end_in_one_error(tmp_path, spot):
    """Some of them end the process when PyArrow is asked for a chunk."""
    table = pa.table({"a": ["x", "y"], "b": [1.5, None]})
    data = bytearray(parquet(table).getvalue())
    for value in (0, 0x15, 0x7F, 0x80, 0xFF, data[-spot] ^ 1):
        data[-spot] = value
        path = tmp_path / f"{value}.parquet"
        path.write_bytes(data)
        with contextlib.suppress(DataError):
            list(open_table(path).batches())


def arrow(table, path, *, stream=False, codec="zstd"):
    make = ipc.new_stream if stream else ipc.new_file
    with make(str(path), table.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_batches_that_unpack_to_too_much(tmp_path, monkeypatch, stream, codec):
    table = pa.table({"a": np.zeros(1 << 20, np.int64)})
    path = arrow(table, tmp_path / "p.arrow", stream=stream, codec=codec)
    assert open_table(path).expected_rows == 1 << 20
    monkeypatch.setattr(arrow_messages, "MOST_BYTES", 1 << 20)
    monkeypatch.setattr(arrow_messages, "MOST_GROWTH", 1)
    with pytest.raises(DataError, match=r"p\.arrow: a batch unpacks to 8 MiB"):
        open_table(path)


def test_a_dictionary_that_unpacks_to_too_much(tmp_path, monkeypatch):
    path = arrow(repeated("x" * (1 << 21), 3), tmp_path / "p.arrow")
    assert open_table(path).expected_rows == 3
    monkeypatch.setattr(arrow_messages, "MOST_BYTES", 1 << 20)
    with pytest.raises(DataError, match="a batch unpacks to 2 MiB"):
        open_table(path)


@pytest.mark.parametrize("stream", [False, True])
def test_batches_that_are_not_compressed_claim_nothing(tmp_path, monkeypatch, stream):
    monkeypatch.setattr(arrow_messages, "MOST_BYTES", 1)
    monkeypatch.setattr(arrow_messages, "MOST_GROWTH", 0)
    path = arrow(pa.table({"a": ["x"] * 99}), tmp_path / "p.arrow", stream=stream, codec=None)
    assert open_table(path).expected_rows == 99


def test_a_buffer_that_claims_a_terabyte(tmp_path):
    """The first eight bytes of a compressed buffer are the size that it claims."""
    path = arrow(pa.table({"a": np.arange(1000)}), tmp_path / "p.arrow")
    data = bytearray(path.read_bytes())
    place = data.index(struct.pack("<q", 8000))
    data[place : place + 8] = struct.pack("<q", 10**12)
    path.write_bytes(data)
    with pytest.raises(DataError, match="953,674 MiB"):
        open_table(path)


@pytest.mark.parametrize("length", [0, -5, 1 << 30])
def test_a_footer_longer_than_its_file(tmp_path, length):
    path = arrow(pa.table({"a": [1]}), tmp_path / "p.arrow")
    data = bytearray(path.read_bytes())
    data[-10:-6] = struct.pack("<i", length)
    path.write_bytes(data)
    with pytest.raises(ValueError), pa.memory_map(str(path)) as source:  # noqa: PT011
        check_messages(source, footer=True)
    with pytest.raises(DataError, match="truncated"):
        open_table(path)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (pa.array([decimal.Decimal(1)], pa.decimal256(70, 3)), "decimal256"),
        (pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "interval"),
        (pa.RunEndEncodedArray.from_arrays([1], ["x"]), "run_end_encoded"),
        (pa.array([0], pa.timestamp("us", tz="Nowhere/City")), "time zone"),
        (pa.array([0], pa.timestamp("us", tz="é")), "time zone"),
    ],
)
def test_types_that_cannot_be_used(tmp_path, column, words):
    path = arrow(pa.table({"a": column}), tmp_path / "p.arrow", codec=None)
    with pytest.raises(DataError, match=f"'a' h.*{words}"):
        open_table(path)


@pytest.mark.parametrize("kind", ["date32", "timestamp[s]", "timestamp[ms]", "timestamp[us]"])
@pytest.mark.parametrize("sign", [1, -1])
def test_dates_that_no_calendar_has(tmp_path, kind, sign):
    """Polars would give up on the whole process."""
    if kind == "date32":
        column = pa.array([sign * (2**31 - 1), 0], pa.int32()).cast(pa.date32())
    else:
        unit = kind[10:-1]
        per_second = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
        column = pa.array([sign * 10**12 * per_second, 0], pa.int64()).cast(pa.timestamp(unit))
    path = arrow(pa.table({"a": column}), tmp_path / "p.arrow", codec=None)
    with pytest.raises(DataError, match="'a': 1 dates lie outside the years 1 to 9999"):
        list(open_table(path).batches())


def test_the_first_and_last_dates_can_be_read(tmp_path):
    edges = [dt.date(1, 1, 1), dt.date(9999, 12, 31), None]
    times = [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59), None]
    table = pa.table({"d": edges, "t": pa.array(times, pa.timestamp("us"))})
    (frame,) = open_table(arrow(table, tmp_path / "p.arrow", codec=None)).batches()
    assert frame["d"].to_list() == edges
    assert frame["t"].to_list() == times


def test_bytes_that_pass_for_text(tmp_path):
    """Text that is not UTF-8 would be undefined behaviour further on."""
    wrong = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(struct.pack("<ii", 0, 2)), pa.py_buffer(b"\xff\xfe")]
    )
    path = arrow(pa.table({"a": wrong}), tmp_path / "p.arrow", codec=None)
    with pytest.raises(DataError, match="truncated or is not"):
        list(open_table(path).batches())


def test_offsets_that_lead_elsewhere(tmp_path):
    path = arrow(pa.table({"a": ["abc", "defg"]}), tmp_path / "p.arrow", codec=None)
    data = path.read_bytes()
    good = struct.pack("<iii", 0, 3, 7)
    assert data.count(good) == 1
    path.write_bytes(data.replace(good, struct.pack("<iii", 0, 3, 1 << 30)))
    with pytest.raises(DataError, match="truncated or is not"):
        list(open_table(path).batches())


def test_notes_on_columns_need_not_be_text(tmp_path):
    field = pa.field("a", pa.string(), metadata={b"\xff": b"\xfe"})
    table = pa.Table.from_arrays([pa.array(["x"])], schema=pa.schema([field]))
    (frame,) = open_table(arrow(table, tmp_path / "p.arrow", codec=None)).batches()
    assert frame["a"].to_list() == ["x"]


def test_more_columns_than_can_be_used(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"c{i}" for i in range(10_001)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    with pytest.raises(DataError, match="10,001 columns"):
        open_table(path)
