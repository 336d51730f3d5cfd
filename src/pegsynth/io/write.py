"""Tables out: frames in, one CSV, Parquet or Arrow file that appears whole or not at all.

Frames are written as they come, in bounded memory. CSV follows RFC 4180 with line feeds:
null is an empty field, empty text is ``""``, and text that a spreadsheet would run as a
formula is protected (see `csv_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import polars as pl

from pegsynth.errors import OutputError, ParameterError
from pegsynth.io.atomic import atomic_file, check_target
from pegsynth.io.csv_text import protect_frame
from pegsynth.io.database import DatabaseTarget
from pegsynth.io.files import DATABASES, EXTENSIONS, scheme_of, table_format

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
        from pegsynth.io.database_write import check_database_target

        check_database_target(path)
        return "database"
    kind = table_format(path)
    if kind is None:
        known = ", ".join(EXTENSIONS)
        raise OutputError(
            f"cannot write {str(path)!r}: the extension is not known; known are {known}"
        )
    check_target(path)
    return kind


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
) -> Iterator[TableWriter]:
    """Open a table for writing; it appears under `path` when the block ends well.

    Parameters
    ----------
    path
        A name that ends in .csv, .parquet, .pq, .arrow, .feather or .ipc, or a table to
        be made in a database.
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
    """
    if isinstance(path, DatabaseTarget):
        from pegsynth.io.database_write import open_database_writer

        with open_database_writer(path, schema=schema, before=before) as database:
            yield database
        return
    kind = check_writable(path)
    with atomic_file(path, mode=mode, before=before) as temporary, _plain_errors(path):
        if kind == "csv":
            with temporary.open("wb") as handle:
                yield _CsvWriter(handle, schema, nulls or {})
        else:
            writer = _ArrowWriter(temporary, kind, schema, texts)
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


class _CsvWriter:
    def __init__(
        self, handle: BinaryIO, schema: Mapping[str, Any] | None, nulls: Mapping[str, str]
    ) -> None:
        self._handle = handle
        self._nulls = nulls
        self._fresh = True
        if schema is not None:
            self.write(pl.DataFrame(schema=schema))

    def write(self, frame: pl.DataFrame) -> None:
        frame = protect_frame(self._without_nulls(frame))
        frame.write_csv(self._handle, include_header=self._fresh, batch_size=_CSV_ROWS)
        self._fresh = False

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


class _ArrowWriter:
    """Writes frames as row groups of some size."""

    def __init__(
        self, path: Path, kind: str, schema: Mapping[str, Any] | None, texts: Collection[str]
    ) -> None:
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
            return pq.ParquetWriter(
                self._path,
                schema,
                compression="zstd",
                store_schema=keep_types,
                write_statistics=ranged,
            )
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
