"""Rows drawn on the workers.

Chunks of `pegs` and `pegs-rs` are independent: a task draws its chunks, decodes them and
hands them to Spark's writer. A chain of `pegs-capped` runs on one worker from its first
row to its last. What a task draws is written once, by the attempt that Spark commits; no
drawn row goes through a shuffle before, because a shuffle may run a task again and mix
two draws.

With a seed every chunk takes the keystreams that the local engine gives it. Without one
every attempt of a task has a secure stream of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.codec import AgreeingDecoder, Decoder
from pegsynth.methods.gibbs.chains import CHUNK_ROWS, Chain, Machine, Schedule, Visits, run_chunk
from pegsynth.methods.gibbs.merging import Splitter
from pegsynth.methods.seed_rows import SeedPool
from pegsynth.random import RandomStream
from pegsynth.spark import arrow_batches
from pegsynth.spark.codes import partition_number

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast

COUNTED = "counts binary"
DRAWN = "bucket int, word bigint, place bigint, codes binary, chain int, piece int"
_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True)
class WorkerSampler:
    """What all draws share; confidential, since it holds the counts."""

    machine: Machine
    pool: SeedPool
    decoder: Decoder
    dtype: np.dtype[Any]
    counters: Sequence[NDArray[np.uint32]] = ()
    splitter: Splitter | None = None


@dataclass(frozen=True)
class Stream:
    """Where random words come from.

    Parameters
    ----------
    key
        Key of a seeded stream; None gives every attempt its own secure one.
    rows, places, levels, values
        First keystream of the rows, that of their order, that of categories inside levels,
        and that of numbers inside bins.
    """

    key: bytes | None
    rows: int
    values: int
    places: int = 0
    levels: int = 0

    def open(self) -> RandomStream:
        """Return the stream, on a worker."""
        return RandomStream.from_shared(self.key)


def decoded(
    sampler: WorkerSampler, codes: NDArray[Any], stream: RandomStream, numbers: Stream, first: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows as Spark wants them, levels and bins split with the words of their place."""
    decoder = sampler.decoder
    codes = _split(sampler, codes, stream, numbers, first)
    words = stream.substream(numbers.values, skip=decoder.words_needed(first))
    values = decoder.decode(codes, words.take(decoder.words_needed(len(codes))))
    yield from arrow_batches.spark_batches(values)


def _split(
    sampler: WorkerSampler, codes: NDArray[Any], stream: RandomStream, numbers: Stream, first: int
) -> NDArray[Any]:
    """Return codes with their levels split into categories."""
    codes, splitter = codes.astype(sampler.dtype), sampler.splitter
    if splitter is None:
        return codes
    words = stream.substream(numbers.levels, skip=splitter.words_needed(first))
    return splitter.split(codes, words.take(splitter.words_needed(len(codes))))


@dataclass(frozen=True)
class DrawChunks:
    """Draws and decodes the chunks of `pegs` and `pegs-rs` whose numbers come in (R3, R4)."""

    sampler: Broadcast[WorkerSampler]
    schedule: Schedule
    rows: int
    stream: Stream

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        sampler, stream = self.sampler.value, self.stream.open()
        visits = Visits(sampler.machine.entry_count if self.schedule.limit else 0)
        size = self.schedule.chunk_rows
        for chunk in (number for batch in batches for number in batch.column(0).to_pylist()):
            first = chunk * size
            words = stream.substream(self.stream.rows + chunk)
            codes = run_chunk(
                sampler.machine,
                sampler.pool,
                self.schedule,
                min(size, self.rows - first),
                words.take,
                visits,
            )
            yield from decoded(sampler, codes, stream, self.stream, first)


