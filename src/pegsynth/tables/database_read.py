"""Rows of a database as a stream: one read-only transaction for as many passes as asked.

All passes run the same statement on one snapshot. Every pass is compared, row by row, with
the first: rows that are kept or replaced by their position are then the same rows.

What the database holds is asked of its catalogue, in statements of our own; messages name tables
and never pass on what the database says.

A column of SQLite may hold text, whole numbers, floats and bytes side by side. A cell comes as a
text with one letter before it that says its kind, and leaves as canonical text. The type that the
column is declared with says what it is written as (R30).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from pegsynth.errors import DataError
from pegsynth.schema.dtypes import as_text, decimal_text
from pegsynth.tables.arrow_read import check_types, polars_types, sliced
from pegsynth.tables.caller_frames import check_names
from pegsynth.tables.database import (
    DatabaseTable,
    connect,
    is_sqlite,
    literal,
    plain_errors,
    public_address,
    quoted,
    run,
    split_name,
)
from pegsynth.tables.reader import Relation, TableReader, Wanted, selection_of
from pegsynth.tables.sql_shape import rowwise_expression, rowwise_table, without_end
from pegsynth.tables.streams import STEADY_QUERY, SameRows

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection, Cursor

MOST_NAMED = 10
_TYPES_VIEW = "pegsynth_types"
_OPENS = re.compile("open", re.IGNORECASE)
_OPENS_TABLE = ("OpenRead", "ReopenIdx")
_SQLITE_NAMES = (
    "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' "
    "ESCAPE '\\' ORDER BY name"
)
_POSTGRESQL_NAMES = (
    "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|information_schema$)' "
    "AND has_table_privilege(c.oid, 'SELECT') ORDER BY 1"
)
# A name that --table takes in double quotes only.
_NOT_SPELT = re.compile(r'\.|^"')
_REAL, _BYTES = "r", "b"
# An expression for a quoted column that gives every value with its kind: `quote` writes as many
# digits of a float as it takes to read it back.
_MARKED = (
    "CASE typeof({0}) WHEN 'text' THEN 't' || {0} WHEN 'integer' THEN 'i' || CAST({0} AS TEXT) "
    "WHEN 'real' THEN 'r' || quote({0}) WHEN 'blob' THEN 'b' END"
)
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
        opened = (_sqlite if is_sqlite(source.uri) else _postgresql)(connection, source)
    except BaseException:
        connection.close()
        raise
    stream = _Stream(connection, opened, source.name)
    return TableReader(
        opened.columns,
        source.name,
        True,
        (stream.frames,),
        opened.dtypes,
        expected_rows=opened.expected_rows,
        selection=selection_of(
            opened.relation, query=source.query is not None, declared=source.declared_rowwise
        ),
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


def _postgresql(connection: Connection, source: DatabaseTable) -> Opened:
    """Say how the rows are selected, of which types, and how many the planner expects."""
    origin = _origin_of(source)
    if source.table is not None:
        name = literal(quoted(split_name(source.table)))
        with plain_errors(source.name):
            (found,) = run(connection, f"SELECT to_regclass({name}) IS NOT NULL")
            if not found[0]:
                raise _no_table(source, [each for (each,) in run(connection, _POSTGRESQL_NAMES)])
    with plain_errors(source.name), connection.cursor() as cursor:
        raw = cursor.adbc_execute_schema(f"SELECT * FROM {origin}")
        check_names(raw.names, source.name)
        chosen, decimals = [], set()
        for field in raw:
            name = quoted((field.name,))
            kind = (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
            if kind in ("numeric", "money"):
                # Decimals come as text: identifiers of many digits are different people (R12).
                decimals.add(field.name)
                chosen.append(f"{name}::numeric::text AS {name}")
            elif kind == "bpchar" or any(word in str(field.type) for word in _AS_TEXT):
                chosen.append(f"{name}::text AS {name}")
            else:
                chosen.append(name)
        statement = f"SELECT {', '.join(chosen)} FROM {origin}"
        schema = cursor.adbc_execute_schema(statement)
        check_types(schema, source.name)
        cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
        cursor.execute(f"EXPLAIN (FORMAT JSON, VERBOSE) {statement}")
        ((explained,),) = cursor.fetchall()
        plan = json.loads(explained)[0]["Plan"]
        relation = _relation_of(connection, source)
        if relation == "table" and not _only_scans(plan):
            relation = "other"
    return Opened(
        statement,
        tuple(schema.names),
        polars_types(schema) | dict.fromkeys(decimals, pl.Float64()),
        frozenset(decimals),
        lambda column: decimal_text(column) if column.name in decimals else column,
        relation,
        int(plan["Plan Rows"]),
    )


def _only_scans(plan: Mapping[str, Any]) -> bool:
    """Say whether a plan reads rows and works on each of them alone."""
    if plan["Node Type"] not in _SCANS or plan.get("Parent Relationship") == "SubPlan":
        return False
    conditions = [text for name, text in plan.items() if name.endswith(("Cond", "Filter"))]
    texts = [*plan.get("Output", ()), *conditions]
    return all(map(rowwise_expression, texts)) and all(map(_only_scans, plan.get("Plans", ())))


def _sqlite(connection: Connection, source: DatabaseTable) -> Opened:
    """Say how the rows are selected and what their columns are declared as.

    SQLite's columns hold values of any kind. Each value comes as text that says which kind
    it is (`sqlite_values`), so that no value changes how another one is read (R30). What
    the columns are declared as says what they are written as.
    """
    import adbc_driver_manager

    origin = _origin_of(source)
    with plain_errors(source.name):
        tables = [name for (name,) in run(connection, _SQLITE_NAMES)]
        try:
            # Compiled and not run: an error here is about the statement, not about rows.
            run(connection, f"EXPLAIN QUERY PLAN SELECT * FROM {origin}")
        except adbc_driver_manager.Error:
            listed = [quoted((name,)) if _NOT_SPELT.search(name) else name for name in tables]
            if source.table is None:
                raise DataError(
                    f"{source.name}: SQLite does not take it: it is not one valid SELECT, or names "
                    f"a table or column that does not exist; {_listed(listed)}; try the query with "
                    "sqlite3"
                ) from None
            # A table that is there says what is wrong when it is read.
            if _sqlite_relation(connection, split_name(source.table)[-1]) is None:
                raise _no_table(source, listed) from None
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM {origin} LIMIT 0")
            names = list(cursor.fetch_record_batch().schema.names)
        check_names(names, source.name)
        # The driver takes the type of a column from its first rows: this one is text.
        head = ", ".join(f"'' AS {quoted((name,))}" for name in names)
        rest = ", ".join(_MARKED.format(quoted((name,))) for name in names)
        statement = f"SELECT {head} UNION ALL SELECT {rest} FROM {origin}"
        declared = _declared_types(connection, source)
        relation = _relation_of(connection, source)
    types: dict[str, pl.DataType] = {}
    for name in names:
        # By SQLite's rules of affinity; what may hold anything is said by the schema.
        stated = declared.get(name, "").upper()
        if "INT" in stated:
            types[name] = pl.Int64()
        elif any(word in stated for word in ("CHAR", "CLOB", "TEXT")):
            types[name] = pl.String()
        elif "BLOB" not in stated and any(word in stated for word in ("REAL", "FLOA", "DOUB")):
            types[name] = pl.Float64()
    return Opened(
        statement,
        tuple(names),
        types,
        frozenset(name for name in names if types.get(name) != pl.String()),
        partial(_unmarked, source=source.name),
        relation,
        headed=True,
    )


def _unmarked(cells: pl.Series, *, source: str) -> pl.Series:
    """Return the canonical text of every value.

    Raises
    ------
    DataError
        A value is bytes.
    """
    kinds, texts = cells.str.head(1), cells.str.slice(1)
    if (kinds == _BYTES).any():
        raise DataError(
            f"{source}: column {cells.name!r} holds bytes; turn it into a column of text, numbers "
            "or dates, or leave it out"
        )
    real = kinds == _REAL
    if real.any():
        numbers = texts.set(~real, None).cast(pl.Float64, strict=False)
        texts = as_text(numbers).zip_with(real, texts)
    return texts.alias(cells.name)


class _Stream:
    """The rows of one statement, the same every time they are asked for."""

    def __init__(self, connection: Connection, opened: Opened, name: str) -> None:
        self._connection, self._opened, self._name = connection, opened, name
        self._cursor: Cursor | None = None
        self._same = SameRows(self._every, name, STEADY_QUERY, placed=True)

    def frames(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield the wanted columns; all are read, so that every pass is the same query."""
        # An error about values ends the answer, too, before the connection goes.
        with closing(self._same(Wanted(self._opened.columns))) as every:
            for frame in wanted.after_skip(every):
                chosen = frame.select(wanted.columns)
                yield pl.DataFrame([self._opened.values(column) for column in chosen])

    def _every(self, wanted: Wanted) -> Iterator[pl.DataFrame]:
        """Yield all rows as the driver gives them, without one of our own."""
        with plain_errors(self._name), self._connection.cursor() as cursor:
            self._cursor = cursor
            try:
                cursor.execute(self._opened.statement)
                rows = sliced(cursor.fetch_record_batch(), wanted.columns)
                yield from replace(wanted, skip=int(self._opened.headed)).after_skip(rows)
            except GeneratorExit:
                # What is left of the answer is not worth waiting for.
                self.cancel()
                raise
            finally:
                self._cursor = None

    def cancel(self) -> None:
        """Stop waiting for the server."""
        import adbc_driver_manager

        if self._cursor is not None:
            # SQLite works in this process, and has nothing to be cancelled.
            with plain_errors(self._name), suppress(adbc_driver_manager.NotSupportedError):
                self._cursor.adbc_cancel()

    def close(self) -> None:
        """End the transaction and the connection."""
        with plain_errors(self._name):
            self._connection.close()


