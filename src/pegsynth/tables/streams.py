"""Tables of the caller that are no files: dataframes, Arrow streams, datasets, chunks.

`open_frame` takes a pandas, Polars or PyArrow table, or a relation of DuckDB. `open_stream` takes
any object that exports an Arrow stream (``__arrow_c_stream__``, as Ibis tables do), a dataset of
PyArrow, or an iterator of dataframes. The types of the columns are those that the table declares,
never found in its rows (R30): where PyArrow would guess them, from CSV cells or the names of
folders, the dataset is refused. An Arrow stream and a dataset are asked for their rows again in
every pass; an iterator can be read once.

Some methods read a table twice, and what the first pass measured must be true of the rows
that the second one counts. Where that is not plain, a digest of every pass is compared with that of
the first (`SameRows`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pegsynth.errors import DataError
from pegsynth.tables.arrow_read import batch_rows, declared_reader, sliced
from pegsynth.tables.caller_frames import (
    check_names,
    check_polars_types,
    frame_kind,
    from_frame,
    is_relation,
    text_columns,
    to_kind,
    without_rows,
)
from pegsynth.tables.reader import Part, TableReader, Wanted, made, no_rows, typed_reader

if TYPE_CHECKING:
    import pyarrow as pa


FRAME_ROWS = 1 << 17
_ODD = np.uint64(0x9E3779B97F4A7C15)


class SameRows:
    """A part of a table that is refused when it gives other rows in another pass.

    Parameters
    ----------
    part
        What gives the rows, such as a lazy frame.
    source, remedy
        What it is called when it is refused, and what to do then.
    placed
        Whether rows have to come in the same order. Where only counts are made of them they need
        not.
    """

    def __init__(self, part: Part, source: str, remedy: str, *, placed: bool = False) -> None:
        self._part, self._placed = part, placed
        self._source, self._remedy = source, remedy
        self._first: dict[tuple[frozenset[str], int], tuple[int, int]] = {}

    def __call__(self, wanted: Wanted) -> Generator[pl.DataFrame]:
        """Yield the rows that are wanted."""
        rows = digest = 0
        for piece in self._part(wanted):
            frame = made(piece)
            mixed = frame.select(sorted(wanted.columns)).hash_rows(seed=0).to_numpy()
            if self._placed:
                mixed = mixed ^ np.arange(rows, rows + frame.height, dtype=np.uint64) * _ODD
            mixed = mixed * _ODD
            mixed ^= mixed >> np.uint64(29)
            rows += frame.height
            digest = (digest + int(mixed.sum(dtype=np.uint64))) % (1 << 64)
            yield frame
        key = frozenset(wanted.columns), wanted.skip
        if self._first.setdefault(key, (rows, digest)) != (rows, digest):
            raise other_rows(self._source, self._remedy)


def other_rows(source: str, remedy: str) -> DataError:
    """Say that a second pass gave other rows than the first."""
    return DataError(
        f"{source}: the rows came differently the second time, and reading needs two passes; "
        f"{remedy}"
    )


STEADY_QUERY = (
    "leave random or changing functions out of the query, or save the rows as Parquet first"
)
"""What to do where the rows of a query come differently."""

SOURCE = "the table"
_HOLD_IT = "give a table that holds its rows, such as a dataframe, or a file"


def is_stream(data: object) -> bool:
    """Say whether `data` is a table that `open_stream` takes."""
    return _is_dataset(data) or is_chunked(data)


def is_chunked(data: object) -> bool:
    """Say whether `data` is a stream that declares nothing before it begins to give rows."""
    arrow = hasattr(data, "__arrow_c_stream__") or isinstance(data, Iterator)
    return arrow and not _is_dataset(data)


def open_frame(data: object, *, source: str = SOURCE) -> TableReader:
    """Open a dataframe; of one that holds its rows none is looked at.

    Parameters
    ----------
    source
        What messages about its columns call it.
    """
    header = from_frame(without_rows(data))
    try:
        schema = header.collect_schema()
    except pl.exceptions.PolarsError:
        raise DataError(f"{SOURCE}: the lazy frame cannot be collected") from None
    check_names(schema.names(), source)
    check_polars_types(schema, source)
    steady = not isinstance(header, pl.LazyFrame)
    part: Part = FramePart(data)
    if not steady:
        part = SameRows(part, "the lazy frame", "collect() it first")
    # How many rows there are is known of a frame that holds them.
    yet_to_run = frame_kind(data) is None or hasattr(data, "read_all") or not steady
    return replace(
        typed_reader(schema, SOURCE, part, untyped=text_columns(data)),
        frame_kind="pyarrow" if is_relation(data) else frame_kind(data),
        expected_rows=None if yet_to_run else len(data),  # type: ignore[arg-type]
        steady=steady,
    )


class FramePart:
    """The rows of a dataframe, which are made Polars' own when they are first asked for."""

    def __init__(self, data: object) -> None:
        self._data: object = data
        self._frame: pl.DataFrame | pl.LazyFrame | None = None

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that are wanted."""
        if self._frame is None:
            data, self._data = self._data, None
            self._frame = from_frame(data)
        chosen = self._frame.select(wanted.columns).slice(wanted.skip)
        if isinstance(chosen, pl.DataFrame):
            return chosen.iter_slices(FRAME_ROWS)
        return _collected(chosen)


def _collected(chosen: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    try:
        if hasattr(chosen, "collect_batches"):
            for batch in chosen.collect_batches(chunk_size=FRAME_ROWS, maintain_order=True):
                yield from batch.iter_slices(FRAME_ROWS)
        else:
            yield from chosen.collect().iter_slices(FRAME_ROWS)
    except pl.exceptions.PolarsError:
        raise DataError(f"{SOURCE}: the lazy frame cannot be collected") from None


def open_stream(data: object) -> TableReader:
    """Open a table that comes as a stream.

    Raises
    ------
    DataError
        It is no table, its types are not declared, or they cannot be used.
    """
    part: Part
    if _is_dataset(data):
        _check_declared(data)
        schema, part = data.schema, partial(_dataset_rows, data)  # type: ignore[attr-defined]
    elif hasattr(data, "__arrow_c_stream__"):
        stream = ArrowPart(data)
        schema, part = stream.schema, stream
    else:
        return _open_chunks(iter(data))  # type: ignore[call-overload]
    reader = declared_reader(schema, SOURCE, SameRows(part, SOURCE, _HOLD_IT))
    return replace(reader, frame_kind="pyarrow", steady=False)


def held(data: Any) -> Any:
    """Return a table whose rows are all of one execution, for those who need them together.

    Lazy frames are collected, streams read to their end; other tables are what they are.
    """
    if isinstance(data, pl.LazyFrame):
        return data.collect()
    if not is_stream(data) or frame_kind(data) is not None:
        return data
    with open_stream(data) as reader:
        return to_kind(pl.concat(list(reader.batches())), reader.frame_kind)


class ArrowPart:
    """The rows of an object that exports an Arrow stream, as often as it does so."""

    def __init__(self, source: Any) -> None:
        self._source = source
        # Asking for the schema takes the stream, which some objects give only once.
        self._taken: Any = self._stream()
        self.schema: pa.Schema = self._taken.schema

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that are wanted."""
        stream, self._taken = self._taken or self._stream(), None
        with _refusing():
            yield from wanted.after_skip(sliced(stream, wanted.columns))

    def _stream(self) -> Any:
        import pyarrow as pa

        with _refusing():
            return pa.RecordBatchReader.from_stream(self._source)


