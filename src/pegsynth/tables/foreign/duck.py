"""A table, a view or a query of a DuckDB file.

The database is opened for reading; it may neither read other files nor load extensions. The types
of columns are those that the database declares. Types that have no exact counterpart come as text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import pyarrow as pa

from pegsynth.tables.foreign import Asked, Described, ForeignError, schema_text

_SETTINGS: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_unsigned_extensions": "false",
    "threads": "1",
}
_AS_TEXT = ("HUGEINT", "UHUGEINT", "UUID", "INTERVAL", "BIT", "TIME WITH TIME ZONE", "BIGNUM")
_TABLES = (
    "SELECT table_schema, table_name, table_type FROM information_schema.tables "
    "WHERE table_catalog = current_database() ORDER BY 1, 2"
)


class DuckTable:
    """The rows of one table, view or query; the only table of the file if none is named."""

    def __init__(self, asked: Asked) -> None:
        try:
            import duckdb
        except ImportError:
            raise ForeignError("missing-package", ["duckdb"]) from None
        self._errors = duckdb.Error
        try:
            self._connection = duckdb.connect(asked.path, read_only=True, config=_SETTINGS)
            listed = self._connection.sql(_TABLES).fetchall()
        except duckdb.IOException as error:
            raise ForeignError("in-use" if "lock" in str(error) else "broken") from None
        except (duckdb.Error, UnicodeDecodeError):
            raise ForeignError("broken") from None
        self._relation: Literal["table", "view", "other"] = "other"
        if asked.query is None:
            self._origin = self._named(asked.table, listed)
        else:
            self._origin = f"(\n{asked.query}\n) AS pegsynth_query"
        self._chosen = self._columns("broken" if asked.query is None else "bad-query")

    def _named(self, table: str | None, listed: Sequence[tuple[str, str, str]]) -> str:
        names = [name if space == "main" else f"{space}.{name}" for space, name, _ in listed]
        if table is None and len(listed) != 1:
            raise ForeignError("which-table" if listed else "no-table", names)
        if table is not None and table not in names:
            raise ForeignError("no-table", names)
        space, name, kind = listed[0 if table is None else names.index(table)]
        if kind in ("BASE TABLE", "VIEW"):
            self._relation = "view" if kind == "VIEW" else "table"
        return f"{_quoted(space)}.{_quoted(name)}"

    def _columns(self, code: str) -> dict[str, str]:
        try:
            described = self._connection.sql(f"DESCRIBE SELECT * FROM {self._origin}").fetchall()
        except (self._errors, UnicodeDecodeError):
            raise ForeignError(code) from None
        chosen = {}
        for name, kind, *_ in described:
            quoted = _quoted(name)
            as_text = kind in _AS_TEXT
            chosen[name] = f"{quoted}::VARCHAR AS {quoted}" if as_text else quoted
        return chosen

    def _rows(self, columns: Sequence[str], size: int, more: str = "") -> pa.RecordBatchReader:
        listed = ", ".join(self._chosen[name] for name in columns)
        try:
            rows = self._connection.sql(f"SELECT {listed} FROM {self._origin} {more}")
            # Older versions call it differently.
            read = getattr(rows, "to_arrow_reader", None) or rows.fetch_arrow_reader
            return read(size)
        except (self._errors, pa.ArrowException):
            raise ForeignError("broken") from None

    def describe(self) -> Described:
        """Return names and types, and what the rows come from."""
        names = list(self._chosen)
        schema = self.row_schema(names) if names else pa.schema([])
        return Described(schema_text(schema), None, relation=self._relation)

    def row_schema(self, columns: Sequence[str]) -> pa.Schema:
        """Return the types of some columns."""
        return self._rows(columns, 1, "LIMIT 0").schema

    def batches(self, columns: Sequence[str], skip: int, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield rows in the order in which they were stored."""
        try:
            for batch in self._rows(columns, min(rows, 1 << 16)):
                passed = min(skip, batch.num_rows)
                skip -= passed
                if passed < batch.num_rows:
                    yield batch.slice(passed)
        except (self._errors, pa.ArrowException, OSError):
            raise ForeignError("broken") from None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
