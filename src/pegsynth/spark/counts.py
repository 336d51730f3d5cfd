"""Counts on the workers, added up along a tree.

Every task counts its rows with the counters of the local engine and hands on their
arrays. Groups of tasks are added up on the workers, level by level, until one sum is
left; that alone comes to the driver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, Self

import numpy as np

from pegsynth.codec.codec import Encoder
from pegsynth.codec.pair_counts import PairCounter, PairCounts
from pegsynth.errors import EngineError
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.methods.counting import one_row_in
from pegsynth.methods.gibbs.block_fitting import hash_spec, one_way_counts
from pegsynth.methods.gibbs.blocks import BlockCounter, Blocks
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.released.counted import TableCounter, level_counts
from pegsynth.methods.released.row_pool import Features, cell_count
from pegsynth.methods.released.sum_design import SumCounter, SumDesign
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


Arrays = Mapping[str, Int64]

FAN_IN = 16
TASKS_PER_CORE = 2
_PIECES = "child int, name string, piece int, pieces int, cells binary"
_SEEN = "seen"


class Counter(Protocol):
    """What counts batches and can take in counts of other rows."""

    def add(self, batch: Codes) -> None:
        """Count one batch."""

    def arrays(self) -> Arrays:
        """Return the counts so far."""

    def absorb(self, arrays: Arrays) -> None:
        """Add counts of other rows."""

    def __enter__(self) -> Self:
        """Start."""

    def __exit__(self, *error: object) -> None:
        """Stop."""


NewCounter = Callable[[], Any]


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
        counter: PairCounter
        with self.totals(partial(PairCounter, category_counts, every=every)) as counter:
            return counter.counts()

    def blocks(self, spec: HashSpec, *, drawn_heads: bool) -> Blocks:
        """Count blocks in one pass."""
        counter: BlockCounter
        with self.totals(partial(BlockCounter, spec)) as counter:
            return counter.blocks()

    def rows(self) -> NoReturn:
        """Refuse: rows stay where they are."""
        raise EngineError("the rows of a cluster's table stay where they are; use --engine local")

    def counted(self) -> ClusterTable:
        """Return what tables of any features can be counted from."""
        from pegsynth.spark.counts import ClusterTable

        return ClusterTable(self, self._schema)

    def sums(self, design: SumDesign) -> Int64:
        """Add up the rows of the workers on the fine bins of the design."""
        with ClusterCounts(self._frame, design.schema, self._words, source=self._source) as counts:
            counter: SumCounter = counts.totals(partial(SumCounter, design))
        return counter.sums()

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

    def totals(self, new: NewCounter) -> Any:
        """Return a counter with the counts of all rows."""
        with self._configured(), plain_errors("counting the table"):
            count = CountCodes(self._schema, new)
            if self._kept is None:
                parts = self._codes.mapped(count, _PIECES)
            else:
                parts = mapped(self._kept, count, _PIECES)
            whole = _summed(parts, self._tasks, new, self._schema).toArrow()
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

    def _configured(self) -> Any:
        return configured(self._spark, arrow_batches.batch_settings(len(self._schema.names)))


def most_tasks(spark: SparkSession) -> int:
    """Return how many partitions a stage has at most."""
    return TASKS_PER_CORE * max(spark.sparkContext.defaultParallelism, 1)


def _summed(parts: DataFrame, children: int, new: NewCounter, schema: Schema) -> DataFrame:
    """Add up the counts of all tasks on the workers, a few at a time."""
    from pyspark.sql import functions

    while children > 1:
        children = -(-children // FAN_IN)
        group = (functions.col("child") / FAN_IN).cast("int")
        parts = mapped(parts.repartitionById(children, group), AddCounts(schema, new), _PIECES)
    return parts


@dataclass(frozen=True)
class Counting(ABC):
    """Makes one table of counts out of all that a partition holds."""

    schema: Schema
    new: NewCounter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts in pieces; a partition that holds nothing hands on nothing."""
        seen = RowsSeen(len(self.schema.names))
        with self.new() as counter:
            steps = sum(1 for _ in self.take_in(batches, counter, seen))
            if steps or seen.rows:
                yield from pieces({_SEEN: seen.array(), **counter.arrays()})

    @abstractmethod
    def take_in(
        self, batches: Iterable[pa.RecordBatch], counter: Counter, seen: RowsSeen
    ) -> Iterator[None]:
        """Add what comes to the counts, a step at a time."""


class CountCodes(Counting):
    """Counts the rows of a partition."""

    def take_in(
        self, batches: Iterable[pa.RecordBatch], counter: Counter, seen: RowsSeen
    ) -> Iterator[None]:
        """Count one matrix of codes after the other."""
        for codes in unpacked(batches, self.schema, seen):
            counter.add(codes)
            yield


class AddCounts(Counting):
    """Adds up the counts of several partitions."""

    def take_in(
        self, batches: Iterable[pa.RecordBatch], counter: Counter, seen: RowsSeen
    ) -> Iterator[None]:
        """Add the counts of one partition after the other."""
        for arrays in gathered(batches):
            seen.absorb(arrays[_SEEN])
            counter.absorb(arrays)
            yield


def pieces(arrays: Arrays) -> Iterator[pa.RecordBatch]:
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
                yield _joined(waiting.pop(row["child"]))


def _joined(parts: Mapping[int, tuple[str, bytes]]) -> dict[str, Int64]:
    raw: dict[str, list[bytes]] = {}
    for number in sorted(parts):
        name, cells = parts[number]
        raw.setdefault(name, []).append(cells)
    return {name: np.frombuffer(b"".join(cells), np.int64) for name, cells in raw.items()}


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
        """Count some tables, and forget those of the step before."""
        self._held = {}
        for lot in _lots(tables, level_counts(self._levels)):
            counter: TableCounter = self._counts.totals(partial(TableCounter, self._levels, lot))
            self._held.update(zip(lot, counter.counts(), strict=True))

    def count(self, table: Features) -> Int64:
        """Return the counts of a table."""
        if table not in self._held:
            self.ask([table])
        return self._held[table]

    def extended(self, heads: Features, features: Sequence[int]) -> Iterator[Int64]:
        """Yield the table of some heads extended by one feature after the other."""
        return (self.count((*heads, feature)) for feature in features)


def _lots(tables: Sequence[Features], sizes: Sequence[int]) -> Iterator[list[Features]]:
    """Cut a list of tables into lots that a worker can hold."""
    lot: list[Features] = []
    cells = 0
    for table in tables:
        lot.append(table)
        cells += cell_count(table, sizes)
        if cells >= MOST_CELLS_PER_JOB:
            yield lot
            lot, cells = [], 0
    if lot:
        yield lot
