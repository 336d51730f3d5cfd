"""Columns with the values of donors in their missing cells.

A value is copied as it stands in the donor's row. A date that is counted from another one of its
row is that one and the donor's difference, so that the order of dates holds. A description goes
with its code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pegsynth.arrays import Float64, Int64
from pegsynth.schema.column_encoders import moments_of
from pegsynth.schema.date_decoding import last_moment
from pegsynth.schema.date_text import DateText, is_temporal
from pegsynth.schema.temporal import chain

if TYPE_CHECKING:
    from pegsynth.completion.chained_trees import Filled
    from pegsynth.schema import Feature, Schema


def with_donors(frame: pl.DataFrame, schema: Schema, filled: Filled) -> pl.DataFrame:
    """Return a table with its missing cells filled in."""
    completed = frame
    described: dict[str, list[str]] = {}
    for column in schema.columns:
        if column.label_of is not None and column.name in frame.columns:
            described.setdefault(column.label_of, []).append(column.name)
    for place in sorted(filled.donors, key=lambda each: _depth(schema, each)):
        feature = schema.features[place]
        lost, donors = filled.donors[place]
        found = donors >= 0
        lost, donors = lost[found], donors[found]
        names = [feature.name, *described.get(feature.name, ())]
        completed = completed.with_columns(
            _copied(frame.get_column(name), lost, donors) for name in names
        )
        if feature.after is not None:
            completed = completed.with_columns(
                _counted_on(frame, completed, schema, feature, lost, donors)
            )
    return completed


def _depth(schema: Schema, place: int) -> int:
    """Dates come after those that they are counted from."""
    return len(chain(schema.features[place], schema.features))


def _copied(column: pl.Series, lost: Int64, donors: Int64) -> pl.Series:
    taken = np.arange(len(column))
    taken[lost] = donors
    return column.gather(pl.Series(taken))


def _counted_on(
    frame: pl.DataFrame,
    completed: pl.DataFrame,
    schema: Schema,
    feature: Feature,
    lost: Int64,
    donors: Int64,
) -> pl.Series:
    """Return a column of dates whose imputed ones are counted from the row's own other date."""
    other = schema[feature.after or ""]
    own_text, column = DateText(feature), completed.get_column(feature.name)
    theirs = _moments(feature, frame.get_column(feature.name))[donors]
    from_ = _moments(other, frame.get_column(other.name))[donors]
    start = _moments(other, completed.get_column(other.name))[lost]
    # A donor without a difference has a special category, which was copied as it stands.
    counted = ~np.isnan(theirs - from_)
    last = last_moment(schema, feature)
    sums = np.minimum(start + np.maximum(theirs - from_, 0.0), last)[counted]
    numbers = pl.Series(feature.name, sums, nan_to_null=True).cast(pl.Int64)
    if is_temporal(column.dtype, feature.kind):
        values = own_text.as_type(numbers, column.dtype)
    else:
        values = own_text.written(numbers).cast(column.dtype)
    taken = np.arange(len(column))
    taken[lost[counted]] = len(column) + np.arange(len(sums))
    return pl.concat([column, values.alias(feature.name)]).gather(pl.Series(taken))


def _moments(feature: Feature, values: pl.Series) -> Float64:
    """Return the number of every date, NaN for what is none."""
    text = DateText(feature)
    found = moments_of(text, values)
    for special in (*feature.missing, *feature.not_applicable):
        if (number := text.number(special)) is not None:
            found[found == number] = np.nan
    return found
