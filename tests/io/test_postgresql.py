"""A real PostgreSQL server: names, types, snapshots, shapes of queries, faults, rows back."""

import datetime as dt
import json
import os
import signal
import subprocess
import threading
import time
import uuid

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings

import pegsynth
import read_back
from checks.bench.timing import run_program
from checks.faults.works import model_content
from command import PEGS, SECRET, check_refused, done, pegs, snapshot
from pegsynth.codec.code_table import CodeTable
from pegsynth.codec.codec import encode
from pegsynth.datasets import discharge, discharge_schema
from pegsynth.errors import DataError, OutputError, ParameterError
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.tables.database import DatabaseTable, DatabaseTarget
from pegsynth.tables.table_input import open_table
from pegsynth.tables.table_output import open_writer
from postgres import PASSWORD, running_server
from small_release import small_schema, small_table

BUDGET = ("--rows", 10, "--epsilon-per-row", 1, "--method", "pegs")
ODD_NAMES = {
    "stays": "stays",
    "with spaces": "with spaces",
    'with "quotes"': 'with "quotes"',
    "it's; DROP TABLE stays; --": "it's; DROP TABLE stays; --",
    "größe-表": "größe-表",
    "select": "select",
    "Stays": "Stays",
    "a.b": '"a.b"',
    '"': '""""',
}


@pytest.fixture(scope="module")
def server():
    with running_server() as running:
        running.fill("numbers", pl.DataFrame({"a": range(1000), "b": ["x", None] * 500}))
        running.run(
            'CREATE SCHEMA "odd schema"',
            "CREATE VIEW a_view AS SELECT * FROM numbers",
            "CREATE MATERIALIZED VIEW a_matview AS SELECT * FROM numbers",
            "CREATE TABLE guarded AS SELECT * FROM numbers",
            "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
            "CREATE TABLE parts (a bigint, b text) PARTITION BY RANGE (a)",
            "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (500)",
            "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (500) TO (5000)",
            "INSERT INTO parts SELECT * FROM numbers",
            "CREATE FUNCTION twin(n numbers) RETURNS bigint LANGUAGE sql AS "
            "'SELECT max(a) FROM numbers'",
            "CREATE SEQUENCE a_sequence",
            "CREATE ROLE nobody_much LOGIN PASSWORD 'x'",
        )
        yield running


def read(server, **which):
    with open_table(DatabaseTable(server.uri, **which)) as reader:
        return pl.concat(list(reader.batches()))


# Names and types


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("schema", [None, "odd schema"])
def test_odd_names(server, name, schema):
    frame = pl.DataFrame({"Größe": [1, None, 3], 'say "x"': ["p", None, "q"], "from": [1.5, 2, 0]})
    server.fill(name, frame, schema=schema)
    asked = ODD_NAMES[name] if schema is None else f"{schema}.{ODD_NAMES[name]}"
    try:
        assert read(server, table=asked).equals(frame)
    finally:
        quoted = '"' + name.replace('"', '""') + '"'
        server.run(f'DROP TABLE {quoted if schema is None else f""""odd schema".{quoted}"""}')


@pytest.mark.parametrize("name", ["", " ", "a.b.c", '"open', '"a"b', "a..b", ".a", "a.", "a\0b"])
def test_names_that_are_none(server, name):
    with pytest.raises((ParameterError, DataError)):
        read(server, table=name)


