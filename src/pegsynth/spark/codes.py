"""From a DataFrame to packed codes on the workers, every unit's rows bounded (R12).

A partition of values becomes cells of packed codes, and one last cell that says what was
seen: rows, rows without a unit, values that have no code. Nothing of it comes to the
driver but sums.

Where the schema names a unit, every row goes with a random word to the task of its unit, and of
every unit the rows with the smallest words are kept. With a seed a row has the word that the
local engine gives it, by its number in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.code_table import HeldRows, least_words
from pegsynth.codec.codec import Encoder
from pegsynth.errors import DataError, ParameterError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.random import RandomStream
from pegsynth.schema.dtypes import unit_text
from pegsynth.spark import arrow_batches
from pegsynth.spark.spark_session import mapped, plain_errors
from pegsynth.tables.reader import is_blank

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from pegsynth.random import Words
    from pegsynth.schema import Schema


_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class UnitWords:
    """Where the words of the rows of every partition come from.

    Parameters
    ----------
    number, key
        The keystream of the words; without a key every attempt has a stream of its own.
    first
        Number of the first row of every partition, for a seeded stream; empty otherwise.
    salt
        A random number for words that must be the same in every attempt (`steady`).
    """

    number: int
    key: bytes | None = None
    first: Mapping[int, int] = field(default_factory=dict)
    salt: int = 0

    @classmethod
    def of(cls, frame: DataFrame, stream: RandomStream) -> UnitWords:
        """Reserve the words of a table; with a seed, its rows are numbered first."""
        number = stream.substreams(1)
        if not stream.seeded:
            return cls(number, salt=int(stream.substream().take(1)[0]))
        one = arrow_batches.selected(frame, frame.columns[:1])
        with plain_errors("numbering the rows"):
            counted = mapped(one, count_rows, "partition int, rows bigint").collect()
        first, rows = {}, 0
        for partition, count in sorted((row["partition"], row["rows"]) for row in counted):
            first[partition] = rows
            rows += count
        return cls(number, stream.shared_key, first)

    def of_partition(self) -> Words:
        """Return the words of the partition that this worker is busy with."""
        stream = RandomStream.from_shared(self.key)
        return stream.substream(self.number, skip=self.first.get(partition_number(), 0))

    def steady(self, batches: Iterable[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, Int64]]:
        """Yield batches with words that are the same in every attempt and whenever asked for.

        Without a seed the word is a salted hash of the row's own values, because rows may come in
        another order the next time. Rows that are alike have one word.
        """
        words = self.of_partition() if self.key is not None else None
        for batch in batches:
            if words is not None:
                taken = words.take(batch.height)
            else:
                taken = batch.hash_rows(seed=self.salt).to_numpy()
            yield batch, signed(taken)


def signed(words: NDArray[np.uint64]) -> Int64:
    """Return words as numbers that Spark has, in the same order."""
    numbers: Int64 = (words ^ _SIGN).view(np.int64)
    return numbers


def count_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the number of a partition and of its rows."""
    import pyarrow as pa

    rows = sum(batch.num_rows for batch in batches)
    yield arrow_batches.record_batch(
        partition=pa.array([partition_number()], pa.int32()), rows=pa.array([rows], pa.int64())
    )


