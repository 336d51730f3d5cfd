"""A table that can be streamed, part by part, as often as asked.

A `TableReader` knows names, types and parts; a part is a function that yields frames, or
pieces that become frames when asked to. A stream can start at a `Place`, which is how
counting goes on after an interruption. `run_ahead` reads a stream ahead of its consumer, on a
separate thread.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar

import polars as pl

from pegsynth.errors import DataError, EmptyTableError
from pegsynth.schema.dialect import Dialect
from pegsynth.tables.caller_frames import FrameKind
from pegsynth.tables.file_sets import File, FileState, file_states, fingerprint

if TYPE_CHECKING:
    import pyarrow as pa

Item = TypeVar("Item")
_SECONDS = 0.2


def is_blank(units: pl.Series) -> pl.Series:
    """Say of every unit whether it is missing."""
    return units.is_null() | (units.str.strip_chars() == "")


def missing_units(source: str, unit: str, blank: int) -> DataError:
    """Say that rows do not name their unit."""
    return DataError(
        f"{source}: unit column {unit!r}: {blank} values are missing; every row must name its "
        "unit, so fill them in or drop these rows"
    )


Selection = Literal["whole", "rowwise", "declared", "view", "other"]
Relation = Literal["table", "view", "other"]
"""What rows come from: one ordinary table that hides none of them, one view, or anything else."""


def selection_of(relation: Relation, *, query: bool, declared: bool) -> Selection:
    """Say how rows were selected.

    Parameters
    ----------
    relation
        What they come from; that of a query is a table only if it looks at one row at a time.
    declared
        Whether the caller declared that they are selected one by one.
    """
    if relation == "table":
        return "rowwise" if query else "whole"
    return "declared" if declared else relation


class Unmade(Protocol):
    """Rows that are read and still to be made a frame of, maybe by another thread."""

    @property
    def height(self) -> int:
        """The number of rows."""

    @property
    def width(self) -> int:
        """The number of columns."""

    def frame(self) -> pl.DataFrame:
        """Return the rows as a frame."""


Piece = pl.DataFrame | Unmade


def made(piece: Piece) -> pl.DataFrame:
    """Return the frame of a piece."""
    return piece if isinstance(piece, pl.DataFrame) else piece.frame()


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a part of a table.

    Parameters
    ----------
    columns
        Names of columns, in the order wanted.
    skip
        How many rows to pass over first.
    hints
        Types that text may be read as where every value of a block fits.
    """

    columns: tuple[str, ...]
    skip: int = 0
    hints: Mapping[str, pl.DataType] = field(default_factory=dict)

    def after_skip(self, frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Leave the rows to pass over out of a stream of all rows."""
        skip = self.skip
        for frame in frames:
            passed = min(skip, frame.height)
            skip -= passed
            if passed < frame.height:
                yield frame.slice(passed)


Part = Callable[[Wanted], Iterator[Piece]]
"""Yields one part of a table: the rows of a file, a query or a dataframe."""


@dataclass(frozen=True)
class Place:
    """Where a stream goes on.

    Parameters
    ----------
    part, skip
        The part to go on with, and how many of its rows lie before.
    rows
        Rows before, over all parts.
    """

    part: int = 0
    skip: int = 0
    rows: int = 0


class Track:
    """Remembers at which row every part began while a stream reads them."""

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._parts: list[int] = []

    def begin(self, part: int, row: int) -> None:
        """Note that a part starts at a row of the table."""
        # A thread reads ahead while another one asks for places: what begins comes last.
        self._parts.append(part)
        self._begins.append(row)

    def place(self, rows: int) -> Place:
        """Return the place after the first `rows` rows of the table."""
        index = bisect_right(self._begins, rows) - 1
        return Place(self._parts[index], rows - self._begins[index], rows)


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
    parts
        What the table consists of, in order.
    dtypes
        Types that the columns are declared to have, for what is written; a column that
        declares none is missing here, as all are of CSV. They come from the declaration of
        the table, never from its values (R30).
    frame_kind
        Whose dataframe it was; None for files and databases.
    expected_rows
        About how many rows there are, for progress alone; None if nobody knows.
    selection
        How the rows were selected: all of a table, by a query that looks at one row at a
        time, by one of which the caller declared that it does, by a view, or by any other.
    untyped
        Columns of a typed table whose values come as text, each for itself, because nothing
        but the values says what they are.
    dialect
        How the table is written, where it is written as text; nothing is left open in it.
    one_header
        Whether one header says the order of the columns; False for a folder or a glob,
        whose files may differ in it.
    steady
        Whether rows come in the same order in every pass.
    once
        Whether rows come in one pass only; another one is refused.
    children
        The second of two tables, whose rows belong to rows of this one (R24).
    folded
        Whether the rows are those of a folded panel, one for each unit (R24).
    may_be_empty
        Whether a table without rows is read like any other, as a confidential one is: that
        there is a row may decide nothing. Elsewhere it is refused.
    files
        The files that the table is read from.
    states
        What the files were like when the table was opened.
    interrupt, finish
        How to stop a stream that waits for a server, and how to let go of the table.
    before_rows
        Called whenever rows are asked for, before any of them is read.
    """

    columns: tuple[str, ...]
    source: str
    typed: bool
    parts: tuple[Part, ...] = field(repr=False)
    dtypes: Mapping[str, pl.DataType] = field(default_factory=dict, repr=False)
    frame_kind: FrameKind | None = None
    expected_rows: int | None = None
    selection: Selection = "whole"
    untyped: frozenset[str] = frozenset()
    dialect: Dialect = field(default_factory=Dialect)
    one_header: bool = True
    steady: bool = True
    once: bool = False
    folded: bool = False
    may_be_empty: bool = False
    children: TableReader | None = field(default=None, repr=False)
    files: tuple[File, ...] = field(default=(), repr=False)
    states: tuple[FileState, ...] = field(default=(), repr=False)
    interrupt: Callable[[], None] | None = field(default=None, repr=False)
    finish: Callable[[], None] | None = field(default=None, repr=False)
    before_rows: Callable[[], None] | None = field(default=None, repr=False)
    _arrow_schema: Any = field(default=None, repr=False)

    @cached_property
    def arrow_schema(self) -> pa.Schema | None:
        """Arrow schema of the columns that declare a type; None for CSV."""
        if self._arrow_schema is not None or not self.typed:
            return self._arrow_schema
        return pl.DataFrame(schema=dict(self.dtypes)).to_arrow().schema

    @property
    def output_columns(self) -> tuple[str, ...]:
        """The order in which columns are written; empty where the schema says it."""
        return self.columns if self.one_header else ()

    def has_type(self, name: str) -> bool:
        """Say whether the values of a column have the type that it declares."""
        return self.typed and name not in self.untyped

    @property
    def identity(self) -> str | None:
        """A text that changes when the files do; None where that cannot be told."""
        return fingerprint(self.files) if self.files else None

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        hints: Mapping[str, pl.DataType] | None = None,
        start: Place | None = None,
        track: Track | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, at most 2**18 at a time; see `pieces`."""
        return map(made, self.pieces(columns, hints=hints, start=start, track=track))

    def pieces(
        self,
        columns: Sequence[str] | None = None,
        *,
        hints: Mapping[str, pl.DataType] | None = None,
        start: Place | None = None,
        track: Track | None = None,
    ) -> Generator[Piece]:
        """Yield the rows in order, at most 2**18 at a time; of no rows a piece without any.

        Parameters
        ----------
        columns
            Columns wanted, in that order; None for all. Parquet reads no others.
        hints
            Types that CSV text may be read as where every value of a block fits.
        start
            Where to start; None for the beginning.
        track
            Is told where every part begins.
        """
        wanted = self.columns if columns is None else tuple(columns)
        for name in wanted:
            if name not in self.columns:
                raise DataError(f"{self.source}: there is no column {name!r}")
        # The border: up to here names and types were looked at, from here on rows are.
        if self.before_rows is not None:
            self.before_rows()
        start = start or Place()
        rows, skip = start.rows, start.skip
        track = track or Track()
        try:
            for number in range(start.part, len(self.parts)):
                track.begin(number, rows - skip)
                for piece in self.parts[number](Wanted(wanted, skip, hints or {})):
                    if piece.height:
                        rows += piece.height
                        yield piece
                skip = 0
            if self.states and file_states(self.files) != self.states:
                raise changed(self.source)
        except OSError as error:
            raise unreadable(self.source, error) from None
        if rows:
            return
        if not self.may_be_empty:
            raise no_rows(self.source)
        types = {name: self.dtypes.get(name) for name in wanted if self.has_type(name)}
        yield pl.DataFrame(schema={name: types.get(name) or pl.String() for name in wanted})

    def calling(self, before_rows: Callable[[], None]) -> TableReader:
        """Return the same table, which calls a function before any of its rows is read."""
        children = None if self.children is None else self.children.calling(before_rows)
        return replace(self, before_rows=before_rows, children=children)

    def close(self) -> None:
        """Let go of a database; files need nothing."""
        if self.children is not None:
            self.children.close()
        if self.finish is not None:
            self.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def typed_reader(
    types: Mapping[str, pl.DataType], source: str, part: Part, *, untyped: Collection[str] = ()
) -> TableReader:
    """Return the reader of a table of one part whose columns declare their types.

    Parameters
    ----------
    untyped
        Columns of text whose values say what they are; whatever is written comes from the schema.
    """
    declared = {name: dtype for name, dtype in types.items() if name not in untyped}
    return TableReader(tuple(types), source, True, (part,), declared, untyped=frozenset(untyped))


def unreadable(source: object, error: OSError) -> DataError:
    """Say that a file cannot be read; PyArrow's own texts may quote data and are left out."""
    reason = f" ({error.strerror})" if error.strerror else ""
    return DataError(
        f"{source}: the file cannot be read{reason}; check that it is there and that you may read "
        "it"
    )


def changed(source: str) -> DataError:
    """Say that a table was not the same in every pass."""
    return DataError(
        f"{source}: the table changed while it was read; leave it as it is until the command is "
        "done, and run it again"
    )


def no_rows(source: str) -> DataError:
    """Say that a table is empty."""
    return EmptyTableError(f"{source}: the table has no rows; give one with at least one row")


def run_ahead(
    items: Iterable[Item],
    *,
    size: Callable[[Item], int],
    most: int,
    interrupt: Callable[[], None] | None = None,
) -> Generator[Item]:
    """Yield `items`, made ahead of time, in the same order and with the same errors.

    Parameters
    ----------
    items
        The stream; it is used by one thread only.
    size, most
        Making pauses while the items that wait have together at least this size.
    interrupt
        Called when the reader leaves early, to wake a stream that waits for others.
    """
    changed = threading.Condition()
    waiting: deque[Item] = deque()
    held, complete, stopped = 0, False, False

    def make() -> None:
        nonlocal held, complete
        try:
            for item in items:
                with changed:
                    while held >= most and not stopped:
                        changed.wait()
                    if stopped:
                        return
                    waiting.append(item)
                    held += size(item)
                    changed.notify_all()
        finally:
            with changed:
                complete = True
                changed.notify_all()

    with ThreadPoolExecutor(1) as maker:
        making = maker.submit(make)
        early = True
        try:
            while True:
                with changed:
                    while not (waiting or complete):
                        # A library may have set signals up so that none ends a wait.
                        changed.wait(_SECONDS)
                    if not waiting:
                        break
                    item = waiting.popleft()
                    held -= size(item)
                    changed.notify_all()
                yield item
            early = False
        finally:
            with changed:
                stopped = True
                changed.notify_all()
            if early and interrupt is not None:
                interrupt()
        try:
            making.result()
        finally:
            # An error and the frame that holds its future would keep each other alive.
            del making
