"""`pegsynth.spark.fit`: a model from a DataFrame that never leaves its cluster.

Values that may become categories are counted where the rows are (R29): each task counts the texts
of its rows; Spark adds them up and puts them in order; sums come to the driver a part at a time, in
text order, so that neither holds all of them. Rows of units are bounded first (R12), and every
attempt of a task keeps the same ones: texts of one unit go to many tasks, so that a task which is
run again must not choose anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.api.estimator import PeGS
from pegsynth.codec.codec import Encoder
from pegsynth.codec.finding_categories import MOST_BYTES, Part, private_names
from pegsynth.codec.measured_rows import GridCounter
from pegsynth.codec.number_grid import grid_schema
from pegsynth.codec.paying import CodecCounts, wants_codec, wants_grids
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Int64
from pegsynth.methods import get, methods
from pegsynth.methods.base import AnyMethod, Model
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.ledgers import schema_ledger
from pegsynth.options._kinds import python_names
from pegsynth.pipeline.fitting import fit_counted, pay_for_codec
from pegsynth.pipeline.settling import Settled
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.declared_types import check_declared
from pegsynth.schema.dtypes import unit_text
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import candidates
from pegsynth.spark import arrow_batches
from pegsynth.spark.cluster_files import folder_columns
from pegsynth.spark.codes import UnitWords, bounded, plain_values
from pegsynth.spark.counts import ClusterCounts, most_tasks
from pegsynth.spark.spark_session import check_session, configured, mapped, plain_errors
from pegsynth.tables.caller_frames import check_names

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


_COUNTED = "feature int, value string, count bigint"
_PACKED = "cells binary"
_MOST_HELD = 1 << 20
_FEATURE, _VALUE, _COUNT = "feature", "value", "count"
_UNIT, _WORD = "unit", "word"


def candidate_parts(
    frame: DataFrame, schema: Schema, words: UnitWords | None, *, most_bytes: int = MOST_BYTES
) -> Iterator[Part]:
    """Yield the values of all features whose categories are private, and their counts.

    Parameters
    ----------
    words
        The words that say which rows of a unit count; None where the schema names no unit.
    most_bytes
        About how much of it the driver holds at once.
    """
    spark = frame.sparkSession
    features = tuple(schema[name] for name in private_names(schema))
    settings = arrow_batches.batch_settings(len(features) + 1)
    with configured(spark, settings), plain_errors("counting the values"):
        counted = counted_texts(frame, schema, features, words)
        cells = (bytes(row[0]) for row in counted.toLocalIterator())
        yield from _parts(cells, features, most_bytes)


def counted_texts(
    frame: DataFrame, schema: Schema, features: Sequence[Feature], words: UnitWords | None
) -> DataFrame:
    """Return packed counts of texts, in order of features and texts."""
    from pyspark.sql import functions

    names, columns = tuple(feature.name for feature in features), _columns(features)
    if schema.unit is not None and words is None:
        raise ParameterError("rows of units are bounded by words; none were given")
    tasks = most_tasks(frame.sparkSession)
    if schema.unit is None or words is None:
        rows = arrow_batches.selected(frame, names).coalesce(tasks)
        count = CountTexts(features)
    else:
        chosen = arrow_batches.selected(frame, (schema.unit, *names))
        types = "".join(f", {name} string" for name in columns)
        named = mapped(chosen, UnitTexts(features, words), f"unit string, word bigint{types}")
        rows = named.repartition(tasks, _UNIT)
        count = CountTexts(features, schema.rows_per_unit)
    counts = mapped(rows, count, _COUNTED)
    order = (_FEATURE, _VALUE)
    whole = counts.groupBy(*order).agg(functions.sum(_COUNT).alias(_COUNT))
    ordered = whole.repartitionByRange(tasks, *order).sortWithinPartitions(*order)
    return mapped(ordered, pack, _PACKED)


@dataclass(frozen=True)
class CountTexts:
    """Counts the texts of a partition, in bounded memory: a text may come several times.

    Parameters
    ----------
    rows_per_unit
        Where `UnitTexts` come in: of every unit the rows with the smallest words count, at most so
        many. None where values come in, all of which count.
    """

    features: Sequence[Feature]
    rows_per_unit: int | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield texts with their counts."""
        names = _columns(self.features)
        with plain_values():
            if self.rows_per_unit is None:
                tables = (arrow_batches.values(batch, names) for batch in batches)
                texts = (_texts(each, self.features) for each in tables)
            else:
                rows = (arrow_batches.values(batch, (_UNIT, _WORD, *names)) for batch in batches)
                kept = bounded(rows, self.rows_per_unit, then=names)
                texts = (each for each in [kept] if each.height)
            held: list[pl.DataFrame] = []
            for frame in texts:
                for number, name in enumerate(names):
                    values = frame.get_column(name).drop_nulls().alias(_VALUE)
                    number_of = pl.lit(number, pl.Int32).alias(_FEATURE)
                    count = pl.col(_COUNT).cast(pl.Int64)
                    held.append(values.value_counts(name=_COUNT).select(number_of, _VALUE, count))
                if sum(each.height for each in held) > _MOST_HELD:
                    held = [_summed(held)]
                    if held[0].height > _MOST_HELD // 2:
                        yield from arrow_batches.spark_batches(held.pop())
            if held:
                yield from arrow_batches.spark_batches(_summed(held))