def partition_number() -> int:
    """Return the number of the partition that this worker is busy with."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


PACKED = "codes binary, seen binary"
_UNITS = "unit string, word bigint, codes binary, seen binary"
_MOST_HELD = 1 << 20
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass
class RowsSeen:
    """What the rows of a partition, or of all of them, were like.

    `digest` depends on every row and on no order of them, so that two passes can be compared.
    """

    features: int
    rows: int = 0
    blank: int = 0
    digest: int = 0
    faults: Int64 = field(init=False)

    def __post_init__(self) -> None:
        self.faults = np.zeros((self.features, 2), dtype=np.int64)

    def array(self) -> Int64:
        """Return everything as one plain array."""
        digest = np.array([self.digest], dtype=np.uint64).view(np.int64)
        return np.concatenate([[self.rows, self.blank], digest, self.faults.ravel()])

    def cells(self, *columns: str) -> Iterator[pa.RecordBatch]:
        """Yield what was seen as the last row of a partition, whose other columns are empty."""
        import pyarrow as pa

        types = {"unit": pa.string(), "word": pa.int64(), "codes": pa.binary()}
        if self.rows:
            seen = pa.array([self.array().tobytes()], pa.binary())
            empty = {name: pa.nulls(1, types[name]) for name in columns}
            yield arrow_batches.record_batch(**empty, seen=seen)

    def absorb(self, array: Int64) -> None:
        """Add what was seen elsewhere."""
        self.rows += int(array[0])
        self.blank += int(array[1])
        self._add_digest(int(array[2]))
        self.faults += array[3:].reshape(self.features, 2)

    def look_at(self, codes: Codes, units: pl.Series | None = None) -> None:
        """Take the rows of a batch, and their units, into the digest."""
        mixed = np.full(len(codes), 1, dtype=np.uint64)
        if units is not None:
            mixed += units.hash(seed=0).fill_null(0).to_numpy()
        for feature in range(codes.shape[1]):
            mixed = (mixed + codes[:, feature]) * _ODD
            mixed ^= mixed >> np.uint64(29)
        self._add_digest(int(mixed.sum(dtype=np.uint64)))

    def _add_digest(self, number: int) -> None:
        self.digest = (self.digest + number) % (1 << 64)


@dataclass(frozen=True)
class CodeSource:
    """Rows to count: a frame, and the task that turns its batches into packed codes."""

    frame: DataFrame
    task: arrow_batches.Task

    def packed(self) -> DataFrame:
        """Return the packed codes as a frame."""
        return mapped(self.frame, self.task, PACKED)

    def mapped(self, task: arrow_batches.Task, schema: str) -> DataFrame:
        """Let one worker process make the codes and work on them."""
        return mapped(self.frame, partial(_one_after, self.task, task), schema)


def _one_after(
    first: arrow_batches.Task, second: arrow_batches.Task, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Do one task after the other, without a way through Spark in between."""
    return second(first(batches))


def code_source(
    frame: DataFrame, schema: Schema, words: UnitWords | None, tasks: int
) -> CodeSource:
    """Return how the workers get the codes of the rows to count.

    Parameters
    ----------
    words
        The words of the rows, where the schema names a unit.
    tasks
        The most partitions to make.
    """
    if schema.unit is None:
        # Every task ends with a table of counts: not more of them than the cluster needs.
        chosen = arrow_batches.selected(frame, schema.names).coalesce(tasks)
        return CodeSource(chosen, EncodeRows(schema))
    if words is None:
        raise ParameterError("rows of units are bounded by words; none were given")
    names = (schema.unit, *(name for name in schema.names if name != schema.unit))
    chosen = arrow_batches.selected(frame, names)
    named = EncodeUnits(schema, names, words)
    by_unit = mapped(chosen, named, _UNITS).repartition(tasks, "unit")
    return CodeSource(by_unit, BoundUnits(schema))


