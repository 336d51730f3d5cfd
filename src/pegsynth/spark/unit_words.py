"""The random word of every row of a table that lies in partitions (R12).

Of every unit the rows with the smallest words are kept. With a seed a row has the word that the
local engine gives it, by its number in the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.arrays import Int64
from pegsynth.random import RandomStream
from pegsynth.spark import arrow_batches
from pegsynth.spark.spark_session import mapped, plain_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from pegsynth.random import Words

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
        return cls(number, stream.shared_key, _first_rows(frame))

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


def _first_rows(frame: DataFrame) -> dict[int, int]:
    """Return the number of the first row of every partition."""
    one = arrow_batches.selected(frame, frame.columns[:1])
    with plain_errors("numbering the rows"):
        counted = mapped(one, CountRows(), "partition int, rows bigint").collect()
    first, rows = {}, 0
    for partition, count in sorted((row["partition"], row["rows"]) for row in counted):
        first[partition] = rows
        rows += count
    return first


class CountRows:
    """Counts the rows of a partition."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the partition and its rows."""
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