def test_types_and_nulls(server):
    server.run(
        "DROP TABLE IF EXISTS kinds",
        "DROP TYPE IF EXISTS mood",
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE kinds (t text, c char(5), v varchar(9), i smallint, l bigint, r real, "
        "n numeric(9,2), m money, b boolean, d date, s timestamp, u uuid, j jsonb, e mood, a inet)",
        "INSERT INTO kinds SELECT 'x', 'ab', 'y', 1, 2, 0.5, 12.25, 3.5::numeric::money, true, "
        "'2020-02-29', '2020-01-02 03:04:05', '00000000-0000-0000-0000-000000000001', "
        "'{\"k\": 1}', 'glad', '10.0.0.1'",
        "INSERT INTO kinds DEFAULT VALUES",
    )
    frame = read(server, table="kinds")
    assert frame.row(0) == (
        *("x", "ab", "y", 1, 2, 0.5, "12.25", "3.5", True, dt.date(2020, 2, 29)),
        *(
            dt.datetime(2020, 1, 2, 3, 4, 5),
            str(uuid.UUID(int=1)),
            '{"k": 1}',
            "glad",
            "10.0.0.1/32",
        ),
    )
    assert frame.row(1) == (None,) * frame.width


@pytest.mark.parametrize("column", ["'\\x00'::bytea", "ARRAY[1, 2]", "ROW(1, 2)"])
def test_columns_of_bytes_and_lists_are_refused(server, column):
    with pytest.raises(DataError, match="column 'odd' holds"):
        read(server, query=f"SELECT a, {column} AS odd FROM numbers")


def test_an_empty_table_and_repeated_names(server):
    with pytest.raises(DataError, match="no rows"):
        read(server, query="SELECT a FROM numbers WHERE false")
    with pytest.raises(DataError, match="'a' appears twice"):
        read(server, query="SELECT a, b AS a FROM numbers")


# Which queries look at one row at a time


@pytest.mark.parametrize(
    ("query", "selection"),
    [
        ("SELECT * FROM numbers", "rowwise"),
        ("SELECT a, lower(b) AS b FROM public.numbers AS n WHERE a IN (1, 2, 3);", "rowwise"),
        ("SELECT left(b, 1) AS b, extract(year FROM now())::int AS y FROM numbers", "other"),
        ("SELECT left(b, 1) AS b, substring(b FROM 1 FOR 1) AS c FROM numbers", "rowwise"),
        ("SELECT a FROM parts WHERE a % 2 = 0", "rowwise"),
        ("SELECT a FROM numbers LIMIT 5", "other"),
        ("SELECT a FROM a_view", "view"),
        ("SELECT a FROM a_matview", "view"),
        ("SELECT a FROM guarded", "other"),
        ("SELECT n.twin FROM numbers n", "other"),
        ("SELECT n.count FROM numbers n", "other"),
        ("SELECT a FROM pg_catalog.pg_views, numbers", "other"),
        ("SELECT count(*) AS a FROM numbers", "other"),
        ("SELECT (SELECT max(a) FROM numbers) AS a FROM numbers", "other"),
    ],
)
def test_shapes_of_queries(server, query, selection):
    with open_table(DatabaseTable(server.uri, query=query)) as reader:
        assert reader.selection == selection
    with open_table(DatabaseTable(server.uri, query=query, declared_rowwise=True)) as reader:
        assert reader.selection == ("rowwise" if selection == "rowwise" else "declared")


@pytest.mark.parametrize(
    ("table", "selection"),
    [("numbers", "whole"), ("parts", "whole"), ("a_view", "view"), ("guarded", "other")],
)
def test_shapes_of_tables(server, table, selection):
    with open_table(DatabaseTable(server.uri, table=table)) as reader:
        assert reader.selection == selection


@pytest.fixture(scope="module")
def people(server, tmp_path_factory):
    """A table of the small schema in the database, and the schema's file."""
    folder = tmp_path_factory.mktemp("people")
    server.fill("people", small_table(500))
    small_schema().save(folder / "schema.toml")
    return server, folder / "schema.toml"


@pytest.mark.parametrize(
    ("flags", "kind", "code"),
    [
        (("--table", "people"), "pure", None),
        (("--query", "SELECT * FROM people WHERE true"), "pure", "rowwise-query"),
        (("--query", f"SELECT * FROM people WHERE '{SECRET}' <> '' LIMIT 99"), "none", None),
        (
            ("--query", "SELECT * FROM people LIMIT 99", "--query-is-rowwise"),
            "pure",
            "rowwise-query",
        ),
    ],
)
def test_the_ledger_of_a_query(people, tmp_path, flags, kind, code):
    server, schema = people
    output = tmp_path / "o.csv"
    outcome = done("synthesize", server.uri, *flags, "--schema", schema, "-o", output, *BUDGET)
    text = (tmp_path / "o.csv.privacy.json").read_text()
    ledger = json.loads(text)
    assert ledger["guarantee"]["kind"] == kind
    assert ("query-not-rowwise" in text) == (kind == "none")
    codes = {each["code"] for each in ledger["assumptions"]}
    assert (code in codes) if code else ("rowwise-query" not in codes)
    for secret in (SECRET, "SELECT", "people", PASSWORD):
        assert secret not in text + outcome.err
    assert pl.read_csv(output).height == 10


def test_every_command_reads_a_database(people, tmp_path):
    server, schema = people
    which = (server.uri, "--table", "people")
    done("schema", *which, "-o", tmp_path / "draft.toml")
    assert Schema.load(tmp_path / "draft.toml").names == small_schema().names
    done("fit", *which, "--schema", schema, "-o", tmp_path / "m.pegs")
    paths = ("--schema", schema, "-o", tmp_path / "run")
    done("release", *which, *paths, *BUDGET)
    assert (tmp_path / "run" / "internal" / "report.html").is_file()


def test_python_reads_a_database(people):
    server, schema = people
    options = {"epsilon": 5.0, "rows": 7, "seed": 1}
    release = pegsynth.synthesize(server.uri, schema, table="people", **options)
    again = pegsynth.synthesize(small_table(500), small_schema(), **options)
    assert release.frames[0].equals(again.frames[0])
    fitted = pegsynth.PeGS(alpha=1.0).fit(server.uri, schema, query="SELECT * FROM people LIMIT 9")
    assert fitted.ledger.guarantee.kind == "none"
    with pytest.raises(ParameterError, match="table, query and query_is_rowwise"):
        pegsynth.synthesize(small_table(5), schema, table="people", **options)


# One snapshot


def test_all_passes_see_one_snapshot(server):
    server.fill("growing", pl.DataFrame({"a": range(100)}))
    with open_table(DatabaseTable(server.uri, table="growing")) as reader:
        first = pl.concat(list(reader.batches()))
        server.run("INSERT INTO growing VALUES (1000)", "DELETE FROM growing WHERE a < 10")
        assert pl.concat(list(reader.batches())).equals(first)
    assert read(server, table="growing").height == 91


def test_rows_that_change_from_pass_to_pass_are_refused(server):
    query = "SELECT a FROM numbers WHERE random() < 0.5"
    with open_table(DatabaseTable(server.uri, query=query)) as reader:
        list(reader.batches())
        with pytest.raises(DataError, match="came differently the second time"):
            list(reader.batches())


def test_units_are_bounded(server):
    table = small_table(300).with_columns(person=pl.Series(np.arange(300) % 50).cast(pl.String))
    server.fill("visits", table)
    schema = small_schema(rows_per_unit=2)
    with open_table(DatabaseTable(server.uri, table="visits")) as reader:
        rows = np.concatenate(list(CodeTable(reader, schema, RandomStream(3)).batches()))
    assert np.array_equal(
        rows, np.concatenate(list(CodeTable(open_table(table), schema, RandomStream(3)).batches()))
    )
    assert len(rows) == 100


# Refusals


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://u:{SECRET}@host/db",
        f"postgresql://u:{SECRET}@/db?host=/tmp",
        f"postgres://u@host/db?password={SECRET}",
        f"postgresql://u@host/db?sslmode=require&p%61ssword={SECRET}",
        f"postgresql://u@host/db?sslpassword={SECRET}",
        f"mysql://u:{SECRET}@host/db",
    ],
)
def test_an_address_with_a_password_is_refused(tmp_path, uri):
    with_table = ("--table", "t") if not uri.startswith("mysql") else ()
    outcome = pegs("schema", uri, *with_table, "-o", tmp_path / "s.toml")
    check_refused(outcome, "mysql://" if uri.startswith("mysql") else "PGPASSWORD")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"SELEC '{SECRET}'", "not valid SQL"),
        (f"SELECT * FROM {SECRET.replace('-', '_')}", "no such table"),
        (f"SELECT {SECRET.replace('-', '_')} FROM numbers", "column that does not exist"),
        (f"SELECT a, ('{SECRET}' || b)::int AS c FROM numbers", "fails on some"),
        (f"SELECT a / 0 AS a, '{SECRET}' AS b FROM numbers", "fails on some"),
        (f"DELETE FROM numbers WHERE b = '{SECRET}' RETURNING a", "not valid SQL"),
        ("SELECT nextval('a_sequence') AS a", "only reads"),
        ("COMMIT", "not valid SQL"),
        ("SELECT 1 AS a; COMMIT; DROP TABLE numbers", "not valid SQL"),
        ("SELECT a FROM numbers) AS x; DROP TABLE numbers; --", "not valid SQL"),
    ],
)
def test_faulty_queries_are_not_quoted(server, tmp_path, query, words):
    outcome = pegs("schema", server.uri, "--query", query, "-o", tmp_path / "s.toml")
    check_refused(outcome, "postgresql:///postgres, the query", words)
    assert "SELECT" not in outcome.err
    assert SECRET.replace("-", "_") not in outcome.err
    assert not list(tmp_path.iterdir())
    assert "numbers" in server.tables()


