"""Rows of a database as a stream: one read-only transaction for as many passes as asked.

All passes run the same statement on one snapshot. Every pass is compared, row by row, with
the first: rows that are kept or replaced by their position are then the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from pegsynth.schema.dtypes import decimal_text
from pegsynth.tables import sqlite_values
from pegsynth.tables.arrow_read import check_types, polars_types, sliced
from pegsynth.tables.caller_frames import check_names
from pegsynth.tables.database import (
    DatabaseTable,
    Relation,
    check_there,
    connect,
    declared_types,
    is_sqlite,
    origin_of,
    plain_errors,
    quoted,
    relation_of,
)
from pegsynth.tables.reader import Selection, TableReader, Wanted
from pegsynth.tables.sql_shape import rowwise_expression
from pegsynth.tables.streams import STEADY_QUERY, PassDigest, other_rows

_AS_TEXT = ("extension", "interval", "duration")
# What a plan of a plain selection consists of; nothing else looks at one row at a time.
_SCANS = frozenset(
    (
        *("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Bitmap Index Scan"),
        *("BitmapAnd", "BitmapOr", "Tid Scan", "Tid Range Scan", "Append", "Result"),
    )
)


def open_database(source: DatabaseTable) -> TableReader:
    """Open a table or query; the transaction lasts until the reader is closed."""
    connection = connect(source.uri, read_only=True)
    try:
        check_there(connection, source)
        opened = (_sqlite if is_sqlite(source.uri) else _postgresql)(connection, source)
        stream = _Stream(connection, opened, source.name)
    except BaseException:
        connection.close()
        raise
    selection: Selection = "view" if opened.relation == "view" else "other"
    if opened.relation == "table":
        selection = "rowwise" if source.query is not None else "whole"
    elif source.declared_rowwise:
        selection = "declared"
    return TableReader(
        opened.columns,
        source.name,
        True,
        (stream.frames,),
        opened.dtypes,
        expected_rows=opened.expected_rows,
        selection=selection,
        untyped=opened.untyped,
        interrupt=stream.cancel,
        finish=stream.close,
    )


@dataclass(frozen=True)
class Opened:
    """What is known of a table or query before its rows are read.

    Parameters
    ----------
    statement
        Selects the rows.
    columns, dtypes, untyped
        As in `TableReader`.
    values
        Turns what the driver gives of a column into its values.
    relation
        What the rows come from.
    expected_rows
        The rows that the planner expects.
    headed
        Whether the first row is our own.
    """

    statement: str
    columns: tuple[str, ...]
    dtypes: Mapping[str, pl.DataType]
    untyped: frozenset[str]
    values: Callable[[pl.Series], pl.Series]
    relation: Relation
    expected_rows: int | None = None
    headed: bool = False


def _postgresql(connection: Any, source: DatabaseTable) -> Opened:
    """Say how the rows are selected, of which types, and how many the planner expects."""
    origin = origin_of(source)
    with plain_errors(source.name), connection.cursor() as cursor:
        raw = cursor.adbc_execute_schema(f"SELECT * FROM {origin}")
        check_names(raw.names, source.name)
        decimals = frozenset(field.name for field in raw if _kind(field) in ("numeric", "money"))
        chosen = ", ".join(_postgresql_column(field) for field in raw)
        statement = f"SELECT {chosen} FROM {origin}"
        schema = cursor.adbc_execute_schema(statement)
        check_types(schema, source.name)
        cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        cursor.execute(f"EXPLAIN (FORMAT JSON, VERBOSE) {statement}")
        plan = json.loads(cursor.fetchone()[0])[0]["Plan"]
        relation = relation_of(connection, source)
        if relation == "table" and not _only_scans(plan):
            relation = "other"

    def values(column: pl.Series) -> pl.Series:
        return decimal_text(column) if column.name in decimals else column

    return Opened(
        statement,
        tuple(schema.names),
        polars_types(schema) | dict.fromkeys(decimals, pl.Float64()),
        decimals,
        values,
        relation,
        int(plan["Plan Rows"]),
    )


def _kind(field: Any) -> str:
    """Return what PostgreSQL calls the type of a column."""
    kind: bytes = (field.metadata or {}).get(b"POSTGRESQL:type", b"")
    return kind.decode()


def _postgresql_column(field: Any) -> str:
    """Return how to select a column so that it arrives as text, a number or a date.

    Decimals come as text: identifiers of many digits are different people (R12).
    """
    name = quoted((field.name,))
    kind = _kind(field)
    if kind in ("numeric", "money"):
        return f"{name}::numeric::text AS {name}"
    if kind == "bpchar" or any(word in str(field.type) for word in _AS_TEXT):
        return f"{name}::text AS {name}"
    return name


def _only_scans(plan: Mapping[str, Any]) -> bool:
    """Say whether a plan reads rows and works on each of them alone."""
    if plan["Node Type"] not in _SCANS or plan.get("Parent Relationship") == "SubPlan":
        return False
    conditions = [text for name, text in plan.items() if name.endswith(("Cond", "Filter"))]
    texts = [*plan.get("Output", ()), *conditions]
    return all(map(rowwise_expression, texts)) and all(map(_only_scans, plan.get("Plans", ())))


def _sqlite(connection: Any, source: DatabaseTable) -> Opened:
    """Say how the rows are selected and what their columns are declared as.

    SQLite's columns hold values of any kind. Each value comes as text that says which kind
    it is (`sqlite_values`), so that no value changes how another one is read (R30). What
    the columns are declared as says what they are written as.
    """
    origin = origin_of(source)
    with plain_errors(source.name):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {origin} LIMIT 0")
            names = list(cursor.fetch_record_batch().schema.names)
        check_names(names, source.name)
        # The driver takes the type of a column from its first rows: this one is text.
        head = ", ".join(f"'' AS {quoted((name,))}" for name in names)
        rest = ", ".join(sqlite_values.marked(quoted((name,))) for name in names)
        statement = f"SELECT {head} UNION ALL SELECT {rest} FROM {origin}"
        declared = declared_types(connection, source)
        relation = relation_of(connection, source)
    types = {name: sqlite_values.written_type(declared.get(name, "")) for name in names}
    return Opened(
        statement,
        tuple(names),
        {name: dtype for name, dtype in types.items() if dtype is not None},
        frozenset(name for name, dtype in types.items() if dtype != pl.String()),
        partial(sqlite_values.unmarked, source=source.name),
        relation,
        headed=True,
    )


class _Stream:
    """The rows of one statement, the same every time they are asked for."""

    def __init__(self, connection: Any, opened: Opened, name: str) -> None:
        self._connection = connection
        self._opened = opened
        self._name = name
        self._cursor: Any = None
        self._first: tuple[int, int] | None = None

    def frames(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the wanted columns; all are read, so that every pass is the same query."""
        skip = wanted.skip + self._opened.headed
        digest = PassDigest(placed=True)
        with plain_errors(self._name), self._connection.cursor() as cursor:
            self._cursor = cursor
            try:
                cursor.execute(self._opened.statement)
                batches = cursor.fetch_record_batch()
                for frame in sliced(batches, batches.schema.names):
                    passed = min(max(skip - digest.rows, 0), frame.height)
                    digest.add(frame)
                    chosen = frame.select(wanted.columns).slice(passed)
                    yield pl.DataFrame([self._opened.values(column) for column in chosen])
            except GeneratorExit:
                # What is left of the answer is not worth waiting for.
                self.cancel()
                raise
            finally:
                self._cursor = None
        self._first = self._first or digest.value
        if self._first != digest.value:
            raise other_rows(self._name, STEADY_QUERY)

    def cancel(self) -> None:
        """Stop waiting for the server."""
        import adbc_driver_manager

        cursor = self._cursor
        if cursor is not None:
            # SQLite works in this process, and has nothing to be cancelled.
            with plain_errors(self._name), suppress(adbc_driver_manager.NotSupportedError):
                cursor.adbc_cancel()

    def close(self) -> None:
        """End the transaction and the connection."""
        with plain_errors(self._name):
            self._connection.close()
