"""Tables out of a session: charged, drawn, decoded, weighted and completed.

In goes a session, which spends a budget; out come frames in the columns and types of the
original table. Nothing is written here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pegsynth.codec.codec import AgreeingDecoder, Decoder, value_decoder
from pegsynth.codec.folding import Folding
from pegsynth.codec.unfolding import (
    Unfolding,
    check_unfolds,
    unfolded,
    with_types,
)
from pegsynth.errors import ParameterError
from pegsynth.methods.base import Model
from pegsynth.methods.drawn_features import replaced_features
from pegsynth.methods.session import Session
from pegsynth.options import WEIGHT, How, ReplicateOptions, RowOptions
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.wide_schema import long_schema

if TYPE_CHECKING:
    from pegsynth.codec.bin_shape import Shape
    from pegsynth.kernels.arrays import Float64
    from pegsynth.methods.base import Codes
    from pegsynth.methods.released import Calibration, Released

WEIGHT_DIGITS = 6


def decoder_of(model: Model, how: How | None = None, *, listed: bool = False) -> Decoder:
    """Return what turns codes into the columns and types of the original table.

    Values inside bins are drawn one by one; `decoded` lets them follow a model of all features
    where they were measured.
    """
    return Decoder(
        model.schema,
        how="labels" if how == "labels" else "values",
        columns=_drawn_columns(model),
        dtypes=model.dtypes,
        listed=listed,
        shapes=model.shapes,
    )


def apart_decoder_of(model: Model, how: How | None = None) -> Decoder:
    """Return a decoder for parts of a table that are decoded apart from each other.

    Values inside bins are drawn one by one, and those that were measured meet their clipped sum.
    """
    if not model.shapes or how == "labels":
        return decoder_of(model, how)
    return AgreeingDecoder(
        model.schema, model.shapes, columns=_drawn_columns(model), dtypes=model.dtypes
    )


def _drawn_columns(model: Model) -> tuple[str, ...] | None:
    """Return the order of columns; those of a folded panel stand as in its codebook."""
    return None if model.schema.panel is not None else model.columns or None


def listed_columns(model: Model, how: How | None, *, wide: bool) -> frozenset[str]:
    """Return the columns of text that come as positions in a list, as they are written."""
    if model.schema.panel is not None and not wide:
        return frozenset()
    return decoder_of(model, how, listed=True).listed


def table_schema(model: Model, *, wide: bool = False) -> Schema:
    """Return the codebook of the tables that a model gives: of a panel the long one."""
    schema = model.schema
    if schema.panel is None:
        return schema
    # A wide table stands for itself, and so does its codebook.
    return replace(schema, panel=None, unit=None) if wide else long_schema(schema)


@dataclass(frozen=True)
class Decoding:
    """How codes become values.

    Parameters
    ----------
    how
        ``model``: values inside bins follow a model that is fitted to the first synthetic
        codes; ``values``: they are drawn one by one; ``labels``: bins are written. None: a
        model where values were measured, else values.
    listed
        As for `Decoder`.
    rows
        About how many rows there will be, for the bar.
    """

    how: How | None = None
    listed: bool = False
    rows: int | None = None
    progress: Progress = quiet


def decoded(
    model: Model, chunks: Iterator[Codes], stream: RandomStream, decoding: Decoding | None = None
) -> Iterator[pl.DataFrame]:
    """Yield code chunks as frames."""
    told = decoding or Decoding()
    how, listed = told.how, told.listed
    check_decoding(how, measured=bool(model.shapes))
    decoder = decoder_of(model, how, listed=listed)
    if model.shapes and how != "labels":
        first = next(chunks)
        chunks = chain([first], chunks)
        decoder = value_decoder(
            model.schema,
            model.shapes,
            first,
            stream,
            model=how != "values",
            columns=_drawn_columns(model),
            dtypes=model.dtypes,
            listed=listed,
        )
    words = stream.substream()
    done = 0
    told.progress("rows", 0, told.rows)
    for codes in chunks:
        yield decoder.decode(codes, words.take(decoder.words_needed(len(codes))))
        done += len(codes)
        told.progress("rows", done, told.rows)


def drawn_frames(
    session: Session,
    rows: int,
    datasets: int = 1,
    *,
    how: How | None = None,
    listed: bool = False,
    wide: bool = False,
    progress: Progress = quiet,
) -> list[Iterator[pl.DataFrame]]:
    """Charge, draw and decode K tables of n rows, each a stream of frames.

    Where replicate weights were asked for, the one table has them as its last columns. Panels
    are unfolded, unless the wide table is wanted; n are then units (R24).
    """
    model, stream = session.model, session.stream
    if model.schema.panel is not None and model.schema.panel.tables is not None and not wide:
        raise ParameterError(
            "two tables are drawn together; let pegs release, pegsynth.release or "
            "pegsynth.synthesize write them, or state --wide for one"
        )
    if model.schema.panel is not None and not wide:
        check_unfolds(how)
        unfolding = Unfolding(model.schema, tuple(model.columns))
        wide_frames = drawn_frames(session, rows, datasets, how=how, wide=True, progress=progress)
        return [unfolded(unfolding.rows, frames) for frames in wide_frames]
    told = Decoding(how, listed, rows, progress)
    count = getattr(session.plan.options, "replicates", None)
    calibration: Calibration | None = getattr(session.sampler, "calibration", None)
    if calibration is not None and how == "labels":
        from pegsynth.methods.released import labels_of_declared

        raise labels_of_declared()
    if count is not None:
        check_weight_names(table_schema(model, wide=wide), session.plan.options)
    models = [model] * datasets
    if datasets > 1 and not getattr(session.plan.options, "shared_noise", True):
        # Tables with noise of their own have shapes of their own.
        shapes = _shape_replicates(model, stream, datasets, drawn=True, beyond=False)
        models = [replace(model, shapes=each) for each in shapes]
    if calibration is not None:
        from pegsynth.methods.released import OVERSAMPLED

        versions = session.draw_declared(rows, datasets, OVERSAMPLED)
        tables = [
            _chosen(session, own, calibration, version, told)
            for own, version in zip(models, versions, strict=True)
        ]
    else:
        drawn = session.draw(rows, datasets)
        tables = [
            _with_codes(own, chunks, stream, told)
            for own, chunks in zip(models, drawn, strict=True)
        ]
    if count is not None:
        return [_weighted(session, table, rows, count, calibration) for table in tables]
    return [(frame for _, frame in table) for table in tables]


def _with_codes(
    model: Model, chunks: Iterator[Codes], stream: RandomStream, told: Decoding
) -> Iterator[tuple[Codes, pl.DataFrame]]:
    """Yield code chunks with the frames that they are decoded to; some are read ahead."""
    waiting: deque[Codes] = deque()

    def remembered() -> Iterator[Codes]:
        for codes in chunks:
            waiting.append(codes)
            yield codes

    for frame in decoded(model, remembered(), stream, told):
        yield waiting.popleft(), frame


def _shape_replicates(
    model: Model, stream: RandomStream, count: int, *, drawn: bool, beyond: bool
) -> list[dict[str, Shape]]:
    """Return the shapes inside bins with fresh noise, and with other rows where asked (R28)."""
    from pegsynth.methods.released import replicated_shapes

    schema = model.schema
    alike = (float(schema.rows_per_unit) if schema.unit else 1.0) if drawn else 0.0
    return replicated_shapes(
        model.shapes,
        schema,
        stream.aside("shapes"),
        count=count,
        design_effect=alike,
        beyond=beyond,
    )


def _chosen(
    session: Session,
    model: Model,
    calibration: Calibration,
    version: tuple[Released, Iterator[Codes]],
    told: Decoding,
) -> Iterator[tuple[Codes, pl.DataFrame]]:
    """Yield as many rows as were asked for, chosen by what their values add (R26)."""
    from pegsynth.methods.released import CALIBRATED_ROWS, OVERSAMPLED, released_total

    released, chunks = version
    total = max(released_total(released), 1.0)
    words = session.stream.substream()
    waiting: list[tuple[Codes, pl.DataFrame]] = []
    left = told.rows or 0

    def flush(rows: int) -> tuple[Codes, pl.DataFrame]:
        codes = np.concatenate([codes for codes, _ in waiting])
        frame = pl.concat([frame for _, frame in waiting])
        waiting.clear()
        places = calibration.chosen(
            frame, codes[:, list(released.order)], rows, total, released, words
        )
        return codes[places], frame[places]

    for pair in _with_codes(model, chunks, session.stream, told):
        waiting.append(pair)
        rows = sum(frame.height for _, frame in waiting) // OVERSAMPLED
        if rows >= CALIBRATED_ROWS and left - rows >= CALIBRATED_ROWS:
            yield flush(rows)
            left -= rows
    if waiting:
        yield flush(left)


def drawn_pairs(
    session: Session,
    rows: int,
    datasets: int = 1,
    *,
    how: How | None = None,
    progress: Progress = quiet,
) -> list[Iterator[tuple[pl.DataFrame, pl.DataFrame]]]:
    """Charge, draw and decode K times two tables, of n units and their rows (R24)."""
    check_unfolds(how)
    unfolding = Unfolding(session.model.schema)
    tables = drawn_frames(session, rows, datasets, how=how, wide=True, progress=progress)
    return [unfolded(unfolding.pair, frames) for frames in tables]


def _weighted(
    session: Session,
    table: Iterator[tuple[Codes, pl.DataFrame]],
    rows: int,
    count: int,
    calibration: Calibration | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield frames with the weight of their rows, the same for all, and K replicates of it (R28).

    The rows are those of a table without weights: replicates have random numbers of their own.
    """
    from pegsynth.inference.combining_rules import PART
    from pegsynth.methods.released import FITTED_ROWS, Signs, bounded, reweighed

    model, stream = session.model, session.stream.aside("replicates")
    first: list[tuple[Codes, pl.DataFrame]] = []
    for pair in table:
        first.append(pair)
        if sum(frame.height for _, frame in first) >= FITTED_ROWS:
            break
    if not first:
        return
    found = session.replicates(np.concatenate([codes for codes, _ in first]), rows, count, stream)
    signs = Signs(stream.substream(), count)
    shapes: list[dict[str, Shape]] = []
    if model.shapes:
        # Rows that are drawn again take their values along.
        drawn_again = not found.drawn_by_rows
        shapes = _shape_replicates(model, stream, count, drawn=drawn_again, beyond=True)
    weight = found.total / max(rows, 1)
    back: list[Float64] | None = None
    for codes, frame in chain(first, table):
        drawn = signs.take(frame.height)
        lines = found.weights(codes, drawn)
        if shapes:
            before, own = lines, found.perturbed(codes, drawn)
            lines = reweighed(frame, lines, own, model.schema, model.shapes, shapes)
            back = found.back(codes, before, lines) if back is None else back
            lines = found.moved_by(back, codes, lines)
        if calibration is not None:
            noise = [each * (PART * frame.height / found.total) for each in found.sums]
            lines = calibration.replicated(frame, lines, 1 + found.moved * drawn, noise)
        lines = np.vstack([np.ones((1, frame.height)), bounded(lines)]) * weight
        names = weight_names(session.plan.options)
        yield frame.with_columns(map(pl.Series, names, written_weights(lines)))


