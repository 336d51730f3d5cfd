"""Pairs of tables that showed a break, and readers as they were before it was mended (R30).

The readers are built on nothing but the interface of readers, so that they stay what they
are whatever becomes of the shipped ones.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import time
from decimal import Decimal
from pathlib import Path

import polars as pl

from checks.doors import readers as door_readers
from checks.doors.comparing import Door
from checks.doors.readers import DOORS
from checks.doors.reading import read_here
from checks.doors.tables import ANY, DECIMALS, FOLDER, ROW, UNIT, Holding, Pair
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.dialect_guess import recognised
from pegsynth.tables.reader import TableReader
from pegsynth.tables.table_input import open_table

BY_NAME = {door.name: door for door in DOORS}


def pair_of(held, features, rows, extra, **changes):
    """A pair whose rows are given without their numbers."""
    numbered = [(str(number), *row) for number, row in enumerate(rows)]
    names = (Feature(ROW, categories=tuple(map(str, range(40)))), *features)
    schema = Schema((*names, Feature(UNIT, role="identifier")), UNIT, 1, reviewed=True)
    columns = {ROW: "string"} | held
    given = Pair(schema, columns, tuple(numbered), ("39", *extra), 0, tuple(numbered[:1]), 0)
    return replace(given, **changes)


NUMBER = {"missing": ("",), "unknown": "category"}
IDS = [1 << 60, (1 << 60) + 1, (1 << 60) + 2]
FOUND = {
    "SQLite: a unit stored as a float": (
        "SQLite table",
        pair_of({UNIT: ANY}, (), [(each,) for each in IDS], (2.0**60,)),
    ),
    "SQLite: one text among numbers": (
        "SQLite table",
        pair_of(
            {"a": ANY, UNIT: ANY},
            (Feature("a", categories=("1", "x")),),
            [(1.0, "p"), (1, "q")],
            ("x", "r"),
        ),
    ),
    "SQLite: one broken number among whole ones": (
        "SQLite table",
        pair_of(
            {"a": ANY, UNIT: ANY},
            (Feature("a", "numeric", edges=(0, 10, 20)),),
            [(5, "p"), (12, "q")],
            (12.5, "r"),
        ),
    ),
    "SQLite: a query that looks at other rows": (
        "SQLite query",
        pair_of(
            {UNIT: ANY},
            (),
            [("p",), ("q",)],
            ("q",),
            style=len(door_readers.PLAIN_QUERIES) << 12,
        ),
    ),
    "a lazy frame in another order": (
        "Polars, reordered",
        pair_of({UNIT: "string"}, (), [(f"p{i % 3}",) for i in range(12)], ("p0",), style=3 << 12),
    ),
    "decimal identifiers": (
        "Parquet",
        pair_of(
            {UNIT: "decimal128(38, 6)"},
            (),
            [(Decimal(f"1152921504606846976.{i}"),) for i in range(4)],
            (Decimal("1"),),
        ),
    ),
    "times of day within one second": (
        "Parquet",
        pair_of(
            {UNIT: "time64[us]"},
            (),
            [(time(23, 59, 59, each),) for each in range(4)],
            (time(23, 59, 59, 500_000),),
        ),
    ),
    "a folder of another name": (
        "Parquet partitions",
        pair_of(
            {"ward": "string", UNIT: "string"},
            (Feature("ward", categories=("1", "2"), unknown="category"),),
            [("1", "p"), ("2", "q")],
            ("none", "r"),
        ),
    ),
    "an object that is a float": (
        "pandas, objects",
        pair_of(
            {"a": ANY, UNIT: ANY},
            (Feature("a", categories=(str(1 << 53), str((1 << 53) + 1)), unknown="category"),),
            [((1 << 53) + 1, "p"), (1 << 53, "q")],
            (0.5, "r"),
        ),
    ),
    "categories of several types": (
        "pandas, categories",
        pair_of(
            {"a": ANY, UNIT: "string"},
            (Feature("a", categories=("1", "x")),),
            [(1, "p")],
            ("x", "r"),
        ),
    ),
    "NaN as a text of its own": (
        "CSV",
        pair_of(
            {"a": "string", UNIT: "string"},
            (Feature("a", "numeric", edges=(0, 10, 20), not_applicable=("NaN",), **NUMBER),),
            [("NaN", "p"), ("5", "q"), (None, "r")],
            ("abc", "s"),
            style=3,
        ),
    ),
}


def reader_of(frame, **changes):
    """Return a reader of a frame as if it were a database or a file."""

    def part(wanted):
        yield frame.select(wanted.columns).slice(wanted.skip)

    names = tuple(frame.columns)
    given = TableReader(names, "a twin", True, (part,), dict(frame.schema))
    return replace(given, **changes)


def stored(folder, pair, rows):
    """The rows of an SQLite table as Python values, after its own conversions."""
    path = BY_NAME["SQLite table"].build(folder, pair, rows).uri.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT * FROM stays").fetchall()
    return {name: [row[index] for row in found] for index, name in enumerate(pair.held)}


def exact(value):
    """The text of one value, whatever the others are."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def looked_at(values):
    """A column as the type that a look at all of its values suggests."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds or bytes in kinds or not kinds:
        return pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)
    if float in kinds:
        return pl.Series([None if v is None else float(v) for v in values], dtype=pl.Float64)
    return pl.Series(values, dtype=pl.Int64)


def sqlite_twin(*, units=False, features=False, types=False):
    """A reader of SQLite that looks at all values of some columns before it reads one."""

    def build(folder, pair, rows):
        frame, dtypes = {}, {}
        for name, values in stored(folder, pair, rows).items():
            looked = looked_at(values)
            whole = units if name == UNIT else features
            frame[name] = looked if whole else pl.Series(map(exact, values), dtype=pl.String)
            dtypes[name] = looked.dtype if types else pl.String()
        return reader_of(pl.DataFrame(frame), dtypes=dtypes)

    return build


def trusting_query(folder, pair, rows):
    """A reader that takes every query for one that selects rows one by one."""
    return replace(
        open_table(BY_NAME["SQLite query"].build(folder, pair, rows)), selection="rowwise"
    )


def lazy_twin(folder, pair, rows):
    """A lazy frame that is run anew for every pass, its rows told by their position."""
    frame = BY_NAME["Polars, reordered"].build(folder, pair, rows)

    def part(wanted):
        yield frame.select(wanted.columns).collect().slice(wanted.skip)

    return reader_of(frame.collect(), parts=(part,))


def decimals_twin(folder, pair, rows):
    """A reader that takes decimals for floats."""
    frame = door_readers.polars_frame(pair, rows)
    return reader_of(frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64)))


def folders_twin(folder, pair, rows):
    """A reader that takes the names of folders for numbers as long as all of them are."""
    frame = door_readers.polars_frame(pair, rows)
    names = frame.get_column(FOLDER)
    whole = names.drop_nulls().str.contains("^(0|-?[1-9][0-9]{0,17})$").all()
    return reader_of(frame.with_columns(names.cast(pl.Int64) if whole else names))


def objects_twin(folder, pair, rows):
    """A reader that lets Polars guess the type of a column of Python objects."""
    try:
        columns = {
            name: pl.Series([row[index] for row in rows], strict=False)
            for index, name in enumerate(pair.held)
        }
        return reader_of(pl.DataFrame(columns))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.DataFrame({"mixed": []})


def workbook_twin(folder, pair, rows):
    """A reader that lets the library guess the type of a column of a workbook."""
    import fastexcel

    path = BY_NAME["Excel"].build(folder, pair, rows)
    return reader_of(fastexcel.read_excel(path).load_sheet(0).to_polars())


def sniffing(source, schema):
    """Read a text file in the dialect that it seems to have."""
    return read_here(source, replace(schema, dialect=recognised(Path(source), Dialect())))


TEXT = BY_NAME["text of another dialect"]
SQL, OBJECTS = BY_NAME["SQLite table"].holding, BY_NAME["pandas, objects"].holding
TWINS = {
    "1a, units": (Door("twin", SQL, sqlite_twin(units=True)), "units of"),
    "1b, codes": (Door("twin", SQL, sqlite_twin(features=True)), "codes of"),
    "1b, refusals": (Door("twin", SQL, sqlite_twin(features=True)), "a refusal depends"),
    "1c, types": (Door("twin", SQL, sqlite_twin(types=True)), "types differ"),
    "2, queries": (Door("twin", SQL, trusting_query), "codes of"),
    "3, lazy frames": (
        Door("twin", Holding(("string", "int64")), lazy_twin, ordered=False),
        "units have other than",
    ),
    "5, decimals": (Door("twin", Holding(DECIMALS), decimals_twin), "different units"),
    "6, folders": (Door("twin", Holding(("string",), folder=True), folders_twin), "types differ"),
    "8, objects, types": (Door("twin", OBJECTS, objects_twin), "types differ"),
    "8, objects, codes": (Door("twin", OBJECTS, objects_twin), "codes of"),
    "9, workbooks": (Door("twin", BY_NAME["Excel"].holding, workbook_twin), "types differ"),
    "9, dialects": (Door("twin", TEXT.holding, TEXT.build, read=sniffing), "a refusal depends"),
}