@dataclass(frozen=True)
class EncodeRows:
    """Turns values into packed codes."""

    schema: Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield cells of codes, then what was seen."""
        names = self.schema.names
        tables = (arrow_batches.values(batch, names) for batch in batches)
        return encoded(tables, encoder_of(self.schema))


def encoded(tables: Iterable[pl.DataFrame], encoder: Encoder) -> Iterator[pa.RecordBatch]:
    """Yield the cells of codes of a partition, then what was seen."""
    seen = RowsSeen(len(encoder.schema.names))
    with plain_values():
        for values in tables:
            seen.rows += values.height
            # A task has one processor.
            codes = encoder.encode(values, threads=1)
            seen.look_at(codes)
            yield from packed(codes)
    seen.faults += encoder.faults
    yield from seen.cells("codes")


@dataclass(frozen=True)
class EncodeUnits:
    """Turns values into codes row by row, each with its unit and a random word.

    Parameters
    ----------
    columns
        Names of the columns that come in, the unit first.
    words
        The words of the rows.
    """

    schema: Schema
    columns: tuple[str, ...]
    words: UnitWords

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows to be gathered by unit, then what was seen."""
        import pyarrow as pa

        encoder = encoder_of(self.schema)
        seen = RowsSeen(len(self.schema.names))
        words = self.words.of_partition()
        with plain_values():
            for batch in batches:
                values = arrow_batches.values(batch, self.columns)
                units = unit_text(values.get_column(self.columns[0]))
                seen.rows += len(units)
                seen.blank += int(is_blank(units).sum())
                codes = encoder.encode(values, threads=1)
                seen.look_at(codes, units)
                yield arrow_batches.record_batch(
                    unit=units.to_arrow().cast(pa.string()),
                    word=pa.array(signed(words.take(len(units)))),
                    codes=arrow_batches.binary_rows(codes),
                    seen=pa.nulls(len(units), pa.binary()),
                )
        seen.faults += encoder.faults
        yield from seen.cells("unit", "word", "codes")


@dataclass(frozen=True)
class BoundUnits:
    """Keeps the rows of every unit that have the smallest words, at most k."""

    schema: Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield cells of the codes kept, and what was seen."""
        seen = RowsSeen(len(self.schema.names))

        def rows() -> Iterator[pl.DataFrame]:
            for batch in batches:
                found = arrow_batches.values(batch, ("unit", "word", "codes", "seen"))
                for cell in found.get_column("seen").drop_nulls():
                    seen.absorb(np.frombuffer(cell, dtype=np.int64))
                yield found.filter(pl.col("codes").is_not_null()).drop("seen")

        kept = bounded(rows(), self.schema.rows_per_unit)
        if kept.height:
            cells = kept.get_column("codes").to_arrow()
            yield from packed(
                arrow_batches.matrix_of(cells, len(self.schema.names), self.schema.code_dtype)
            )
        yield from seen.cells("codes")


def bounded(
    batches: Iterable[pl.DataFrame], rows_per_unit: int, *, then: Sequence[str] = ()
) -> pl.DataFrame:
    """Return the rows of every unit that have the smallest words, at most k, of all batches.

    Parameters
    ----------
    then
        Columns that decide between rows with the same word.
    """
    held = HeldRows(partial(least_words, rows_per_unit=rows_per_unit, then=then), _MOST_HELD)
    some = False
    for rows in batches:
        held.add(rows)
        some = True
    return held.frame() if some else pl.DataFrame()


def packed(codes: Codes) -> Iterator[pa.RecordBatch]:
    """Yield a code matrix as cells of bounded size, feature by feature."""
    import pyarrow as pa

    rows = max(1, arrow_batches.PIECE_BYTES // max(codes[:1].nbytes, 1))
    for start in range(0, len(codes), rows):
        cell = codes[start : start + rows].tobytes(order="F")
        yield arrow_batches.record_batch(
            codes=pa.array([cell], pa.binary()), seen=pa.nulls(1, pa.binary())
        )


def unpacked(batches: Iterable[pa.RecordBatch], schema: Schema, seen: RowsSeen) -> Iterator[Codes]:
    """Yield the code matrices of packed cells, adding up what was seen."""
    columns, dtype = len(schema.names), schema.code_dtype
    for batch in batches:
        for codes, cell in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if cell is not None:
                seen.absorb(np.frombuffer(cell, dtype=np.int64))
            if codes is not None:
                yield np.frombuffer(codes, dtype=dtype).reshape(columns, -1).T


@contextmanager
def plain_values() -> Iterator[None]:
    """Turn errors about values, which may quote them, into plain ones."""
    import pyarrow as pa

    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException):
        raise DataError(
            "the DataFrame: a column cannot be read as its schema says; cast it to text, numbers "
            "or dates"
        ) from None


def encoder_of(schema: Schema) -> Encoder:
    """Return what turns the values of a partition into codes."""
    return Encoder(schema, source="the DataFrame", columns=schema.names, need_unit=False)
