"""Whether a column that declares a type can hold values of its feature; no value is looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from pegsynth.errors import DataError
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema

if TYPE_CHECKING:
    from pegsynth.tables.reader import TableReader

_TRUTH = frozenset(("true", "false", "0", "1"))


def check_declared(schema: Schema, types: Mapping[str, pl.DataType], *, source: str) -> None:
    """Refuse a table in which a column is declared as something that its feature is not.

    Parameters
    ----------
    types
        Types that columns declare; those that declare none are read value by value.
    source
        What messages call the table.
    """
    for feature in schema.features:
        dtype = types.get(feature.name)
        if dtype is not None and not can_hold(feature, dtype):
            raise DataError(
                f"{source}: column {feature.name!r} is declared as {dtype}, and no value of that "
                f"type is one of the {feature.kind} feature in the schema; write the column in "
                "another type, or describe it in the schema as it is"
            )


def check_header(schema: Schema, reader: TableReader) -> None:
    """Refuse a table, or one of two tables, whose types its columns do not have in the schema.

    Names are checked by whoever reads the table: those of two tables are dealt to both (R24).
    """
    for table in (reader, reader.children):
        if table is not None:
            types = {n: dtype for n, dtype in table.dtypes.items() if table.has_type(n)}
            check_declared(schema, types, source=table.source)


def can_hold(feature: Feature, dtype: pl.DataType) -> bool:
    """Say whether some value of a type, beside null, may have a code of a feature."""
    # A column of nothing but missing values has a feature without any other.
    empty = not feature.categories and not feature.binned
    lenient = feature.unknown_code is not None or feature.private_categories or empty
    text = isinstance(dtype, pl.Null | pl.String | pl.Categorical | pl.Enum)
    if lenient or feature.recoding or text:
        return True
    if feature.kind in TEMPORAL:
        # Numbers may be dates in a stated format, such as 20240131.
        return dtype.is_numeric() or DateText(feature).typed(pl.Series([], dtype=dtype)) is not None
    if feature.binned:
        return not dtype.is_temporal()
    texts = pl.Series(
        [*feature.categories, *feature.missing, *feature.not_applicable], dtype=pl.String
    ).str.strip_chars()
    if dtype == pl.Boolean:
        return bool(texts.str.to_lowercase().is_in(_TRUTH).any())
    if dtype.is_numeric():
        return bool(texts.cast(pl.Float64, strict=False).is_not_null().any())
    # The marks of dates, times and lengths of time (P1DT2H).
    return bool(texts.str.contains(r"\d-\d|\d:\d|^-?P").any())
