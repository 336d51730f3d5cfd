"""The columns of the original table that a partially synthetic one keeps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import polars as pl

from pegsynth.schema.dtypes import as_text, polars_dtype

if TYPE_CHECKING:
    from pegsynth.io.reader import TableReader
    from pegsynth.schema import Schema


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


def putting_back(
    reader: TableReader, schema: Schema, replaced: Sequence[str]
) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return what puts drawn columns beside those that are kept; nothing to do if none are."""
    if not replaced:
        return lambda frame: frame
    original = original_columns(reader, schema)
    return lambda frame: with_drawn_columns(original, frame, replaced)


def with_drawn_columns(
    original: pl.DataFrame, drawn: pl.DataFrame, replaced: Sequence[str]
) -> pl.DataFrame:
    """Return the original table with the replaced features drawn anew."""
    return original.with_columns(drawn.get_column(name) for name in replaced)