def _dataset_rows(dataset: Any, wanted: Wanted) -> Iterator[pl.DataFrame]:
    """Yield the rows of a dataset of PyArrow that are wanted."""
    size = batch_rows(len(wanted.columns))
    with _refusing():
        batches = dataset.to_batches(columns=list(wanted.columns), batch_size=size)
        yield from wanted.after_skip(sliced(batches, wanted.columns))


class ChunkPart:
    """The rows of dataframes that come one after another, once.

    Parameters
    ----------
    chunks
        The dataframes after the first.
    first
        The first, whose types are those of the table.
    """

    def __init__(self, first: Any, chunks: Iterator[Any]) -> None:
        self.header = _chunk(first, 1)
        self._chunks: Iterator[Any] | None = chain([first], chunks)

    def __call__(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the rows that are wanted."""
        if self._chunks is None:
            raise DataError(
                f"{SOURCE}: a stream of chunks can be read once, and its rows are needed again; "
                f"{_HOLD_IT}"
            )
        chunks, self._chunks = self._chunks, None
        yield from wanted.after_skip(self._frames(chunks, wanted.columns))

    def _frames(self, chunks: Iterable[Any], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
        # Nothing of a chunk that was read is kept while the next one is made.
        for chunk in map(self._checked, chunks, count(1)):
            yield from chunk.batches(columns)
            del chunk

    def _checked(self, chunk: Any, number: int) -> TableReader:
        """Open a chunk, refusing one that declares other columns or types than the first."""
        first, found = self.header, _chunk(chunk, number)
        for name in dict.fromkeys((*first.columns, *found.columns)):
            if name not in first.columns or name not in found.columns:
                raise DataError(
                    f"{SOURCE}: chunk {number}: column {name!r} is not in all chunks; give chunks "
                    "with the same columns"
                )
            if first.dtypes.get(name) != found.dtypes.get(name):
                raise DataError(
                    f"{SOURCE}: chunk {number}: column {name!r} has another type than in the first "
                    "chunk; state the types where the chunks are made, such as with dtype= in "
                    "pandas.read_csv, or give the file itself"
                )
        return found


def _open_chunks(chunks: Iterator[Any]) -> TableReader:
    first = next(chunks, None)
    if first is None:
        raise no_rows(SOURCE)
    part = ChunkPart(first, chunks)
    whole = replace(part.header, parts=(part,), expected_rows=None, may_be_empty=False)
    return replace(whole, steady=False, once=True)


def _chunk(chunk: Any, number: int) -> TableReader:
    if frame_kind(chunk) is None:
        raise DataError(
            f"{SOURCE} is a stream of {type(chunk).__name__} objects; give a stream of pandas, "
            "Polars or PyArrow tables, or a file name"
        )
    reader = open_frame(chunk, source=f"{SOURCE}: chunk {number}")
    return replace(reader, source=SOURCE, may_be_empty=True)


def _is_dataset(data: object) -> bool:
    """Say whether `data` is a dataset of PyArrow, which is not imported to find out."""
    return any(
        base.__name__ == "Dataset" and base.__module__ in ("pyarrow._dataset", "pyarrow.dataset")
        for base in type(data).__mro__
    )


def _check_declared(dataset: Any) -> None:
    """Refuse datasets whose types were guessed from cells, or from the names of folders (R30)."""
    from pyarrow import compute

    for child in getattr(dataset, "children", ()):
        _check_declared(child)
    form = type(getattr(dataset, "format", None)).__name__
    if form in ("CsvFileFormat", "JsonFileFormat"):
        raise DataError(
            f"{SOURCE}: PyArrow guesses the types of CSV and JSON datasets from their rows; give "
            "the name of the folder or of the files instead of the dataset"
        )
    # A dataset whose schema was replaced no longer tells how it was partitioned; its files do.
    anything = compute.scalar(True)
    files = dataset.get_fragments() if hasattr(dataset, "files") else ()
    if any(not each.partition_expression.equals(anything) for each in files):
        raise DataError(
            f"{SOURCE}: PyArrow guesses the types of columns that the names of folders give; give "
            "the name of the folder instead of the dataset"
        )


@contextmanager
def _refusing() -> Iterator[None]:
    """Say that a stream cannot be read; texts of libraries may quote data and are left out."""
    import pyarrow as pa

    try:
        yield
    except DataError as error:
        raise DataError(f"{SOURCE}: {error}") from None
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, TypeError, ValueError):
        raise DataError(
            f"{SOURCE}: the stream cannot be read, is no table, or was read before; {_HOLD_IT}"
        ) from None
