"""SQLite files: values of any kind in any column, odd names, views, faults, rows back."""

import sqlite3
import sys

import polars as pl
import pytest

from command import SECRET, check_refused, done, pegs, snapshot
from pegsynth.codec.codec import encode
from pegsynth.errors import DataError, OutputError, ParameterError
from pegsynth.schema.dtypes import as_text
from pegsynth.tables import database_read as database_catalogue
from pegsynth.tables.database import (
    DatabaseTable,
    DatabaseTarget,
    check_database_target,
    split_name,
)
from pegsynth.tables.database_read import MOST_NAMED
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import open_writer
from small_release import small_schema, small_table

ODD = 'odd "name" é; --'


@pytest.fixture
def database(tmp_path):
    """Give a file with a table of an odd name, whose columns start with many nulls."""
    path = tmp_path / "some data.db"
    with sqlite3.connect(path) as connection:
        name = ODD.replace('"', '""')
        connection.execute(f'CREATE TABLE "{name}" (i INTEGER, "text first null" TEXT, r, mixed)')
        rows = [
            (k, None, None, None) if k < 3000 else (None, f"x{k}", [1, 2.5][k % 2], [k, "q"][k % 2])
            for k in range(5000)
        ]
        connection.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?, ?)', rows)
        connection.execute(f'CREATE VIEW a_view AS SELECT * FROM "{name}"')
        connection.execute("CREATE TABLE bytes (a, b)")
        connection.execute("INSERT INTO bytes VALUES (1, ?)", [SECRET.encode()])
        connection.execute("CREATE TABLE hollow (a)")
    connection.close()
    return path


def uri(path):
    return f"sqlite:///{path}"


def read(path, **which):
    with open_table(DatabaseTable(uri(path), **which)) as reader:
        return pl.concat(list(reader.batches()))


def test_values_of_any_kind(database):
    frame = read(database, table=ODD)
    assert set(frame.dtypes) == {pl.String}
    assert frame.shape == (5000, 4)
    assert frame.row(0) == ("0", None, None, None)
    assert frame.row(3000) == (None, "x3000", "1", "3000")
    assert frame.row(4999) == (None, "x4999", "2.5", "q")


def test_types_are_those_that_are_declared(tmp_path):
    path = tmp_path / "types.db"
    with sqlite3.connect(path) as connection:
        connection.execute(
            "CREATE TABLE t (i BIGINT, c VARCHAR(3), r DOUBLE, n NUMERIC(9, 2), d DATE, x, "
            "g TEXT AS (c || c))"
        )
        rows = [(1, "a", 0.1, 2, "2020-01-01", 5), ("one", b"", "r", 2.5, 7, None)]
        connection.executemany("INSERT INTO t (i, c, r, n, d, x) VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    declared = {"i": pl.Int64(), "c": pl.String(), "r": pl.Float64(), "g": pl.String()}
    for which in ({"table": "t"}, {"query": "SELECT * FROM t"}, {"query": "SELECT * FROM t;"}):
        with open_table(DatabaseTable(uri(path), **which)) as reader:
            assert dict(reader.dtypes) == declared
            assert reader.untyped == {"i", "r", "n", "d", "x"}
            names = ["i", "r", "n", "d", "x"]
            rows = pl.concat(reader.batches(names)).rows()
            assert rows == [("1", "0.1", "2", "2020-01-01", "5"), ("one", "r", "2.5", "7", None)]
            with pytest.raises(DataError, match="column 'c' holds bytes"):
                list(reader.batches(["c"]))
    with open_table(DatabaseTable(uri(path), query="SELECT i + 1 AS j, c FROM t")) as reader:
        assert dict(reader.dtypes) == {"c": pl.String()}


@pytest.mark.parametrize("number", [0.1 + 0.2, 1e300, -2.5e-308, 2.0**60, 1 / 3, 1e22, -0.0])
def test_floats_keep_all_their_digits(tmp_path, number):
    path = tmp_path / "floats.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (r REAL)")
        connection.execute("INSERT INTO t VALUES (?)", [number])
    connection.close()
    (text,) = read(path, table="t")["r"]
    assert float(text) == number
    assert text == as_text(pl.Series([number]))[0]


def test_a_table_of_2000_columns(tmp_path):
    path = tmp_path / "wide.db"
    names = [f"c{number}" for number in range(2000)]
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE t ({', '.join(names)})")
        connection.execute("INSERT INTO t (c0, c1999) VALUES (1, 2.5)")
    connection.close()
    frame = read(path, table="t")
    assert frame.columns == names
    assert (frame["c0"][0], frame["c1999"][0]) == ("1", "2.5")


