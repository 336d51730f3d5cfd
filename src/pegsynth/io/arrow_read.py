"""Parquet and Arrow files: record batches in, Polars frames out.

PyArrow is imported where it is used, because tables of text never need it. Its own
messages may quote the data and are never passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
BATCH_CELLS = 1 << 21


def batch_rows(columns: int) -> int:
    """Return how many rows to read at a time, so that memory is bounded for wide tables too."""
    return max(1, min(BATCH_ROWS, BATCH_CELLS // max(columns, 1)))


def parquet_schema(path: Path) -> tuple[pa.Schema, int]:
    """Return the Arrow schema and the number of rows of a Parquet file."""
    import pyarrow.parquet as pq

    with _refusing(path, "Parquet"), pq.ParquetFile(path) as file:
        return file.schema_arrow, file.metadata.num_rows


def parquet_batches(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of a Parquet file in order."""
    import pyarrow.parquet as pq

    with _refusing(path, "Parquet"), pq.ParquetFile(path, memory_map=True) as file:
        for batch in file.iter_batches(batch_size=batch_rows(len(columns)), columns=list(columns)):
            yield to_polars(batch).select(columns)


def ipc_schema(path: Path) -> tuple[pa.Schema, int]:
    """Return the Arrow schema and the number of rows of an Arrow file or stream."""
    with _refusing(path, "Arrow"), _ipc(path) as (schema, batches):
        return schema, sum(batch.num_rows for batch in batches)


def ipc_batches(path: Path, columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the wanted columns of an Arrow file or stream in order."""
    size = batch_rows(len(columns))
    with _refusing(path, "Arrow"), _ipc(path) as (_, batches):
        for batch in batches:
            for start in range(0, batch.num_rows, size):
                yield to_polars(batch.slice(start, size).select(list(columns)))


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
def _ipc(path: Path) -> Iterator[tuple[pa.Schema, Iterator[Any]]]:
    import pyarrow as pa
    from pyarrow import ipc

    with pa.memory_map(str(path)) as source:
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
def _refusing(path: Path, kind: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError):
        raise DataError(
            f"{path}: the file is truncated or is not a {kind} file; write it again, or give it "
            "the extension of what it is"
        ) from None