def written_weights(weights: Float64) -> Float64:
    """Return weights as they are published, with six significant digits."""
    digits = np.floor(np.log10(np.where(weights > 0, weights, 1.0)))
    # One of both is 1, so that the nearest number of six digits comes out.
    up, down = (10.0 ** np.clip(sign * (WEIGHT_DIGITS - 1 - digits), 0, 300) for sign in (1, -1))
    return np.asarray(np.rint(weights * up / down) / up * down)


def weight_names(options: RowOptions) -> tuple[str, ...]:
    """Return the names of the columns of weights; none where none were asked for."""
    return options.weight_names if isinstance(options, ReplicateOptions) else ()


def published_schema(session: Session, *, wide: bool = False, weights: bool = False) -> Schema:
    """Return the codebook of the tables, with weights that they hold as columns of no feature."""
    schema = table_schema(session.model, wide=wide)
    return with_weights(schema, weight_names(session.plan.options) if weights else ())


def with_weights(schema: Schema, names: tuple[str, ...]) -> Schema:
    """Return a codebook with the weights as columns that are no features."""
    known = {column.name for column in schema.columns}
    weights = (Feature(name, role="identifier") for name in names if name not in known)
    return replace(schema, columns=(*schema.columns, *weights))


def check_weight_names(schema: Schema, options: RowOptions) -> None:
    """Refuse names of weights that the codebook has already, be it for a column that is dropped.

    SPSS, SAS and most databases do not tell upper from lower case.
    """
    names = weight_names(options)
    if not names:
        return
    taken = {name.casefold() for name in (schema.unit or "", *(c.name for c in schema.columns))}
    for name in names:
        if name.casefold() in taken:
            raise ParameterError(
                f"--replicates adds the column {name!r}, and the schema has one of that name; "
                "choose another name with --weight-name"
            )


