"""A long table as a reader of wide rows, one for every unit, in bounded memory (R24).

When there are too many rows to hold at once, the table is read again for every share of the units
(`held_rows`).

Two tables as one long one, for whoever compares whole units: rows with their unit's features.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.codec.codec import check_both
from pegsynth.codec.folding import UNIT, Folding, wide_types
from pegsynth.codec.held_rows import HeldRows
from pegsynth.errors import DataError
from pegsynth.schema.dtypes import unit_text
from pegsynth.schema.panel import Panel
from pegsynth.schema.schema import Schema
from pegsynth.tables.reader import TableReader, Wanted, is_blank, missing_units
from pegsynth.tables.table_input import TablePair, open_table

MOST_CELLS = 1 << 26
"""Cells of long rows to hold at once; a text takes 16 bytes and more."""


def folded_reader(
    reader: TableReader, schema: Schema, *, most_cells: int = MOST_CELLS
) -> TableReader:
    """Return a reader of the wide rows of a panel.

    Parameters
    ----------
    schema
        The codebook of the long table.
    """
    folding = Folding(schema)
    rows = _second(reader, folding)
    dropped = {column.name for column in schema.columns if not column.modelled}
    tables = [(rows, folding.needed)]
    tables += [] if rows is reader else [(reader, folding.needed_of_units)]
    for table, needed in tables:
        known = {*needed, *dropped}
        check_both(table.columns, needed=needed, known=known, source=table.source)
    columns = folding.wide_names
    units = None if rows is reader else reader
    part = FoldedPart(rows, folding, max(most_cells // len(folding.needed), 1), units)
    return replace(
        reader,
        columns=columns,
        parts=(part,),
        dtypes=wide_types({**rows.dtypes, **reader.dtypes}, folding.panel, schema.names),
        untyped=frozenset(columns),
        # Wide rows are in the order of their units' names, however the long ones come.
        steady=True,
        once=reader.once or rows.once,
        children=None,
        expected_rows=None,
        folded=True,
        states=(),
        _arrow_schema=None,
    )


def _second(reader: TableReader, folding: Folding) -> TableReader:
    """Return the table that holds the rows of units: the same one, or the second of two."""
    tables = folding.panel.tables
    if tables is None:
        if reader.children is not None:
            raise DataError(
                f"{reader.children.source}: a second table is given, and the schema describes one; "
                "describe both under [[tables]]"
            )
        return reader
    if reader.children is None:
        raise DataError(
            f"{reader.source}: the schema describes two tables, {tables[0]!r} and {tables[1]!r}; "
            "give both, in this order"
        )
    return reader.children


@dataclass(frozen=True)
class FoldedPart:
    """The wide rows of a long table, or of two tables.

    Parameters
    ----------
    reader
        The rows of units.
    most
        Rows to hold at once.
    units
        The first of two tables.
    """

    reader: TableReader
    folding: Folding
    most: int
    units: TableReader | None = None

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the wide rows that are wanted."""
        return wanted.after_skip(wide.select(wanted.columns) for wide in self._wide())

    def _wide(self) -> Iterator[pl.DataFrame]:
        share, shares = 0, 1
        while share < shares:
            held = self._held(share, shares)
            rows, shares = held.frame(), held.shares
            units = None if self.units is None else self._units(self.units, held, rows)
            if (rows if units is None else units).height:
                yield from self.folding.parts(rows, units)
            share += 1

    def _held(self, share: int, shares: int) -> HeldRows:
        """Return the prepared rows of a share."""
        # A table that can be read once has to be held whole.
        key = None if self.reader.once else UNIT
        held = HeldRows(_as_they_are, self.most, key=key, share=share, shares=shares)
        blank = 0
        for batch in self.reader.batches(self.folding.needed):
            rows = self.folding.prepared(batch)
            blank += int(is_blank(rows.get_column(UNIT)).sum())
            held.add(rows)
        if blank:
            raise missing_units(self.reader.source, self.folding.panel.unit, blank)
        return held

    def _units(self, first: TableReader, held: HeldRows, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the units of a share of the first table; every row must have one."""
        source, key = first.source, self.folding.panel.unit
        parts, blank = [], 0
        for batch in first.batches(self.folding.needed_of_units):
            prepared = self.folding.prepared_units(batch)
            blank += int(is_blank(prepared.get_column(UNIT)).sum())
            parts.append(held.of_share(prepared))
        if blank:
            raise missing_units(source, key, blank)
        units = pl.concat(parts)
        names = units.get_column(UNIT)
        if names.n_unique() < len(names):
            raise DataError(
                f"{source}: key {key!r}: a value stands in several rows; it has to name every row "
                "of this table, so leave one of them"
            )
        if not rows.get_column(UNIT).is_in(names.implode()).all():
            raise DataError(
                f"{self.reader.source}: key {key!r}: a row names a value that is not in {source}; "
                "add its row there, or drop such rows"
            )
        return units


def _as_they_are(rows: pl.DataFrame) -> pl.DataFrame:
    return rows


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
