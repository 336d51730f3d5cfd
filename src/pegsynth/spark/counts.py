"""Counts on the workers, added up along a tree.

Every task counts its rows with the counters of the local engine and hands on their
arrays. Groups of tasks are added up on the workers, level by level, until one sum is
left; that alone comes to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self, TypeVar

import numpy as np

from pegsynth.codec.codec import Encoder
from pegsynth.codec.pair_counts import PairCounter, PairCounts
from pegsynth.errors import EngineError
from pegsynth.kernels.arrays import Int64
from pegsynth.methods.checkpoint import Counter
from pegsynth.methods.counting import one_row_in
from pegsynth.methods.gibbs.block_fitting import hash_spec, one_way_counts
from pegsynth.methods.gibbs.blocks import BlockCounter, Blocks
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.released import (
    Features,
    SumCounter,
    SumDesign,
    TableCounter,
    cell_count,
    level_counts,
)
from pegsynth.spark import arrow_batches
from pegsynth.spark.cluster_files import file_source
from pegsynth.spark.codes import RowsSeen, UnitWords, code_source, partition_number, unpacked
from pegsynth.spark.spark_session import configured, mapped, plain_errors
from pegsynth.tables.reader import missing_units
from pegsynth.tables.streams import other_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from pegsynth.codec.bin_shape import Shape
    from pegsynth.schema import Schema


FAN_IN = 16
TASKS_PER_CORE = 2
_PIECES = "child int, name string, piece int, pieces int, cells binary"
_SEEN = "seen"
_LOT = itemgetter(1)


class ClusterCounter(Counter, AbstractContextManager[Any], Protocol):
    """A counter of the local engine; its arrays move between the workers."""


Counting = TypeVar("Counting", bound=ClusterCounter)


class ClusterCounts:
    """Counts of a DataFrame, made where its rows are.

    When the table is to be counted twice its codes stay in the workers' memory, and are
    made again where that is too small; they are never kept on disk.

    Parameters
    ----------
    words
        The words that say which rows of a unit count; None where the schema names no unit.
    """

    def __init__(
        self,
        frame: DataFrame,
        schema: Schema,
        words: UnitWords | None,
        *,
        source: str,
        shapes: Mapping[str, Shape] | None = None,
    ) -> None:
        self.shapes: Mapping[str, Shape] = shapes or {}
        self._words = words
        self._frame, self._schema, self._source = frame, schema, source
        self._spark = frame.sparkSession
        self._encoder = Encoder(schema, source=source, columns=frame.columns)
        arrow_batches.column_types(frame, [*schema.names, *([schema.unit] if schema.unit else [])])
        self._tasks = most_tasks(self._spark)
        found = file_source(frame, schema, self._tasks)
        self._codes = found or code_source(frame, schema, words, self._tasks)
        self._kept: DataFrame | None = None
        self._first: tuple[int, int] | None = None

    def pairs(self, category_counts: tuple[int, ...], *, order_rows: int | None) -> PairCounts:
        """Count pairs in one pass; another will follow, for the blocks."""
        self.keep()
        rows = None
        if order_rows is not None:
            with plain_errors("counting the rows"):
                rows = self._frame.count()
        every = one_row_in(rows, order_rows)
        with self.totals(partial(PairCounter, category_counts, every=every)) as counter:
            return counter.counts()

    def blocks(self, spec: HashSpec, *, drawn_heads: bool) -> Blocks:
        """Count blocks in one pass."""
        with self.totals(partial(BlockCounter, spec)) as counter:
            return counter.blocks()

    def rows(self) -> NoReturn:
        """Refuse: rows stay where they are."""
        raise EngineError("the rows of a cluster's table stay where they are; use --engine local")

    def counted(self) -> ClusterTable:
        """Return what tables of any features can be counted from."""
        return ClusterTable(self, self._schema)

    def sums(self, design: SumDesign) -> Int64:
        """Add up the rows of the workers on the fine bins of the design."""
        with ClusterCounts(self._frame, design.schema, self._words, source=self._source) as counts:
            return counts.totals(partial(SumCounter, design)).sums()

    def keep(self) -> None:
        """Let the workers hold the codes in memory for passes to come."""
        from pyspark import StorageLevel

        if self._kept is None:
            self._kept = self._codes.packed().persist(StorageLevel.MEMORY_ONLY)

    def close(self) -> None:
        """Let the workers forget the codes."""
        if self._kept is not None:
            self._kept.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def totals(self, new: Callable[[], Counting]) -> Counting:
        """Return a counter with the counts of all rows, added up on the workers a few at a time."""
        from pyspark.sql import functions

        settings = arrow_batches.batch_settings(len(self._schema.names))
        with configured(self._spark, settings), plain_errors("counting the table"):
            count = CountPartition(self._schema, new)
            if self._kept is None:
                parts = self._codes.mapped(count, _PIECES)
            else:
                parts = mapped(self._kept, count, _PIECES)
            children = self._tasks
            while children > 1:
                children = -(-children // FAN_IN)
                group = (functions.col("child") / FAN_IN).cast("int")
                parts = parts.repartitionById(children, group)
                parts = mapped(parts, replace(count, summed=True), _PIECES)
            whole = parts.toArrow()
        counter = new()
        seen = RowsSeen(len(self._schema.names))
        for arrays in gathered(whole.to_batches()):
            seen.absorb(arrays[_SEEN])
            counter.absorb(arrays)
        self._check(seen)
        return counter

    def _check(self, seen: RowsSeen) -> None:
        """Refuse rows without units, and values without a code."""
        if seen.blank:
            raise missing_units(self._source, self._schema.unit or "", seen.blank)
        self._encoder.add_faults(seen.faults)
        self._encoder.finish()
        self._first = self._first or (seen.rows, seen.digest)
        if self._first != (seen.rows, seen.digest):
            raise other_rows(self._source, "write the DataFrame to Parquet first")


def most_tasks(spark: SparkSession) -> int:
    """Return how many partitions a stage has at most."""
    return TASKS_PER_CORE * max(spark.sparkContext.defaultParallelism, 1)


@dataclass(frozen=True)
class CountPartition:
    """Makes one table of counts out of all that a partition holds.

    Parameters
    ----------
    new
        Returns a counter of the local engine.
    summed
        Whether counts of other partitions come in, to be added up; else packed codes.
    """

    schema: Schema
    new: Callable[[], ClusterCounter]
    summed: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts in pieces; a partition that holds nothing passes on nothing."""
        seen = RowsSeen(len(self.schema.names))
        with self.new() as counter:
            some = False
            if self.summed:
                for arrays in gathered(batches):
                    seen.absorb(arrays[_SEEN])
                    counter.absorb(arrays)
                    some = True
            else:
                for codes in unpacked(batches, self.schema, seen):
                    counter.add(codes)
                    some = True
            if some or seen.rows:
                yield from pieces({_SEEN: seen.array(), **counter.arrays()})


