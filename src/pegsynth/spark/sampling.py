"""`pegsynth.spark.sample`: rows drawn on a cluster, written once, then read.

Chunks of `pegs` and `pegs-rs` are independent: a task draws its chunks, decodes them and
passes them to Spark's writer. A chain of `pegs-capped` runs on one worker from its first
row to its last. What a task draws is written once, by the attempt that Spark commits; no
drawn row goes through a shuffle before, because a shuffle may run a task again and mix
two draws.

With a seed every chunk takes the keystreams that the local engine gives it. Without one
every attempt of a task has a secure stream of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.api.estimator import PeGS
from pegsynth.codec.codec import Decoder
from pegsynth.codec.value_decoding import AgreeingDecoder
from pegsynth.errors import ParameterError
from pegsynth.methods import methods
from pegsynth.methods.base import AnyMethod, Plan
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.gibbs.chains import (
    CHUNK_ROWS,
    Chain,
    Machine,
    Schedule,
    Visits,
    chain_limits,
    run_chunk,
)
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
from pegsynth.methods.gibbs.merging import Splitter
from pegsynth.methods.gibbs.method import GibbsMethod
from pegsynth.methods.gibbs.samplers import (
    BlockSampler,
    CappedSampler,
    RestartedSampler,
    UrnSampler,
)
from pegsynth.methods.seed_rows import SeedPool
from pegsynth.methods.session import Session
from pegsynth.options import How
from pegsynth.options._kinds import check_whole, python_names
from pegsynth.pipeline.drawn_tables import apart_decoder_of
from pegsynth.random import RandomStream
from pegsynth.spark import arrow_batches
from pegsynth.spark.cluster_files import new_folder
from pegsynth.spark.cluster_fit import check_method
from pegsynth.spark.codes import partition_number, signed
from pegsynth.spark.counts import TASKS_PER_CORE
from pegsynth.spark.spark_session import (
    check_session,
    configured,
    mapped,
    plain_errors,
    refuse_speculation,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

_MOST_ROWS_PER_TASK = 1 << 22
COUNTED = "counts binary"
DRAWN = "bucket int, word bigint, place bigint, codes binary, chain int"


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
        First keystream of the rows, that of their order, that of categories inside merged ones, and
        that of numbers inside bins.
    """

    key: bytes | None
    rows: int
    values: int
    places: int = 0
    levels: int = 0

    def open(self) -> RandomStream:
        """Return the stream, on a worker."""
        return RandomStream.from_shared(self.key)


def split(
    sampler: WorkerSampler, codes: NDArray[Any], stream: RandomStream, words: Stream, first: int
) -> NDArray[Any]:
    """Return codes with their merged categories split, by the words of their place."""
    codes, splitter = codes.astype(sampler.dtype), sampler.splitter
    if splitter is None:
        return codes
    own = stream.substream(words.levels, skip=splitter.words_needed(first))
    return splitter.split(codes, own.take(splitter.words_needed(len(codes))))