def test_two_passes_and_columns_in_any_order(database):
    with open_table(DatabaseTable(uri(database), table=ODD)) as reader:
        for _ in range(2):
            frame = pl.concat(list(reader.batches(["r", "i"])))
            assert frame.columns == ["r", "i"]
            assert frame.height == 5000


@pytest.mark.parametrize(
    ("which", "selection"),
    [
        ({"table": ODD}, "whole"),
        ({"table": f'main."{ODD.replace(chr(34), chr(34) * 2)}"'}, "whole"),
        ({"table": "a_view"}, "view"),
        ({"table": "A_VIEW", "declared_rowwise": True}, "declared"),
        ({"query": "SELECT i FROM a_view"}, "view"),
        ({"query": "SELECT i FROM a_view LIMIT 2"}, "other"),
        ({"query": "SELECT i FROM a_view", "declared_rowwise": True}, "declared"),
        ({"query": f'SELECT i FROM "{ODD.replace(chr(34), chr(34) * 2)}" WHERE i > 5'}, "rowwise"),
        ({"query": "SELECT sum(a) AS a FROM bytes"}, "other"),
        ({"query": "SELECT a FROM bytes ORDER BY a"}, "other"),
        ({"query": "SELECT a FROM bytes WHERE a IN hollow"}, "other"),
        ({"query": "SELECT a FROM bytes WHERE a NOT IN hollow"}, "other"),
        ({"query": "SELECT a FROM bytes WHERE a IN (1, 2, 3)"}, "rowwise"),
        ({"query": "SELECT a FROM bytes WHERE a IN (1) OR b = 2"}, "rowwise"),
    ],
)
def test_selections(database, which, selection):
    with open_table(DatabaseTable(uri(database), **which)) as reader:
        assert reader.selection == selection


def test_sqlite_itself_is_asked_what_a_query_opens(database, monkeypatch):
    monkeypatch.setattr(database_catalogue, "rowwise_table", lambda query, brackets: "bytes")
    for query, selection in (
        ("SELECT a FROM bytes WHERE a IN hollow", "other"),
        ("SELECT a FROM bytes WHERE a IN (SELECT a FROM hollow)", "other"),
        ("SELECT bytes.a FROM bytes JOIN hollow ON bytes.a = hollow.a", "other"),
        ("SELECT a FROM bytes WHERE a IN (1, 2)", "rowwise"),
    ):
        with open_table(DatabaseTable(uri(database), query=query)) as reader:
            assert reader.selection == selection


def test_the_file_is_not_changed(database):
    before = snapshot(database.parent)
    read(database, table=ODD)
    for query in ("DELETE FROM hollow", "CREATE TABLE x (a)", "PRAGMA user_version = 5"):
        with pytest.raises(DataError):
            read(database, query=query)
    assert snapshot(database.parent) == before


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ({"table": "bytes"}, "column 'b' holds bytes"),
        ({"table": "none"}, "there is no table none that can be read; tables and views there: a_v"),
        ({"table": "elsewhere.hollow"}, "reports an error"),
        ({"table": "hollow"}, "no rows"),
        ({"query": f"SELECT '{SECRET}' FROM"}, "not one valid SELECT.*a_view, bytes, hollow"),
        ({"query": f"SELECT '{SECRET}' AS x FROM none"}, "names a table or column that does not"),
    ],
)
def test_refusals(database, which, words):
    with pytest.raises(DataError, match=words) as refused:
        read(database, **which)
    assert SECRET not in str(refused.value)


def test_files_that_are_none(tmp_path):
    (tmp_path / "text.db").write_text(SECRET * 100)
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "none.db", table="t")
    with pytest.raises(DataError, match="reports an error"):
        read(tmp_path / "text.db", table="t")
    for address in ("sqlite://host/x.db", "sqlite:///", "sqlite://"):
        with pytest.raises(ParameterError, match=r"sqlite:///file\.db"):
            DatabaseTable(address, table="t")
    assert {path.name for path in tmp_path.iterdir()} == {"text.db"}


def test_a_missing_driver_is_named(database, monkeypatch):
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite", None)
    monkeypatch.setitem(sys.modules, "adbc_driver_sqlite.dbapi", None)
    with pytest.raises(ParameterError, match=r"pegsynth\[sqlite\]"):
        read(database, table=ODD)


