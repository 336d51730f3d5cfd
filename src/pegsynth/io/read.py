"""Tables in: a file, a glob of files or a dataframe becomes a stream of Polars frames.

`open_table` looks at names and types only; `TableReader.batches` streams the rows in
bounded memory, as often as asked. CSV columns arrive as text, untouched; other sources
keep their types. Everything that cannot be read is refused with a `DataError` that names
the file and the column or line, never a value.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.errors import DataError
from pegsynth.io import arrow_read, csv_read
from pegsynth.io.frames import FrameKind, check_names, frame_kind, from_frame

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_ROWS = 1 << 17
EXTENSIONS: Mapping[str, str] = {
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".ipc": "ipc",
}

Batches = Callable[[Sequence[str]], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class TableReader:
    """A table that can be streamed.

    Parameters
    ----------
    columns
        Column names in table order.
    source
        What messages call the table: its file name, or "the table" for a dataframe.
    typed
        False for CSV, whose columns are all text; null there is an unquoted empty field.
    dtypes
        Polars types of the columns; empty for CSV.
    frame_kind
        Whose dataframe it was; None for files.
    stream
        Yields the wanted columns, batch by batch.
    """

    columns: tuple[str, ...]
    source: str
    typed: bool
    stream: Batches = field(repr=False)
    dtypes: Mapping[str, pl.DataType] = field(default_factory=dict, repr=False)
    frame_kind: FrameKind | None = None
    _arrow_schema: Any = field(default=None, repr=False)

    @cached_property
    def arrow_schema(self) -> pa.Schema | None:
        """Arrow schema of a typed source; None for CSV."""
        if self._arrow_schema is not None or not self.typed:
            return self._arrow_schema
        return pl.DataFrame(schema=dict(self.dtypes)).to_arrow().schema

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        hints: Mapping[str, pl.DataType] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, at most 2**18 at a time.

        Parameters
        ----------
        columns
            Columns wanted, in that order; None for all. Parquet reads no others.
        hints
            Types that CSV text may be read as where every value of a block fits.
        """
        wanted = self.columns if columns is None else tuple(columns)
        for name in wanted:
            if name not in self.columns:
                raise DataError(f"{self.source}: there is no column {name!r}")
        rows = 0
        stream = self.stream
        if hints and not self.typed and isinstance(stream, partial):
            stream = partial(stream, hints=hints)
        try:
            for batch in stream(wanted):
                if batch.height:
                    rows += batch.height
                    yield batch
        except OSError as error:
            raise _unreadable(self.source, error) from None
        if not rows:
            raise _no_rows(self.source)


def open_table(source: Any) -> TableReader:
    """Open a file, a glob of files or a dataframe for reading.

    Parameters
    ----------
    source
        Path of a .csv, .parquet, .pq, .arrow, .feather or .ipc file; a glob of files of
        one kind with the same columns; or a pandas, Polars or PyArrow table.

    Raises
    ------
    DataError
        The table cannot be read, has no rows, or has columns that cannot be used.
    """
    if isinstance(source, str | Path):
        return _open_files(str(source), _expand(str(source)))
    if frame_kind(source) is None:
        raise DataError(
            f"the table is a {type(source).__name__}; give a file name or a pandas, Polars or "
            "PyArrow table"
        )
    return _open_frame(source)


def table_files(source: Any) -> list[Path]:
    """Return the existing files that a source names; none for a dataframe."""
    if not isinstance(source, str | Path):
        return []
    names = [str(source)] if Path(source).exists() else glob.glob(str(source), recursive=True)
    return [Path(name) for name in names if Path(name).exists()]


def same_file(first: Path, second: Path) -> bool:
    """Say whether two names lead to one existing file."""
    return first.exists() and second.exists() and first.samefile(second)


def table_format(path: str | Path) -> str | None:
    """Return "csv", "parquet" or "ipc" by the extension of a file name, else None."""
    return EXTENSIONS.get(Path(path).suffix.lower())