def decoded(
    sampler: WorkerSampler, codes: NDArray[Any], stream: RandomStream, words: Stream, first: int
) -> Iterator[pa.RecordBatch]:
    """Yield rows as Spark wants them, bins split with the words of their place, too."""
    decoder, codes = sampler.decoder, split(sampler, codes, stream, words, first)
    own = stream.substream(words.values, skip=decoder.words_needed(first))
    values = decoder.decode(codes, own.take(decoder.words_needed(len(codes))))
    yield from arrow_batches.spark_batches(values)


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
        """Yield the rows with a random place each, then the counters of the chain in pieces."""
        import pyarrow as pa

        sampler, stream = self.sampler.value, self.stream.open()
        for number in (each for batch in batches for each in batch.column(0).to_pylist()):
            counters = sampler.counters[number].copy()
            words = stream.substream(self.stream.rows + number)
            chain = Chain.of(number, self.limits, self.rows, words, counters)
            for turn in range(-(-chain.rows_left // CHUNK_ROWS)):
                codes = chain.step(sampler.machine, sampler.pool, self.sweeps)
                first = place_of(number, turn, len(self.limits), self.rows)
                order = stream.substream(self.stream.places, skip=first).take(len(codes))
                high = (order >> np.uint64(32)) * np.uint64(self.buckets)
                yield arrow_batches.record_batch(
                    bucket=pa.array((high >> np.uint64(32)).astype(np.int32)),
                    word=pa.array(signed(order)),
                    place=pa.array(np.arange(first, first + len(codes))),
                    codes=arrow_batches.binary_rows(codes.astype(sampler.dtype)),
                    chain=pa.nulls(len(codes), pa.int32()),
                )
            for piece, raw in enumerate(arrow_batches.cut(counters)):
                yield arrow_batches.record_batch(
                    bucket=pa.nulls(1, pa.int32()),
                    word=pa.nulls(1, pa.int64()),
                    place=pa.array([piece], pa.int64()),
                    codes=pa.array([raw], pa.binary()),
                    chain=pa.array([number], pa.int32()),
                )


def place_of(chain: int, turn: int, chains: int, rows: int) -> int:
    """Return the first place of a chunk when the chains take turns, chunk by chunk."""
    lengths = [rows // chains + (each < rows % chains) for each in range(chains)]
    before = sum(min(length, turn * CHUNK_ROWS) for length in lengths)
    now = sum(min(CHUNK_ROWS, max(length - turn * CHUNK_ROWS, 0)) for length in lengths[:chain])
    return before + now


@dataclass(frozen=True)
class DecodeRows:
    """Decodes drawn rows that come in the order in which they are to be written.

    Parameters
    ----------
    first
        Number of the first row of every bucket.
    counting
        Whether the bins of measured numbers are counted instead. A clipped sum of a number is about
        a whole table, and how rows come to the workers must not change a value. Without a seed
        merged categories are split again, by the same distribution.
    """

    sampler: Broadcast[WorkerSampler]
    first: Sequence[int]
    stream: Stream
    counting: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as values, or the counts of every batch."""
        import pyarrow as pa

        sampler, stream = self.sampler.value, self.stream.open()
        done, columns = self.first[partition_number()], sampler.machine.features
        for batch in batches:
            codes = arrow_batches.matrix_of(batch.column(0), columns, sampler.dtype)
            if not self.counting:
                yield from decoded(sampler, codes, stream, self.stream, done)
            elif isinstance(sampler.decoder, AgreeingDecoder):
                counts = sampler.decoder.counted(split(sampler, codes, stream, self.stream, done))
                yield arrow_batches.record_batch(counts=pa.array([counts.tobytes()], pa.binary()))
            done += len(codes)


@python_names()
def sample(
    model: PeGS,
    rows: int,
    spark: SparkSession,
    *,
    path: str | Path,
    partitions: int | None = None,
) -> DataFrame:
    """Draw rows on the workers and write them as Parquet; return a frame that reads them.

    The rows are drawn once, before this returns. They are charged to the model first, and
    stay charged if the cluster fails.

    Parameters
    ----------
    model
        A fitted `PeGS`, from `pegsynth.spark.fit` or fitted on this machine.
    path
        Folder to write, where all workers can. Nothing may be there yet.
    partitions
        Tasks to cut the work into; it changes no row.
    """
    write_rows(model.session, rows, spark, str(path), how=model.how, partitions=partitions)
    return spark.read.parquet(str(path))


def write_rows(
    session: Session,
    rows: int,
    spark: SparkSession,
    path: str,
    *,
    how: How | None = None,
    partitions: int | None = None,
    before: Callable[[], None] | None = None,
) -> None:
    """Charge, draw and write one table.

    Parameters
    ----------
    before
        Called when the table is complete and before it becomes visible.
    """
    check_session(spark)
    refuse_speculation(spark)
    sampler = check_sampler(session)
    check_whole("rows", rows)
    tasks = partitions or max(
        TASKS_PER_CORE * spark.sparkContext.defaultParallelism, rows // _MOST_ROWS_PER_TASK
    )
    with new_folder(spark, path, before=before) as folder:
        session.charge(rows)
        with session.drawing(), plain_errors("drawing rows"):
            job = _Job(spark, folder, tasks, worker_sampler(session, sampler, how))
            if isinstance(sampler, CappedSampler):
                _draw_capped(session, rows, sampler, job)
            else:
                _draw_chunks(session, rows, sampler, job)


def check_drawn(method: AnyMethod) -> None:
    """Refuse a method whose rows are drawn on one machine."""
    check_method(method)
    if not isinstance(method, GibbsMethod):
        raise _drawn_here(method.name)


def check_drawing(plan: Plan) -> None:
    """Refuse, before anything is counted, a plan whose rows cannot be drawn apart."""
    if not isinstance(plan, GibbsPlan) or replaced_features(plan.options):
        raise _drawn_here(plan.method)
    if getattr(plan.options, "urn", False):
        raise _one_chain()


def check_sampler(session: Session) -> RestartedSampler | CappedSampler:
    """Return the sampler of a session, refusing one whose rows cannot be drawn apart."""
    sampler = session.sampler
    if session.model.schema.panel is not None:
        raise ParameterError("rows of a panel are unfolded on one machine; use --engine local")
    if isinstance(sampler, UrnSampler):
        raise _one_chain()
    if not isinstance(sampler, RestartedSampler | CappedSampler):
        raise _drawn_here(session.plan.method)
    return sampler


def _drawn_here(method: str) -> ParameterError:
    able = ", ".join(each.name for each in methods() if isinstance(each, GibbsMethod))
    return ParameterError(
        f"rows of {method} are drawn on one machine: fit a model, on Spark or here, and sample it "
        f"with --engine local; or name a method whose rows workers draw ({able})"
    )


def _one_chain() -> ParameterError:
    return ParameterError(
        "urns draw one chain on one machine; use --engine local, or fit with --no-urn"
    )


def worker_sampler(
    session: Session, drawing: BlockSampler, how: How | None = None
) -> WorkerSampler:
    """Return what the workers draw with."""
    return WorkerSampler(
        drawing.machine,
        drawing.pool,
        apart_decoder_of(session.model, how),
        session.model.schema.code_dtype,
        session.spent.counters,
        drawing.splitter,
    )


@dataclass(frozen=True)
class _Job:
    """Rows to be drawn on a cluster, in so many tasks, into a folder."""

    spark: SparkSession
    folder: str
    tasks: int
    sampler: WorkerSampler

    @contextmanager
    def shared(self, sampler: WorkerSampler) -> Iterator[Broadcast[WorkerSampler]]:
        """Send a sampler to the workers, and let them forget it."""
        shared: Broadcast[WorkerSampler] = self.spark.sparkContext.broadcast(sampler)
        try:
            yield shared
        finally:
            shared.destroy()

    def write(self, frame: DataFrame, name: str) -> None:
        """Write a frame through the committer that moves files when the whole job is done."""
        once = {"mapreduce.fileoutputcommitter.algorithm.version": "1", "compression": "zstd"}
        frame.write.options(**once).parquet(f"{self.folder}/{name}")

    def write_values(self, frame: DataFrame, task: arrow_batches.Task) -> None:
        """Write what a task decodes as the table."""
        types = arrow_batches.spark_types(self.sampler.decoder.schema)
        self.write(mapped(frame, task, types), "table")


def _draw_chunks(session: Session, rows: int, sampler: RestartedSampler, job: _Job) -> None:
    stream, schedule = session.stream, sampler.schedule
    chunks = -(-rows // schedule.chunk_rows)
    words = Stream(
        stream.shared_key,
        rows=stream.substreams(chunks),
        levels=stream.substreams(1) if sampler.splitter else 0,
        values=stream.substreams(1),
    )
    with job.shared(job.sampler) as shared:
        numbers = job.spark.range(0, chunks, 1, min(job.tasks, chunks))
        job.write_values(numbers, DrawChunks(shared, schedule, rows, words))


def _draw_capped(session: Session, rows: int, sampler: CappedSampler, job: _Job) -> None:
    """Run the chains and write what they drew; then put the rows in random order (R13)."""
    stream, chains = session.stream, sampler.chains
    words = Stream(
        stream.shared_key,
        rows=stream.substreams(chains),
        places=stream.substreams(1),
        levels=stream.substreams(1) if sampler.splitter else 0,
        values=stream.substreams(1),
    )
    buckets = max(1, min(job.tasks, -(-rows // (1 << 13))))
    with job.shared(job.sampler) as shared:
        limits = chain_limits(sampler.visits, chains)
        task = RunChains(shared, rows, limits, sampler.sweeps, buckets, words)
        job.write(mapped(job.spark.range(0, chains, 1, chains), task, DRAWN), "drawn")
        every = job.spark.read.parquet(f"{job.folder}/drawn")
        counted = every.where("chain is not null").select("chain", "place", "codes").toArrow()
        drawn = every.where("chain is null")
        sizes = np.zeros(buckets + 1, dtype=np.int64)
        for row in drawn.groupBy("bucket").count().collect():
            sizes[row["bucket"] + 1] = row["count"]
        first = np.cumsum(sizes).tolist()
        by_bucket = drawn.repartitionById(buckets, "bucket")
        ordered = by_bucket.sortWithinPartitions("word", "place").select("codes")
        decode = DecodeRows(shared, first, words)
        decoder = job.sampler.decoder
        with configured(job.spark, arrow_batches.batch_settings(job.sampler.machine.features)):
            if isinstance(decoder, AgreeingDecoder):
                found = mapped(ordered, replace(decode, counting=True), COUNTED).toArrow()
                job = replace(job, sampler=agreed(job.sampler, found.column("counts").to_pylist()))
            with job.shared(job.sampler) as agreeing:
                job.write_values(ordered, replace(decode, sampler=agreeing))
    for chain, counters in enumerate(session.spent.counters):
        own = [row for row in counted.to_pylist() if row["chain"] == chain]
        raw = b"".join(row["codes"] for row in sorted(own, key=itemgetter("place")))
        counters[:] = np.frombuffer(raw, dtype=np.uint32)


def agreed(sampler: WorkerSampler, counted: Sequence[bytes]) -> WorkerSampler:
    """Return a sampler whose values meet clipped sums in a table with these counts of bins."""
    if not isinstance(sampler.decoder, AgreeingDecoder) or not counted:
        return sampler
    counts = np.sum([np.frombuffer(each, dtype=np.int64) for each in counted], axis=0)
    return replace(sampler, decoder=sampler.decoder.agreeing(counts))
