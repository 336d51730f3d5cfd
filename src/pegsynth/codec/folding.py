"""Rows of every unit of a panel as one wide row, by the values of that unit alone (R24).

Rows are put in the order of their time. Rows of the same time are in the order of their other
values, those without a known time come last, and the first `most` count. Of a fixed feature the
first known value counts. Nothing depends on where rows stand in the table or on other units, so
adding or removing a unit adds or removes one wide row.

`folded_reader` reads a long table, or two, as wide rows in bounded memory: when there are too many
rows to hold at once, the table is read again for every share of the units (`HeldRows`).
`CountedRows` says which rows of a long table count. `joined` makes one table of two, for whoever
compares whole units: rows with their unit's features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.codec.code_table import HeldRows
from pegsynth.codec.codec import check_both
from pegsynth.codec.encoding import ColumnEncoder, moments_of
from pegsynth.errors import DataError
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.dtypes import as_text, unit_text
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.panel import ABSENT, Panel
from pegsynth.schema.schema import Schema
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.reader import TableReader, Wanted, is_blank, missing_units
from pegsynth.tables.table_input import TablePair, open_table

MOST_HELD = 1 << 20
MOST_CELLS = 1 << 26
"""Cells of long rows to hold at once; a text takes 16 bytes and more."""


UNIT, SPECIAL, TIME, _ROW = "unit", "special", "time", "row"
_MOST_WHOLE = 2.0**64 - 2.0**11
"""The largest whole number that a float and 64 bits hold alike."""
_LARGEST = float(np.finfo(np.float64).max)
MOST_UNITS = 1 << 16
"""Units whose wide rows are made at once."""


@dataclass(frozen=True)
class Folding:
    """How a long table becomes a wide one.

    Parameters
    ----------
    schema
        The codebook of the long table.
    """

    schema: Schema

    @property
    def panel(self) -> Panel:
        """How rows belong together."""
        if self.schema.panel is None:
            raise ValueError("the schema has no panel")
        return self.schema.panel

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that are read of the long table, or of the second of two."""
        return (self.panel.unit, *(feature.name for feature in self._features))

    @property
    def needed_of_units(self) -> tuple[str, ...]:
        """Columns that are read of the first of two tables."""
        return (self.panel.unit, *self.panel.fixed)

    @property
    def _features(self) -> tuple[Feature, ...]:
        """Features of the long table, or of the second of two."""
        features = self.schema.features
        if self.panel.tables is None:
            return features
        return tuple(each for each in features if each.name not in self.panel.fixed)

    @property
    def wide_names(self) -> tuple[str, ...]:
        """Features of the wide table."""
        return wide_schema(self.schema).names

    def prepared(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Return units, times and texts of rows, each by itself (R30)."""
        schema, time = self.schema, self.schema[self.panel.time]
        special, numbers = _times(time, batch.get_column(time.name), schema)
        columns = [
            unit_text(batch.get_column(self.panel.unit)).alias(UNIT),
            pl.Series(SPECIAL, special),
            pl.Series(TIME, numbers),
            *(
                text_of(feature, batch.get_column(feature.name), schema).alias(_name(place))
                for place, feature in enumerate(self._features)
            ),
        ]
        return pl.DataFrame(columns)

    def prepared_units(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Return units and texts of rows of the first of two tables, each by itself (R30)."""
        schema, panel = self.schema, self.panel
        texts = (text_of(schema[name], batch.get_column(name), schema) for name in panel.fixed)
        units = unit_text(batch.get_column(panel.unit)).alias(UNIT)
        return pl.DataFrame([units, *texts])

    def fold(self, rows: pl.DataFrame, units: pl.DataFrame | None = None) -> pl.DataFrame:
        """Return a wide row for every unit of prepared rows, in the order of their names.

        Parameters
        ----------
        units
            Prepared rows of the first of two tables, one for each unit.
        """
        return pl.concat(list(self.parts(rows, units)))

    def parts(
        self, rows: pl.DataFrame, units: pl.DataFrame | None = None, *, size: int = MOST_UNITS
    ) -> Iterator[pl.DataFrame]:
        """Yield the same in parts of so many units: wide rows take more room than long ones."""
        rows = in_order(rows)
        begins, counts = units_of(rows)
        starts = begins
        own: dict[str, pl.Series] = {}
        if units is not None:
            units = units.sort(UNIT)
            names = rows.get_column(UNIT).gather(starts)
            place_of = pl.DataFrame({UNIT: names, "_start": starts, "_count": counts})
            found = units.select(UNIT).join(place_of, on=UNIT, how="left", maintain_order="left")
            starts, counts = (
                found.get_column(n).fill_null(0).to_numpy() for n in found.columns[1:]
            )
            own = {name: units.get_column(name) for name in self.panel.fixed}
        kept = np.minimum(counts, self.panel.most)
        own[self.panel.count] = pl.Series(kept)
        changing: list[tuple[str, pl.Series, pl.Series]] = []
        for place, feature in enumerate(self._features):
            values = rows.get_column(_name(place))
            if feature.name in self.panel.fixed:
                own[feature.name] = values.gather(_first_known(feature, values, starts))
                continue
            later = values
            if feature.name == self.panel.time and feature.kind == "numeric":
                later = self._since(feature, rows, begins)
            changing.append((feature.name, values, later))
        ordered = self.wide_names
        for first in range(0, max(len(starts), 1), size):
            part = slice(first, first + size)
            made = {name: column[part] for name, column in own.items()}
            for name, values, later in changing:
                for position in self.panel.positions:
                    column = values if position == 1 else later
                    made[self.panel.at(name, position)] = _at(
                        column, starts[part], kept[part], position
                    )
            yield pl.DataFrame([made[name].alias(name) for name in ordered])

    def _since(self, time: Feature, rows: pl.DataFrame, begins: Int64) -> pl.Series:
        """Return how long after the row before of the same unit every row is."""
        numbers = rows.get_column(TIME).to_numpy()
        known = rows.get_column(SPECIAL).to_numpy() == 0
        follows = known.copy()
        follows[1:] &= known[:-1]
        follows[begins] = False
        later = np.flatnonzero(follows)
        since = np.full(len(numbers), np.nan)
        # The difference of two floats can overflow; what is held here is beyond all bins.
        with np.errstate(over="ignore"):
            differences = numbers[later] - numbers[later - 1]
        since[later] = np.minimum(differences, _MOST_WHOLE if time.integer else _LARGEST)
        texts = pl.Series(since).fill_nan(None)
        return NumberText(self.schema.dialect).texts(
            texts.cast(pl.UInt64) if time.integer else texts
        )


def _name(place: int) -> str:
    return f"c{place}"


def text_of(feature: Feature, values: pl.Series, schema: Schema) -> pl.Series:
    """Return values as texts that mean the same, so that absent rows can have one as well."""
    if values.dtype == pl.String:
        return values
    if feature.kind in TEMPORAL:
        written = DateText(feature)
        moments = written.typed(values)
        return as_text(values) if moments is None else written.written(moments)
    if feature.kind == "numeric":
        return NumberText(schema.dialect).texts(values)
    return as_text(values)


def _times(time: Feature, values: pl.Series, schema: Schema) -> tuple[Int64, Float64]:
    """Return for every row 0 and its time, or a number for why it has none."""
    if not time.binned:
        codes = _codes(time, values, schema)
        special = np.where(codes < time.bin_count, 0, codes + 1)
        return special, np.where(special == 0, codes, 0).astype(np.float64)
    one_bin = replace(
        time,
        edges=(0.0, 1.0),
        private_edges=False,
        lowest=None,
        highest=None,
        bins=None,
        inside=None,
        recoding=None,
        weekday=False,
        shares=(),
    )
    codes = _codes(one_bin, values, schema)
    special = np.where(codes == 0, 0, codes + 1)
    if time.kind in TEMPORAL:
        numbers = moments_of(DateText(time), values)
    elif values.dtype.is_numeric() or values.dtype == pl.Boolean:
        numbers = values.cast(pl.Float64).to_numpy().copy()
    else:
        numbers = NumberText(schema.dialect).numbers(as_text(values)).to_numpy().copy()
    special = np.where((special == 0) & np.isnan(numbers), 1, special)
    return special, np.where(special == 0, np.nan_to_num(numbers), 0.0)


def _codes(feature: Feature, values: pl.Series, schema: Schema) -> Int64:
    encoder = ColumnEncoder(feature, spare=True, numbers=NumberText(schema.dialect))
    return encoder.encode(values).astype(np.int64)


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort rows by unit and time, and those that are alike in both by all other values."""
    others = [name for name in rows.columns if name not in (UNIT, SPECIAL, TIME, _ROW)]
    return rows.sort([UNIT, SPECIAL, TIME, *others])


def units_of(rows: pl.DataFrame) -> tuple[Int64, Int64]:
    """Return where the rows of every unit begin, and how many there are; rows are in order."""
    runs = rows.get_column(UNIT).rle().struct.field("len").to_numpy().astype(np.int64)
    return np.cumsum(runs) - runs, runs


def _at(values: pl.Series, starts: Int64, counts: Int64, position: int) -> pl.Series:
    """Return the value of every unit at a position."""
    absent = pl.Series([ABSENT]).new_from_index(0, len(starts))
    if not len(values):
        return absent
    found = values.gather(np.minimum(starts + position - 1, len(values) - 1))
    if (counts >= position).all():
        return found
    return found.zip_with(pl.Series(counts >= position), absent)


def _first_known(feature: Feature, values: pl.Series, starts: Int64) -> Int64:
    """Return where the first value of every unit stands that is not missing; else its first."""
    stripped = values.str.strip_chars()
    missing = [*(text.strip() for text in feature.missing), ""]
    unknown = (stripped.is_null() | stripped.is_in(missing)).to_numpy()
    if not unknown.any():
        return starts
    places = np.where(unknown, len(values), np.arange(len(values)))
    first = np.minimum.reduceat(places, starts)
    ends = np.append(starts[1:], len(values))
    found: Int64 = np.where(first < ends, first, starts)
    return found


class CountedRows:
    """Looks at the rows of a panel, batch by batch.

    Parameters
    ----------
    schema
        The codebook of the long table; two tables are looked at as one.
    """

    def __init__(self, schema: Schema, *, most_held: int = MOST_HELD) -> None:
        if schema.panel is None:
            raise ValueError("the schema has no panel")
        panel = replace(schema.panel, tables=None, least=1)
        self._folding = Folding(replace(schema, panel=panel))
        self._most, self._rows = panel.most, 0
        self._held = HeldRows(self._counting, most_held)

    def add(self, batch: pl.DataFrame) -> None:
        """Take in the next rows."""
        numbers = pl.Series(_ROW, np.arange(self._rows, self._rows + batch.height))
        self._held.add(self._folding.prepared(batch).with_columns(numbers))
        self._rows += batch.height

    def mask(self) -> NDArray[np.bool_]:
        """Return for every row whether it counts."""
        counted = np.zeros(self._rows, dtype=bool)
        if self._rows:
            counted[self._held.frame().get_column(_ROW).to_numpy()] = True
        return counted

    def _counting(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Drop rows that come after enough others of their unit."""
        rows = in_order(rows)
        begins, counts = units_of(rows)
        position = np.arange(rows.height) - np.repeat(begins, counts)
        return rows.filter(pl.Series(position < self._most))


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
    # Wide columns have the types that their long columns declare.
    panel, declared = folding.panel, {**rows.dtypes, **reader.dtypes}
    types = {
        panel.at(name, position): declared[name]
        for name in schema.names
        for position in panel.positions
        if name in declared
    }
    part = FoldedPart(rows, folding, max(most_cells // len(folding.needed), 1), units)
    return replace(
        reader,
        columns=columns,
        parts=(part,),
        dtypes=types,
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
        held = HeldRows(lambda rows: rows, self.most, key=key, share=share, shares=shares)
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


def joined(units: pl.DataFrame, rows: pl.DataFrame, panel: Panel) -> pl.DataFrame:
    """Return the rows of the second table with the features of their unit."""
    key = panel.unit
    units, rows = (each.with_columns(unit_text(each.get_column(key))) for each in (units, rows))
    features = [name for name in panel.fixed if name in units.columns]
    return rows.join(units.select(key, *features), on=key, how="inner", maintain_order="left")


def as_one(table: Any, schema: Schema, *, may_be_empty: bool = False) -> Any:
    """Return two tables, given as a pair, as one; any other table as it is."""
    if schema.panel is None or schema.panel.tables is None or not isinstance(table, tuple):
        return table
    pair = TablePair(*table)
    with open_table(pair, dialect=schema.dialect, confidential=may_be_empty) as reader:
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
