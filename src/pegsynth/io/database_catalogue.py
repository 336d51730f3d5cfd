"""What a database says it holds: whether a table is there, and whether it is a view.

Only the catalogue is asked, in statements of our own; messages name tables and never pass
on what the database says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from pegsynth.errors import DataError
from pegsynth.io.database import (
    DatabaseTable,
    is_sqlite,
    literal,
    plain_errors,
    public_address,
    quoted,
    run,
    split_name,
)
from pegsynth.io.sql_shape import rowwise_table, without_end

Relation = Literal["table", "view", "other"]

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


def check_there(connection: Any, source: DatabaseTable) -> None:
    """Refuse a table that is not there, and what SQLite does not take for a query.

    Raises
    ------
    DataError
        With the names of tables that are there.
    """
    if is_sqlite(source.uri):
        _check_sqlite(connection, source)
    elif source.table is not None:
        name = quoted(split_name(source.table))
        with plain_errors(source.name):
            (found,) = run(connection, f"SELECT to_regclass({literal(name)}) IS NOT NULL")
            names = [] if found[0] else [each for (each,) in run(connection, _POSTGRESQL_NAMES)]
        if not found[0]:
            raise _no_table(source, names)


def _check_sqlite(connection: Any, source: DatabaseTable) -> None:
    import adbc_driver_manager

    with plain_errors(source.name):
        names = [_spelt(name) for (name,) in run(connection, _SQLITE_NAMES)]
        try:
            # Compiled and not run: an error here is about the statement, not about rows.
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {origin_of(source)}")
        except adbc_driver_manager.Error:
            if source.table is None:
                raise DataError(
                    f"{source.name}: SQLite does not take it: it is not one valid SELECT, or names "
                    f"a table or column that does not exist; {_listed(names)}; try the query with "
                    "sqlite3"
                ) from None
            # A table that is there says what is wrong when it is read.
            if _sqlite_relation(connection, split_name(source.table)[-1]) is None:
                raise _no_table(source, names) from None


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


def _spelt(name: str) -> str:
    """Return a name as --table takes it."""
    return quoted((name,)) if "." in name or name.startswith('"') else name


def origin_of(source: DatabaseTable) -> str:
    """Return what stands after FROM."""
    if source.query is None:
        return quoted(split_name(source.table or ""))
    return f"(\n{without_end(source.query)}\n) AS pegsynth_query"


def relation_of(connection: Any, source: DatabaseTable) -> Relation:
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


def _opens_only(connection: Any, source: DatabaseTable, table: str) -> bool:
    """Say whether SQLite's own program for a query opens that table and its indexes alone.

    Lists of constants open a table in memory (`OpenEphemeral`), which is harmless.
    """
    pages = run(
        connection,
        f"SELECT rootpage FROM sqlite_master WHERE lower(tbl_name) = lower({literal(table)})",
    )
    known = {page for (page,) in pages}
    program = run(connection, f"EXPLAIN SELECT * FROM {origin_of(source)}")
    opened = [(step[1], step[3], step[4]) for step in program if _OPENS.search(step[1])]
    return all(
        (code in _OPENS_TABLE and page in known and database == 0) or code == "OpenEphemeral"
        for code, page, database in opened
    )


def _sqlite_relation(connection: Any, name: str) -> Relation | None:
    found = run(
        connection,
        "SELECT type, sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE type IN ('table', "
        f"'view') AND lower(name) = lower({literal(name)})",
    )
    if not found:
        return None
    kind, virtual = found[0]
    return "view" if kind == "view" else "other" if virtual else "table"


def declared_types(connection: Any, source: DatabaseTable) -> dict[str, str]:
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
            run(connection, f"CREATE TEMP VIEW {_TYPES_VIEW} AS SELECT * FROM {origin_of(source)}")
        found = run(connection, f"SELECT name, type FROM pragma_table_xinfo({literal(name)})")
    except adbc_driver_manager.Error:
        return {}
    finally:
        if source.query is not None:
            run(connection, f"DROP VIEW IF EXISTS temp.{_TYPES_VIEW}")
        run(connection, "PRAGMA query_only = ON")
    return {column: declared or "" for column, declared in found}
