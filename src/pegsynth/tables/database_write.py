"""Synthetic rows into a new table of a database, all of them or none.

One transaction on a connection of its own makes the table and fills it. It is committed
when all rows are in and whatever must be written first is written.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.errors import OutputError
from pegsynth.tables.database import (
    DatabaseTarget,
    connect,
    is_sqlite,
    literal,
    plain_errors,
    quoted,
    run,
    split_name,
    sqlite_file,
)
from pegsynth.tables.office_write import as_categories, check_case, listed_names

if TYPE_CHECKING:
    from pegsynth.schema.schema import Schema

_MOST_COLUMNS = {"sqlite": 2_000, "postgresql": 1_600}
_MOST_BYTES = 63
"""Of a name in PostgreSQL, which cuts longer ones off."""


def check_database_target(target: DatabaseTarget) -> None:
    """Refuse, before any work, a database that cannot be reached or a table that exists."""
    parts = split_name(target.table)
    if is_sqlite(target.uri) and not (file := sqlite_file(target.uri)).exists():
        raise OutputError(
            f"cannot write {target}: the database does not exist; make an empty one first (touch "
            f"{shlex.quote(str(file))}), or name one that exists"
        )
    connection = connect(target.uri, read_only=True)
    try:
        with plain_errors(target, OutputError):
            if is_sqlite(target.uri):
                name = literal(parts[-1])
                there = run(
                    connection,
                    f"SELECT count(*) FROM sqlite_master WHERE lower(name) = lower({name})",
                )
            else:
                there = run(connection, f"SELECT to_regclass({literal(quoted(parts))}) IS NOT NULL")
    finally:
        connection.close()
    if there[0][0]:
        raise OutputError(
            f"cannot write {target}: a table of that name exists; choose another, or drop it first"
        )


def check_database_table(target: DatabaseTarget, columns: Sequence[str]) -> None:
    """Refuse columns that a database does not take, before any work."""
    sqlite = is_sqlite(target.uri)
    most = _MOST_COLUMNS["sqlite" if sqlite else "postgresql"]
    if len(columns) > most:
        raise OutputError(
            f"cannot write {target}: a table of this database holds at most {most:,} columns, and "
            f"there are {len(columns):,}; write a file"
        )
    if sqlite:
        check_case(target, columns)
        return
    for name in columns:
        if not 0 < len(name.encode()) <= _MOST_BYTES:
            raise OutputError(
                f"cannot write {target}: the column name {name[:80]!r} is not allowed in this "
                "database; rename the column, or write a file"
            )


@contextmanager
def open_database_writer(
    target: DatabaseTarget,
    *,
    schema: Mapping[str, Any] | None = None,
    before: Callable[[], None] | None = None,
    codebook: Schema | None = None,
) -> Iterator[DatabaseWriter]:
    """Open a table for writing; it appears when the block ends well.

    Parameters
    ----------
    schema
        Column names and Polars types; needed only for a table that may get no rows.
    before
        Called when the table is complete and before it becomes visible.
    codebook
        The schema of the table.
    """
    connection = connect(target.uri, read_only=False)
    try:
        writer = DatabaseWriter(connection, target, codebook)
        if schema is not None:
            writer.write(pl.DataFrame(schema=schema))
        yield writer
        if before is not None:
            before()
        with plain_errors(f"cannot write {target}", OutputError):
            connection.commit()
    finally:
        # What was not committed goes away with the connection.
        connection.close()


class DatabaseWriter:
    """Takes the frames of one table, all with the same columns and types."""

    def __init__(
        self, connection: Any, target: DatabaseTarget, codebook: Schema | None = None
    ) -> None:
        self._connection = connection
        self._target = target
        self._codebook = codebook
        self._fresh = True

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows; the first call makes the table."""
        *schema, table = split_name(self._target.table)
        sqlite = is_sqlite(self._target.uri)
        mode = "create" if self._fresh else "append"
        place = {"db_schema_name": schema[0]} if schema and not sqlite else {}
        frame = _by_local_clocks(frame, self._codebook, sqlite=sqlite)
        if sqlite:
            listed = listed_names(self._codebook)
            frame = as_categories(frame, listed, lambda column: column.dtype.is_temporal())
        with (
            plain_errors(f"cannot write {self._target}", OutputError),
            self._connection.cursor() as cursor,
        ):
            cursor.adbc_ingest(table, _storable(frame, sqlite=sqlite).to_arrow(), mode, **place)
        self._fresh = False


def _by_local_clocks(frame: pl.DataFrame, codebook: Schema | None, *, sqlite: bool) -> pl.DataFrame:
    """Return moments without their zone where the schema could not bring its clocks back.

    PostgreSQL gives moments by the clocks of UTC, and the schema may say of which zone they are.
    SQLite has no zones.
    """
    stated = {} if codebook is None else {each.name: each.dtype for each in codebook.features}
    return frame.with_columns(
        pl.col(name).dt.replace_time_zone(None)
        for name, dtype in frame.schema.items()
        if getattr(dtype, "time_zone", None) not in (None, "UTC")
        and (sqlite or "tz=" not in stated.get(name, "tz="))
    )


def _storable(frame: pl.DataFrame, *, sqlite: bool) -> pl.DataFrame:
    """Return a frame with nothing but types that the driver can store."""
    return frame.with_columns(
        pl.col(name).cast(pl.String)
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Enum | pl.Categorical)
        or (sqlite and (dtype.is_decimal() or dtype in (pl.Time, pl.Duration)))
    )
