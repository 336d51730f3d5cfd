"""Tables of a database: which one is meant, and how it is reached through ADBC.

A `DatabaseTable` is an address and a table or a query. Passwords are never part of an
address. Messages name the server and the table; the text of a query and the texts of the
server, which may quote it or the data, are never passed on.

What a database says it holds: whether a table is there, and whether it is a view.

Only the catalogue is asked, in statements of our own; messages name tables and never pass
on what the database says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from pegsynth.errors import DataError, ParameterError, PegsynthError
from pegsynth.tables.file_sets import refuse_secrets, scheme_of
from pegsynth.tables.sql_shape import rowwise_table, without_end

_REMEDY = "use PGPASSWORD, a password file (~/.pgpass) or a service file instead"
_CONNECT_SECONDS = "30"

_STATES = {
    "08": "the connection failed or was lost; nothing was written, so run it again",
    "22": "the query fails on some of its rows; try it with psql to see why",
    "25006": "the query would change the database, and this connection only reads",
    "28": "the server does not let this user in; check user, password and rights",
    "3D000": "there is no such database; check the name in the address",
    "42501": "this user may not do that; ask for the right",
    "42601": "the query is not valid SQL; try it with psql",
    "42P01": "there is no such table; check its name and schema",
    "42P07": "a table of that name exists; choose another, or drop it first",
    "42703": "the query names a column that does not exist",
    "42": "the query does not fit the database; try it with psql",
    "40": "the server gave up because of other work on the same rows; run it again",
    "53": "the server has run out of space, memory or connections",
    "57014": "the server stopped the query, perhaps after its time limit",
    "57": "the server ended the connection; nothing was written, so run it again",
}
_LOST = ("FATAL:", "server closed", "connection", "SSL", "socket")


@dataclass(frozen=True)
class DatabaseTable:
    """A table, or the rows that a query gives.

    Parameters
    ----------
    uri
        ``postgresql://user@host/database`` or ``sqlite:///file.db``.
    table
        Name of a table as the database spells it, with its schema if it needs one
        (``schema.table``; parts with dots in double quotes).
    query
        A SELECT instead of a table.
    declared_rowwise
        The caller's word that the query selects rows one by one.
    """

    uri: str = field(repr=False)
    table: str | None = None
    query: str | None = field(default=None, repr=False)
    declared_rowwise: bool = False

    def __post_init__(self) -> None:
        check_address(self.uri)
        if (self.table is None) == (self.query is None):
            raise ParameterError(
                "a database needs --table NAME, or --query with a SELECT, and not both"
            )
        for name, text in (("--table", self.table), ("--query", self.query)):
            if text is not None and not text.strip():
                raise ParameterError(f"{name} is empty; leave it out or fill it in")

    @property
    def name(self) -> str:
        """What messages call the table; it has no secrets and no query in it."""
        what = "the query" if self.query is not None else f"table {self.table}"
        return f"{public_address(self.uri)}, {what}"


@dataclass(frozen=True)
class DatabaseTarget:
    """A table to be made in a database."""

    uri: str = field(repr=False)
    table: str

    def __post_init__(self) -> None:
        check_address(self.uri)
        split_name(self.table)

    def __str__(self) -> str:
        return f"{public_address(self.uri)}, table {self.table}"


def check_address(uri: str) -> None:
    """Refuse an address that holds a password; the message does not repeat it."""
    refuse_secrets(uri, _REMEDY)
    if scheme_of(uri) == "sqlite" and (urlsplit(uri).netloc or len(urlsplit(uri).path) < 2):
        raise ParameterError(
            "write sqlite:///file.db for a file of this folder and sqlite:////path/file.db for any "
            "other"
        )


def public_address(uri: str) -> str:
    """Return an address without its user and options."""
    parts = urlsplit(uri)
    if scheme_of(uri) == "sqlite":
        return f"sqlite:///{unquote(parts.path)[1:]}"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_sqlite(uri: str) -> bool:
    """Say whether an address names an SQLite file."""
    return scheme_of(uri) == "sqlite"


def sqlite_file(uri: str) -> Path:
    """Return the file that an SQLite address names."""
    return Path(unquote(urlsplit(uri).path)[1:])


def split_name(table: str) -> tuple[str, ...]:
    """Cut ``schema.table`` at its dots; a part in double quotes is taken as it is.

    Every part is used exactly as it is written, capital letters included.
    """
    parts: list[str] = []
    rest = table
    while True:
        if rest.startswith('"'):
            end = 1
            while (end := rest.find('"', end)) >= 0 and rest[end + 1 : end + 2] == '"':
                end += 2
            part, rest = rest[1:end].replace('""', '"'), rest[end + 1 :]
            broken = end < 0 or (rest and not rest.startswith("."))
        else:
            part, dot, tail = rest.partition(".")
            rest, broken = dot + tail, False
        if broken or not part or "\0" in part or len(parts) == 2:
            raise ParameterError(
                f"{table!r} is not the name of a table; write table or schema.table, and put parts "
                "that hold dots in double quotes"
            )
        parts.append(part)
        if not rest:
            return tuple(parts)
        rest = rest[1:]


def quoted(parts: Sequence[str]) -> str:
    """Return a name for use in SQL, whatever characters are in it."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)


