"""Tables out: frames in, one file or database table that appears whole or not at all.

Parquet, Arrow and text are written here as frames come, in bounded memory; what offices use is
in `office_write`. Text follows RFC 4180 with line feeds, in the dialect of the codebook: null is an
empty field, empty text is ``""``, and text that a spreadsheet would run as a formula is
protected (see `csv_text`).
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import polars as pl
import polars.selectors as cs

from pegsynth.errors import OutputError, ParameterError
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.atomic import atomic_file, check_target
from pegsynth.tables.csv_read import protect_frame
from pegsynth.tables.database import DatabaseTarget
from pegsynth.tables.file_sets import (
    DATABASES,
    is_writable,
    known_extensions,
    scheme_of,
    table_format,
)
from pegsynth.tables.office_write import (
    OFFICE,
    OfficeWriter,
    as_categories,
    check_office,
    check_office_table,
    listed_names,
)
from pegsynth.tables.text_bytes import compression_of

if TYPE_CHECKING:
    from pegsynth.schema.schema import Schema

GROUP_CELLS = 1 << 22
_CSV_ROWS = 1 << 14
_PLAIN = (
    *(pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Float32, pl.Float64, pl.String, pl.Date),
)

Output = str | Path | DatabaseTarget


class TableWriter(Protocol):
    """Takes the frames of one table, all with the same columns and types."""

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows."""


def check_writable(path: Output) -> str:
    """Refuse an output that could not be written, before any work; return its format.

    Raises
    ------
    OutputError
        The extension is not known, the folder is missing or may not be written to, or
        the table exists in its database.
    """
    if isinstance(path, DatabaseTarget):
        from pegsynth.tables.database_write import check_database_target

        check_database_target(path)
        return "database"
    kind = table_format(path)
    if kind is None or not is_writable(str(path), kind):
        known = known_extensions(writable=True)
        raise OutputError(
            f"cannot write {str(path)!r}: the extension is not known; known are {known}"
        )
    check_target(path)
    if kind in OFFICE:
        check_office(path, kind)
    return kind


def check_table(
    path: Output,
    columns: Sequence[str],
    *,
    rows: int | None,
    texts: Iterable[str] = (),
    dialect: Dialect | None = None,
) -> None:
    """Refuse, before any work, a table that the format of its file cannot hold.

    Parameters
    ----------
    rows
        Rows of the table; None where that is not known.
    texts
        Categories that may be written.
    dialect
        How a text file is written.
    """
    if isinstance(path, DatabaseTarget):
        from pegsynth.tables.database_write import check_database_table

        check_database_table(path, columns)
        return
    kind = table_format(path)
    if kind in OFFICE:
        check_office_table(path, kind, columns, rows)
    codec = (dialect or Dialect()).settled(str(path)).codec
    if kind == "csv" and not codec.startswith("utf"):
        for text in (*columns, *texts):
            try:
                text.encode(codec)
            except UnicodeEncodeError:
                raise _not_in_encoding(path, dialect) from None


def _not_in_encoding(path: str | Path, dialect: Dialect | None) -> OutputError:
    return OutputError(
        f"cannot write {str(path)!r}: a category or column name of the schema has a character that "
        f"{(dialect or Dialect()).encoding} does not have; write it with --encoding utf-8, or as "
        ".parquet"
    )


def named_target(output: str, *, table: str | None = None) -> Path | DatabaseTarget:
    """Return what an output's name stands for: a file, or a table of a database."""
    scheme = scheme_of(output)
    if scheme in DATABASES:
        if table is None:
            raise ParameterError(
                "rows that go into a database need --output-table NAME for their table and "
                "--ledger FILE for their ledger"
            )
        return DatabaseTarget(output, table)
    if scheme is not None:
        raise OutputError(
            f"addresses that start with {scheme}:// cannot be written; give a file, or a database "
            "with --output-table"
        )
    if table is not None:
        raise ParameterError("--output-table goes with the address of a database as --output")
    return Path(output)


@contextmanager
def open_writer(
    path: Output,
    *,
    schema: Mapping[str, Any] | None = None,
    nulls: Mapping[str, str] | None = None,
    mode: int | None = None,
    before: Callable[[], None] | None = None,
    texts: Collection[str] = (),
    codebook: Schema | None = None,
    marks: Mapping[str, str] | None = None,
) -> Iterator[TableWriter]:
    """Open a table for writing; it appears under `path` when the block ends well.

    Parameters
    ----------
    path
        A name with one of the known extensions, or a table to be made in a database.
    schema
        Column names and Polars types; needed only for a table that may get no rows.
    nulls
        Text to write for null in CSV, by column, instead of the empty field.
    mode
        Permissions of the file; None: as the umask says.
    before
        Called when the table is complete and before it becomes visible.
    texts
        Columns of an enumerated type that are to be written as text.
    codebook
        The schema of the table: the dialect of text files, the texts of categories, and labels
        where a file has any.
    marks
        What a Parquet file says of itself, beside its columns.
    """
    if isinstance(path, DatabaseTarget):
        from pegsynth.tables.database_write import open_database_writer

        with open_database_writer(
            path, schema=schema, before=before, codebook=codebook
        ) as database:
            yield database
        return
    kind = check_writable(path)
    with atomic_file(path, mode=mode, before=before) as temporary, _plain_errors(path):
        if kind == "csv":
            dialect = (Dialect() if codebook is None else codebook.dialect).settled(str(path))
            with _text_output(temporary, path) as handle:
                listed = listed_names(codebook)
                yield _CsvWriter(handle, schema, nulls or {}, dialect, path, listed)
        elif kind in OFFICE:
            office = OfficeWriter(temporary, path, kind, schema, codebook)
            yield office
            office.close()
        else:
            writer = _ArrowWriter(temporary, kind, schema, texts, marks or {})
            try:
                yield writer
            except BaseException:
                writer.abandon()
                raise
            writer.close()