def test_rows_go_back_into_the_file_they_came_from(tmp_path):
    path = tmp_path / "people.db"
    sqlite3.connect(path).close()
    with open_writer(DatabaseTarget(uri(path), "people")) as writer:
        writer.write(small_table(300))
    small_schema().save(tmp_path / "schema.toml")
    which = (uri(path), "--table", "people", "--schema", tmp_path / "schema.toml")
    back = ("-o", uri(path), "--output-table", ODD, "--ledger", tmp_path / "ledger.json")
    budget = ("--rows", 20, "--epsilon-per-row", 1)
    done("synthesize", *which, *back, *budget)
    assert len(encode(read(path, table=ODD), small_schema())) == 20
    check_refused(pegs("synthesize", *which, *back, *budget), "a table of that name exists")
    resumed = ("fit", *which, "--resume", tmp_path / "c", "-o", tmp_path / "m.pegs")
    check_refused(pegs(*resumed), "--resume requires files")
    partial = (*which, *back[:2], "--output-table", "partial", *back[4:])
    done("synthesize", *partial, "--synthesize", small_schema().names[0], "--method", "cart")
    assert read(path, table="partial").height == 300


def test_what_fails_leaves_no_table(tmp_path):
    path = tmp_path / "out.db"
    sqlite3.connect(path).close()
    target = DatabaseTarget(uri(path), "half")
    check_database_target(target)

    def stopped():
        with open_writer(target) as writer:
            writer.write(pl.DataFrame({"a": [1]}))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    check_database_target(target)
    missing = DatabaseTarget(uri(tmp_path / "none.db"), "t")
    with pytest.raises(OutputError, match=r"make an empty one first \(touch .*none\.db\)"):
        check_database_target(missing)
    assert not (tmp_path / "none.db").exists()


def test_the_ledger_is_asked_for_first(tmp_path, database):
    small_schema().save(tmp_path / "schema.toml")
    command = ("synthesize", uri(database), "--table", ODD, "--schema", tmp_path / "schema.toml")
    command += ("--rows", 5, "--epsilon-per-row", 1, "-o", uri(tmp_path / "out.db"))
    check_refused(pegs(*command), "--output-table", "--ledger")
    command += ("--output-table", "t")
    check_refused(pegs(*command), "--ledger")
    command += ("--ledger", tmp_path / "l.json")
    check_refused(pegs(*command), "cannot write", "out.db", "touch")


def test_a_query_with_a_long_plan_is_taken(database):
    parts = " UNION ALL ".join(f"SELECT {i} AS a" for i in range(450))
    assert read(database, query=parts).height == 450


def test_only_so_many_tables_are_named(tmp_path):
    path = tmp_path / "many.db"
    with sqlite3.connect(path) as connection:
        for number in range(MOST_NAMED + 3):
            connection.execute(f'CREATE TABLE "t.{number:02}" (a)')
    connection.close()
    with pytest.raises(DataError) as refused:
        read(path, table="t")
    assert '"t.00"' in str(refused.value)
    assert str(refused.value).endswith('"t.09" and 3 more')
    (tmp_path / "empty.db").touch()
    with pytest.raises(DataError, match="the database has no tables"):
        read(tmp_path / "empty.db", table="t")


def test_a_view_is_called_a_view_in_the_ledger(tmp_path):
    path = tmp_path / "people.db"
    path.touch()
    with open_writer(DatabaseTarget(uri(path), "people")) as writer:
        writer.write(small_table(50))
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE VIEW seen AS SELECT * FROM people")
    connection.close()
    small_schema().save(tmp_path / "schema.toml")
    command = ("synthesize", uri(path), "--table", "seen", "--schema", tmp_path / "schema.toml")
    command += ("--rows", 5, "--epsilon-per-row", 1, "-o", tmp_path / "out.csv")
    done(*command)
    ledger = (tmp_path / "out.csv.privacy.json").read_text()
    assert "view-not-rowwise" in ledger
    assert "through a view" in ledger
    done(*command, "--query-is-rowwise")
    assert "not-rowwise" not in (tmp_path / "out.csv.privacy.json").read_text()


def test_types_that_the_file_cannot_hold_become_text(tmp_path):
    path = tmp_path / "types.db"
    sqlite3.connect(path).close()
    frame = pl.DataFrame({"t": pl.Series([10**9], dtype=pl.Time), "e": ["k"]})
    frame = frame.with_columns(e=pl.col("e").cast(pl.Enum(["k"])))
    with open_writer(DatabaseTarget(uri(path), "types")) as writer:
        writer.write(frame)
    assert read(path, table="types").row(0) == ("00:00:01", "k")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("t", ("t",)),
        ("S.T", ("S", "T")),
        ('"a.b"', ("a.b",)),
        ('s."a.b"', ("s", "a.b")),
        ('"a""b"."c"', ('a"b', "c")),
        ('a"b', ('a"b',)),
    ],
)
def test_names_are_cut_at_their_dots(name, parts):
    assert split_name(name) == parts
