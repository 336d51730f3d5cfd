"""Tables in: files, folders, databases and dataframes become streams of Polars frames.

`open_table` looks at names and types only; `TableReader.batches` streams the rows in
bounded memory, as often as asked. CSV columns arrive as text, untouched; other sources
keep their types. Everything that cannot be read is refused with a `DataError` that names
the file and the column or line, never a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from pegsynth.errors import DataError, ParameterError
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.caller_frames import (
    frame_kind,
    is_relation,
)
from pegsynth.tables.database import DatabaseTable
from pegsynth.tables.file_kinds import KINDS, known_extensions, named, table_format
from pegsynth.tables.file_sets import (
    DATABASES,
    File,
    RemoteFile,
    TableInFile,
    duckdb_path,
    file_states,
    find_files,
    local_files,
    scheme_of,
    size_of,
)
from pegsynth.tables.foreign_read import open_foreign
from pegsynth.tables.reader import (
    Part,
    TableReader,
    Wanted,
    made,
    no_rows,
    unreadable,
)
from pegsynth.tables.streams import is_chunked, is_stream, open_frame, open_stream

BATCH_ROWS = 1 << 17
_PAIR = 2

Source = str | DatabaseTable | Any


@dataclass(frozen=True)
class TablePair:
    """Two tables: units, and rows that belong to them by a key (R24)."""

    units: Any
    rows: Any


def open_table(
    source: Source, *, dialect: Dialect | None = None, confidential: bool = False
) -> TableReader:
    """Open a table for reading.

    Parameters
    ----------
    source
        Path of a file of a known kind (`pegsynth.tables.file_kinds`); a glob of files of
        one kind with the same columns, or a folder of them; an address of such in an object store;
        a `DatabaseTable`, a `TableInFile`; a pandas, Polars or PyArrow table; a relation of
        DuckDB; an object with an Arrow stream, a dataset of PyArrow, or an iterator of tables,
        which is read once. A reader that is open already is returned as it is.
    dialect
        How a text file is written; what it leaves open is settled by the file's name. No
        value is looked at to find out (R30).
    confidential
        Whether it may have no rows: that a confidential table has one may decide nothing.

    Raises
    ------
    DataError
        The table cannot be read, has no rows though it must, or has columns that cannot be used.
    """
    if isinstance(source, TableReader):
        return source
    if isinstance(source, TablePair):
        units = open_table(source.units, dialect=dialect, confidential=confidential)
        try:
            rows = open_table(source.rows, dialect=dialect, confidential=confidential)
        except BaseException:
            units.close()
            raise
        return replace(units, children=rows)
    if isinstance(source, str | Path):
        source = named_source(str(source))
    if isinstance(source, str):
        source = TableInFile(source)
    if isinstance(source, TableInFile):
        reader = _open_files(source, dialect or Dialect())
    elif isinstance(source, DatabaseTable):
        from pegsynth.tables.database_read import open_database

        reader = open_database(source)
    elif is_relation(source) or frame_kind(source) is not None:
        reader = open_frame(source)
    elif is_stream(source):
        reader = open_stream(source)
    else:
        raise DataError(
            f"the table is a {type(source).__name__}; give a file name, a pandas, Polars or "
            "PyArrow table, an Arrow stream or an iterator of such tables"
        )
    if confidential:
        return replace(reader, may_be_empty=True)
    if reader.expected_rows == 0:
        reader.close()
        raise no_rows(reader.source)
    return reader


def opening_reads(source: Any) -> bool:
    """Say whether the columns of a table are known with its first rows only.

    An iterator of tables has none before, and whoever exports an Arrow stream may begin to work on
    its rows to do so. Files, databases, dataframes and datasets declare their columns.
    """
    if isinstance(source, TablePair):
        return opening_reads(source.units) or opening_reads(source.rows)
    declared = isinstance(source, str | Path | TableReader) or is_relation(source)
    return not declared and frame_kind(source) is None and is_chunked(source)


def read_once(source: Any) -> bool:
    """Say of a table that is not open yet whether its rows come in one pass only."""
    if isinstance(source, TablePair):
        return read_once(source.units) or read_once(source.rows)
    if isinstance(source, TableReader):
        return source.once
    return opening_reads(source) and not hasattr(source, "__arrow_c_stream__")


@contextmanager
def opened(source: Source, *, dialect: Dialect | None = None) -> Iterator[TableReader]:
    """Open a table, and let go of it at the end; a reader that was open already stays so."""
    reader = open_table(source, dialect=dialect)
    try:
        yield reader
    finally:
        if reader is not source:
            reader.close()


def named_source(
    data: Any, *, table: str | None = None, query: str | None = None, rowwise: bool = False
) -> Any:
    """Put together what a caller said about a table: where it is, and which rows.

    Returns a `DatabaseTable` for the address of a database, a `TablePair` for two tables, and
    `data` itself otherwise.
    """
    if isinstance(data, tuple) and len(data) == _PAIR:
        if table is not None or query is not None:
            raise ParameterError("--table and --query require a single table; two are given")
        return TablePair(*(named_source(each) for each in data))
    if isinstance(data, str) and scheme_of(data) in DATABASES:
        return DatabaseTable(data, table=table, query=query, declared_rowwise=rowwise)
    if isinstance(data, str) and scheme_of(data) == "duckdb":
        return TableInFile(duckdb_path(data), table, query, rowwise, "duckdb")
    kind = table_format(data) if isinstance(data, str | Path) else None
    if kind is not None and KINDS[kind].tables and (table is not None or query is not None):
        return TableInFile(str(data), table, query, rowwise)
    if table is not None or query is not None or rowwise:
        raise ParameterError(
            "--table, --query and --query-is-rowwise require the address of a database "
            "(postgresql://.. or sqlite:///..) and with .duckdb files, --table also with workbooks;"
            " leave them out for other files and dataframes"
        )
    return data


def table_files(source: Any) -> list[Path]:
    """Return the existing files of this machine that a source names; none for a dataframe."""
    if isinstance(source, TablePair):
        return [*table_files(source.units), *table_files(source.rows)]
    if isinstance(source, DatabaseTable):
        source = source.uri
    if isinstance(source, TableInFile):
        source = source.path
    if isinstance(source, TableReader):
        return [file for file in source.files if isinstance(file, Path)]
    return local_files(str(source)) if isinstance(source, str | Path) else []


def same_file(first: Path, second: Path) -> bool:
    """Say whether two names lead to one existing file."""
    return first.exists() and second.exists() and first.samefile(second)


def _open_files(chosen: TableInFile, dialect: Dialect) -> TableReader:
    """Open the files of a table as one, once they are known to be alike."""
    files = find_files(chosen.path)
    opened: list[TableReader] = []
    try:
        opened += (_open_file(each.file, chosen, dialect) for each in files)
        first, reader = files[0].file, opened[0]
        for each, other in zip(files[1:], opened[1:], strict=True):
            _check_drift(first, reader, each.file, other)
    except BaseException:
        for done in opened:
            done.close()
        raise
    counted = [part.expected_rows for part in opened]
    parts = tuple(part.parts[0] for part in opened)
    fixed = tuple(name for name in files[0].fixed if name not in reader.columns)
    if fixed:
        parts = tuple(
            PartInFolders(part, {name: each.fixed[name] for name in fixed}, reader.columns[0])
            for part, each in zip(parts, files, strict=True)
        )
    return replace(
        reader,
        columns=(*reader.columns, *fixed),
        source=str(first) if len(files) == 1 else chosen.path,
        parts=parts,
        expected_rows=None if None in counted else sum(count or 0 for count in counted),
        files=tuple(each.file for each in files),
        untyped=reader.untyped | frozenset(fixed if reader.typed else ()),
        one_header=files[0].named,
        interrupt=_all([each.interrupt for each in opened]),
        finish=_all([each.finish for each in opened]),
        states=file_states([each.file for each in files]),
    )


@dataclass(frozen=True)
class PartInFolders:
    """A file, and columns that the names of its folders give: ``year=2024/part-0.parquet``.

    They hold text, so that ``month=01`` stays ``01`` and no folder changes how another one is
    read (R30); the schema says what type they are written in. A column that the files hold
    themselves is read from the files.

    Parameters
    ----------
    values
        What the folders say.
    any_column
        A column of the file. It tells how many rows there are when nothing else of it is wanted.
    """

    part: Part
    values: Mapping[str, str | None]
    any_column: str

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that are wanted."""
        inside = tuple(name for name in wanted.columns if name not in self.values)
        added = [
            pl.lit(self.values[name], dtype=pl.String).alias(name)
            for name in wanted.columns
            if name in self.values
        ]
        for piece in self.part(replace(wanted, columns=inside or (self.any_column,))):
            yield made(piece).with_columns(added).select(wanted.columns)


