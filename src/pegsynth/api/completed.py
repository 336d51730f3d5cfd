"""Synthetic tables as users have them, completed: files or dataframes in, dataframes out (R23)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.inference.release_views import tables_of
from pegsynth.methods.completion import check_completable, completed_frames
from pegsynth.options import DEFAULT_IMPUTATIONS
from pegsynth.options._kinds import check_whole, python_names
from pegsynth.progress import Progress, shown
from pegsynth.random import RandomStream
from pegsynth.runtime import check_threads, usable_processors
from pegsynth.schema import Schema
from pegsynth.tables.caller_frames import to_kind
from pegsynth.tables.table_input import open_table


@python_names()
def impute(
    synthetic: Any,
    schema: Schema | str | Path | None = None,
    *,
    imputations: int = DEFAULT_IMPUTATIONS,
    seed: int | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> list[list[Any]]:
    """Impute the missing values of synthetic tables, each from its own rows (R23).

    It reads nothing else, so that tables of a release keep what was promised for them. It
    promises nothing for other tables.

    Parameters
    ----------
    synthetic
        A `Release`, a table, or a list of tables; each a dataframe or the name of a file.
    schema
        The codebook of the tables, or the name of its file; that of a release by default.
    imputations
        r, how many completed versions of each table.
    seed
        Fixes what is drawn.

    Returns
    -------
    list of lists
        For every table its r completed versions, of the same kind as the table.
    """
    check_threads()
    check_whole("imputations", imputations)
    book = _schema_of(synthetic, schema)
    check_completable(book)
    tables = tables_of(synthetic)
    if not tables:
        raise ParameterError("there is no table to complete")
    stream = RandomStream(seed)
    with shown(progress) as told:
        return [
            _completed(
                table,
                book,
                stream.aside(f"table {number}"),
                imputations=imputations,
                threads=threads or usable_processors(),
                progress=told,
            )
            for number, table in enumerate(tables, start=1)
        ]


def _schema_of(synthetic: Any, schema: Schema | str | Path | None) -> Schema:
    found = getattr(synthetic, "schema", None) if schema is None else schema
    if isinstance(found, Schema):
        return found
    if not isinstance(found, str | Path):
        raise ParameterError("state the schema of the tables")
    return Schema.load(found)


def _completed(
    table: Any,
    schema: Schema,
    stream: RandomStream,
    *,
    imputations: int,
    threads: int,
    progress: Progress,
) -> list[Any]:
    with open_table(table, dialect=schema.dialect) as reader:
        frame = whole(reader.batches(reader.columns))
        found = completed_frames(
            frame,
            schema,
            stream,
            imputations=imputations,
            source=reader.source,
            strict=True,
            threads=threads,
            progress=progress,
        )
        kind = reader.frame_kind
        return [to_kind(each, kind, like=table if kind else None) for each in found]


def whole(batches: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Put the batches of a table under each other."""
    parts: Sequence[pl.DataFrame] = list(batches)
    return pl.concat(parts)