def connect(uri: str, *, read_only: bool) -> Any:
    """Open a connection; its first statement starts a transaction."""
    if is_sqlite(uri):
        return _connect_sqlite(uri, read_only=read_only)
    driver = _driver("adbc_driver_postgresql", "postgres")
    with plain_errors(public_address(uri)):
        connection = driver.connect(_with_time_limit(uri))
    if not read_only:
        return connection
    with plain_errors(public_address(uri)):
        # Both passes see one snapshot, and every scan gives its rows in the same order.
        for statement in (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            "SET standard_conforming_strings = on",
            "SET synchronize_seqscans = off",
            "SET max_parallel_workers_per_gather = 0",
        ):
            run(connection, statement)
        connection.commit()
    return connection


def _connect_sqlite(uri: str, *, read_only: bool) -> Any:
    driver = _driver("adbc_driver_sqlite", "sqlite")
    path = sqlite_file(uri)
    if not path.is_file():
        raise DataError(f"{public_address(uri)}: there is no such file; check the name")
    mode = "ro" if read_only else "rw"
    with plain_errors(public_address(uri)):
        connection = driver.connect(f"file:{quote(str(path.absolute()))}?mode={mode}")
        if read_only:
            run(connection, "PRAGMA query_only = ON")
    return connection


def _driver(module: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(f"{module}.dbapi")
    except ImportError:
        raise ParameterError(
            f"this database needs a driver; install it with pip install 'pegsynth[{extra}]'"
        ) from None


def _with_time_limit(uri: str) -> str:
    """Give up after a while on a server that does not answer, unless the user said when."""
    parts = urlsplit(uri)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "connect_timeout" in options or "PGCONNECT_TIMEOUT" in os.environ:
        return uri
    query = urlencode(options | {"connect_timeout": _CONNECT_SECONDS}, quote_via=quote)
    return urlunsplit(parts._replace(query=query))


def run(connection: Any, statement: str) -> list[Any]:
    """Run one statement outside of any stream and return the rows it gives."""
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows: list[Any] = cursor.fetchall() if cursor.description else []
        return rows


def literal(text: str) -> str:
    """Return a text for use in SQL."""
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def plain_errors(name: object, kind: Callable[[str], PegsynthError] = DataError) -> Iterator[None]:
    """Turn errors of a driver into plain ones; its texts may quote the query or the data."""
    import adbc_driver_manager
    import pyarrow as pa

    try:
        yield
    except adbc_driver_manager.Error as error:
        raise kind(f"{name}: {_reason(error.sqlstate, str(error))}") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, PegsynthError):
            raise
        raise kind(f"{name}: {_reason(None, str(error))}") from None


def _reason(state: str | None, text: str) -> str:
    known = [key for key in _STATES if state and state.startswith(key)]
    if known:
        return _STATES[max(known, key=len)]
    # Errors that come with the rows have no state, only a text.
    for word, key in (("already exists", "42P07"), ("read-only", "25006"), ("ERROR:", "22")):
        if word in text and "FATAL:" not in text:
            return _STATES[key]
    if any(word in text for word in _LOST):
        return (
            "the server cannot be reached, refuses the connection, or has ended it; check the "
            "address and your rights and run it again; nothing was written"
        )
    return (
        f"the database reports an error{f' ({state})' if state else ''}; try it with its own tools"
    )


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
