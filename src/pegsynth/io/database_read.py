"""Rows of a database as a stream: one read-only transaction for as many passes as asked.

All passes run the same statement on one snapshot. Every pass is compared, row by row, with
the first: rows that are kept or replaced by their position are then the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.errors import DataError
from pegsynth.io.arrow_read import check_types, polars_types, sliced
from pegsynth.io.database import (
    DatabaseTable,
    connect,
    is_sqlite,
    plain_errors,
    quoted,
    run,
)
from pegsynth.io.database_catalogue import Relation, check_there, origin_of, relation_of
from pegsynth.io.frames import check_names
from pegsynth.io.reader import Selection, TableReader
from pegsynth.io.sql_shape import rowwise_expression

_AS_TEXT = ("extension", "interval", "duration")
# What a plan of a plain selection consists of; nothing else looks at one row at a time.
_SCANS = frozenset(
    (
        *("Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Bitmap Index Scan"),
        *("BitmapAnd", "BitmapOr", "Tid Scan", "Tid Range Scan", "Append", "Result"),
    )
)
_ODD = np.uint64(0x9E3779B97F4A7C15)


def open_database(source: DatabaseTable) -> TableReader:
    """Open a table or query; the transaction lasts until the reader is closed."""
    connection = connect(source.uri, read_only=True)
    try:
        check_there(connection, source)
        statement, schema, expected, relation = (_sqlite if is_sqlite(source.uri) else _postgresql)(
            connection, source
        )
        stream = _Stream(connection, statement, source.name, headed=is_sqlite(source.uri))
    except BaseException:
        connection.close()
        raise
    selection: Selection = "view" if relation == "view" else "other"
    if relation == "table":
        selection = "rowwise" if source.query is not None else "whole"
    elif source.declared_rowwise:
        selection = "declared"
    return TableReader(
        tuple(schema),
        source.name,
        True,
        (stream.frames,),
        schema,
        expected_rows=expected,
        selection=selection,
        interrupt=stream.cancel,
        finish=stream.close,
    )


Opened = tuple[str, dict[str, pl.DataType], int | None, Relation]


def _postgresql(connection: Any, source: DatabaseTable) -> Opened:
    """Return the statement, the types, the rows that the planner expects, and their origin."""
    origin = origin_of(source)
    with plain_errors(source.name), connection.cursor() as cursor:
        raw = cursor.adbc_execute_schema(f"SELECT * FROM {origin}")
        check_names(raw.names, source.name)
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
    return statement, _types(schema), int(plan["Plan Rows"]), relation


def _postgresql_column(field: Any) -> str:
    """Return how to select a column so that it arrives as text, a number or a date."""
    name = quoted((field.name,))
    kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
    if kind in ("numeric", "money"):
        return f"{name}::numeric::float8 AS {name}"
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
    """Return the statement, the types, None for the rows, and their origin.

    SQLite's columns hold values of any kind, and the driver goes by the first rows. Each
    column is therefore looked at once, and a first row of our own settles its type.
    """
    origin = origin_of(source)
    with plain_errors(source.name):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {origin} LIMIT 0")
            names = list(cursor.fetch_record_batch().schema.names)
        check_names(names, source.name)
        kinds = ", ".join(
            f"max(typeof({quoted((name,))}) = '{kind}')"
            for name in names
            for kind in ("text", "real", "integer", "blob")
        )
        (found,) = run(connection, f"SELECT {kinds} FROM {origin}")
        columns = [
            _sqlite_column(name, found[4 * index : 4 * index + 4], source.name)
            for index, name in enumerate(names)
        ]
        head = ", ".join(f"{first} AS {name}" for name, first, _ in columns)
        rest = ", ".join(value for _, _, value in columns)
        statement = f"SELECT {head} UNION ALL SELECT {rest} FROM {origin}"
        with connection.cursor() as cursor:
            cursor.execute(f"{statement} LIMIT 1")
            schema = cursor.fetch_record_batch().schema
        relation = relation_of(connection, source)
    return statement, _types(schema), None, relation


def _sqlite_column(name: str, held: Sequence[Any], source: str) -> tuple[str, str, str]:
    """Return a column's name, a value that settles its type, and how to select it."""
    text, real, integer, blob = (bool(each) for each in held)
    column = quoted((name,))
    if blob:
        raise DataError(
            f"{source}: column {name!r} holds bytes; turn it into a column of text, numbers or "
            "dates, or leave it out"
        )
    if text or not (real or integer):
        return column, "''", f"CAST({column} AS TEXT)"
    return (column, "0.0", f"CAST({column} AS REAL)") if real else (column, "0", column)


def _types(schema: Any) -> dict[str, pl.DataType]:
    return polars_types(schema)


class _Stream:
    """The rows of one statement, the same every time they are asked for."""

    def __init__(self, connection: Any, statement: str, name: str, *, headed: bool) -> None:
        self._connection = connection
        self._statement = statement
        self._name = name
        self._headed = headed
        self._cursor: Any = None
        self._first: tuple[int, int] | None = None

    def frames(
        self,
        columns: Sequence[str],
        *,
        skip: int = 0,
        hints: Mapping[str, pl.DataType] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the wanted columns; all are read, so that every pass is the same query."""
        skip += self._headed
        rows = digest = 0
        with plain_errors(self._name), self._connection.cursor() as cursor:
            self._cursor = cursor
            try:
                cursor.execute(self._statement)
                batches = cursor.fetch_record_batch()
                for frame in sliced(batches, batches.schema.names):
                    digest = (digest + _digest(frame, rows)) % (1 << 64)
                    passed = min(skip - rows, frame.height) if rows < skip else 0
                    rows += frame.height
                    yield frame.select(columns).slice(passed)
            except GeneratorExit:
                # What is left of the answer is not worth waiting for.
                self.cancel()
                raise
            finally:
                self._cursor = None
        self._compare((rows, digest))

    def _compare(self, seen: tuple[int, int]) -> None:
        if self._first is None:
            self._first = seen
        elif self._first != seen:
            raise DataError(
                f"{self._name}: the rows came differently the second time, and reading needs two "
                "passes; leave random or changing functions out of the query, or save the rows as "
                "Parquet first"
            )

    def cancel(self) -> None:
        """Stop waiting for the server."""
        cursor = self._cursor
        if cursor is not None:
            with plain_errors(self._name):
                cursor.adbc_cancel()

    def close(self) -> None:
        """End the transaction and the connection."""
        with plain_errors(self._name):
            self._connection.close()


def _digest(frame: pl.DataFrame, first: int) -> int:
    """Return a number that depends on every value of a frame and on where its row stands."""
    places = np.arange(first, first + frame.height, dtype=np.uint64) * _ODD
    mixed: NDArray[np.uint64] = (frame.hash_rows(seed=0).to_numpy() ^ places) * _ODD
    mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))
