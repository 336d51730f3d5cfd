"""`pegsynth.spark.fit`: a model from a DataFrame that never leaves its cluster."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegsynth.errors import ParameterError
from pegsynth.io.frames import check_names
from pegsynth.option_kinds import python_names
from pegsynth.options import PEGS_METHODS, FitOptions
from pegsynth.processors import usable_processors
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.spark import frames
from pegsynth.spark.counts import ClusterCounts
from pegsynth.spark.files import folder_columns
from pegsynth.spark.once import ClusterTable
from pegsynth.spark.session import check_session
from pegsynth.synthesizers.estimator import PeGS
from pegsynth.synthesizers.model import Model, fit_counts, fit_released, schema_ledger
from pegsynth.synthesizers.recipe import Recipe
from pegsynth.synthesizers.released_blocks import ONCE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@python_names()
def fit(df: DataFrame, schema: Schema | str | Path, **options: Any) -> PeGS:
    """Count a DataFrame on its workers.

    Parameters
    ----------
    df
        The confidential table. It is read once or twice, so it must give the same rows
        every time.
    schema
        A `Schema` or the name of its file.
    **options
        Those of `pegsynth.PeGS`: method, rows, budget, seed and so on. The methods are
        ``pegs``, ``pegs-rs``, ``pegs-capped``, which counts visits and uses no urn, and
        ``pegs-once``, which is drawn from by the sampler itself.

    Returns
    -------
    PeGS
        The fitted sampler, on the driver. `pegsynth.spark.sample` lets the workers draw
        from it; its own `sample` draws here.
    """
    if options.get("method") == "pegs-capped" and options.get("urn") is None:
        options = {**options, "urn": False}
    sampler = PeGS(**options)

    def count(book: Schema, recipe: Recipe, stream: RandomStream) -> Model:
        accept = sampler.accept_unreviewed
        return count_model(df, book, recipe, stream, accept_unreviewed=accept)

    return sampler.fit_with(count, schema)


def count_model(
    df: DataFrame,
    schema: Schema,
    plan: FitOptions | Recipe,
    stream: RandomStream,
    *,
    accept_unreviewed: bool = False,
    source: str = "the DataFrame",
    folder: bool = False,
) -> Model:
    """Count a DataFrame into a model, as `synthesizers.model.fit` does with a table.

    Parameters
    ----------
    source
        What messages call the table.
    folder
        Whether it was read from a folder or a glob. Then the schema says the order of the
        columns, and the type of those that the names of folders give, as it does for the
        local engine.
    """
    check_session(df.sparkSession)
    if isinstance(plan, Recipe):
        check_recipe(plan)
    check_names(df.columns, source)
    ledger = schema_ledger(schema, accept_unreviewed=accept_unreviewed)
    with ClusterCounts(df, schema, stream, source=source) as counts:
        if isinstance(plan, Recipe) and plan.draw.method == ONCE:
            table = ClusterTable(counts, schema)
            model = fit_released(table, schema, plan, ledger, stream, threads=usable_processors())
        else:
            model = fit_counts(counts, schema, plan, stream, ledger)
    named = folder_columns(df) if folder else ()
    types = frames.column_types(df, [name for name in schema.names if name not in named])
    return replace(model, columns=() if folder else tuple(df.columns), dtypes=types)


def check_recipe(recipe: Recipe) -> None:
    """Refuse what would bring the rows of the table to one machine."""
    draw = recipe.draw
    if draw.method not in (*PEGS_METHODS, ONCE):
        raise ParameterError(
            f"--method {draw.method} works on the whole table in one memory; use pegs, pegs-rs, "
            "pegs-capped or pegs-once on Spark, or --engine local"
        )
    if draw.urn:
        raise ParameterError("--urn draws one chain on one machine; leave it out on Spark")
    if draw.synthesize or recipe.seed_pool == "original":
        raise ParameterError(
            "--synthesize and original seed rows need the rows of the table on one machine; leave "
            "them out on Spark, or use --engine local"
        )
