"""From a table to synthetic tables in one call.

`synthesize` is the library's front door: read, fit, draw, decode, with one ledger for
everything that looked at the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.forks import check_threads
from pegsynth.io.frames import to_kind, with_index
from pegsynth.io.read import named_source, open_table, same_file, table_files
from pegsynth.io.reader import TableReader
from pegsynth.io.streams import held
from pegsynth.option_kinds import keywords
from pegsynth.options import AUTO, How
from pegsynth.privacy import Ledger
from pegsynth.progress import Progress, quiet, shown
from pegsynth.random import RandomStream
from pegsynth.release_views import ReleaseViews
from pegsynth.schema import Schema
from pegsynth.schema.codec import Decoder
from pegsynth.schema.dtypes import as_text, polars_dtype
from pegsynth.synthesizers.checkpoint import resuming
from pegsynth.synthesizers.model import Codes, Model, fit
from pegsynth.synthesizers.request import Request
from pegsynth.synthesizers.session import Session


@dataclass(frozen=True)
class Release(ReleaseViews):
    """Synthetic tables of the caller's own kind, and what they cost."""

    frames: list[Any]
    ledger: Ledger = field(repr=False)


def honest_seed_pool(data: Any, pool: str | Path | None) -> str | Path | None:
    """Call a seed pool that is the confidential table itself by its name (R10)."""
    if pool is None or pool in ("uniform", "marginal", "original"):
        return pool
    itself = any(same_file(a, b) for a in table_files(str(pool)) for b in table_files(data))
    return "original" if itself else pool


@keywords(Request, without=("engine", "master"), method=AUTO)
def synthesize(
    data: Any,
    schema: Schema | str | Path,
    *,
    progress: bool | Progress | None = None,
    **options: Any,
) -> Release:
    """Return synthetic tables and their ledger.

    Parameters
    ----------
    data
        A pandas, Polars or PyArrow table; the name of a file, a glob or a folder, or an
        address of such (``s3://..``); or a database, ``postgresql://..`` or
        ``sqlite:///..``.
    schema
        A `Schema` or the name of its file.
    progress
        By default a bar on a terminal and in a notebook; False shows none, and a function is
        called with the stage, what is done of it and the total.
    rows, datasets
        n rows in each of K datasets.
    method
        ``auto`` takes the method with the smallest predicted error, as ``pegs release``
        does; or the name of one.
    epsilon, delta, epsilon_per_row, l, alpha
        The budget: exactly one of epsilon (with or without delta, for everything
        together), epsilon per row (the paper's convention), l, or alpha.
    shares
        How epsilon is split over order, marginals and draws.
    where
        Features and the value each keeps in every row; they are not drawn.
    synthesize
        Features to replace in the original rows, the others being kept: no guarantee.
    seed
        For tests and studies: reproducible, and without any guarantee.
    table, query, query_is_rowwise
        For a database: which table, or which SELECT, and the caller's word that the
        query selects rows one by one.
    resume
        For files: where to save counts on the way (CONFIDENTIAL) and go on from;
        deleted at the end.
    **options
        All others are the flags of ``pegs synthesize`` with underscores; docs/options.md
        lists them.

    Returns
    -------
    Release
        `frames`, of the same kind as `data`, and `ledger`.
    """
    check_threads()
    asked = Request(**options)
    book = schema if isinstance(schema, Schema) else Schema.load(schema)
    source = "the schema" if isinstance(schema, Schema) else str(schema)
    asked = replace(asked, seed_pool=honest_seed_pool(data, asked.seed_pool))
    asked, _ = asked.settled(book)
    asked.check_rows()
    recipe = asked.recipe(book, source=source)
    used = asked.thread_count
    stream = RandomStream(asked.seed)
    origin = named_source(
        data, table=asked.table, query=asked.query, rowwise=asked.query_is_rowwise
    )
    if asked.synthesize:
        # Drawn values go beside kept ones row by row: all must come from one execution.
        origin = held(origin)
    with (
        shown(progress) as told,
        open_table(origin) as reader,
        resuming(asked.resume, reader, book, recipe, asked.seed) as checkpoint,
    ):
        model = fit(
            reader,
            book,
            recipe,
            stream,
            accept_unreviewed=asked.accept_unreviewed_schema,
            threads=used,
            progress=told,
            checkpoint=checkpoint,
        )
        original = original_columns(reader, model.schema) if asked.synthesize else None
    session = Session(model, model.recipe or recipe, stream, threads=used)
    frames = []
    with shown(progress) as told:
        for chunks in session.draw(asked.rows or 0, asked.datasets):
            decoder = decoder_of(model, asked.decode)
            whole = pl.concat(decoded(decoder, chunks, stream, rows=asked.rows, progress=told))
            if original is not None:
                whole = with_drawn_columns(original, whole, asked.synthesize)
            made = to_kind(whole, reader.frame_kind, like=data if reader.frame_kind else None)
            # Rows that are kept keep their names; drawn rows have none.
            frames.append(made if original is None else with_index(made, data))
    return Release(frames, session.ledger)


def original_columns(reader: TableReader, schema: Schema) -> pl.DataFrame:
    """Return the features of the original table, value by value.

    Columns that were read as text get their type back where all of their values have it. That
    looks at the data, as keeping them does: such a table has no guarantee.
    """
    names = [name for name in reader.columns if name in schema.names]
    table = pl.concat(list(reader.batches(names)))
    for name in reader.untyped.intersection(names):
        stated = schema.features[schema.index(name)].dtype
        dtype = polars_dtype(stated) or reader.dtypes.get(name)
        typed = table[name].cast(dtype, strict=False) if dtype and dtype.is_numeric() else None
        if typed is not None and as_text(typed).equals(table[name]):
            table = table.with_columns(typed)
    return table


def with_drawn_columns(
    original: pl.DataFrame, drawn: pl.DataFrame, replaced: Sequence[str]
) -> pl.DataFrame:
    """Return the original table with the replaced features drawn anew."""
    return original.with_columns(drawn.get_column(name) for name in replaced)


def decoder_of(model: Model, how: How = "values", *, listed: bool = False) -> Decoder:
    """Return what turns codes into the columns and types of the original table."""
    columns = model.columns or None
    return Decoder(model.schema, how=how, columns=columns, dtypes=model.dtypes, listed=listed)


def decoded(
    decoder: Decoder,
    chunks: Iterator[Codes],
    stream: RandomStream,
    *,
    rows: int | None = None,
    progress: Progress = quiet,
) -> Iterator[pl.DataFrame]:
    """Yield code chunks as frames."""
    words = stream.substream()
    done = 0
    progress("rows", 0, rows)
    for codes in chunks:
        yield decoder.decode(codes, words.take(decoder.words_needed(len(codes))))
        done += len(codes)
        progress("rows", done, rows)
