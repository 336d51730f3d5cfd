"""Values of SQLite as they are: each with its own kind, whatever its column holds elsewhere.

A column of SQLite may hold text, whole numbers, floats and bytes side by side. A cell comes
here as a text with one letter before it that says its kind, and leaves as canonical text.
The type that the column is declared with says what it is written as (R30).
"""

from __future__ import annotations

import polars as pl

from pegsynth.errors import DataError
from pegsynth.schema.dtypes import as_text

_TEXT, _WHOLE, _REAL, _BYTES = "t", "i", "r", "b"


def marked(column: str) -> str:
    """Return an expression for a quoted column that gives every value with its kind.

    ``quote`` writes as many digits of a float as it takes to read it back.
    """
    return (
        f"CASE typeof({column}) WHEN 'text' THEN '{_TEXT}' || {column} "
        f"WHEN 'integer' THEN '{_WHOLE}' || CAST({column} AS TEXT) "
        f"WHEN 'real' THEN '{_REAL}' || quote({column}) WHEN 'blob' THEN '{_BYTES}' END"
    )


def unmarked(cells: pl.Series, *, source: str) -> pl.Series:
    """Return the canonical text of every value.

    Raises
    ------
    DataError
        A value is bytes.
    """
    kinds, texts = cells.str.head(1), cells.str.slice(1)
    if (kinds == _BYTES).any():
        raise DataError(
            f"{source}: column {cells.name!r} holds bytes; turn it into a column of text, numbers "
            "or dates, or leave it out"
        )
    real = kinds == _REAL
    if real.any():
        numbers = texts.set(~real, None).cast(pl.Float64, strict=False)
        texts = as_text(numbers).zip_with(real, texts)
    return texts.alias(cells.name)


def written_type(declared: str) -> pl.DataType | None:
    """Return the type that a column is written in, by SQLite's rules of affinity.

    None stands for columns that may hold anything: the schema says what they are.
    """
    name = declared.upper()
    if "INT" in name:
        return pl.Int64()
    if any(word in name for word in ("CHAR", "CLOB", "TEXT")):
        return pl.String()
    if "BLOB" not in name and any(word in name for word in ("REAL", "FLOA", "DOUB")):
        return pl.Float64()
    return None