def test_a_table_that_is_not_there_is_named_beside_those_that_are(server):
    for table in ("nmbers", "nowhere.numbers", "NUMBERS"):
        with pytest.raises(DataError) as refused:
            open_table(DatabaseTable(server.uri, table=table))
        assert f"there is no table {table} that can be read; tables and views" in str(refused.value)
        assert "a_matview" in str(refused.value)
        assert "pg_class" not in str(refused.value)


def test_servers_that_do_not_let_in(server, monkeypatch):
    nobody = server.uri.replace("postgres@", "no_such_role@")
    for uri in (nobody, server.uri.replace("/postgres?", "/none?"), "postgresql://127.0.0.1:1/x"):
        with pytest.raises(DataError, match="cannot be reached, refuses"):
            open_table(DatabaseTable(uri, table="numbers"))
    monkeypatch.setenv("PGPASSWORD", "wrong")
    with pytest.raises(DataError, match="cannot be reached, refuses") as refused:
        open_table(DatabaseTable(server.uri, table="numbers"))
    assert "wrong" not in str(refused.value)
    monkeypatch.setenv("PGPASSWORD", "x")
    with pytest.raises(DataError, match="may not do that"):
        open_table(DatabaseTable(server.uri.replace("postgres@", "nobody_much@"), table="numbers"))


