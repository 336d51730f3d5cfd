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
from pegsynth.schema.feature import PRIVATE, Feature
from pegsynth.schema.guesses import guess_of_type
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
    """Draft a schema without reading a row.

    Parameters
    ----------
    data
        A path, a glob of paths, or a dataframe.
    unit
        Column that names the privacy unit; it is dropped.
    dialect
        How a text file is written, where that is not usual; nothing is recognised.
    types
        Arrow types of columns that the table does not declare, such as those of a CSV file.
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
    common: dict[str, Any] = {
        "missing": TYPED_MISSING if typed else FILE_MISSING,
        "dtype": dtype or "string",
        "notes": suggest.role_note(name),
    }
    # What is no number, or neither true nor false, must not refuse a table: that would tell.
    elsewhere: Any = "error" if typed else "category"
    if dtype == "bool":
        return Feature(name, categories=_TRUTH, unknown=elsewhere, **common)
    edges: Any = PRIVATE
    if known is not None and known.is_numeric():
        return Feature(name, "numeric", edges=edges, unknown=elsewhere, **common)
    if known is not None and (dated := guess_of_type(known)) is not None:
        kind: Any = dated.kind
        return Feature(name, kind, edges=edges, unknown=elsewhere, **common)
    categories: Any = PRIVATE
    return Feature(name, categories=categories, **common)
