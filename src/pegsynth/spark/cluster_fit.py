"""`pegsynth.spark.fit`: a model from a DataFrame that never leaves its cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.arrays import Int64
from pegsynth.categories import private_names
from pegsynth.errors import ParameterError
from pegsynth.estimator import PeGS
from pegsynth.io.caller_frames import check_names
from pegsynth.methods import get, methods
from pegsynth.methods.base import Method, Model
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.ledgers import schema_ledger
from pegsynth.numbers import CodecCounts, GridCounter, grid_schema, wants_codec, wants_grids
from pegsynth.option_kinds import python_names
from pegsynth.pipeline import Settled, fit_counted, left_over, pay_for_codec, with_codec
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.codec import Encoder
from pegsynth.schema.declared_types import check_declared
from pegsynth.spark import arrow_batches
from pegsynth.spark.candidate_texts import candidate_parts
from pegsynth.spark.counts import ClusterCounts
from pegsynth.spark.parquet_files import folder_columns
from pegsynth.spark.spark_session import check_session
from pegsynth.spark.unit_words import UnitWords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    """Count a DataFrame into a model, as `pegsynth.pipeline.fit` does with a table.

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
        codec = pay_for_codec(
            settled, partial(_codec_counts, df, schema, words, source=source), stream
        )
        schema, shapes, settled = codec.schema, codec.shapes, with_codec(settled, codec)
        ledger = ledger.add(*codec.events, *left_over(settled))
        if words is not None:
            # The local engine reserves words once more for rows that are chosen already.
            stream.substreams(1)
    with ClusterCounts(df, schema, words, source=source, shapes=shapes) as counts:
        model = fit_counted(counts, settled, stream, ledger)
    columns = () if folder else tuple(df.columns)
    return replace(model, columns=columns, dtypes=types, shapes=shapes)


def _codec_counts(
    df: DataFrame, schema: Schema, words: UnitWords | None, *, source: str
) -> CodecCounts:
    """Count numbers on their public grids where the rows are; texts when they are asked for."""
    grids: Mapping[str, Int64] = {}
    if wants_grids(schema):
        grid = grid_schema(schema)
        with ClusterCounts(df, grid, words, source=source) as counts:
            counter: GridCounter = counts.totals(partial(GridCounter, grid))
        grids = counter.counts()
    if not private_names(schema):
        return CodecCounts(grids)
    return CodecCounts(grids, candidate_parts(df, schema, words))


def check_method(method: Method[Any, Any]) -> None:
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