@pytest.mark.parametrize(
    "flags", [(), ("--table", "t", "--query", "SELECT 1"), ("--table", " "), ("--query", "")]
)
def test_one_table_or_one_query(server, tmp_path, flags):
    outcome = pegs("schema", server.uri, *flags, "-o", tmp_path / "s.toml")
    check_refused(outcome, flags[0] if len(flags) == 2 else "--table NAME")


# Faults


SLOW = "SELECT * FROM people WHERE pg_sleep(0.02) IS NOT NULL"


@pytest.mark.parametrize("command", ["fit", "synthesize", "release", "schema"])
def test_a_connection_cut_in_the_middle(people, tmp_path, command):
    server, schema = people
    output = "run" if command == "release" else "out.parquet"
    flags = () if command == "schema" else ("--schema", schema)
    flags += BUDGET if command in {"synthesize", "release"} else ()
    cutter = threading.Thread(target=server.cut)
    cutter.start()
    outcome = pegs(command, server.uri, "--query", SLOW, *flags, "-o", tmp_path / output)
    cutter.join()
    check_refused(outcome, "the query", "nothing was written")
    assert "pg_sleep" not in outcome.err
    assert snapshot(tmp_path) == {}


@pytest.mark.slow
def test_a_command_that_is_interrupted_while_it_waits(people, tmp_path):
    """The query takes 100 seconds, so a command that waited for its end would be told apart."""
    server, schema = people
    query = SLOW.replace("0.02", "0.2")
    flags = ("--schema", schema, "-o", tmp_path / "m.pegs")
    run = subprocess.Popen(
        [*PEGS, "fit", server.uri, "--query", query, *map(str, flags)], stderr=subprocess.PIPE
    )
    active = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT%pg_sleep%'"
    active += " AND state = 'active' AND pid <> pg_backend_pid()"
    while run.poll() is None and not server.run(active)[0][0]:
        time.sleep(0.05)
    started = time.monotonic()
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate(timeout=60)
    assert time.monotonic() - started < 50
    assert run.returncode == 130
    assert errors == b"pegs: stopped; every output is as it was, or whole\n"
    assert snapshot(tmp_path) == {}


# Rows back into the database


def write_back(people, tmp_path, name, *flags):
    server, schema = people
    which = (server.uri, "--table", "people", "--schema", schema, "-o", server.uri)
    ledger = ("--ledger", tmp_path / "ledger.json")
    return pegs("synthesize", *which, "--output-table", name, *ledger, *BUDGET, *flags)