def _no_table(source: DatabaseTable, names: Sequence[str]) -> DataError:
    address = public_address(source.uri)
    return DataError(
        f"{address}: there is no table {source.table} that can be read; {_listed(names)}"
    )


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "the database has no tables"
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"tables and views there: {', '.join(names[:MOST_NAMED])}{more}"


def _origin_of(source: DatabaseTable) -> str:
    """Return what stands after FROM."""
    if source.query is None:
        return quoted(split_name(source.table or ""))
    return f"(\n{without_end(source.query)}\n) AS pegsynth_query"


def _relation_of(connection: Connection, source: DatabaseTable) -> Relation:
    """Say what the rows come from: one ordinary table that hides none of them, or one view.

    Anything else is "other", as are queries of another shape than a plain selection.
    """
    sqlite = is_sqlite(source.uri)
    table: str | None = source.table
    if source.query is not None:
        table = rowwise_table(source.query, brackets=not sqlite)
    if table is None:
        return "other"
    parts = split_name(table)
    if sqlite:
        relation = _sqlite_relation(connection, parts[-1]) or "other"
        alone = relation != "table" or _opens_only(connection, source, parts[-1])
        return relation if alone else "other"
    name = table if source.query is not None else quoted(parts)
    found = run(
        connection,
        "SELECT CASE WHEN relkind IN ('v', 'm') THEN 'view' WHEN relkind IN ('r', 'p') AND NOT "
        "relrowsecurity THEN 'table' ELSE 'other' END FROM pg_class WHERE oid = "
        f"to_regclass({literal(name)})",
    )
    return found[0][0] if found else "other"