def check_weights_requested(options: ReplicateOptions) -> None:
    """Refuse a name for weights that are not requested."""
    if options.weight_name != WEIGHT and not options.replicates:
        raise ParameterError("--weight-name requires --replicates, which adds the columns")


def check_decoding(how: How | None, *, measured: bool) -> None:
    """Refuse a model of values inside bins where no values were measured."""
    if how == "model" and not measured:
        raise ParameterError(
            '--decode model requires numbers that were measured: state edges = "private" or '
            'inside = "measured" in the schema'
        )


def check_completes(model: Model, given: Mapping[str, str]) -> None:
    """Refuse completed tables of a model where they would mean nothing (R23)."""
    from pegsynth.methods.completion import check_completable

    check_completable(model.schema, given)
    options = model.plan.options if model.plan is not None else None
    if options is not None and replaced_features(options):
        raise ParameterError(
            "--complete imputes from synthetic rows, and this model keeps original ones; leave it "
            "out"
        )
    if getattr(options, "replicates", None) is not None:
        raise ParameterError(
            "--complete cannot be combined with replicate weights; state --datasets instead"
        )


def completed_versions(
    session: Session,
    frame: pl.DataFrame,
    number: int,
    versions: int,
    *,
    wide: bool = False,
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
    from pegsynth.methods.completion import completed_frames

    # Values in a dataframe are not written in the dialect of files.
    schema = replace(session.model.schema, dialect=Dialect())
    stream = session.stream.aside(f"table {number}")
    told: dict[str, Any] = {"imputations": versions, "threads": threads, "progress": progress}
    if schema.panel is None or wide:
        return completed_frames(frame, schema, stream, **told)
    # Whole units are completed: what a unit lacks in one row, its other rows tell.
    folding = Folding(long_schema(schema))
    folded = folding.fold(folding.prepared(frame))
    written = session.model.columns or frame.columns
    unfolding = Unfolding(schema, tuple(name for name in written if name in frame.columns))
    completed = completed_frames(folded, schema, stream, **told)
    return [with_types(unfolding.rows(each), schema, frame.schema) for each in completed]