@pytest.mark.parametrize("name", ["synthetic", 'odd "name"', "odd schema.synthetic"])
def test_rows_go_back_on_request(people, tmp_path, name):
    server, _ = people
    outcome = write_back(people, tmp_path, name)
    assert outcome.code == 0, outcome.err
    frame = read(server, table=name if "." in name else f'"{name.replace(chr(34), chr(34) * 2)}"')
    assert frame.shape == (10, 3)
    assert len(encode(frame, small_schema())) == 10
    assert json.loads((tmp_path / "ledger.json").read_text())["guarantee"]["kind"] == "pure"
    (tmp_path / "ledger.json").write_text("earlier")
    again = write_back(people, tmp_path, name)
    check_refused(again, "a table of that name exists")
    assert (tmp_path / "ledger.json").read_text() == "earlier"


def test_a_model_is_sampled_into_the_database(people, tmp_path):
    server, schema = people
    done("fit", server.uri, "--table", "people", "--schema", schema, "-o", tmp_path / "m.pegs")
    flags = ("--output-table", "from model", "--ledger", tmp_path / "l.json", *BUDGET)
    done("sample", tmp_path / "m.pegs", "-o", server.uri, *flags)
    assert read(server, table="from model").height == 10


def test_what_a_written_table_needs(people, tmp_path):
    server, schema = people
    which = ("synthesize", server.uri, "--table", "people", "--schema", schema, *BUDGET)
    check_refused(pegs(*which, "-o", server.uri), "--output-table")
    check_refused(pegs(*which, "-o", server.uri, "--output-table", "x"), "--ledger")
    check_refused(pegs(*which, "-o", tmp_path / "o.csv", "--output-table", "x"), "--output-table")
    check_refused(pegs(*which, "-o", "s3://bucket/o.csv"), "s3://", "cannot be written")
    secret = ("-o", f"postgresql://u:{SECRET}@h/d", "--output-table", "x")
    check_refused(pegs(*which, *secret, "--ledger", tmp_path / "l"), "PGPASSWORD")


def test_a_table_appears_whole_or_not_at_all(people):
    server, _ = people
    target = DatabaseTarget(server.uri, "half")
    frame = pl.DataFrame({"a": range(10)})
    seen = []

    def fill(between=lambda: None, **options):
        with open_writer(target, **options) as writer:
            writer.write(frame)
            between()
            writer.write(frame)

    def no_space():
        seen.append("half" in server.tables())
        raise OSError("no more space for the ledger")

    def stop():
        raise KeyboardInterrupt

    def cut():
        server.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND state = 'idle in transaction'"
        )

    with pytest.raises(OSError, match="no more space"):
        fill(before=no_space)
    with pytest.raises(OutputError, match="nothing was written"):
        fill(cut)
    with pytest.raises(KeyboardInterrupt):
        fill(stop)
    assert seen == [False]
    assert "half" not in server.tables()


# Size


@pytest.mark.slow(seconds=15)
def test_a_million_rows(server, tmp_path):
    """The same model as from a file, bit for bit, in bounded memory."""
    table = discharge(1_000_000, seed=1)
    server.fill("stays", table)
    table.write_parquet(tmp_path / "stays.parquet")
    discharge_schema(heads=True).save(tmp_path / "schema.toml")
    schema = ("--schema", tmp_path / "schema.toml", "--order", "data", "--seed", 1)
    # Not the children's usage of this process: it begins with the memory of this process.
    fit = run_program(
        [*PEGS, "fit", server.uri, "--table", "stays", *schema, "-o", tmp_path / "a.pegs"]
    )
    assert fit.peak_bytes < 1 << 30
    done("fit", tmp_path / "stays.parquet", *schema, "-o", tmp_path / "b.pegs")
    assert model_content(tmp_path / "a.pegs") == model_content(tmp_path / "b.pegs")
    assert os.stat(tmp_path / "a.pegs").st_mode & 0o777 == 0o600


# A release is read by its own schema


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=read_back.cases())
def test_codes_are_the_same_out_and_in_again(server, case):
    table = f"t{uuid.uuid4().hex}"
    read_back.written(DatabaseTarget(server.uri, table), case)
    read_back.check(case, DatabaseTable(server.uri, table=table))
    server.run(f"DROP TABLE {table}")
