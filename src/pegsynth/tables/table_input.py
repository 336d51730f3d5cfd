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
    check_names,
    check_polars_types,
    frame_kind,
    from_frame,
    is_relation,
    known_rows,
    text_columns,
    without_rows,
)
from pegsynth.tables.database import DatabaseTable
from pegsynth.tables.file_kinds import KINDS, known_extensions, named, table_format
from pegsynth.tables.file_sets import (
    DATABASES,
    File,
    RemoteFile,
    TableFile,
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
    typed_reader,
    unreadable,
)
from pegsynth.tables.streams import SameRows, is_chunked, is_read_once, is_stream, open_stream

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
        return _open_pair(source, dialect, confidential=confidential)
    reader = _open_one(source, dialect)
    if confidential:
        return replace(reader, may_be_empty=True)
    if reader.expected_rows == 0:
        reader.close()
        raise no_rows(reader.source)
    return reader


def _open_one(source: Source, dialect: Dialect | None) -> TableReader:
    if isinstance(source, str | Path):
        source = named_source(str(source))
    if isinstance(source, str):
        source = TableInFile(source)
    if isinstance(source, TableInFile):
        return _open_files(source, dialect or Dialect())
    if isinstance(source, DatabaseTable):
        from pegsynth.tables.database_read import open_database

        return open_database(source)
    if is_relation(source) or frame_kind(source) is not None:
        return _open_frame(source)
    if is_stream(source):
        return open_stream(source)
    raise DataError(
        f"the table is a {type(source).__name__}; give a file name, a pandas, Polars or PyArrow "
        "table, an Arrow stream or an iterator of such tables"
    )


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
    return opening_reads(source) and is_read_once(source)


@contextmanager
def opened(source: Source, *, dialect: Dialect | None = None) -> Iterator[TableReader]:
    """Open a table, and let go of it at the end; a reader that was open already stays so."""
    reader = open_table(source, dialect=dialect)
    try:
        yield reader
    finally:
        if reader is not source:
            reader.close()


def _open_pair(source: TablePair, dialect: Dialect | None, *, confidential: bool) -> TableReader:
    units = open_table(source.units, dialect=dialect, confidential=confidential)
    try:
        rows = open_table(source.rows, dialect=dialect, confidential=confidential)
    except BaseException:
        units.close()
        raise
    return replace(units, children=rows)


def named_source(
    data: Any, *, table: str | None = None, query: str | None = None, rowwise: bool = False
) -> Any:
    """Put together what a caller said about a table: where it is, and which rows.

    Returns a `DatabaseTable` for the address of a database, a `TablePair` for two tables, and
    `data` itself otherwise.
    """
    if isinstance(data, tuple) and len(data) == _PAIR:
        if table is not None or query is not None:
            raise ParameterError("--table and --query go with one table; two are given")
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
            "--table, --query and --query-is-rowwise go with the address of a database "
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
    files = find_files(chosen.path)
    opened: list[TableReader] = []
    try:
        opened += (_open_file(each.file, chosen, dialect) for each in files)
        return _joined(chosen.path, files, opened)
    except BaseException:
        for each in opened:
            each.close()
        raise


def _joined(source: str, files: list[TableFile], opened: list[TableReader]) -> TableReader:
    """Return the files of a table as one, once they are known to be alike."""
    first = files[0].file
    reader = opened[0]
    for each, other in zip(files[1:], opened[1:], strict=True):
        _check_drift(first, reader, each.file, other)
    counted = [part.expected_rows for part in opened]
    expected = None if None in counted else sum(count or 0 for count in counted)
    parts = tuple(part.parts[0] for part in opened)
    fixed = tuple(name for name in files[0].fixed if name not in reader.columns)
    if fixed:
        parts = tuple(
            PartInFolders(part, {name: each.fixed[name] for name in fixed}, reader.columns[0])
            for part, each in zip(parts, files, strict=True)
        )
    return TableReader(
        (*reader.columns, *fixed),
        str(first) if len(files) == 1 else source,
        reader.typed,
        parts,
        reader.dtypes,
        expected_rows=expected,
        files=tuple(each.file for each in files),
        untyped=reader.untyped | frozenset(fixed if reader.typed else ()),
        dialect=reader.dialect,
        one_header=files[0].named,
        selection=reader.selection,
        interrupt=_all([each.interrupt for each in opened]),
        finish=_all([each.finish for each in opened]),
        states=file_states([each.file for each in files]),
        _arrow_schema=reader._arrow_schema,
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
    made = [call for call in calls if call is not None]
    if not made:
        return None

    def every() -> None:
        for call in made:
            call()

    return every


def _open_file(file: File, chosen: TableInFile, dialect: Dialect) -> TableReader:
    """Open one file; `expected_rows` is 0 only if it surely has none."""
    kind = KINDS[_check_file(file, chosen.kind)]
    if kind.foreign:
        return open_foreign(file, kind, chosen, dialect.encoding)
    reader: TableReader = named(kind.opener)(file, dialect)
    return reader


def _check_file(file: File, known_kind: str | None) -> str:
    if isinstance(file, Path) and file.is_dir():
        raise DataError(f"{file}: this is a folder; give a file, or a quoted glob of files")
    if isinstance(file, Path) and not file.exists():
        raise DataError(f"{file}: there is no such file; check the name and the folder")
    kind = known_kind or table_format(file)
    if kind is None:
        known = known_extensions()
        raise DataError(f"{file}: the extension is not known; known are {known}")
    try:
        if (isinstance(file, RemoteFile) or file.is_file()) and size_of(file) == 0:
            raise DataError(f"{file}: the file is empty; give one with a header line and rows")
        file.open("rb").close()
    except OSError as error:
        raise unreadable(file, error) from None
    return kind


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


def _open_frame(data: Any) -> TableReader:
    source = "the table"
    header = from_frame(without_rows(data))
    try:
        schema = header.collect_schema()
    except pl.exceptions.PolarsError:
        raise DataError(f"{source}: the lazy frame cannot be collected") from None
    check_names(schema.names(), source)
    check_polars_types(schema, source)
    steady = not isinstance(header, pl.LazyFrame)
    part: Part = FramePart(data)
    if not steady:
        part = SameRows(part, "the lazy frame", "collect() it first")
    return replace(
        typed_reader(schema, source, part, untyped=text_columns(data)),
        frame_kind="pyarrow" if is_relation(data) else frame_kind(data),
        expected_rows=known_rows(data),
        steady=steady,
    )


class FramePart:
    """The rows of a dataframe, which are made Polars' own when they are first asked for."""

    def __init__(self, data: Any) -> None:
        self._data = data
        self._frame: pl.DataFrame | pl.LazyFrame | None = None

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that are wanted."""
        if self._frame is None:
            data, self._data = self._data, None
            self._frame = from_frame(data.to_arrow_table() if is_relation(data) else data)
        return _frame_batches(self._frame.select(wanted.columns).slice(wanted.skip))


def _frame_batches(chosen: pl.DataFrame | pl.LazyFrame) -> Iterator[pl.DataFrame]:
    if isinstance(chosen, pl.DataFrame):
        yield from chosen.iter_slices(BATCH_ROWS)
        return
    try:
        if hasattr(chosen, "collect_batches"):
            for batch in chosen.collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
                yield from batch.iter_slices(BATCH_ROWS)
        else:
            yield from chosen.collect().iter_slices(BATCH_ROWS)
    except pl.exceptions.PolarsError:
        raise DataError("the table: the lazy frame cannot be collected") from None
