"""Parquet and Arrow files: record batches in, Polars frames out.

PyArrow is imported where it is used, because tables of text never need it. Its own
messages may quote the data and are never passed on.

How large the messages of an Arrow file become is told before any of them is unpacked: a compressed
buffer begins with the number of bytes that a reader reserves for it. Messages (FlatBuffers) are
therefore walked first, and what their buffers claim is added up.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import polars.selectors as cs

from pegsynth.errors import DataError
from pegsynth.runtime import spare_processors
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.caller_frames import check_names
from pegsynth.tables.file_sets import File, RemoteFile
from pegsynth.tables.parquet_pages import MOST_BYTES, MOST_GROWTH, check_pages
from pegsynth.tables.reader import Part, TableReader, Wanted, typed_reader

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


_HEADER, _BATCH_OF_DICTIONARY = 2, 1
_BUFFERS, _COMPRESSION = 2, 3
_DICTIONARIES, _BATCHES = 2, 3
_END = struct.Struct("<i6s")
_BLOCK_BYTES = 24


def check_messages(source: pa.NativeFile, *, footer: bool) -> None:
    """Refuse an Arrow file or stream with a message that would fill the memory.

    Parameters
    ----------
    source
        The open file; its place is changed.
    footer
        Whether a footer tells where the messages are, as in a file; else they stand one
        after the other.

    Raises
    ------
    DataError
        A message is too large; without the name of the file.
    ValueError
        A message is damaged.
    """
    most = max(MOST_BYTES, MOST_GROWTH * source.size())
    for message in _listed(source) if footer else _streamed(source):
        if message.type not in ("record batch", "dictionary"):
            continue
        try:
            claimed = sum(_claims(message))
        except struct.error:
            raise ValueError("a message that points outside of itself") from None
        if claimed > most:
            raise DataError(
                f"a batch unpacks to {claimed >> 20:,} MiB, far more than a file of this size "
                "should hold; write it again in smaller batches"
            )


def _streamed(source: pa.NativeFile) -> Iterator[pa.Message]:
    from pyarrow import ipc

    source.seek(0)
    reader = ipc.MessageReader.open_stream(source)
    with suppress(StopIteration):
        while True:
            yield reader.read_next_message()


def _listed(source: pa.NativeFile) -> Iterator[pa.Message]:
    """Yield the messages that the footer of a file lists."""
    from pyarrow import ipc

    size = source.size()
    source.seek(max(size - _END.size, 0))
    try:
        length, _ = _END.unpack(source.read(_END.size))
        if not 0 < length <= size - _END.size:
            raise ValueError("a footer longer than its file")
        source.seek(size - _END.size - length)
        data = source.read(length)
        root = _follow(data, 0)
        places = [
            struct.unpack_from("<q", data, vector + 4 + _BLOCK_BYTES * index)[0]
            for field in (_DICTIONARIES, _BATCHES)
            if (vector := _vector(data, root, field))
            for index in range(struct.unpack_from("<I", data, vector)[0])
        ]
    except struct.error:
        raise ValueError("a footer that points outside of itself") from None
    for place in places:
        if not 0 <= place < size:
            raise ValueError("a message outside of the file")
        source.seek(place)
        yield ipc.read_message(source)


def _claims(message: pa.Message) -> Iterator[int]:
    """Yield the bytes that each compressed buffer of a batch unpacks to, as it says."""
    data, body = message.metadata.to_pybytes(), message.body
    batch = _follow(data, _field(data, _follow(data, 0), _HEADER))
    if message.type == "dictionary":
        batch = _follow(data, _field(data, batch, _BATCH_OF_DICTIONARY))
    vector = _vector(data, batch, _BUFFERS)
    if not vector or not _field(data, batch, _COMPRESSION):
        return
    (count,) = struct.unpack_from("<I", data, vector)
    for index in range(count):
        offset, length = struct.unpack_from("<qq", data, vector + 4 + 16 * index)
        if length >= 8:
            (claimed,) = struct.unpack_from("<q", body, offset)
            yield max(claimed, 0)


def _vector(data: bytes, table: int, number: int) -> int:
    """Return where a list that a field names begins; 0 when there is none."""
    place = _field(data, table, number)
    return _follow(data, place) if place else 0


def _follow(data: bytes, position: int) -> int:
    (step,) = struct.unpack_from("<I", data, position)
    return position + int(step)


def _field(data: bytes, table: int, number: int) -> int:
    """Return where a field of a table stands; 0 when it has none."""
    (back,) = struct.unpack_from("<i", data, table)
    (size,) = struct.unpack_from("<H", data, table - back)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, table - back + 4 + 2 * number)
    return table + int(offset) if offset else 0


BATCH_ROWS = 1 << 18
BATCH_CELLS = 1 << 22
_PLAIN_TYPES = (
    *("boolean", "integer", "floating", "string", "large_string", "string_view", "date", "time"),
    *("timestamp", "duration", "null", "decimal128", "decimal64", "decimal32"),
)
_YEARS = (-62_135_596_800, 253_402_300_799)
"""First and last second of the years 1 to 9999."""
_INT64 = (1 << 63) - 1
_PER_SECOND = {"ms": 10**3, "us": 10**6, "ns": 10**9}


def batch_rows(columns: int) -> int:
    """Return how many rows to read at a time, so that memory is bounded for wide tables too."""
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(columns, 1)))


def open_parquet(path: File, _: Dialect) -> TableReader:
    """Open a Parquet file; `expected_rows` is 0 only if it surely has none."""
    schema, rows = parquet_schema(path)
    reader = declared_reader(schema, str(path), partial(parquet_pieces, path))
    return replace(reader, expected_rows=rows)


def open_ipc(path: File, _: Dialect) -> TableReader:
    """Open an Arrow file or stream; `expected_rows` is 0 only if it surely has none.

    None stands for a number that only reading the whole file would tell.
    """
    with _refusing(path, "Arrow"), _ipc(path) as (schema, batches):
        _legible(schema)
        if isinstance(path, RemoteFile):
            rows = None if any(batch.num_rows for batch in batches) else 0
        else:
            rows = sum(batch.num_rows for batch in batches)
    return replace(
        declared_reader(schema, str(path), partial(ipc_batches, path)), expected_rows=rows
    )


def declared_reader(
    schema: pa.Schema, source: str, part: Part, *, untyped: Collection[str] = ()
) -> TableReader:
    """Return the reader of a table whose names and types an Arrow schema declares."""
    import pyarrow as pa

    check_names(schema.names, source)
    check_types(schema, source)
    declared = [field for field in schema if field.name not in untyped]
    return replace(
        typed_reader(polars_types(schema), source, part, untyped=untyped),
        _arrow_schema=pa.schema(declared) if untyped else schema,
    )


def parquet_schema(path: File) -> tuple[pa.Schema, int]:
    """Return the Arrow schema and the number of rows of a Parquet file."""
    with _refusing(path, "Parquet"), _parquet(path) as file:
        return _legible(file.schema_arrow), file.metadata.num_rows


def parquet_pieces(
    path: File, wanted: Wanted, *, groups: slice = slice(None)
) -> Iterator[ParquetPiece]:
    """Yield the wanted columns of a Parquet file in order.

    Row groups that are passed over are not read, nor are those outside `groups`. A text column
    whose hint is a list of categories comes as that, where all texts of a piece are listed.
    """
    columns, skip = wanted.columns, wanted.skip
    hints = {name: wanted.hints.get(name) for name in columns}
    listed = {name: hint for name, hint in hints.items() if isinstance(hint, pl.Enum)}
    with _refusing(path, "Parquet"), _parquet(path, listed) as file:
        size = batch_rows(len(columns))
        if isinstance(path, Path):
            texts = [name for name in columns if name not in listed]
            with path.open("rb") as handle:
                longest = check_pages(handle, columns, texts=texts)
            # That many fit into memory though texts repeat.
            size = max(1, min(size, MOST_BYTES // max(longest * len(texts), 1)))
        numbers = range(file.num_row_groups)[groups]
        while numbers and skip >= file.metadata.row_group(numbers[0]).num_rows:
            skip -= file.metadata.row_group(numbers[0]).num_rows
            numbers = numbers[1:]
        # What is fetched ahead from far away is held in memory: one row group at a time.
        lots = [[group] for group in numbers] if isinstance(path, RemoteFile) else [numbers]
        threads = spare_processors() > 1
        for lot in lots:
            for batch in file.iter_batches(
                size, row_groups=lot, columns=list(columns), use_threads=threads
            ):
                passed = min(skip, batch.num_rows)
                skip -= passed
                if passed < batch.num_rows:
                    yield ParquetPiece(path, batch.slice(passed), columns, listed)


@dataclass(frozen=True)
class ParquetPiece:
    """Rows of a Parquet file, decoded and not yet checked.

    One thread can decode the next rows while another makes a frame of these.
    """

    path: File
    batch: pa.RecordBatch
    columns: tuple[str, ...]
    listed: Mapping[str, pl.Enum]

    @property
    def height(self) -> int:
        """The number of rows."""
        return int(self.batch.num_rows)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.columns)

    def frame(self) -> pl.DataFrame:
        """Check the rows and return them as a frame."""
        with _refusing(self.path, "Parquet"):
            return _with_listed(self.batch, self.listed).select(self.columns)


def _with_listed(batch: pa.RecordBatch, listed: Mapping[str, pl.Enum]) -> pl.DataFrame:
    """Turn a record batch into a frame, columns of listed texts by their few distinct texts."""
    import pyarrow as pa

    found = []
    for name, kind in listed.items():
        index = batch.schema.get_field_index(name)
        column = batch.column(index)
        if not isinstance(column, pa.DictionaryArray):
            continue
        # Says the same as validating in full, and sooner.
        column.validate()
        column.dictionary.validate(full=True)
        # Polars numbers rows by this type and would copy others; what is negative becomes large.
        numbers = pl.Series(column.indices.cast(pa.int32()).view(pa.uint32()))
        highest = numbers.max()
        if highest is not None and highest >= len(column.dictionary):  # type: ignore[operator]
            raise ValueError("numbers of texts that are not there")
        texts = pl.Series(name, column.dictionary)
        values = texts.cast(kind, strict=False)
        if values.null_count() > texts.null_count():
            # Texts are shared between rows, which casting in Arrow would not do.
            values = texts
        found.append(values.gather(numbers))
    names = {series.name for series in found}
    rest = [field.name for field in batch.schema if field.name not in names]
    return to_polars(batch.select(rest)).with_columns(found) if rest else pl.DataFrame(found)


def ipc_batches(path: File, wanted: Wanted) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of an Arrow file or stream in order."""
    with _refusing(path, "Arrow"), _ipc(path) as (_, batches):
        yield from wanted.after_skip(sliced(batches, wanted.columns))


