"""What moves between Spark and the workers: Arrow batches of plain columns.

Columns are renamed on the way in, because Spark reads a dot in a name as a path. Code
matrices and arrays travel as binary cells, cut into pieces that Spark's batches can hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


PIECE_BYTES = 1 << 22
_BATCH_CELLS = 1 << 22
_MOST_ROWS = 1 << 16
_SIGNED: Mapping[Any, pl.DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
}


class Task(Protocol):
    """Work on one partition: batches in, batches out. It is pickled, so it holds little."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the work."""
        ...


def column_types(frame: DataFrame, names: Sequence[str]) -> dict[str, pl.DataType]:
    """Return the Polars types of some columns, refusing those that cannot be counted."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType, TimestampType

    from pegsynth.tables.arrow_read import check_types, polars_types

    fields = {field.name: field for field in frame.schema.fields}
    types: dict[str, pl.DataType] = {}
    for name in names:
        if isinstance(fields[name].dataType, TimestampType):
            # Spark shows moments by the clock of the session.
            zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
            types[name] = pl.Datetime("us", zone)
            continue
        try:
            arrow = to_arrow_schema(StructType([fields[name]]))
        except PySparkException:
            raise DataError(
                f"the DataFrame: column {name!r} has a type that Arrow does not know; turn it into "
                "text, numbers or dates, or drop it"
            ) from None
        check_types(arrow, "the DataFrame")
        types |= polars_types(arrow)
    return types


def selected(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return some columns under names without meaning, in the order of `names`."""
    plain = [f"c{index}" for index in range(len(frame.columns))]
    return frame.toDF(*plain).select(*(plain[frame.columns.index(name)] for name in names))


def values(batch: pa.RecordBatch, names: Sequence[str]) -> pl.DataFrame:
    """Return a batch of `selected` columns as a frame with their own names."""
    from pegsynth.tables.arrow_read import to_polars

    frame = to_polars(batch)
    frame.columns = list(names)
    return frame


def batch_settings(columns: int) -> dict[str, str]:
    """Return Spark's settings for batches that are worth the call and fit in memory."""
    rows = max(1, min(_MOST_ROWS, _BATCH_CELLS // max(columns, 1)))
    return {"spark.sql.execution.arrow.maxRecordsPerBatch": str(rows)}


def record_batch(**columns: pa.Array) -> pa.RecordBatch:
    """Return columns as one batch."""
    import pyarrow as pa

    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def binary_rows(matrix: NDArray[Any]) -> pa.Array:
    """Return the rows of a matrix as cells of bytes, without copying them."""
    import pyarrow as pa

    matrix = np.ascontiguousarray(matrix)
    width = matrix.itemsize * matrix.shape[1]
    offsets = np.arange(len(matrix) + 1, dtype=np.int32) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(matrix)]
    return pa.Array.from_buffers(pa.binary(), len(matrix), buffers)


def matrix_of(cells: pa.Array, columns: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return cells of bytes as the matrix that `binary_rows` was given."""
    joined = b"".join(cells.to_pylist())
    return np.frombuffer(joined, dtype=dtype).reshape(-1, columns)


def cut(array: NDArray[Any]) -> Iterator[bytes]:
    """Yield the bytes of an array in pieces, at least one."""
    raw = np.ascontiguousarray(array).tobytes()
    for start in range(0, max(len(raw), 1), PIECE_BYTES):
        yield raw[start : start + PIECE_BYTES]


def spark_types(schema: Mapping[str, pl.DataType]) -> StructType:
    """Return the Spark types of a table of ours; unsigned numbers get room for a sign."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(_arrow(pl.DataFrame(schema=dict(schema))).schema)


def spark_batches(frame: pl.DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield a frame as batches of the types that `spark_types` says."""
    yield from _arrow(frame).combine_chunks().to_batches()


def _arrow(frame: pl.DataFrame) -> pa.Table:
    import pyarrow as pa

    wanted = {name: _spark_dtype(dtype) for name, dtype in frame.schema.items()}
    table = frame.cast(wanted).to_arrow(compat_level=pl.CompatLevel.oldest())  # type: ignore[arg-type]
    fields = [
        field.with_type(pa.string()) if pa.types.is_large_string(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def _spark_dtype(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Enum | pl.Categorical):
        return pl.String()
    if isinstance(dtype, pl.Datetime):
        return pl.Datetime("us", dtype.time_zone)
    return _SIGNED.get(dtype, dtype)
