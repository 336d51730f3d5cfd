"""Columns that the names of folders give: ``year=2024/part-0.parquet``.

They hold text, so that ``month=01`` stays ``01`` and no folder changes how another one is
read (R30); the schema says what type they are written in. A column that the files hold
themselves is read from the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pegsynth.tables.reader import Part, made


def with_fixed(part: Part, values: Mapping[str, str | None], any_column: str) -> Part:
    """Return a part that also yields the columns that its folders give.

    `any_column` is a column of the file; it tells how many rows there are when nothing
    else of the file is wanted.
    """

    def stream(
        columns: Sequence[str],
        *,
        skip: int = 0,
        hints: Mapping[str, pl.DataType] | None = None,
    ) -> Iterator[pl.DataFrame]:
        inside = [name for name in columns if name not in values] or [any_column]
        added = [
            pl.lit(values[name], dtype=pl.String).alias(name) for name in columns if name in values
        ]
        for piece in part(inside, skip=skip, hints=hints):
            yield made(piece).with_columns(added).select(columns)

    return stream
