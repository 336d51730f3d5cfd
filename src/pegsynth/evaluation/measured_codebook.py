"""A codebook to judge tables by, where a release was to measure edges or find categories.

What is missing is read off the original: bins that hold about the same number of rows, and the
most frequent values. Like everything in an evaluation that is confidential, and says nothing of
the edges and categories that a release has paid for.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.io.table_input import open_table
from pegsynth.schema import Feature, Schema
from pegsynth.schema.binning import quantile_edges, within_type
from pegsynth.schema.dtypes import as_text
from pegsynth.schema.encoding import parsed_number
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.private_categories import candidates, with_categories
from pegsynth.schema.tally import QuantileSketch

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
        looks = {name: _Look(schema[name], NumberText(schema.dialect)) for name in schema.unsettled}
        # A column that is not there is refused with all others when the table is judged.
        names = [name for name in looks if name in reader.columns]
        for batch in reader.batches(names) if names else ():
            for name in names:
                looks[name].add(batch.get_column(name))
    return schema.with_columns(
        looks[column.name].settled() if column.name in looks else column
        for column in schema.columns
    )


class _Look:
    """What one column of the original holds."""

    def __init__(self, feature: Feature, written: NumberText) -> None:
        self._feature, self._written = feature, written
        texts = (*feature.missing, *feature.not_applicable)
        self._taken = [number for text in texts if (number := parsed_number(text)) is not None]
        self._sketch = QuantileSketch(_SKETCH)
        self._range: tuple[float, float] | None = None
        self._counts = pl.DataFrame(schema={"value": pl.String, "count": pl.UInt32})

    def add(self, values: pl.Series) -> None:
        """Take in the next batch."""
        if self._feature.private_edges:
            self._add_numbers(values)
        else:
            text = candidates(values, self._feature).rename("value").drop_nulls()
            both = pl.concat([self._counts, text.value_counts(name="count")])
            self._counts = both.group_by("value").agg(pl.col("count").sum())

    def _add_numbers(self, values: pl.Series) -> None:
        plain = values.dtype.is_numeric() or values.dtype == pl.Boolean
        numbers = values.cast(pl.Float64) if plain else self._written.numbers(as_text(values))
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
        edges = quantile_edges(low, inner, high, whole=feature.integer)
        return feature.with_edges(within_type(edges, feature.dtype))
