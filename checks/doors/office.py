"""The doors of offices: text of other dialects, SPSS, Stata, SAS, Excel, DuckDB.

Each writes rows as far as its format can hold them. A value that it cannot hold is written as
another one, so that no two values become one by being written.
"""

from __future__ import annotations

import datetime as dt
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from checks.doors.comparing import Door
from checks.doors.reading import Reading, read_here
from checks.doors.tables import ANY, TYPED, Holding, Pair
from pegsynth.schema import Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.file_sets import TableInFile

Rows = Sequence[tuple[Any, ...]]

DIALECT = Dialect(separator=";", decimal=",", thousands=".", encoding="utf-16")
MOST_TEXT = 200
_SWAPPED = str.maketrans(".,", ",.")
_LARGE = 1e300
SAS_TEXT = 40
"""Letters of a text in a SAS transport file, which holds 200 bytes."""
_SAS_LARGE, _SAS_SMALL = 1e70, 1e-70
"""Numbers beyond are none of IBM's floating point, in which such files are written."""


def _dialect_file(folder: Path, pair: Pair, rows: Rows) -> str:
    """Write decimal commas and semicolons, in UTF-16, compressed or not."""
    import pyarrow as pa

    lines = [";".join(pair.held)]
    for row in rows:
        cells = (
            "" if cell is None else cell.translate(_SWAPPED).replace('"', '""') for cell in row
        )
        quoted = pair.pick(1, 2)
        lines.append(
            ";".join(
                "" if value is None else f'"{cell}"' if quoted or _needs_quotes(cell) else cell
                for value, cell in zip(row, cells, strict=True)
            )
        )
    text = ("\n".join(lines) + "\n").encode("utf-16")
    packed = pair.pick(2, 2)
    path = folder / ("table.csv.gz" if packed else "table.txt")
    path.write_bytes(pa.Codec("gzip").compress(text, asbytes=True) if packed else text)
    return str(path)


def _needs_quotes(cell: str) -> bool:
    return not cell or any(mark in cell for mark in ';"\n\r')


def dialect_schema(schema: Schema) -> Schema:
    """Return a schema whose lists hold the texts that are in a file of the other dialect."""
    columns = tuple(
        replace(
            each,
            categories=tuple(text.translate(_SWAPPED) for text in each.categories),
            missing=tuple(text.translate(_SWAPPED) for text in each.missing),
            not_applicable=tuple(text.translate(_SWAPPED) for text in each.not_applicable),
        )
        for each in schema.columns
    )
    return replace(schema, columns=columns, dialect=DIALECT)


def _in_dialect(source: Any, schema: Schema) -> Reading:
    return read_here(source, dialect_schema(schema))


def _held(value: Any, most: int = MOST_TEXT) -> Any:
    """Return a value as statistics files can hold it: no spaces at the end, no null as text."""
    if isinstance(value, str):
        short = value[:most].rstrip().replace("\0", "~")
        if not value:
            return "(empty)"
        return short if short == value else f"{short}~{len(value)}"
    if isinstance(value, float) and not math.isnan(value):
        return max(-_LARGE, min(value, _LARGE))
    return value


def _held_by_sas(value: Any) -> Any:
    """Return a value as a SAS transport file can hold it."""
    if isinstance(value, float) and not math.isnan(value):
        size = min(max(abs(value), _SAS_SMALL), _SAS_LARGE) if value else 0.0
        return math.copysign(size, value)
    return _held(value, SAS_TEXT)


def _frame(pair: Pair, rows: Rows, held: Callable[[Any], Any]) -> Any:
    import polars as pl

    kinds = {"string": pl.String(), "double": pl.Float64(), "timestamp[us]": pl.Datetime("us")}
    return pl.DataFrame(
        [[held(value) for value in row] for row in rows],
        schema={name: kinds[kind] for name, kind in pair.held.items()},
        orient="row",
    )


def _statistics(
    write: str, extension: str, held: Callable[[Any], Any] = _held, **options: Any
) -> Any:
    def build(folder: Path, pair: Pair, rows: Rows) -> str:
        import pyreadstat

        path = folder / f"table.{extension}"
        getattr(pyreadstat, write)(_frame(pair, rows, held), str(path), **options)
        return str(path)

    return build


def in_a_sheet(value: Any) -> bool:
    """Say whether a cell of a workbook can hold a value."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return abs(value) <= 1 << 63
    if isinstance(value, str):
        return len(value) <= MOST_TEXT
    if isinstance(value, dt.datetime):
        return value.tzinfo is None and value.year >= 1900
    return value is None or (isinstance(value, dt.date) and value.year >= 1900)


def _workbook(folder: Path, pair: Pair, rows: Rows) -> str:
    import xlsxwriter

    path = folder / "table.xlsx"
    sink = io.BytesIO()
    plain = dict.fromkeys(("strings_to_formulas", "strings_to_urls", "strings_to_numbers"), False)
    with xlsxwriter.Workbook(sink, {**plain, "in_memory": True}) as book:
        sheet = book.add_worksheet("t")
        moment = book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"})
        sheet.write_row(0, 0, list(pair.held))
        for number, row in enumerate(rows, start=1):
            for column, value in enumerate(row):
                _write_cell(sheet, number, column, value, moment)
    path.write_bytes(sink.getvalue())
    return str(path)


def _write_cell(sheet: Any, row: int, column: int, value: Any, moment: Any) -> None:
    if isinstance(value, str):
        sheet.write_string(row, column, value)
    elif isinstance(value, bool):
        sheet.write_boolean(row, column, value)
    elif isinstance(value, int | float) and math.isfinite(value):
        sheet.write_number(row, column, value)
    elif isinstance(value, float):
        sheet.write_string(row, column, str(value))
    elif isinstance(value, dt.date):
        sheet.write_datetime(row, column, value, moment)


def _duckdb(folder: Path, pair: Pair, rows: Rows) -> TableInFile:
    import duckdb

    from checks.doors.readers import arrow_table

    path = folder / "table.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.register("rows_of_the_audit", arrow_table(pair, rows))
        connection.execute("CREATE TABLE stays AS SELECT * FROM rows_of_the_audit")
    return TableInFile(str(path), table="stays")


_STATISTICS = Holding(("string", "double", "timestamp[us]"))
_DUCK = Holding(tuple(kind for kind in TYPED if "tz=Europe" not in kind))

OFFICE_DOORS: tuple[Door, ...] = (
    Door("text of another dialect", Holding(("string",)), _dialect_file, read=_in_dialect),
    Door("SPSS", _STATISTICS, _statistics("write_sav", "sav"), needs="pyreadstat"),
    Door(
        "SPSS, compressed",
        _STATISTICS,
        _statistics("write_sav", "zsav", compress=True),
        needs="pyreadstat",
    ),
    Door("Stata", _STATISTICS, _statistics("write_dta", "dta"), needs="pyreadstat"),
    *(
        Door(
            f"SAS transport {version}",
            _STATISTICS,
            _statistics("write_xport", "xpt", _held_by_sas, file_format_version=version),
            needs="pyreadstat",
        )
        for version in (5, 8)
    ),
    Door("Excel", Holding((ANY,), among=in_a_sheet), _workbook, needs="fastexcel"),
    Door("DuckDB", _DUCK, _duckdb, needs="duckdb"),
)