def _expand(text: str) -> list[Path]:
    if Path(text).exists() or not glob.has_magic(text):
        return [Path(text)]
    found = sorted(glob.glob(text, recursive=True))
    if not found:
        raise DataError(f"{text}: no file matches; check the pattern and the folder")
    return [Path(name) for name in found]


def _open_files(source: str, paths: list[Path]) -> TableReader:
    first = paths[0]
    parts = [_open_file(path) for path in paths]
    rows = any(has_rows for _, has_rows in parts)
    reader = parts[0][0]
    for path, (part, _) in zip(paths[1:], parts[1:], strict=True):
        _check_drift(first, reader, path, part)
    if not rows:
        raise _no_rows(source)
    if len(paths) == 1:
        return reader
    streams = [part.stream for part, _ in parts]

    def stream(columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        for each in streams:
            yield from each(columns)

    return TableReader(
        reader.columns, source, reader.typed, stream, reader.dtypes, None, reader._arrow_schema
    )


def _open_file(path: Path) -> tuple[TableReader, bool]:
    kind = _check_file(path)
    if kind == "csv":
        columns, has_rows = _opening(path, csv_read.read_header)
        check_names(columns, str(path))
        stream = partial(csv_read.read_batches, path)
        return TableReader(columns, str(path), False, stream), has_rows
    look, read = (
        (arrow_read.parquet_schema, arrow_read.parquet_batches)
        if kind == "parquet"
        else (arrow_read.ipc_schema, arrow_read.ipc_batches)
    )
    schema, rows = look(path)
    check_names(schema.names, str(path))
    arrow_read.check_types(schema, str(path))
    dtypes = dict(arrow_read.to_polars(schema.empty_table()).schema)
    names = tuple(schema.names)
    return TableReader(names, str(path), True, partial(read, path), dtypes, None, schema), rows > 0


def _check_file(path: Path) -> str:
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; give a file, or a quoted glob of files")
    if not path.exists():
        raise DataError(f"{path}: there is no such file; check the name and the folder")
    kind = table_format(path)
    if kind is None:
        known = ", ".join(EXTENSIONS)
        raise DataError(f"{path}: the extension is not known; known are {known}")
    if path.is_file() and path.stat().st_size == 0:
        raise DataError(f"{path}: the file is empty; give one with a header line and rows")
    try:
        path.open("rb").close()
    except OSError as error:
        raise _unreadable(path, error) from None
    return kind


def _opening(
    path: Path, look: Callable[[Path], tuple[tuple[str, ...], bool]]
) -> tuple[tuple[str, ...], bool]:
    try:
        return look(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _check_drift(first: Path, reader: TableReader, path: Path, other: TableReader) -> None:
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
    frame = from_frame(data)
    try:
        schema = frame.collect_schema()
        empty = frame.lazy().limit(1).collect().is_empty()
    except pl.exceptions.PolarsError:
        raise DataError(f"{source}: the lazy frame cannot be collected") from None
    check_names(schema.names(), source)
    _check_polars_types(schema, source)
    if empty:
        raise _no_rows(source)
    return TableReader(
        tuple(schema.names()),
        source,
        True,
        partial(_frame_batches, frame),
        dict(schema),
        frame_kind(data),
    )


def _frame_batches(
    frame: pl.DataFrame | pl.LazyFrame, columns: Sequence[str]
) -> Iterator[pl.DataFrame]:
    chosen = frame.select(columns)
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


def _check_polars_types(schema: pl.Schema, source: str) -> None:
    for name, dtype in schema.items():
        if dtype.is_nested() or dtype in {pl.Binary, pl.Object}:
            raise DataError(
                f"{source}: column {name!r} holds lists, structs, bytes or objects; turn it into "
                "columns of text, numbers or dates, or drop it"
            )


def _unreadable(source: str | Path, error: OSError) -> DataError:
    return DataError(
        f"{source}: the file cannot be read ({error.strerror}); check that it is there and that "
        "you may read it"
    )


def _no_rows(source: str) -> DataError:
    return DataError(f"{source}: the table has no rows; give one with at least one row")