@dataclass(frozen=True)
class RunChains:
    """Runs the chains of `pegs-capped` whose numbers come in, each to its end (R5).

    Parameters
    ----------
    limits
        Visits of every entry that each chain owns.
    buckets
        Into how many parts the rows will be sorted.
    """

    sampler: Broadcast[WorkerSampler]
    rows: int
    limits: tuple[int, ...]
    sweeps: int
    buckets: int
    stream: Stream

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with a random place each, then the counters of the chain."""
        sampler, stream = self.sampler.value, self.stream.open()
        for number in (each for batch in batches for each in batch.column(0).to_pylist()):
            counters = sampler.counters[number].copy()
            words = stream.substream(self.stream.rows + number)
            chain = Chain.of(number, self.limits, self.rows, words, counters)
            for turn in range(-(-chain.rows_left // CHUNK_ROWS)):
                codes = chain.step(sampler.machine, sampler.pool, self.sweeps)
                first = place_of(number, turn, len(self.limits), self.rows)
                order = stream.substream(self.stream.places, skip=first).take(len(codes))
                yield self._drawn(codes.astype(sampler.dtype), order, first)
            yield from _counted(number, counters)

    def _drawn(self, codes: NDArray[Any], words: NDArray[np.uint64], first: int) -> pa.RecordBatch:
        import pyarrow as pa

        high = (words >> np.uint64(32)) * np.uint64(self.buckets)
        rows = len(codes)
        return arrow_batches.record_batch(
            bucket=pa.array((high >> np.uint64(32)).astype(np.int32)),
            word=pa.array((words ^ _SIGN).view(np.int64)),
            place=pa.array(np.arange(first, first + rows)),
            codes=arrow_batches.binary_rows(codes),
            chain=pa.nulls(rows, pa.int32()),
            piece=pa.nulls(rows, pa.int32()),
        )


def _counted(chain: int, counters: NDArray[np.uint32]) -> Iterator[pa.RecordBatch]:
    """Yield the counters of a chain in pieces."""
    import pyarrow as pa

    for piece, raw in enumerate(arrow_batches.cut(counters)):
        yield arrow_batches.record_batch(
            bucket=pa.nulls(1, pa.int32()),
            word=pa.nulls(1, pa.int64()),
            place=pa.nulls(1, pa.int64()),
            codes=pa.array([raw], pa.binary()),
            chain=pa.array([chain], pa.int32()),
            piece=pa.array([piece], pa.int32()),
        )


def place_of(chain: int, turn: int, chains: int, rows: int) -> int:
    """Return the first place of a chunk when the chains take turns, chunk by chunk."""
    lengths = [rows // chains + (each < rows % chains) for each in range(chains)]
    before = sum(min(length, turn * CHUNK_ROWS) for length in lengths)
    now = sum(min(CHUNK_ROWS, max(length - turn * CHUNK_ROWS, 0)) for length in lengths[:chain])
    return before + now


@dataclass(frozen=True)
class CountBins:
    """Counts drawn rows by the bins of measured numbers, in the order of `DecodeRows`.

    The clipped sum of a number is about a whole table, and how rows come to the workers must not
    change a value. Without a seed levels are split anew, by the same law.
    """

    sampler: Broadcast[WorkerSampler]
    first: Sequence[int]
    stream: Stream

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts of every batch."""
        import pyarrow as pa

        sampler, stream = self.sampler.value, self.stream.open()
        done = self.first[partition_number()]
        for batch in batches:
            codes = arrow_batches.matrix_of(
                batch.column(0), sampler.machine.features, sampler.dtype
            )
            codes = _split(sampler, codes, stream, self.stream, done)
            done += len(codes)
            if isinstance(sampler.decoder, AgreeingDecoder):
                counts = sampler.decoder.counted(codes)
                yield arrow_batches.record_batch(counts=pa.array([counts.tobytes()], pa.binary()))


@dataclass(frozen=True)
class DecodeRows:
    """Decodes drawn rows that come in the order in which they are to be written.

    Parameters
    ----------
    first
        Number of the first row of every bucket.
    """

    sampler: Broadcast[WorkerSampler]
    first: Sequence[int]
    stream: Stream

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as values."""
        sampler, stream = self.sampler.value, self.stream.open()
        done = self.first[partition_number()]
        columns = sampler.machine.features
        for batch in batches:
            codes = arrow_batches.matrix_of(batch.column(0), columns, sampler.dtype)
            yield from decoded(sampler, codes, stream, self.stream, done)
            done += len(codes)
