"""Tables out: frames in, one file or database table that appears whole or not at all.

What a format can hold is checked here, before any work, whichever it is; a writer then takes
frames until it is closed. Parquet, Arrow and text are written here as frames come, in bounded
memory. Text follows RFC 4180 with line feeds, in the dialect of the codebook: null is an empty
field, empty text is ``""``, and text that a spreadsheet would run as a formula is protected (see
`csv_read.protect`).

A schema lists categories as texts, and what is written must be read as the same categories again.
A format that keeps the type of a column gives the same text back; in all others the column is
written as the schema's own texts, or in a type that has them.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import polars as pl
import polars.selectors as cs

from pegsynth.errors import OutputError, ParameterError
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.dtypes import as_text
from pegsynth.tables.atomic import atomic_file, check_target
from pegsynth.tables.csv_read import protect_frame
from pegsynth.tables.database import (
    DatabaseTarget,
    DatabaseWriter,
    check_database_target,
    is_sqlite,
)
from pegsynth.tables.file_kinds import (
    KINDS,
    Limits,
    compression_of,
    known_extensions,
    named,
    table_format,
)
from pegsynth.tables.file_sets import DATABASES, scheme_of

if TYPE_CHECKING:
    from pegsynth.schema.feature import Feature
    from pegsynth.schema.schema import Schema

GROUP_CELLS = 1 << 22
_CSV_ROWS = 1 << 14
_PLAIN = (
    *(pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
    *(pl.Float32, pl.Float64, pl.String, pl.Date),
)

Output = str | Path | DatabaseTarget


DATABASE_LIMITS = {
    "sqlite": Limits(caseless=True, columns=2_000),
    # PostgreSQL cuts longer names off.
    "postgresql": Limits(re.compile(r"[\s\S]+"), name_bytes=63, columns=1_600),
}


@dataclass(frozen=True)
class Content:
    """What a writer is told of the table that it writes.

    Parameters
    ----------
    path
        Where it is to appear.
    kind
        The format.
    codebook
        The schema of the table: the dialect of text files, the texts of categories, and labels
        where a file has any.
    texts
        Columns of an enumerated type that are to be written as text.
    marks
        What a Parquet file says of itself, beside its columns.
    """

    path: Output
    kind: str
    codebook: Schema | None = None
    texts: Collection[str] = ()
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def features(self) -> Mapping[str, Feature]:
        """The features of the codebook by name."""
        return {} if self.codebook is None else {each.name: each for each in self.codebook.features}

    def as_categories(
        self, frame: pl.DataFrame, changed: Callable[[pl.Series], bool]
    ) -> pl.DataFrame:
        """Return a frame whose listed columns are text where a format would change their values.

        Floats of 32 bits become longer ones that have the same text.

        Parameters
        ----------
        changed
            Whether the format changes the text of values of such a column.
        """
        features = self.features
        columns = []
        for column in frame:
            if column.name not in features or features[column.name].binned:
                continue
            if changed(column):
                columns.append(as_text(column))
            elif column.dtype == pl.Float32:
                columns.append(as_text(column).cast(pl.Float64))
        return frame.with_columns(columns)


class TableWriter(Protocol):
    """Takes the frames of one table, all with the same columns and types."""

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows."""

    def complete(self) -> None:
        """Write what is left, when all rows are in."""

    def close(self) -> None:
        """Let go of the table, whatever state it is in."""


def check_writable(path: Output) -> str:
    """Refuse an output that could not be written, before any work; return its format.

    Raises
    ------
    OutputError
        The extension is not known, the folder is missing or may not be written to, or
        the table exists in its database.
    """
    if isinstance(path, DatabaseTarget):
        check_database_target(path)
        return "database"
    kind = table_format(path)
    if kind is None or not KINDS[kind].writes(path):
        known = known_extensions(writable=True)
        raise OutputError(
            f"cannot write {str(path)!r}: the extension is not known; known are {known}"
        )
    check_target(path)
    package = KINDS[kind].writes_with
    if package and find_spec(package) is None:
        raise OutputError(
            f"cannot write {str(path)!r}: it needs {package}; install it with pip install "
            f"'pegsynth[{KINDS[kind].extra}]'"
        )
    return kind


def check_table(
    path: Output,
    columns: Sequence[str],
    *,
    rows: int | None,
    texts: Iterable[str] = (),
    dialect: Dialect | None = None,
) -> None:
    """Refuse, before any work, a table that the format of its output cannot hold.

    Parameters
    ----------
    rows
        Rows of the table; None where that is not known.
    texts
        Categories that may be written.
    dialect
        How a text file is written.
    """
    check_limits(path, columns, rows)
    codec = (dialect or Dialect()).settled(str(path)).codec
    if not isinstance(path, DatabaseTarget) and table_format(path) == "csv" and codec[:3] != "utf":
        for text in (*columns, *texts):
            with _encodable(path, dialect or Dialect()):
                text.encode(codec)