def _summed(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).group_by(_FEATURE, _VALUE).agg(pl.col(_COUNT).sum())


@dataclass(frozen=True)
class UnitTexts:
    """Gives every row its unit, a word that is the same in every attempt, and its texts."""

    features: Sequence[Feature]
    words: UnitWords

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows to be gathered by unit."""
        import pyarrow as pa

        names = (_UNIT, *_columns(self.features))

        def rows() -> Iterator[pl.DataFrame]:
            for batch in batches:
                values = arrow_batches.values(batch, names)
                units = unit_text(values.get_column(_UNIT)).alias(_UNIT)
                yield _texts(values, self.features).insert_column(0, units)

        with plain_values():
            for frame, words in self.words.steady(rows()):
                texts = {
                    name: frame.get_column(name).to_arrow().cast(pa.string()) for name in names
                }
                unit = texts.pop(_UNIT)
                yield arrow_batches.record_batch(unit=unit, word=pa.array(words), **texts)


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield every batch as one cell."""
    import pyarrow as pa

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        yield arrow_batches.record_batch(
            cells=pa.array([sink.getvalue().to_pybytes()], pa.binary())
        )


def _parts(cells: Iterable[bytes], features: Sequence[Feature], most_bytes: int) -> Iterator[Part]:
    """Yield packed counts as parts, those of one feature together until they are large."""
    import pyarrow as pa

    most = max(1, most_bytes // max(1, len(features)))
    held: list[pl.DataFrame] = []

    def part() -> Part:
        whole = pl.concat(held)
        held.clear()
        name = features[whole[0, _FEATURE]].name
        return Part(name, whole.get_column(_VALUE), whole.get_column(_COUNT).to_numpy())

    for cell in cells:
        with pa.ipc.open_stream(cell) as reader:
            counted = arrow_batches.values(reader.read_all(), (_FEATURE, _VALUE, _COUNT))
        for piece in counted.partition_by(_FEATURE, maintain_order=True):
            size = sum(each.estimated_size() for each in held)
            if held and (held[0][0, _FEATURE] != piece[0, _FEATURE] or size > most):
                yield part()
            held.append(piece)
    if held:
        yield part()


def _columns(features: Sequence[Feature]) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(len(features)))


def _texts(values: pl.DataFrame, features: Sequence[Feature]) -> pl.DataFrame:
    """Return what the values of every feature may be found under."""
    return pl.DataFrame(
        [
            candidates(values.get_column(name), feature).alias(name)
            for name, feature in zip(_columns(features), features, strict=True)
        ]
    )