def pieces(arrays: Mapping[str, Int64]) -> Iterator[pa.RecordBatch]:
    """Yield arrays as rows of bounded size, with the partition they come from."""
    import pyarrow as pa

    flat = [(name, raw) for name, array in arrays.items() for raw in arrow_batches.cut(array)]
    child = partition_number()
    for number, (name, raw) in enumerate(flat):
        yield arrow_batches.record_batch(
            child=pa.array([child], pa.int32()),
            name=pa.array([name]),
            piece=pa.array([number], pa.int32()),
            pieces=pa.array([len(flat)], pa.int32()),
            cells=pa.array([raw], pa.binary()),
        )


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Int64]]:
    """Yield the arrays of one partition after the other, pieces coming in any order."""
    waiting: dict[int, dict[int, tuple[str, bytes]]] = {}
    for batch in batches:
        for row in batch.to_pylist():
            child = waiting.setdefault(row["child"], {})
            child[row["piece"]] = row["name"], row["cells"]
            if len(child) == row["pieces"]:
                raw: dict[str, list[bytes]] = {}
                for _, (name, cells) in sorted(waiting.pop(row["child"]).items()):
                    raw.setdefault(name, []).append(cells)
                yield {name: np.frombuffer(b"".join(raw[name]), np.int64) for name in raw}


MOST_CELLS_PER_JOB = 1 << 24


class ClusterTable:
    """A confidential table that is counted on a cluster."""

    def __init__(self, counts: ClusterCounts, schema: Schema) -> None:
        self._counts, self._schema = counts, schema
        counts.keep()

    @property
    def rows(self) -> int:
        """Number of rows that count."""
        return int(self._one_ways[0].sum())

    def one_way(self, feature: int) -> Int64:
        """Count the rows by the categories of a feature."""
        return self._one_ways[feature]

    def merged(self, levels: Sequence[Int64]) -> ClusterTables:
        """Return the same table on merged levels."""
        return ClusterTables(self._counts, levels)

    @cached_property
    def _one_ways(self) -> list[Int64]:
        """Blocks without heads or tail are one-way counts."""
        spec = hash_spec(self._schema, ((),) * len(self._schema.features), 0)
        return one_way_counts(self._counts.blocks(spec, drawn_heads=False))


class ClusterTables:
    """Counts on merged levels, those of one step at a time."""

    def __init__(self, counts: ClusterCounts, levels: Sequence[Int64]) -> None:
        self._counts, self._levels = counts, levels
        self._held: dict[Features, Int64] = {}

    def ask(self, tables: Sequence[Features]) -> None:
        """Count some tables, as many at a time as a worker can hold; forget those before."""
        self._held = {}
        cells = np.cumsum([cell_count(table, level_counts(self._levels)) for table in tables])
        for _, group in groupby(zip(tables, cells // MOST_CELLS_PER_JOB, strict=True), _LOT):
            lot = [table for table, _ in group]
            counter = self._counts.totals(partial(TableCounter, self._levels, lot))
            self._held.update(zip(lot, counter.counts(), strict=True))

    def count(self, table: Features) -> Int64:
        """Return the counts of a table."""
        if table not in self._held:
            self.ask([table])
        return self._held[table]

    def extended(self, heads: Features, features: Sequence[int]) -> Iterator[Int64]:
        """Yield the table of some heads extended by one feature after the other."""
        return (self.count((*heads, feature)) for feature in features)