def check_limits(path: Output, columns: Sequence[str], rows: int | None) -> None:
    """Refuse columns and numbers of rows that a format cannot hold."""
    called = repr(str(path))
    if isinstance(path, DatabaseTarget):
        called = str(path)
        limits = DATABASE_LIMITS["sqlite" if is_sqlite(path.uri) else "postgresql"]
        place, remedy = "database", "write a file"
    else:
        kind = table_format(path)
        limits = Limits() if kind is None else KINDS[kind].limits
        place, remedy = "format", "choose another extension"
    if len(columns) > limits.columns or (rows or 0) > limits.rows:
        most = (
            f"a sheet holds at most {limits.rows:,} rows and {limits.columns:,} columns"
            if place == "format"
            else f"a table of this database holds at most {limits.columns:,} columns, and there "
            f"are {len(columns):,}"
        )
        raise OutputError(f"cannot write {called}: {most}; {remedy}")
    for name in columns:
        if len(name.encode()) > limits.name_bytes or not limits.names.fullmatch(name):
            raise OutputError(
                f"cannot write {called}: the column name {name[:80]!r} is not allowed in "
                f"this {place}; rename the column, or {remedy}"
            )
    known: dict[str, str] = {}
    for name in columns if limits.caseless else ():
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise OutputError(
                f"cannot write {str(path)!r}: the column names {other[:80]!r} and {name[:80]!r} "
                "are the same in this format; rename one of them (--weight-name for weights), or "
                "choose another format"
            )


@contextmanager
def _encodable(path: object, dialect: Dialect) -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError:
        raise OutputError(
            f"cannot write {str(path)!r}: a category or column name of the schema has a character "
            f"that {dialect.encoding} does not have; write it with --encoding utf-8, or as .parquet"
        ) from None


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
        raise ParameterError("--output-table requires the address of a database as --output")
    return Path(output)


@contextmanager
def open_writer(
    path: Output,
    *,
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
    mode
        Permissions of the file; None: as the umask says.
    before
        Called when the table is complete and before it becomes visible.
    codebook, texts, marks
        As for `Content`.
    """
    if isinstance(path, DatabaseTarget):
        # Without a name of its own for a while, a table appears when it is committed.
        with _writing(
            DatabaseWriter(path, Content(path, "database", codebook, texts)), before
        ) as w:
            yield w
        return
    kind = check_writable(path)
    content = Content(path, kind, codebook, texts, marks or {})
    with atomic_file(path, mode=mode, before=before) as temporary:
        try:
            with _writing(named(KINDS[kind].writer)(temporary, content)) as writer:
                yield writer
        except pl.exceptions.PolarsError:
            # The writers' own errors may quote values.
            raise OutputError(
                f"cannot write {str(path)!r}: the columns cannot be written in this format; choose "
                "another extension"
            ) from None


@contextmanager
def _writing(
    writer: TableWriter, before: Callable[[], None] | None = None
) -> Iterator[TableWriter]:
    """Complete a table whose rows are all in, and let go of it in any case."""
    try:
        yield writer
        if before is not None:
            before()
        writer.complete()
    finally:
        writer.close()


def write_table(path: str | Path, frame: pl.DataFrame, *, mode: int | None = None) -> None:
    """Write one frame as a file, whole or not at all."""
    with open_writer(path, mode=mode) as writer:
        writer.write(frame)


class CsvWriter(TableWriter):
    """Writes text, compressed as the name of the output says."""

    def __init__(self, temporary: Path, content: Content) -> None:
        self._content = content
        stated = Dialect() if content.codebook is None else content.codebook.dialect
        self._dialect = stated.settled(str(content.path))
        self._fresh = True
        with ExitStack() as opened:
            self._handle: BinaryIO = opened.enter_context(temporary.open("wb"))
            if compression := compression_of(content.path):
                import pyarrow as pa

                packed = pa.CompressedOutputStream(pa.PythonFile(self._handle, "w"), compression)
                self._handle = opened.enter_context(packed)
            self._opened = opened.pop_all()

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows."""
        frame = self._content.as_categories(
            frame, lambda column: column.dtype.is_float() or column.dtype.is_temporal()
        )
        if frame.width == 1:
            # A null alone on its line would be a blank line, which readers pass over.
            frame = frame.select(
                column.cast(pl.String).fill_null("") if column.null_count() else column
                for column in frame
            )
        frame = protect_frame(frame)
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
            text: bytes = target.getvalue()
            if self._dialect.codec == "utf-16":
                # One mark at the start says the order of bytes.
                mark = codecs.BOM_UTF16_LE if self._fresh else b""
                text = mark + text.decode().encode("utf-16-le")
            elif self._dialect.codec != "utf-8":
                with _encodable(self._content.path, self._dialect):
                    text = text.decode().encode(self._dialect.codec)
            self._handle.write(text)
        self._fresh = False

    def close(self) -> None:
        """Write the end of the file, and let go of it."""
        self._opened.close()


class ArrowWriter(TableWriter):
    """Writes frames as row groups of some size, to Parquet or Arrow."""

    def __init__(self, temporary: Path, content: Content) -> None:
        self._path, self._kind = temporary, content.kind
        self._texts, self._marks = content.texts, content.marks
        self._writer: Any = None
        self._pending: list[pl.DataFrame] = []
        self._cells = 0

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows."""
        self._pending.append(frame)
        self._cells += frame.height * frame.width
        if self._writer is None or self._cells >= GROUP_CELLS:
            self.complete()

    def complete(self) -> None:
        """Write what is pending."""
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
        """Write the end of the file, and let go of it."""
        if self._writer is not None:
            self._writer.close()