@python_names()
def fit(df: DataFrame, schema: Schema | str | Path, **options: Any) -> PeGS:
    """Count a DataFrame on its workers.

    Parameters
    ----------
    df
        The confidential table. It is read several times, so it must give the same rows
        every time.
    schema
        A `Schema` or the name of its file.
    **options
        Those of `pegsynth.PeGS`: method, rows, budget, seed and so on. The methods are
        ``pegs``, ``pegs-rs``, ``pegs-capped``, which counts visits and uses no urn, and
        ``pegs-once``, which is drawn from by the sampler itself; ``auto`` takes one of these,
        and `pegsynth.spark.sample` draws from the first three.

    Returns
    -------
    PeGS
        The fitted sampler, on the driver. `pegsynth.spark.sample` lets the workers draw
        from it; its own `sample` draws here.
    """
    sampler = PeGS(**options)

    def count(settled: Settled, stream: RandomStream, begin: Callable[[], None]) -> Model:
        return count_model(df, settled, stream, begin=begin)

    return sampler.fit_with(count, schema, able=check_method)


def count_model(
    df: DataFrame,
    settled: Settled,
    stream: RandomStream,
    *,
    begin: Callable[[], None] = lambda: None,
    source: str = "the DataFrame",
    folder: bool = False,
) -> Model:
    """Count a DataFrame into a model, as `pegsynth.pipeline.fitting.fit` does with a table.

    Parameters
    ----------
    begin
        Called before the first row is read.
    source
        What messages call the table.
    folder
        Whether it was read from a folder or a glob. Then the schema says the order of the
        columns, and the type of those that the names of folders give, as it does for the
        local engine.
    """
    schema, request = settled.schema, settled.request
    check_session(df.sparkSession)
    check_plan(settled)
    check_names(df.columns, source)
    ledger = schema_ledger(schema, accept_unreviewed=request.accept_unreviewed_schema)
    # Columns are checked before any of them is read.
    Encoder(schema, source=source, columns=df.columns)
    named = folder_columns(df) if folder else ()
    declared = [name for name in schema.names if name not in named]
    types = arrow_batches.column_types(df, declared)
    arrow_batches.column_types(df, [schema.unit] if schema.unit else [])
    check_declared(schema, types, source=source)
    begin()
    words = UnitWords.of(df, stream) if schema.unit is not None else None
    shapes: Mapping[str, Any] = {}
    if wants_codec(schema):

        def counted() -> CodecCounts:
            """Count numbers on public grids where the rows are; texts when they are asked for."""
            grids: Mapping[str, Int64] = {}
            if wants_grids(schema):
                grid = grid_schema(schema)
                with ClusterCounts(df, grid, words, source=source) as counts:
                    grids = counts.totals(partial(GridCounter, grid)).counts()
            texts = candidate_parts(df, schema, words) if private_names(schema) else ()
            return CodecCounts(grids, texts)

        settled, codec, paid = pay_for_codec(settled, counted, stream)
        schema, shapes, ledger = settled.schema, codec.shapes, ledger.add(*paid)
        if words is not None:
            # The local engine reserves words once more for rows that are chosen already.
            stream.substreams(1)
    with ClusterCounts(df, schema, words, source=source, shapes=shapes) as counts:
        model = fit_counted(counts, settled, stream, ledger)
    columns = () if folder else tuple(df.columns)
    return replace(model, columns=columns, dtypes=types, shapes=shapes)


def check_method(method: AnyMethod) -> None:
    """Refuse a method that cannot be fitted from counts alone."""
    if not method.on_cluster:
        able = ", ".join(each.name for each in methods() if each.on_cluster)
        raise ParameterError(
            f"--method {method.name} works on the whole table in one memory; use {able} on Spark, "
            "or --engine local"
        )


def check_plan(settled: Settled) -> None:
    """Refuse what would bring the rows of the table to one machine."""
    method, plan = get(settled.request.method), settled.plan
    if settled.long is not None:
        raise ParameterError(
            "panels are folded on one machine, where the rows of a unit come together; use "
            "--engine local"
        )
    check_method(method)
    if plan is None:
        return
    if getattr(plan.options, "urn", False):
        raise ParameterError("--urn draws one chain on one machine; leave it out on Spark")
    if replaced_features(plan.options) or getattr(plan, "seed_pool", None) == "original":
        raise ParameterError(
            "--synthesize and original seed rows need the rows of the table on one machine; leave "
            "them out on Spark, or use --engine local"
        )
