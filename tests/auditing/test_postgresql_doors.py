"""Door invariance of PostgreSQL (R30), on a real server; PEGSYNTH_LONG=1 tries more."""

import os
from itertools import islice

import pytest

from checks.doors.comparing import Door, failures
from checks.doors.tables import Holding, pairs
from file_twin import everything, unlike
from pegsynth.errors import PegsynthError
from pegsynth.tables.database import DatabaseTable, literal
from postgres import running_server

PAIRS = 100 if os.environ.get("PEGSYNTH_LONG") else 6
TYPES = {
    **{"string": "text", "int64": "bigint", "int32": "integer", "bool": "boolean"},
    **{"double": "double precision", "float": "real", "date32": "date"},
    **{"decimal128(38, 6)": "numeric", "decimal128(9, 2)": "numeric(9, 2)"},
    **{"timestamp[us]": "timestamp", "timestamp[us, tz=Europe/Berlin]": "timestamptz"},
}
QUERIES = (
    "",
    "WHERE true",
    "WHERE row <> '1' AND person IS NOT NULL",
    "AS s WHERE s.row IN ('0', '1', '2', '39')",
    "WHERE row IN (SELECT row FROM lonely)",
    "WHERE row = ANY(ARRAY(SELECT row FROM lonely))",
    "WHERE ctid < '(0, 4)'",
    "ORDER BY row LIMIT 3",
    "TABLESAMPLE SYSTEM (100)",
)


@pytest.fixture(scope="module")
def server():
    with running_server() as running:
        yield running


def written(value):
    """A value as SQL."""
    if value is None:
        return "NULL"
    return literal(value if isinstance(value, str) else str(value))


def table_in(server, which):
    """Return how to make a table of rows in a server, and what is then opened."""

    def build(folder, pair, rows):
        columns = ", ".join(f'"{name}" {TYPES[kind]}' for name, kind in pair.held.items())
        lines = ", ".join(f"({', '.join(map(written, row))})" for row in rows)
        server.run(
            "DROP VIEW IF EXISTS lonely",
            "DROP TABLE IF EXISTS stays",
            f"CREATE TABLE stays ({columns})",
            f"INSERT INTO stays VALUES {lines}",
            "CREATE VIEW lonely AS SELECT min(row) AS row FROM stays GROUP BY person "
            "HAVING count(*) = 1",
        )
        if which == "table":
            return DatabaseTable(server.uri, table="stays")
        names = ", ".join(f'"{name}"' for name in pair.held)
        query = f"SELECT {names} FROM stays {QUERIES[pair.pick(2, len(QUERIES))]}"
        return DatabaseTable(server.uri, query=query)

    return build


@pytest.mark.parametrize("which", ["table", "query"])
def test_one_row_more_changes_nothing(server, which):
    door = Door(f"PostgreSQL {which}", Holding(tuple(TYPES)), table_in(server, which))
    for failure in failures(door, PAIRS):
        pytest.fail(str(failure))


def test_same_numbers_give_the_same_files(server, tmp_path):
    build = table_in(server, "table")
    found = 0
    for pair in islice(pairs(Holding(tuple(TYPES)), "files", extras=1), 60):
        try:
            plain, more = (
                everything(
                    lambda place, pair=pair, rows=rows: build(place, pair, rows),
                    pair.schema,
                    tmp_path / "twin",
                    "parquet",
                )
                for rows in (pair.rows, pair.with_extra(pair.rows))
            )
        except PegsynthError:
            continue
        assert not unlike(plain, more), str(pair)
        found += 1
        if found == max(2, PAIRS // 10):
            return
    pytest.fail("too few pairs can be read")
