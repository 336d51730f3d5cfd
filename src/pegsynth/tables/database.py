"""Tables of a database: which one is meant, and how it is reached through ADBC.

A `DatabaseTable` is an address and a table or a query. Passwords are never part of an
address. Messages name the server and the table; the text of a query and the texts of the
server, which may quote it or the data, are never passed on.

Synthetic rows go into a new table, all of them or none: one transaction on a connection of its own
makes the table and fills it. It is committed when all rows are in and whatever must be written
first is written.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import polars as pl

from pegsynth.errors import DataError, OutputError, ParameterError, PegsynthError
from pegsynth.tables.file_sets import refuse_secrets, scheme_of

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

    from pegsynth.tables.table_output import Content

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


def connect(uri: str, *, read_only: bool) -> Connection:
    """Open a connection; its first statement starts a transaction."""
    if is_sqlite(uri):
        return _connect_sqlite(uri, read_only=read_only)
    driver = _driver("adbc_driver_postgresql", "postgres")
    with plain_errors(public_address(uri)):
        connection: Connection = driver.connect(_with_time_limit(uri))
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


def _connect_sqlite(uri: str, *, read_only: bool) -> Connection:
    driver = _driver("adbc_driver_sqlite", "sqlite")
    path = sqlite_file(uri)
    if not path.is_file():
        raise DataError(f"{public_address(uri)}: there is no such file; check the name")
    mode = "ro" if read_only else "rw"
    with plain_errors(public_address(uri)):
        connection: Connection = driver.connect(f"file:{quote(str(path.absolute()))}?mode={mode}")
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


def run(connection: Connection, statement: str) -> list[Any]:
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


class DatabaseWriter:
    """Fills a new table, which appears when it is committed."""

    def __init__(self, target: DatabaseTarget, content: Content) -> None:
        self._target, self._content = target, content
        self._connection = connect(target.uri, read_only=False)
        self._fresh = True

    def complete(self) -> None:
        """Let the table appear."""
        with plain_errors(f"cannot write {self._target}", OutputError):
            self._connection.commit()

    def close(self) -> None:
        """Let go of the database; what was not committed goes away with the connection."""
        self._connection.close()

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows; the first call makes the table."""
        *schema, table = split_name(self._target.table)
        sqlite = is_sqlite(self._target.uri)
        frame = _by_local_clocks(frame, self._content, sqlite=sqlite)
        if sqlite:
            frame = self._content.as_categories(frame, lambda column: column.dtype.is_temporal())
        # Nothing but types that the driver can store.
        frame = frame.with_columns(
            pl.col(name).cast(pl.String)
            for name, dtype in frame.schema.items()
            if isinstance(dtype, pl.Enum | pl.Categorical)
            or (sqlite and (dtype.is_decimal() or dtype in (pl.Time, pl.Duration)))
        )
        with (
            plain_errors(f"cannot write {self._target}", OutputError),
            self._connection.cursor() as cursor,
        ):
            cursor.adbc_ingest(
                table,
                frame.to_arrow(),
                "create" if self._fresh else "append",
                db_schema_name=schema[0] if schema and not sqlite else None,
            )
        self._fresh = False


def _by_local_clocks(frame: pl.DataFrame, content: Content, *, sqlite: bool) -> pl.DataFrame:
    """Return moments without their zone where the schema could not bring its clocks back.

    PostgreSQL gives moments by the clocks of UTC, and the schema may say of which zone they are.
    SQLite has no zones.
    """
    stated = {name: each.dtype for name, each in content.features.items()}
    return frame.with_columns(
        pl.col(name).dt.replace_time_zone(None)
        for name, dtype in frame.schema.items()
        if getattr(dtype, "time_zone", None) not in (None, "UTC")
        and (sqlite or "tz=" not in stated.get(name, "tz="))
    )
