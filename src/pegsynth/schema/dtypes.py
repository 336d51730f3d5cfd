"""Types of columns: Arrow type names in, Polars types out, and values as canonical text.

Categories are text. `as_text` says what the text of a typed value is, and `typed_labels`
goes back, refusing whenever the way there and back would change a category.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

_NAMES: dict[str, pl.DataType] = {
    "string": pl.String(),
    "large_string": pl.String(),
    "string_view": pl.String(),
    "utf8": pl.String(),
    "bool": pl.Boolean(),
    "halffloat": pl.Float32(),
    "float": pl.Float32(),
    "float32": pl.Float32(),
    "double": pl.Float64(),
    "float64": pl.Float64(),
    "date32": pl.Date(),
    "date32[day]": pl.Date(),
    "date64": pl.Date(),
    "date64[ms]": pl.Date(),
    "time64[ns]": pl.Time(),
    "time64[us]": pl.Time(),
    "time32[ms]": pl.Time(),
    "time32[s]": pl.Time(),
    "dictionary": pl.Categorical(),
    **{
        str(dtype).lower(): dtype
        for dtype in (
            *(pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64()),
            *(pl.UInt8(), pl.UInt16(), pl.UInt32(), pl.UInt64()),
        )
    },
}
_MOST_DAYS = 73_000_000
"""About 200,000 years: moments further from 1970 have no date that a calendar could tell."""
PER_SECOND = {"ns": 1_000_000_000, "us": 1_000_000, "ms": 1_000}
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, tz=(.+))?\]")


def polars_dtype(spec: Any) -> pl.DataType | None:
    """Return the Polars type of an Arrow type, an Arrow type name or a Polars type.

    None means that there is no type to hold to: the name is empty or not one that columns
    of categories or numbers are written in.
    """
    if isinstance(spec, pl.DataType):
        return spec
    if isinstance(spec, type) and issubclass(spec, pl.DataType):
        return spec()
    name = str(spec)
    if match := _TIMESTAMP.fullmatch(name):
        unit = match[1] if match[1] != "s" else "ms"
        return pl.Datetime(unit, match[2])  # type: ignore[arg-type]
    if name.startswith("decimal"):
        return pl.Float64()
    return _NAMES.get(name.split("<", maxsplit=1)[0])


def as_text(values: pl.Series) -> pl.Series:
    """Return the canonical text of every value; NaN becomes null.

    Whole floats are written without a decimal point, so that integers read as floats
    because of a gap keep their text; decimals exactly, without zeros at their end; times
    with the parts of a second, those at midnight as their date; booleans as "true" and
    "false". The text of a value depends on that value and the column's type alone (R30). A
    moment that no calendar tells is written as its number, so that different ones differ.
    """
    dtype = values.dtype
    if dtype == pl.Date or isinstance(dtype, pl.Datetime):
        return _moment_text(values)
    if dtype == pl.String:
        return values
    if dtype.is_float():
        return _float_text(values)
    if dtype.is_decimal():
        return decimal_text(values.cast(pl.String))
    if isinstance(dtype, pl.Time | pl.Duration):
        # Casting drops the parts of a second, and two people could become one unit (R12).
        return values.dt.to_string("iso" if dtype == pl.Duration else "%H:%M:%S%.f")
    return values.cast(pl.String)


def within_calendar(values: pl.Series) -> pl.Series:
    """Return dates and times, those that no calendar tells held at the last that one does."""
    dtype, days = values.dtype, _MOST_DAYS
    if isinstance(dtype, pl.Datetime):
        days = min(days * 86_400 * PER_SECOND[dtype.time_unit], (1 << 63) - 1)
    return values.to_physical().clip(-days, days).cast(dtype)


def _moment_text(values: pl.Series) -> pl.Series:
    held = within_calendar(values)
    if values.dtype == pl.Date:
        text = held.cast(pl.String)
    else:
        text = held.dt.to_string("%Y-%m-%dT%H:%M:%S%.f").str.strip_suffix("T00:00:00")
    numbers = values.to_physical()
    return text.zip_with((numbers == held.to_physical()).fill_null(True), numbers.cast(pl.String))


def in_zone(values: pl.Series, dtype: str) -> pl.Series:
    """Return times of any zone by the clocks of the zone that a type names, if it names one.

    Databases, DuckDB and Spark give moments back by the clocks of UTC or of their session.
    """
    wanted = polars_dtype(dtype) if dtype.startswith("timestamp") else None
    zone = getattr(wanted, "time_zone", None)
    if zone is None or getattr(values.dtype, "time_zone", None) in (None, zone):
        return values
    return values.dt.convert_time_zone(zone)


def unit_text(values: pl.Series) -> pl.Series:
    """Return the text that names the unit of every row; different values differ in it (R12).

    Local times occur twice when clocks are set back, so times of a zone are told by UTC. Two
    people under one name would be bounded as one, and the guarantee would be false.
    """
    if isinstance(values.dtype, pl.Datetime) and values.dtype.time_zone is not None:
        values = values.dt.convert_time_zone("UTC")
    return as_text(values)


def decimal_text(texts: pl.Series) -> pl.Series:
    """Return decimals without zeros at their end: 12.50 as "12.5", 7.00 as "7", NaN as null."""
    whole = texts.str.contains(".", literal=True)
    short = texts.str.strip_chars_end("0").str.strip_chars_end(".")
    plain = short.zip_with(whole, texts).replace("-0", "0")
    return plain.set(plain == "NaN", None)


def _float_text(values: pl.Series) -> pl.Series:
    name = values.name
    column = pl.col(name)
    whole = (column == column.round()) & (column.abs() < 9.2e18)
    text = (
        pl.when(whole)
        .then(column.cast(pl.Int64, strict=False).cast(pl.String))
        .when(column.is_nan())
        .then(None)
        .otherwise(column.cast(pl.String))
    )
    return values.to_frame().select(text.alias(name)).to_series()


def typed_labels(labels: Sequence[str | None], dtype: pl.DataType) -> pl.Series:
    """Return category texts as `dtype`, or as text when that would change one of them."""
    text = pl.Series(labels, dtype=pl.String)
    if dtype == pl.String:
        return text
    if isinstance(dtype, pl.Categorical | pl.Enum):
        listed = [label for label in dict.fromkeys(labels) if label is not None]
        return text.cast(pl.Enum(listed))
    typed = _parsed(text, dtype)
    if typed is None:
        return text
    plain = text.str.to_lowercase() if dtype == pl.Boolean else text
    return typed if as_text(typed).equals(plain, check_names=False) else text


def _parsed(text: pl.Series, dtype: pl.DataType) -> pl.Series | None:
    if dtype.is_numeric():
        return text.cast(dtype, strict=False)
    reader = _READERS.get(dtype.base_type())
    if reader is None:
        return None
    try:
        values = [None if label is None else reader(label) for label in text]
    except (ValueError, KeyError):
        return None
    if isinstance(dtype, pl.Datetime) and dtype.time_zone is not None:
        local = pl.Series(values, dtype=pl.Datetime(dtype.time_unit)).dt
        return local.replace_time_zone(dtype.time_zone, ambiguous="earliest", non_existent="null")
    return pl.Series(values, dtype=dtype)


_READERS: dict[Any, Any] = {
    pl.Boolean: lambda text: {"true": True, "false": False}[text.lower()],
    pl.Date: dt.date.fromisoformat,
    pl.Datetime: dt.datetime.fromisoformat,
    pl.Time: dt.time.fromisoformat,
}


def dtype_name(dtype: pl.DataType) -> str:
    """Return the Arrow name of a Polars type, or "" for one that is not written."""
    for name, known in _NAMES.items():
        if known == dtype:
            return name
    if isinstance(dtype, pl.Datetime):
        zone = f", tz={dtype.time_zone}" if dtype.time_zone else ""
        return f"timestamp[{dtype.time_unit}{zone}]"
    return "dictionary" if isinstance(dtype, pl.Enum | pl.Categorical) else ""
