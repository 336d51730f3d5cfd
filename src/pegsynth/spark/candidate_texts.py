"""How often every value occurs that may become a category, counted where the rows are (R29).

Each task counts the texts of its rows; Spark adds them up and puts them in order; sums come to the
driver a part at a time, in text order, so that neither holds all of them. Rows of units are
bounded first (R12), and every attempt of a task keeps the same ones: texts of one unit go to many
tasks, so that a task which is run again must not choose anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pegsynth.categories import MOST_BYTES, Part, private_names
from pegsynth.errors import ParameterError
from pegsynth.schema.dtypes import unit_text
from pegsynth.schema.feature import Feature
from pegsynth.schema.private_categories import candidates
from pegsynth.spark import arrow_batches
from pegsynth.spark.codes import bounded, plain_values
from pegsynth.spark.counts import most_tasks
from pegsynth.spark.spark_session import configured, mapped, plain_errors
from pegsynth.spark.unit_words import UnitWords

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from pegsynth.schema import Schema

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
        counted = _counted(frame, schema, features, words, most_tasks(spark))
        cells = counted.toLocalIterator()
        yield from _parts((bytes(row[0]) for row in cells), features, most_bytes)


def _counted(
    frame: DataFrame,
    schema: Schema,
    features: Sequence[Feature],
    words: UnitWords | None,
    tasks: int,
) -> DataFrame:
    """Return packed counts of texts, in order of features and texts."""
    from pyspark.sql import functions

    names = tuple(feature.name for feature in features)
    if schema.unit is None:
        chosen = arrow_batches.selected(frame, names).coalesce(tasks)
        counts = mapped(chosen, CountTexts(features), _COUNTED)
    elif words is None:
        raise ParameterError("rows of units are bounded by words; none were given")
    else:
        chosen = arrow_batches.selected(frame, (schema.unit, *names))
        columns = "".join(f", {name} string" for name in _columns(features))
        named = mapped(chosen, UnitTexts(features, words), f"unit string, word bigint{columns}")
        gathered = named.repartition(tasks, _UNIT)
        counts = mapped(gathered, BoundTexts(features, schema.rows_per_unit), _COUNTED)
    whole = counts.groupBy(_FEATURE, _VALUE).agg(functions.sum(_COUNT).alias(_COUNT))
    order = (_FEATURE, _VALUE)
    ordered = whole.repartitionByRange(tasks, *order).sortWithinPartitions(*order)
    return mapped(ordered, pack, _PACKED)


@dataclass(frozen=True)
class CountTexts:
    """Counts the texts of a partition, in bounded memory: a text may come several times."""

    features: Sequence[Feature]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield texts with their counts."""
        with plain_values():
            names = _columns(self.features)
            tables = (arrow_batches.values(batch, names) for batch in batches)
            yield from _counted_texts((_texts(each, self.features) for each in tables), names)


@dataclass(frozen=True)
class UnitTexts:
    """Gives every row its unit, a word that is the same in every attempt, and its texts."""

    features: Sequence[Feature]
    words: UnitWords

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows to be gathered by unit."""
        import pyarrow as pa

        with plain_values():
            rows = (self._rows(batch) for batch in batches)
            for frame, words in self.words.steady(rows):
                found = {
                    name: frame.get_column(name).to_arrow().cast(pa.string())
                    for name in frame.columns
                }
                yield arrow_batches.record_batch(
                    unit=found.pop(_UNIT), word=pa.array(words), **found
                )

    def _rows(self, batch: pa.RecordBatch) -> pl.DataFrame:
        values = arrow_batches.values(batch, (_UNIT, *_columns(self.features)))
        units = unit_text(values.get_column(_UNIT)).alias(_UNIT)
        return _texts(values, self.features).insert_column(0, units)


@dataclass(frozen=True)
class BoundTexts:
    """Keeps the rows of every unit that have the smallest words, at most k, and counts texts."""

    features: Sequence[Feature]
    rows_per_unit: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield texts with their counts."""
        names = _columns(self.features)
        rows = (arrow_batches.values(batch, (_UNIT, _WORD, *names)) for batch in batches)
        kept = bounded(rows, self.rows_per_unit, then=names)
        if kept.height:
            yield from _counted_texts([kept], names)


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
    for cell in cells:
        with pa.ipc.open_stream(cell) as reader:
            counted = arrow_batches.values(reader.read_all(), (_FEATURE, _VALUE, _COUNT))
        for piece in counted.partition_by(_FEATURE, maintain_order=True):
            size = sum(each.estimated_size() for each in held)
            if held and (held[0][0, _FEATURE] != piece[0, _FEATURE] or size > most):
                yield _part(held, features)
                held = []
            held.append(piece)
    if held:
        yield _part(held, features)


def _part(held: Sequence[pl.DataFrame], features: Sequence[Feature]) -> Part:
    whole = pl.concat(held)
    name = features[whole[0, _FEATURE]].name
    return Part(name, whole.get_column(_VALUE), whole.get_column(_COUNT).to_numpy())


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


def _counted_texts(
    frames: Iterable[pl.DataFrame], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield texts with their counts; what is held is bounded, so a text may come again."""
    held: list[pl.DataFrame] = []
    size = 0
    for frame in frames:
        for number, name in enumerate(names):
            values = frame.get_column(name).drop_nulls().alias(_VALUE)
            counted = values.value_counts(name=_COUNT)
            number_of = pl.lit(number, pl.Int32).alias(_FEATURE)
            held.append(counted.select(number_of, _VALUE, pl.col(_COUNT).cast(pl.Int64)))
            size += counted.height
        if size > _MOST_HELD:
            held = [_summed(held)]
            if held[0].height > _MOST_HELD // 2:
                yield from arrow_batches.spark_batches(held.pop())
            size = sum(each.height for each in held)
    if held:
        yield from arrow_batches.spark_batches(_summed(held))


def _summed(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).group_by(_FEATURE, _VALUE).agg(pl.col(_COUNT).sum())
