"""Columns that the names of folders give: ``year=2024/part-0.parquet``.

A column whose values are all whole numbers, written plainly, holds integers; any other
holds text, so that ``month=01`` stays ``01``. A column that the files hold themselves is
read from the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from pegsynth.io.reader import Part, made

_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}", re.ASCII)


def fixed_types(
    fixed: Sequence[Mapping[str, str | None]], *, taken: Sequence[str], typed: bool
) -> dict[str, pl.DataType]:
    """Return the columns that folders give, in their order, with their types.

    Parameters
    ----------
    fixed
        What the folders of every file say.
    taken
        Columns that the files hold themselves.
    typed
        False for CSV, whose columns are all text.
    """
    names = [name for name in fixed[0] if name not in taken]
    return {name: _type([each[name] for each in fixed], typed=typed) for name in names}


def _type(values: Sequence[str | None], *, typed: bool) -> pl.DataType:
    whole = all(value is None or _WHOLE.fullmatch(value) for value in values)
    return pl.Int64() if typed and whole else pl.String()


def with_fixed(
    part: Part, values: Mapping[str, str | None], types: Mapping[str, pl.DataType], any_column: str
) -> Part:
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
        inside = [name for name in columns if name not in types] or [any_column]
        added = [
            pl.lit(values[name]).cast(types[name]).alias(name) for name in columns if name in types
        ]
        for piece in part(inside, skip=skip, hints=hints):
            yield made(piece).with_columns(added).select(columns)

    return stream
