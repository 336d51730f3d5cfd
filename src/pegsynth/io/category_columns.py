"""Columns of listed categories, written so that the schema reads the same categories again.

A schema lists categories as texts. A format that keeps the type of a column gives the same text
back; in all others the column is written as the schema's own texts, or in a type that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pegsynth.schema.schema import Schema


def listed_names(codebook: Schema | None) -> frozenset[str]:
    """Return the columns whose values are categories that the schema lists as texts."""
    features = () if codebook is None else codebook.features
    return frozenset(feature.name for feature in features if not feature.binned)


def as_categories(
    frame: pl.DataFrame, listed: Collection[str], changed: Callable[[pl.Series], bool]
) -> pl.DataFrame:
    """Return a frame whose listed columns are text where a format would change their values.

    Floats of 32 bits become longer ones that have the same text.

    Parameters
    ----------
    changed
        Whether the format changes the text of values of such a column.
    """
    from pegsynth.schema.dtypes import as_text

    columns = []
    for column in frame:
        if column.name in listed and changed(column):
            columns.append(as_text(column))
        elif column.name in listed and column.dtype == pl.Float32:
            columns.append(as_text(column).cast(pl.Float64))
    return frame.with_columns(columns)
