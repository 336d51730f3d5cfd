"""Parquet and Arrow files: record batches in, Polars frames out.

PyArrow is imported where it is used, because tables of text never need it. Its own
messages may quote the data and are never passed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.errors import DataError
from pegsynth.io.files import File, RemoteFile

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
BATCH_CELLS = 1 << 21


def batch_rows(columns: int) -> int:
    """Return how many rows to read at a time, so that memory is bounded for wide tables too."""
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(columns, 1)))


def parquet_schema(path: File) -> tuple[pa.Schema, int]:
    """Return the Arrow schema and the number of rows of a Parquet file."""
    with _refusing(path, "Parquet"), _parquet(path) as file:
        return file.schema_arrow, file.metadata.num_rows


def parquet_batches(
    path: File,
    columns: Sequence[str],
    *,
    skip: int = 0,
    hints: Mapping[str, pl.DataType] | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of a Parquet file in order, after the first `skip` rows.

    Row groups that lie before are not read. A text column whose hint is a list of
    categories comes as that, where all texts of a batch are listed.
    """
    size = batch_rows(len(columns))
    listed = {n: h for n, h in (hints or {}).items() if isinstance(h, pl.Enum) and n in columns}
    with _refusing(path, "Parquet"), _parquet(path, listed) as file:
        first = 0
        while first < file.num_row_groups and skip >= file.metadata.row_group(first).num_rows:
            skip -= file.metadata.row_group(first).num_rows
            first += 1
        groups = range(first, file.num_row_groups)
        # What is fetched ahead from far away is held in memory: one row group at a time.
        lots = [[group] for group in groups] if isinstance(path, RemoteFile) else [groups]
        batches = (
            batch
            for lot in lots
            for batch in file.iter_batches(size, row_groups=lot, columns=list(columns))
        )
        frames = (_with_listed(batch, listed).select(columns) for batch in batches)
        yield from _after(skip, frames)


def _with_listed(batch: Any, listed: Mapping[str, pl.Enum]) -> pl.DataFrame:
    """Turn a record batch into a frame, columns of listed texts by their few distinct texts."""
    import pyarrow as pa

    found = []
    for name, kind in listed.items():
        index = batch.schema.get_field_index(name)
        column = batch.column(index)
        if not isinstance(column, pa.DictionaryArray):
            continue
        texts = pl.Series(name, column.dictionary)
        values = texts.cast(kind, strict=False)
        if values.null_count() > texts.null_count():
            batch = batch.set_column(index, name, column.cast(column.type.value_type))
        else:
            found.append(values.gather(pl.Series(column.indices)))
    names = {series.name for series in found}
    rest = [field.name for field in batch.schema if field.name not in names]
    return to_polars(batch.select(rest)).with_columns(found) if rest else pl.DataFrame(found)


def ipc_schema(path: File) -> tuple[pa.Schema, int | None]:
    """Return the Arrow schema of an Arrow file or stream, and its number of rows.

    None stands for a number that only reading the whole file would tell.
    """
    with _refusing(path, "Arrow"), _ipc(path) as (schema, batches):
        if isinstance(path, RemoteFile):
            return schema, None if any(batch.num_rows for batch in batches) else 0
        return schema, sum(batch.num_rows for batch in batches)


def ipc_batches(
    path: File,
    columns: Sequence[str],
    *,
    skip: int = 0,
    hints: Mapping[str, pl.DataType] | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of an Arrow file or stream in order, after `skip` rows."""
    with _refusing(path, "Arrow"), _ipc(path) as (_, batches):
        yield from _after(skip, sliced(batches, columns))


def sliced(batches: Iterable[Any], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of record batches as frames of bounded size."""
    size = batch_rows(len(columns))
    for batch in batches:
        for start in range(0, batch.num_rows, size):
            yield to_polars(batch.slice(start, size).select(list(columns)))


def _after(skip: int, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Leave out the first rows of a stream."""
    for frame in frames:
        passed = min(skip, frame.height)
        skip -= passed
        if passed < frame.height:
            yield frame.slice(passed)


def to_polars(batch: Any) -> pl.DataFrame:
    """Turn a record batch or table into a frame."""
    frame = pl.from_arrow(batch)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def check_types(schema: pa.Schema, source: str) -> None:
    """Refuse columns that hold lists, structs or bytes."""
    from pyarrow import types

    for field in schema:
        kind = field.type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if types.is_nested(kind) or _is_binary(kind):
            raise DataError(
                f"{source}: column {field.name!r} holds {_plain(kind)}; turn it into columns of "
                "text, numbers or dates, or drop it"
            )


def _is_binary(kind: pa.DataType) -> bool:
    return "binary" in str(kind) or "extension" in str(kind)


def _plain(kind: pa.DataType) -> str:
    return "bytes" if _is_binary(kind) else str(kind).split("<", maxsplit=1)[0] + " values"


@contextmanager
def _parquet(path: File, texts: Iterable[str] = ()) -> Iterator[Any]:
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
def _ipc(path: File) -> Iterator[tuple[pa.Schema, Iterator[Any]]]:
    import pyarrow as pa
    from pyarrow import ipc

    with path.open() if isinstance(path, RemoteFile) else pa.memory_map(str(path)) as source:
        try:
            file = ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            stream = ipc.open_stream(source)
            yield stream.schema, iter(stream)
        else:
            numbers = range(file.num_record_batches)
            yield file.schema, (file.get_batch(number) for number in numbers)


@contextmanager
def _refusing(path: File, kind: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError):
        lost = " or the connection was lost" if isinstance(path, RemoteFile) else ""
        raise DataError(
            f"{path}: the file is truncated or is not a {kind} file{lost}; write it again, or give "
            "it the extension of what it is"
        ) from None
