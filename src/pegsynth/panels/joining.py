"""Two tables as one long one, for whoever compares whole units: rows with their unit's features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.io.reader import TableReader
from pegsynth.io.table_input import TablePair, open_table
from pegsynth.schema.dtypes import unit_text
from pegsynth.schema.panel import Panel
from pegsynth.schema.schema import Schema


def joined(units: pl.DataFrame, rows: pl.DataFrame, panel: Panel) -> pl.DataFrame:
    """Return the rows of the second table with the features of their unit."""
    key = panel.unit
    units, rows = (each.with_columns(unit_text(each.get_column(key))) for each in (units, rows))
    features = [name for name in panel.fixed if name in units.columns]
    return rows.join(units.select(key, *features), on=key, how="inner", maintain_order="left")


def as_one(table: Any, schema: Schema) -> Any:
    """Return two tables, given as a pair, as one; any other table as it is."""
    if schema.panel is None or schema.panel.tables is None or not isinstance(table, tuple):
        return table
    with open_table(TablePair(*table), dialect=schema.dialect) as reader:
        return joined_original(reader, schema)


def pair_or_several(tables: Any, schema: Schema) -> Any:
    """Return a pair of two tables as a list of one; several tables as they are."""
    two = schema.panel is not None and schema.panel.tables is not None
    return [tables] if two and isinstance(tables, tuple) else tables


def joined_original(reader: TableReader, schema: Schema) -> pl.DataFrame:
    """Return two tables that are open as one."""
    if schema.panel is None or reader.children is None:
        raise ValueError("there is one table")
    panel = schema.panel
    changing = [name for name in schema.names if name not in panel.fixed]
    units = pl.concat(list(reader.batches([panel.unit, *panel.fixed])))
    rows = pl.concat(list(reader.children.batches([panel.unit, *changing])))
    return joined(units, rows, panel)


def joined_files(units: Path, rows: Path, schema: Schema) -> pl.DataFrame:
    """Return two published tables as one."""
    if schema.panel is None:
        raise ValueError("the schema has no panel")
    tables = []
    for path in (units, rows):
        # Units of a release may have no rows at all.
        with open_table(str(path), confidential=True) as reader:
            tables.append(pl.concat(list(reader.batches())))
    return joined(tables[0], tables[1], schema.panel)


def batched_pairs(paths: Sequence[Path]) -> Iterator[tuple[Path, Path]]:
    """Yield paths two by two."""
    for place in range(0, len(paths), 2):
        yield paths[place], paths[place + 1]
