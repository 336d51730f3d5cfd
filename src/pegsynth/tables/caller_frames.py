"""Dataframes of the caller's own kind: in as Polars, out as they came.

The kind is recognised by the module of the class, so that neither pandas nor PyArrow is
imported for a caller who does not use it.

Columns of type object, which pandas keeps, may hold texts, numbers, dates and gaps side by side.
The text of an object depends on that object alone, so that no row changes how another one is read
(R30).
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal

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
    """Return the text of one object, None for a gap; TypeError for one that has no text."""
    name = type(value).__name__
    # pandas' own marks of a gap are NA and NaT.
    if value is None or name in ("NAType", "NaTType"):
        return None
    if isinstance(value, float | np.floating) and math.isnan(value):
        return None
    if isinstance(value, decimal.Decimal) and value.is_nan():
        return None
    for kinds, text in _TEXTS:
        if isinstance(value, kinds):
            return text(value)
    # pandas' month, quarter or week: its text tells it, and pandas reads it back.
    if name == "Period":
        return str(value)
    raise TypeError


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


MOST_COLUMNS = 10_000

_READABLE = (
    *(pl.String, pl.Boolean, pl.Categorical, pl.Enum, pl.Decimal, pl.Null),
    *(pl.Date, pl.Time, pl.Datetime, pl.Duration),
)
"""Types of columns, beside numbers, whose values have a text; extensions have none."""

FrameKind = Literal["pandas", "polars", "pyarrow"]


def frame_kind(data: object) -> FrameKind | None:
    """Say whose dataframe `data` is; None when it is none."""
    module = type(data).__module__.split(".")[0]
    name = type(data).__name__
    if module == "polars" and name in {"DataFrame", "LazyFrame"}:
        return "polars"
    if module == "pyarrow" and name in {"Table", "RecordBatch", "RecordBatchReader"}:
        return "pyarrow"
    return (
        "pandas"
        if any(
            base.__module__.split(".")[0] == "pandas" and base.__name__ == "DataFrame"
            for base in type(data).__mro__
        )
        else None
    )


def is_relation(data: object) -> bool:
    """Say whether `data` is a relation of DuckDB, whose rows are taken as a PyArrow table."""
    kind = type(data)
    return kind.__module__.split(".")[0] in ("duckdb", "_duckdb") and "Relation" in kind.__name__


def from_frame(data: Any) -> pl.DataFrame | pl.LazyFrame:
    """Return a dataframe as Polars; a lazy frame stays lazy."""
    kind = frame_kind(data)
    if kind == "polars":
        frame: pl.DataFrame | pl.LazyFrame = data
        return frame
    if kind == "pandas":
        columns = [
            _from_series(data.iloc[:, position].reset_index(drop=True), str(name))
            for position, name in enumerate(data.columns)
        ]
        check_names([column.name for column in columns], "the table")
        return pl.DataFrame(columns)
    import pyarrow as pa

    from pegsynth.tables.arrow_read import check_types, to_polars

    if is_relation(data):
        data = data.to_arrow_table()
    check_names(data.schema.names, "the table")
    check_types(data.schema, "the table")
    try:
        return to_polars(data.read_all() if hasattr(data, "read_all") else data)
    except (pa.ArrowException, pl.exceptions.PolarsError):
        raise DataError("the table cannot be read; check that PyArrow validates it") from None


def without_rows(data: Any) -> Any:
    """Return a dataframe, or a relation of DuckDB, with its columns and types and no row.

    A lazy frame stays as it is: it is not collected.
    """
    kind = frame_kind(data)
    if is_relation(data):
        return data.limit(0).to_arrow_table()
    if kind == "pyarrow":
        import pyarrow as pa

        return pa.Table.from_batches([], schema=data.schema)
    if kind == "pandas":
        return data.iloc[:0]
    return data


def to_kind(frame: pl.DataFrame, kind: FrameKind | None, like: Any = None) -> Any:
    """Return a Polars frame as the caller's kind.

    Parameters
    ----------
    frame
        The table.
    kind
        "pandas", "polars" or "pyarrow"; None means Polars.
    like
        The caller's own table: columns of the same name take its types where the values
        allow it. A pandas integer column with missing values becomes a nullable one;
        categories come from `frame`, that is from the schema, never from `like`, and
        so a Polars Categorical comes back as an Enum. A table of another kind, such as a
        stream, says nothing of types.
    """
    if like is not None and frame_kind(like) != kind:
        like = None
    if kind == "pandas":
        return _to_pandas(frame, like)
    if kind == "pyarrow":
        return _to_pyarrow(frame, None if is_relation(like) else like)
    types = {} if like is None else like.lazy().collect_schema()
    for name, dtype in types.items():
        # Categorical columns share one pool of texts, which holds those of `like`.
        if name not in frame.columns or isinstance(dtype, pl.Categorical | pl.Enum):
            continue
        with suppress(pl.exceptions.PolarsError):
            frame = frame.with_columns(pl.col(name).cast(dtype))
    return frame


def with_index(frame: Any, like: Any) -> Any:
    """Give a pandas frame the index of another one whose rows it holds; return it."""
    if frame_kind(like) == frame_kind(frame) == "pandas":
        frame.index = like.index
    return frame


def text_columns(data: Any) -> frozenset[str]:
    """Return the columns of a frame whose type says nothing of their values."""
    if frame_kind(data) != "pandas":
        return frozenset()
    return frozenset(str(name) for name, dtype in data.dtypes.items() if _holds_objects(dtype))


def _holds_objects(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


def _from_series(values: Any, name: str) -> pl.Series:
    """Return a pandas column; what its type leaves open is read value by value (R30)."""
    import pandas as pd
    import pyarrow as pa

    if isinstance(values.dtype, pd.CategoricalDtype):
        texts = object_texts(values.cat.categories.astype(object), name)
        codes = pl.Series(values.cat.codes.to_numpy().astype("int64"))
        return texts.gather(codes.set(codes < 0, None)).cast(pl.Categorical())
    if _holds_objects(values.dtype):
        # Columns of nothing but text are frequent, and pandas tells them quickly.
        if pd.api.types.infer_dtype(values) != "string":
            return object_texts(values, name)
        return pl.Series(name, pa.array(values, pa.large_string(), from_pandas=True))
    if isinstance(values.dtype, pd.PeriodDtype):
        return object_texts(values.astype(object), name)
    if isinstance(values.dtype, pd.IntervalDtype):
        raise DataError(
            f"the table: column {name!r} holds intervals; convert it to text with astype(str), or "
            "to numbers with .array.left"
        )
    try:
        found: Any = pl.from_pandas(values, nan_to_null=True)
    except (pa.ArrowException, pl.exceptions.PolarsError, TypeError, ValueError):
        raise DataError(
            f"the table: column {name!r} has a type that cannot be read; convert it to text with "
            "astype(str), to numbers or to dates"
        ) from None
    series: pl.Series = found
    return series.alias(name)


def check_names(names: list[str] | tuple[str, ...], source: str) -> None:
    """Refuse tables without columns, and empty or repeated column names."""
    if not names:
        raise DataError(f"{source}: the table has no columns")
    if len(names) > MOST_COLUMNS:
        raise DataError(
            f"{source}: the table has {len(names):,} columns, and at most {MOST_COLUMNS:,} can be "
            "used; drop some"
        )
    for position, name in enumerate(names, start=1):
        if not str(name).strip():
            raise DataError(f"{source}: column {position} has no name; give every column one")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise DataError(f"{source}: column {twice!r} appears twice; rename one of them")


def check_polars_types(schema: pl.Schema, source: str) -> None:
    """Refuse columns that hold anything but text, numbers, truth values, dates and times."""
    for name, dtype in schema.items():
        if not (dtype.is_numeric() or isinstance(dtype, _READABLE)):
            raise DataError(
                f"{source}: column {name!r} holds lists, structs, bytes or objects; turn it into "
                "columns of text, numbers or dates, or drop it"
            )


def _to_pandas(frame: pl.DataFrame, like: Any) -> Any:
    import pandas as pd

    table = frame.to_pandas()
    for column in frame:
        if column.dtype.is_integer() and column.null_count():
            # It would make floats of whole numbers with gaps.
            numbers, gaps = column.fill_null(0).to_numpy().copy(), column.is_null().to_numpy()
            table[column.name] = pd.Series(pd.arrays.IntegerArray(numbers, gaps.copy()))
    wanted = {} if like is None else {str(name): dtype for name, dtype in like.dtypes.items()}
    for name in frame.columns:
        if name in wanted:
            table[name] = _like_pandas(table[name], wanted[name])
    return table


def _like_pandas(values: Any, dtype: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    if isinstance(dtype, pd.CategoricalDtype):
        values = values.astype("category")
        if dtype.ordered != values.cat.ordered:
            values = values.cat.as_ordered() if dtype.ordered else values.cat.as_unordered()
        with suppress(TypeError, ValueError):
            kind = dtype.categories.dtype
            return values.cat.rename_categories(values.cat.categories.astype(kind))
        return values
    if values.isna().any() and dtype.kind in "iub" and not hasattr(dtype, "na_value"):
        dtype = {"i": "Int", "u": "UInt", "b": "boolean"}[dtype.kind] + (
            str(8 * dtype.itemsize) if dtype.kind in "iu" else ""
        )
    try:
        if _holds_objects(dtype):
            # Objects mark gaps by None, which every program knows.
            return values.astype(object).where(values.notna(), None)
        return values.astype(dtype)
    except (TypeError, ValueError, OverflowError, pa.ArrowException):
        # The schema writes values that the caller's type cannot hold.
        return values


def _to_pyarrow(frame: pl.DataFrame, like: Any) -> Any:
    import pyarrow as pa

    table = frame.to_arrow()
    for position, name in enumerate(table.column_names if like is not None else ()):
        index = like.schema.get_field_index(name)
        if index >= 0:
            with suppress(pa.ArrowException):
                column = table.column(position).cast(like.schema.field(index).type)
                table = table.set_column(position, name, column)
    return table
