"""A codebook to judge tables by, where a release was to measure edges or find categories.

What is missing is read off the original: bins that hold about the same number of rows, and the
most frequent values. Like everything in an evaluation that is confidential, and says nothing of
the edges and categories that a release has paid for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from pegsynth.codec.column_encoders import moments_of
from pegsynth.codec.encoding import special_number
from pegsynth.errors import ParameterError
from pegsynth.schema import Feature, Schema
from pegsynth.schema.binning import quantile_edges, within_type
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.number_text import NumberText, candidates, with_categories
from pegsynth.schema.tally import QuantileSketch
from pegsynth.tables.table_input import open_table

BINS = 12
MOST_CATEGORIES = 100
_SKETCH = 100_000


def measured_codebook(original: Any, schema: Schema) -> Schema:
    """Return the schema with edges and categories of the original where it has none."""
    if not schema.unsettled:
        return schema
    with open_table(original, dialect=schema.dialect) as reader:
        if reader.once:
            raise ParameterError(
                f"{reader.source}: feature {schema.unsettled[0]!r} has no listed edges or "
                "categories, which takes two passes over the table; give the schema that the "
                "release published, or write the table to a file first"
            )
        looks = {name: _Look(schema, schema[name]) for name in schema.unsettled}
        # A column that is not there is refused with all others when the table is judged.
        seen = [look for look in looks.values() if set(look.columns) <= set(reader.columns)]
        names = tuple(dict.fromkeys(name for look in seen for name in look.columns))
        for batch in reader.batches(names) if names else ():
            for look in seen:
                look.add(batch)
    return schema.with_columns(
        looks[column.name].settled() if column.name in looks else column
        for column in schema.columns
    )


class _Look:
    """What one column of the original holds."""

    def __init__(self, schema: Schema, feature: Feature) -> None:
        self._feature, self._written = feature, NumberText(schema.dialect)
        self._dates = DateText(feature) if feature.kind in TEMPORAL else None
        self._other = None if feature.after is None else DateText(schema[feature.after])
        after = () if feature.after is None else (feature.after,)
        self.columns: tuple[str, ...] = (feature.name, *after)
        texts = (*feature.missing, *feature.not_applicable) if feature.after is None else ()
        found = (special_number(text, self._dates or self._written) for text in texts)
        self._taken = [number for number in found if number is not None]
        self._sketch = QuantileSketch(_SKETCH)
        self._range: tuple[float, float] | None = None
        self._counts = pl.DataFrame(schema={"value": pl.String, "count": pl.UInt32})

    def add(self, batch: pl.DataFrame) -> None:
        """Take in the next batch."""
        values = batch.get_column(self._feature.name)
        if self._feature.private_edges:
            self._add_numbers(self._numbers(values, batch))
        else:
            text = candidates(values, self._feature).rename("value").drop_nulls()
            both = pl.concat([self._counts, text.value_counts(name="count")])
            self._counts = both.group_by("value").agg(pl.col("count").sum())

    def _numbers(self, values: pl.Series, batch: pl.DataFrame) -> pl.Series:
        """Return values as numbers; dates by their resolution, or counted from another date."""
        if self._dates is not None:
            moments = moments_of(self._dates, values)
            if self._other is not None:
                others = moments_of(self._other, batch.get_column(self.columns[1]))
                moments = np.maximum(moments - others, 0.0)
            return pl.Series(moments)
        if values.dtype.is_numeric() or values.dtype == pl.Boolean:
            return values.cast(pl.Float64)
        return self._written.numbers(as_text(values))

    def _add_numbers(self, numbers: pl.Series) -> None:
        numbers = numbers.fill_nan(None).drop_nulls().rename("value")
        numbers = numbers.filter(numbers.is_finite() & ~numbers.is_in(self._taken))
        if numbers.is_empty():
            return
        counted = numbers.value_counts(name="count")
        self._sketch.add(counted["value"], counted["count"])
        low, high = float(numbers.min()), float(numbers.max())  # type: ignore[arg-type]
        before = self._range or (low, high)
        self._range = min(low, before[0]), max(high, before[1])

    def settled(self) -> Feature:
        """Return the feature with what was seen."""
        feature = self._feature
        if feature.private_categories:
            order = self._counts.sort(["count", "value"], descending=[True, False])
            return with_categories(feature, order.head(MOST_CATEGORIES)["value"])
        low, high = self._range or (0.0, 1.0)
        inner = self._sketch.quantiles(feature.bins or BINS)
        edges = quantile_edges(low, inner, high, whole=feature.integer or feature.kind in TEMPORAL)
        return feature.with_edges(within_type(edges, feature.dtype))
