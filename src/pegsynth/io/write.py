"""Tables out: frames in, one CSV, Parquet or Arrow file that appears whole or not at all.

Frames are written as they come, in bounded memory. CSV follows RFC 4180 with line feeds:
null is an empty field, empty text is ``""``, and text that a spreadsheet would run as a
formula is protected (see `csv_text`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import polars as pl

from pegsynth.errors import OutputError
from pegsynth.io.atomic import atomic_file, check_target
from pegsynth.io.csv_text import protect_frame
from pegsynth.io.read import EXTENSIONS, table_format

_CSV_ROWS = 1 << 14


class TableWriter(Protocol):
    """Takes the frames of one table, all with the same columns and types."""

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows."""


def check_writable(path: str | Path) -> str:
    """Refuse an output that could not be written, before any work; return its format.

    Raises
    ------
    OutputError
        The extension is not known, or the folder is missing or may not be written to.
    """
    kind = table_format(path)
    if kind is None:
        known = ", ".join(EXTENSIONS)
        raise OutputError(
            f"cannot write {str(path)!r}: the extension is not known; known are {known}"
        )
    check_target(path)
    return kind


@contextmanager
def open_writer(
    path: str | Path,
    *,
    schema: Mapping[str, Any] | None = None,
    nulls: Mapping[str, str] | None = None,
    mode: int | None = None,
    before: Callable[[], None] | None = None,
) -> Iterator[TableWriter]:
    """Open a table for writing; it appears under `path` when the block ends well.

    Parameters
    ----------
    path
        A name that ends in .csv, .parquet, .pq, .arrow, .feather or .ipc.
    schema
        Column names and Polars types; needed only for a table that may get no rows.
    nulls
        Text to write for null in CSV, by column, instead of the empty field.
    mode
        Permissions of the file; None: as the umask says.
    before
        Called when the table is complete and before it becomes visible.
    """
    kind = check_writable(path)
    with atomic_file(path, mode=mode, before=before) as temporary, _plain_errors(path):
        if kind == "csv":
            with temporary.open("wb") as handle:
                yield _CsvWriter(handle, schema, nulls or {})
        else:
            writer = _ArrowWriter(temporary, kind, schema)
            try:
                yield writer
            finally:
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
    def __init__(self, path: Path, kind: str, schema: Mapping[str, Any] | None) -> None:
        self._path = path
        self._kind = kind
        self._writer: Any = None
        if schema is not None:
            self.write(pl.DataFrame(schema=schema))

    def write(self, frame: pl.DataFrame) -> None:
        table = frame.to_arrow()
        table = table.replace_schema_metadata(None)
        if self._writer is None:
            self._writer = self._open(table.schema)
        if table.num_rows:
            self._writer.write_table(table)

    def _open(self, schema: Any) -> Any:
        if self._kind == "parquet":
            import pyarrow.parquet as pq

            return pq.ParquetWriter(self._path, schema, compression="zstd")
        from pyarrow import ipc

        return ipc.new_file(str(self._path), schema)

    def close(self) -> None:
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