def _opens_only(connection: Connection, source: DatabaseTable, table: str) -> bool:
    """Say whether SQLite's own program for a query opens that table and its indexes alone.

    Lists of constants open a table in memory (`OpenEphemeral`), which is harmless.
    """
    pages = run(
        connection,
        f"SELECT rootpage FROM sqlite_master WHERE lower(tbl_name) = lower({literal(table)})",
    )
    known = {page for (page,) in pages}
    program = run(connection, f"EXPLAIN SELECT * FROM {_origin_of(source)}")
    opened = [(step[1], step[3], step[4]) for step in program if _OPENS.search(step[1])]
    return all(
        (code in _OPENS_TABLE and page in known and database == 0) or code == "OpenEphemeral"
        for code, page, database in opened
    )


def _sqlite_relation(connection: Connection, name: str) -> Relation | None:
    found = run(
        connection,
        "SELECT type, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type IN ('table', "
        f"'view') AND lower(name) = lower({literal(name)})",
    )
    if not found:
        return None
    kind, virtual = found[0]
    return "view" if kind == "view" else "other" if virtual else "table"


def _declared_types(connection: Connection, source: DatabaseTable) -> dict[str, str]:
    """Return what SQLite's columns are declared as; a column of a query may have nothing.

    The columns of a query are asked of a view of it, which is gone afterwards. It is made
    beside the database, in memory; the file itself is open for reading only.
    """
    import adbc_driver_manager

    name = _TYPES_VIEW if source.table is None else split_name(source.table)[-1]
    try:
        if source.query is not None:
            run(connection, "PRAGMA temp_store = MEMORY")
            run(connection, "PRAGMA query_only = OFF")
            run(connection, f"CREATE TEMP VIEW {_TYPES_VIEW} AS SELECT * FROM {_origin_of(source)}")
        found = run(connection, f"SELECT name, type FROM pragma_table_xinfo({literal(name)})")
    except adbc_driver_manager.Error:
        return {}
    finally:
        if source.query is not None:
            run(connection, f"DROP VIEW IF EXISTS temp.{_TYPES_VIEW}")
        run(connection, "PRAGMA query_only = ON")
    return {column: declared or "" for column, declared in found}
