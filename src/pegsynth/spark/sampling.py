"""`pegsynth.spark.sample`: rows drawn on a cluster, written once, then read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pegsynth.api.fitted import PeGS
from pegsynth.codec.codec import AgreeingDecoder
from pegsynth.errors import ParameterError
from pegsynth.methods import methods
from pegsynth.methods.base import AnyMethod, Plan
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.gibbs.chains import chain_limits
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
from pegsynth.methods.gibbs.method import GibbsMethod
from pegsynth.methods.gibbs.samplers import (
    BlockSampler,
    CappedSampler,
    RestartedSampler,
    UrnSampler,
)
from pegsynth.methods.session import Session
from pegsynth.options import How
from pegsynth.options._kinds import check_whole, python_names
from pegsynth.pipeline.drawn_tables import apart_decoder_of
from pegsynth.spark import arrow_batches
from pegsynth.spark.cluster_files import new_folder
from pegsynth.spark.cluster_fit import check_method
from pegsynth.spark.counts import TASKS_PER_CORE
from pegsynth.spark.spark_session import (
    check_session,
    configured,
    mapped,
    plain_errors,
    refuse_speculation,
)
from pegsynth.spark.worker_draws import (
    COUNTED,
    DRAWN,
    CountBins,
    DecodeRows,
    DrawChunks,
    RunChains,
    Stream,
    WorkerSampler,
)

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

_MOST_ROWS_PER_TASK = 1 << 22


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
            job = _Job(session, rows, spark, folder, how, tasks)
            if isinstance(sampler, CappedSampler):
                _draw_capped(job, sampler)
            else:
                _draw_chunks(job, sampler)


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


@dataclass(frozen=True)
class _Job:
    """Rows to be drawn on a cluster, in so many tasks, into a folder."""

    session: Session
    rows: int
    spark: SparkSession
    folder: str
    how: How | None
    tasks: int


def _draw_chunks(job: _Job, restarted: RestartedSampler) -> None:
    session, spark, rows = job.session, job.spark, job.rows
    stream, schedule = session.stream, restarted.schedule
    chunks = -(-rows // schedule.chunk_rows)
    words = Stream(
        stream.shared_key,
        rows=stream.substreams(chunks),
        levels=stream.substreams(1) if restarted.splitter else 0,
        values=stream.substreams(1),
    )
    sampler = _sampler(session, restarted, job.how)
    with _shared(spark, sampler) as shared:
        task = DrawChunks(shared, schedule, rows, words)
        types = arrow_batches.spark_types(sampler.decoder.schema)
        numbers = spark.range(0, chunks, 1, min(job.tasks, chunks))
        _write(mapped(numbers, task, types), f"{job.folder}/table")


def _draw_capped(job: _Job, capped: CappedSampler) -> None:
    """Run the chains and write what they drew; then put the rows in random order (R13)."""
    session, spark, rows = job.session, job.spark, job.rows
    folder, stream, chains = job.folder, session.stream, capped.chains
    words = Stream(
        stream.shared_key,
        rows=stream.substreams(chains),
        places=stream.substreams(1),
        levels=stream.substreams(1) if capped.splitter else 0,
        values=stream.substreams(1),
    )
    buckets = max(1, min(job.tasks, -(-rows // (1 << 13))))
    sampler = _sampler(session, capped, job.how)
    with _shared(spark, sampler) as shared:
        limits = chain_limits(capped.visits, chains)
        task = RunChains(shared, rows, limits, capped.sweeps, buckets, words)
        _write(mapped(spark.range(0, chains, 1, chains), task, DRAWN), f"{folder}/drawn")
        drawn = spark.read.parquet(f"{folder}/drawn")
        counted = drawn.where("chain is not null").select("chain", "piece", "codes").toArrow()
        in_bucket = drawn.where("chain is null").groupBy("bucket").count().collect()
        sizes = np.zeros(buckets + 1, dtype=np.int64)
        for row in in_bucket:
            sizes[row["bucket"] + 1] = row["count"]
        first = np.cumsum(sizes).tolist()
        ordered = (
            drawn.where("chain is null")
            .repartitionById(buckets, "bucket")
            .sortWithinPartitions("word", "place")
            .select("codes")
        )
        with configured(spark, arrow_batches.batch_settings(sampler.machine.features)):
            if isinstance(sampler.decoder, AgreeingDecoder):
                found = mapped(ordered, CountBins(shared, first, words), COUNTED).toArrow()
                sampler = agreed(sampler, found.column("counts").to_pylist())
            with _shared(spark, sampler) as agreeing:
                decode = DecodeRows(agreeing, first, words)
                types = arrow_batches.spark_types(sampler.decoder.schema)
                _write(mapped(ordered, decode, types), f"{folder}/table")
    for chain, counters in enumerate(session.spent.counters):
        own = sorted(
            (row["piece"], row["codes"]) for row in counted.to_pylist() if row["chain"] == chain
        )
        counters[:] = np.frombuffer(b"".join(raw for _, raw in own), dtype=np.uint32)


def _sampler(session: Session, drawing: BlockSampler, how: How | None) -> WorkerSampler:
    return WorkerSampler(
        drawing.machine,
        drawing.pool,
        apart_decoder_of(session.model, how),
        session.model.schema.code_dtype,
        session.spent.counters,
        drawing.splitter,
    )


def agreed(sampler: WorkerSampler, counted: Sequence[bytes]) -> WorkerSampler:
    """Return a sampler whose values meet clipped sums in a table with these counts of bins."""
    if not isinstance(sampler.decoder, AgreeingDecoder) or not counted:
        return sampler
    counts = np.sum([np.frombuffer(each, dtype=np.int64) for each in counted], axis=0)
    return replace(sampler, decoder=sampler.decoder.agreeing(counts))


@contextmanager
def _shared(spark: SparkSession, sampler: WorkerSampler) -> Iterator[Broadcast[WorkerSampler]]:
    """Send the sampler to the workers, and let them forget it."""
    shared: Broadcast[WorkerSampler] = spark.sparkContext.broadcast(sampler)
    try:
        yield shared
    finally:
        shared.destroy()


def _write(frame: Any, path: str) -> None:
    """Write a frame through the committer that moves files when the whole job is done."""
    once = {"mapreduce.fileoutputcommitter.algorithm.version": "1", "compression": "zstd"}
    frame.write.options(**once).parquet(path)
