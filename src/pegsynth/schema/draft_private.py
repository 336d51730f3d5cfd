"""A first schema that tells nothing of the data: from names and declared types alone.

What a column may hold is left to the release, which measures edges (R21) and finds categories
(R29) and pays for both. No row is read, so that nothing here has to be declared public but what a
person adds: roles, unit and rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegsynth.errors import SchemaError
from pegsynth.schema import suggest
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.draft import declared_types, stated_dialect, unit_column
from pegsynth.schema.dtypes import polars_dtype
from pegsynth.schema.feature import Feature
from pegsynth.schema.guesses import guess_of_type
from pegsynth.schema.keys import PRIVATE
from pegsynth.schema.schema import Schema
from pegsynth.schema.tally import FILE_MISSING, TYPED_MISSING
from pegsynth.tables.reader import TableReader
from pegsynth.tables.table_input import opened

_TRUTH = ("false", "true")


def draft_private(
    data: Any,
    *,
    unit: str | None = None,
    dialect: Dialect | None = None,
    types: Mapping[str, str] | None = None,
) -> Schema:
    """Draft a schema without reading a row; see `Schema.draft`.

    `dialect` says how a text file is written, where that is not usual; nothing is recognised.
    """
    with opened(data, dialect=dialect or Dialect()) as table:
        stated = dict(types or {})
        for name in (*stated, *((unit,) if unit is not None else ())):
            if name not in table.columns:
                raise SchemaError(f"{table.source}: there is no column {name!r}")
        declared = declared_types(table)
        columns = tuple(
            unit_column(name)
            if name == unit
            else _feature(
                table, name, stated.get(name, declared[name]), declared=name not in stated
            )
            for name in table.columns
        )
        return Schema(columns, unit=unit, dialect=stated_dialect(table))


def _feature(table: TableReader, name: str, dtype: str, *, declared: bool) -> Feature:
    known = polars_dtype(dtype)
    if dtype and known is None and not declared:
        raise SchemaError(
            f"column {name!r}: the type {dtype!r} is not known; write an Arrow type such as int64, "
            "double, string or bool"
        )
    typed = table.has_type(name)
    # What is no number, or neither true nor false, must not refuse a table: that would tell.
    elsewhere = "error" if typed else "category"
    if dtype == "bool":
        said: dict[str, Any] = {"categories": _TRUTH, "unknown": elsewhere}
    elif known is not None and known.is_numeric():
        said = {"kind": "numeric", "edges": PRIVATE, "unknown": elsewhere}
    elif known is not None and (dated := guess_of_type(known)) is not None:
        said = {"kind": dated.kind, "edges": PRIVATE, "unknown": elsewhere}
    else:
        said = {"categories": PRIVATE}
    return Feature(
        name,
        missing=TYPED_MISSING if typed else FILE_MISSING,
        dtype=dtype or "string",
        notes=suggest.role_note(name),
        **said,
    )