def write_table(path: str | Path, frame: pl.DataFrame, *, mode: int | None = None) -> None:
    """Write one frame as a file, whole or not at all."""
    with open_writer(path, schema=frame.schema, mode=mode) as writer:
        writer.write(frame)


@contextmanager
def _text_output(temporary: Path, path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for text, compressed as the name of the output says."""
    with temporary.open("wb") as handle:
        if compression := compression_of(path):
            import pyarrow as pa

            with pa.CompressedOutputStream(pa.PythonFile(handle, "w"), compression) as packed:
                yield packed
        else:
            yield handle


class _CsvWriter:
    def __init__(
        self,
        handle: BinaryIO,
        schema: Mapping[str, Any] | None,
        nulls: Mapping[str, str],
        dialect: Dialect,
        path: str | Path,
        listed: Collection[str],
    ) -> None:
        self._handle = handle
        self._listed = listed
        self._nulls = nulls
        self._dialect = dialect
        self._path = path
        self._fresh = True
        if schema is not None:
            self.write(pl.DataFrame(schema=schema))

    def write(self, frame: pl.DataFrame) -> None:
        frame = as_categories(frame, self._listed, _changed_by_text)
        frame = protect_frame(self._without_nulls(frame))
        if self._dialect.decimal == ",":
            # Each number as it would be written with a point, and quoted if that takes it.
            frame = frame.with_columns(
                cs.float().cast(pl.String).str.replace(".", ",", literal=True)
            )
        target: Any = self._handle
        if self._dialect.codec != "utf-8" or not hasattr(self._handle, "fileno"):
            target = io.BytesIO()
        frame.write_csv(
            target,
            include_header=self._fresh,
            batch_size=_CSV_ROWS,
            separator=self._dialect.separator,
        )
        if target is not self._handle:
            self._handle.write(self._encoded(target.getvalue()))
        self._fresh = False

    def _encoded(self, text: bytes) -> bytes:
        codec = self._dialect.codec
        if codec == "utf-8":
            return text
        if codec == "utf-16":
            # One mark at the start says the order of bytes.
            return (codecs.BOM_UTF16_LE if self._fresh else b"") + text.decode().encode("utf-16-le")
        try:
            return text.decode().encode(codec)
        except UnicodeEncodeError:
            raise _not_in_encoding(self._path, self._dialect) from None

    def _without_nulls(self, frame: pl.DataFrame) -> pl.DataFrame:
        filled = {name: text for name, text in self._nulls.items() if name in frame.columns}
        if frame.width == 1:
            # A null alone on its line would be a blank line, which readers pass over.
            filled = {frame.columns[0]: "", **filled}
        return frame.with_columns(
            pl.col(name).cast(pl.String).fill_null(text)
            for name, text in filled.items()
            if frame.get_column(name).null_count()
        )


def _changed_by_text(column: pl.Series) -> bool:
    return column.dtype.is_float() or column.dtype.is_temporal()


class _ArrowWriter:
    """Writes frames as row groups of some size."""

    def __init__(
        self,
        path: Path,
        kind: str,
        schema: Mapping[str, Any] | None,
        texts: Collection[str],
        marks: Mapping[str, str],
    ) -> None:
        self._marks = marks
        self._path = path
        self._kind = kind
        self._texts = texts
        self._writer: Any = None
        self._pending: list[pl.DataFrame] = []
        self._cells = 0
        if schema is not None:
            self.write(pl.DataFrame(schema=schema))

    def write(self, frame: pl.DataFrame) -> None:
        self._pending.append(frame)
        self._cells += frame.height * frame.width
        if self._writer is None or self._cells >= GROUP_CELLS:
            self._flush()

    def _flush(self) -> None:
        if not self._pending:
            return
        frame = pl.concat(self._pending, rechunk=True)
        self._pending, self._cells = [], 0
        by_number = self._kind == "parquet" and all(
            name in self._texts or dtype in _PLAIN for name, dtype in frame.schema.items()
        )
        if not by_number:
            frame = frame.with_columns(pl.col(name).cast(pl.String) for name in self._texts)
        table = frame.to_arrow().replace_schema_metadata(None)
        if self._writer is None:
            self._writer = self._open(table.schema, keep_types=not by_number)
        if table.num_rows:
            self._writer.write_table(table)

    def _open(self, schema: Any, *, keep_types: bool) -> Any:
        if self._kind == "parquet":
            import pyarrow.parquet as pq

            # Parquet's own types say all there is to say about plain columns; text that is
            # written by number reads back as text. Least and greatest texts help nobody.
            ranged = [field.name for field in schema if field.name not in self._texts]
            writer = pq.ParquetWriter(
                self._path,
                schema,
                compression="zstd",
                store_schema=keep_types,
                write_statistics=ranged,
            )
            if self._marks:
                writer.add_key_value_metadata(dict(self._marks))
            return writer
        from pyarrow import ipc

        return ipc.new_file(str(self._path), schema)

    def close(self) -> None:
        """Write what is pending, and the end of the file."""
        try:
            self._flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the file, whatever state it is in."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def _plain_errors(path: str | Path) -> Iterator[None]:
    """Turn the writers' own errors, which may quote values, into plain ones."""
    try:
        yield
    except pl.exceptions.PolarsError:
        raise OutputError(
            f"cannot write {str(path)!r}: the columns cannot be written in this format; choose "
            "another extension"
        ) from None
