"""Tables out of a session: charged, drawn, decoded, weighted and completed.

In goes a session, which spends a budget; out come frames in the columns and types of the
original table. Nothing is written here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.arrays import Float64
from pegsynth.completion import check_completable, completed_frames
from pegsynth.errors import ParameterError
from pegsynth.inference.replicated import WEIGHT
from pegsynth.methods.base import Model
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.session import Session
from pegsynth.numbers import value_decoder
from pegsynth.options import How
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.codec import Decoder
from pegsynth.schema.dialect import Dialect

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes
    from pegsynth.released.replicates import WeightedRows


def decoder_of(model: Model, how: How | None = None, *, listed: bool = False) -> Decoder:
    """Return what turns codes into the columns and types of the original table.

    Values inside bins are drawn one by one; `decoded` lets them follow a model of all features
    where they were measured.
    """
    return Decoder(
        model.schema,
        how="labels" if how == "labels" else "values",
        columns=model.columns or None,
        dtypes=model.dtypes,
        listed=listed,
        shapes=model.shapes,
    )


def decoded(
    model: Model,
    chunks: Iterator[Codes],
    stream: RandomStream,
    *,
    how: How | None = None,
    listed: bool = False,
    rows: int | None = None,
    progress: Progress = quiet,
) -> Iterator[pl.DataFrame]:
    """Yield code chunks as frames.

    Parameters
    ----------
    how
        ``model``: values inside bins follow a model that is fitted to the first synthetic
        codes; ``values``: they are drawn one by one; ``labels``: bins are written. None: a
        model where values were measured, else values.
    listed
        As for `Decoder`.
    """
    check_decoding(how, measured=bool(model.shapes))
    decoder = decoder_of(model, how, listed=listed)
    if model.shapes and how in (None, "model"):
        first = next(chunks)
        chunks = chain([first], chunks)
        decoder = value_decoder(
            model.schema,
            model.shapes,
            first,
            stream,
            columns=model.columns or None,
            dtypes=model.dtypes,
            listed=listed,
        )
    words = stream.substream()
    done = 0
    progress("rows", 0, rows)
    for codes in chunks:
        yield decoder.decode(codes, words.take(decoder.words_needed(len(codes))))
        done += len(codes)
        progress("rows", done, rows)


def drawn_frames(
    session: Session,
    rows: int,
    datasets: int = 1,
    *,
    how: How | None = None,
    listed: bool = False,
    progress: Progress = quiet,
) -> list[Iterator[pl.DataFrame]]:
    """Charge, draw and decode K tables of n rows, each a stream of frames.

    Where replicate weights were asked for, the one table has them as its last columns.
    """
    model, stream = session.model, session.stream
    told: dict[str, Any] = {"how": how, "listed": listed, "rows": rows, "progress": progress}
    count = getattr(session.plan.options, "replicates", None)
    if count is None:
        return [decoded(model, chunks, stream, **told) for chunks in session.draw(rows, datasets)]
    _check_weight_names(model.schema, count)
    return [_weighted(model, session.draw_weighted(rows, count), stream, told)]


def _weighted(
    model: Model, lots: Iterator[WeightedRows], stream: RandomStream, told: Mapping[str, Any]
) -> Iterator[pl.DataFrame]:
    """Yield weighted rows as frames; the weights follow the rows that were read ahead."""
    waiting: deque[Float64] = deque()

    def codes() -> Iterator[Codes]:
        for lot in lots:
            waiting.append(lot.weights)
            yield lot.codes

    for frame in decoded(model, codes(), stream, **told):
        weights = waiting.popleft()
        names = weight_names(len(weights) - 1)
        yield frame.with_columns(
            pl.Series(name, line) for name, line in zip(names, weights, strict=True)
        )


def weight_names(count: int) -> list[str]:
    """Return the names of the weights: of the published counts, and of K replicates."""
    return [WEIGHT, *(f"{WEIGHT}_{number}" for number in range(1, count + 1))]


def published_schema(session: Session) -> Schema:
    """Return the codebook of the tables: weights stand in it as columns that are no features."""
    schema, count = session.model.schema, getattr(session.plan.options, "replicates", None)
    if count is None:
        return schema
    weights = (Feature(name, role="identifier") for name in weight_names(count))
    return replace(schema, columns=(*schema.columns, *weights))


def _check_weight_names(schema: Schema, count: int) -> None:
    taken = sorted(set(schema.names) & set(weight_names(count)))
    if taken:
        raise ParameterError(
            f"--replicates adds columns {WEIGHT}, {WEIGHT}_1, .., and the table has a column "
            f"{taken[0]!r} already; give that another name"
        )


def check_decoding(how: How | None, *, measured: bool) -> None:
    """Refuse a model of values inside bins where no values were measured."""
    if how == "model" and not measured:
        raise ParameterError(
            '--decode model goes with numbers that were measured: state edges = "private" or '
            'inside = "measured" in the schema'
        )


def check_completes(model: Model, given: Mapping[str, str]) -> None:
    """Refuse completed tables of a model where they would mean nothing (R23)."""
    check_completable(model.schema, given)
    options = model.plan.options if model.plan is not None else None
    if options is not None and replaced_features(options):
        raise ParameterError(
            "--complete imputes from synthetic rows, and this model keeps original ones; leave it "
            "out"
        )
    if getattr(options, "replicates", None) is not None:
        raise ParameterError(
            "--complete does not go with replicate weights; state --datasets instead"
        )


def completed_versions(
    session: Session,
    frame: pl.DataFrame,
    number: int,
    versions: int,
    *,
    threads: int = 1,
    progress: Progress = quiet,
) -> list[pl.DataFrame]:
    """Return a drawn table with its missing values imputed, r times, from its own rows (R23).

    What is drawn otherwise stays the same, whether tables are completed or not.

    Parameters
    ----------
    number
        Which of the tables it is, from 1 on.
    versions
        r.
    """
    # Values in a dataframe are not written in the dialect of files.
    schema = replace(session.model.schema, dialect=Dialect())
    stream = session.stream.aside(f"table {number}")
    return completed_frames(
        frame, schema, stream, imputations=versions, threads=threads, progress=progress
    )