def sliced(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of record batches as frames of bounded size."""
    size = batch_rows(len(columns))
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield to_polars(batch.slice(start, size).select(list(columns)))


def to_polars(batch: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    """Turn a record batch or table into a frame, once all it says of itself is checked.

    Polars believes offsets, dictionaries and that text is UTF-8; a file from elsewhere may lie.
    """
    import pyarrow as pa

    batch.validate(full=True)
    if any(field.metadata for field in batch.schema):
        # Notes on columns need not be text, and Polars takes them for text.
        fields = [field.remove_metadata() for field in batch.schema]
        batch = type(batch).from_arrays(batch.columns, schema=pa.schema(fields))
    frame = pl.from_arrow(batch.replace_schema_metadata(None))
    frame = frame if isinstance(frame, pl.DataFrame) else frame.to_frame()
    for series in frame.select(cs.date() | cs.datetime()):
        # No calendar text can hold others, and Polars would give up on them.
        seconds = 86_400 if series.dtype == pl.Date else 1
        scale = _PER_SECOND.get(getattr(series.dtype, "time_unit", ""), 1)
        lowest, highest = (max(-_INT64, min(edge * scale // seconds, _INT64)) for edge in _YEARS)
        outside = ~series.to_physical().is_between(lowest, highest)
        if count := int(outside.sum() or 0):
            raise DataError(
                f"column {series.name!r}: {count} dates lie outside the years 1 to 9999; mend "
                "them, or drop the column"
            )
    return frame


def polars_types(schema: pa.Schema) -> dict[str, pl.DataType]:
    """Return the Polars types of the columns of an Arrow schema."""
    import pyarrow as pa

    # `schema.empty_table()` would load pandas.
    return dict(to_polars(pa.Table.from_batches([], schema=schema)).schema)


def _legible(schema: pa.Schema) -> pa.Schema:
    """Return the schema, once its names and types are known to be text (UnicodeDecodeError)."""
    for field in schema:
        str(field.type)
        field.name.encode()
    return schema


def check_types(schema: pa.Schema, source: str) -> None:
    """Refuse columns that hold anything but text, numbers, truth values, dates and times."""
    from pyarrow import types

    for field in schema:
        kind = field.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        # Older versions of PyArrow do not know all of the names.
        tests = [getattr(types, f"is_{name}", None) for name in _PLAIN_TYPES]
        if not any(test(kind) for test in tests if test):
            words = str(kind).split("<", maxsplit=1)[0].split("[", maxsplit=1)[0]
            opaque = "binary" in words or "extension" in words
            raise DataError(
                f"{source}: column {field.name!r} holds {'bytes' if opaque else f'{words} values'};"
                " turn it into columns of text, numbers or dates, or drop it"
            )
        if types.is_timestamp(kind) and kind.tz:
            try:
                pl.Series([0]).cast(pl.Datetime("us")).dt.replace_time_zone(kind.tz)
            except pl.exceptions.PolarsError:
                raise DataError(
                    f"{source}: column {field.name!r} has a time zone that is not known; give its "
                    "name in the time zone database, or turn the column into text"
                ) from None


@contextmanager
def _parquet(path: File, texts: Iterable[str] = ()) -> Iterator[pq.ParquetFile]:
    """Open a file; the columns `texts`, if they hold text, are read as dictionaries."""
    import pyarrow.parquet as pq

    options: dict[str, Any] = {"read_dictionary": list(texts)}
    if isinstance(path, RemoteFile):
        with path.open() as handle, pq.ParquetFile(handle, pre_buffer=True, **options) as file:
            yield file
    else:
        with pq.ParquetFile(path, **options) as file:
            yield file


@contextmanager
def _ipc(path: File) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    import pyarrow as pa
    from pyarrow import ipc

    with path.open() if isinstance(path, RemoteFile) else pa.memory_map(str(path)) as source:
        local = not isinstance(path, RemoteFile)
        try:
            file = ipc.open_file(source)
        except pa.ArrowInvalid:
            if local:
                check_messages(source, footer=False)
            source.seek(0)
            stream = ipc.open_stream(source)
            yield stream.schema, iter(stream)
        else:
            if local:
                check_messages(source, footer=True)
            numbers = range(file.num_record_batches)
            yield file.schema, (file.get_batch(number) for number in numbers)


@contextmanager
def _refusing(path: File, kind: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, ValueError, EOFError):
        lost = " or the connection was lost" if isinstance(path, RemoteFile) else ""
        raise DataError(
            f"{path}: the file is truncated or is not a {kind} file{lost}; write it again, or give "
            "it the extension of what it is"
        ) from None