def _all(calls: Sequence[Callable[[], None] | None]) -> Callable[[], None] | None:
    """Return one call that makes all of them; None if there are none."""
    some = [call for call in calls if call is not None]

    def every() -> None:
        for call in some:
            call()

    return every if some else None


def _open_file(file: File, chosen: TableInFile, dialect: Dialect) -> TableReader:
    """Open one file; `expected_rows` is 0 only if it surely has none."""
    if isinstance(file, Path) and file.is_dir():
        raise DataError(f"{file}: this is a folder; give a file, or a quoted glob of files")
    if isinstance(file, Path) and not file.exists():
        raise DataError(f"{file}: there is no such file; check the name and the folder")
    name = chosen.kind or table_format(file)
    if name is None:
        known = known_extensions()
        raise DataError(f"{file}: the extension is not known; known are {known}")
    try:
        if (isinstance(file, RemoteFile) or file.is_file()) and size_of(file) == 0:
            raise DataError(f"{file}: the file is empty; give one with a header line and rows")
        file.open("rb").close()
    except OSError as error:
        raise unreadable(file, error) from None
    kind = KINDS[name]
    if kind.foreign:
        return open_foreign(file, kind, chosen, dialect.encoding)
    reader: TableReader = named(kind.opener)(file, dialect)
    return reader


def _check_drift(first: File, reader: TableReader, path: File, other: TableReader) -> None:
    if reader.typed != other.typed:
        raise DataError(f"{path}: the files are of different kinds; give files of one kind")
    for name in other.columns:
        if name not in reader.columns:
            raise DataError(f"{path}: column {name!r} is not in {first}; give files alike")
    for name in reader.columns:
        if name not in other.columns:
            raise DataError(f"{path}: column {name!r} of {first} is missing; give files alike")
        if reader.dtypes.get(name) != other.dtypes.get(name):
            raise DataError(
                f"{path}: column {name!r} has another type than in {first}; write both alike"
            )
