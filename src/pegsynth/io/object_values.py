"""Python objects as text, each for itself: what pandas keeps in columns of type object.

Such a column may hold texts, numbers, dates and gaps side by side. The text of an object
depends on that object alone, so that no row changes how another one is read (R30).
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import polars as pl

from pegsynth.errors import DataError
from pegsynth.schema.dtypes import as_text


def object_texts(values: Iterable[Any], name: str) -> pl.Series:
    """Return the canonical text of every object; gaps of any kind become null.

    Raises
    ------
    DataError
        An object is neither text nor a number, a truth value, a date, a period or a time.
    """
    known: dict[tuple[type, Any], str | None] = {}
    texts: list[str | None] = []
    strange = 0
    for value in values:
        if type(value) is str:
            texts.append(value)
            continue
        try:
            key = type(value), value
            if key not in known:
                known[key] = _text(value)
            texts.append(known[key])
        except TypeError:
            strange += 1
    if strange:
        raise DataError(
            f"the table: column {name!r} holds {strange} objects that are not text, numbers, "
            "dates or times; convert it to text with astype(str), or to one type"
        )
    return pl.Series(name, texts, dtype=pl.String)


def _text(value: Any) -> str | None:
    """Return the text of one object; TypeError for one that has none."""
    if _is_gap(value):
        return None
    for kinds, text in _TEXTS:
        if isinstance(value, kinds):
            return text(value)
    # pandas' month, quarter or week: its text tells it, and pandas reads it back.
    if type(value).__name__ == "Period":
        return str(value)
    raise TypeError


def _is_gap(value: Any) -> bool:
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return True
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    # pandas' own marks: NA and NaT.
    return type(value).__name__ in ("NAType", "NaTType")


def _of_column(value: Any) -> str:
    """Return the text that a column of nothing but this value would give."""
    text: str = as_text(pl.Series([value]))[0]
    return text


def _decimal(value: decimal.Decimal) -> str:
    if not value.is_finite():
        return str(value)
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def _time(value: dt.datetime) -> str:
    # Times of different zones are equal when they are the same moment, and so is their text.
    if value.tzinfo is not None:
        return value.astimezone(dt.UTC).isoformat()
    # pandas counts nanoseconds, which a column made of one object would cut off.
    return value.isoformat() if getattr(value, "nanosecond", 0) else _of_column(value)


def _length(value: dt.timedelta) -> str:
    nanoseconds = getattr(value, "nanoseconds", 0)
    return f"{_of_column(value)}+{nanoseconds}ns" if nanoseconds else _of_column(value)


_TEXTS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (str, str),
    ((bool, np.bool_), lambda value: str(bool(value)).lower()),
    ((int, np.integer), lambda value: str(int(value))),
    ((float, np.floating), _of_column),
    (decimal.Decimal, _decimal),
    (dt.datetime, _time),
    (dt.date, dt.date.isoformat),
    (dt.time, _of_column),
    (dt.timedelta, _length),
)
