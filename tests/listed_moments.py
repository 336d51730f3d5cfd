"""Drafts in which dates and times are listed as categories, for tests without a total budget."""

from dataclasses import replace

import polars as pl

from pegsynth.schema import Feature, Schema
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.dtypes import as_text


def draft_with_listed_moments(data) -> Schema:
    """Return a reviewed draft; its dates and times are categories, not edges to be measured."""
    schema = Schema.draft(data, binning="equal-width")
    columns = tuple(
        _listed(column, pl.Series(data[column.name])) if column.kind in TEMPORAL else column
        for column in schema.columns
    )
    return replace(schema, columns=columns, reviewed=True)


def _listed(column: Feature, values: pl.Series) -> Feature:
    texts = tuple(as_text(values.drop_nulls().unique().sort()))
    return Feature(
        column.name, "ordinal", categories=texts, missing=column.missing, dtype=column.dtype
    )
