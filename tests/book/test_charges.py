"""What a run that fails costs: nothing before the first row is read, everything after.

Every fault goes in through the commands and functions that users have, and the budget that the
book then has left is compared with what it had before.
"""

from __future__ import annotations

import datetime as dt
import gzip
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import namedtuple
from dataclasses import replace

import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pytest

import pegsynth
from command import check_refused, done, pegs, pegs_process, snapshot
from pegsynth.datasets import households, households_schema
from pegsynth.errors import DataError, PegsynthError, book_notes
from pegsynth.pipeline import running as pipeline
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.dialect import Dialect
from pegsynth.schema.panel import Panel
from pegsynth.storage.book.book_file import create_book, left_for, read_book
from pegsynth.storage.book.book_policy import BookPolicy
from pegsynth.tables import atomic
from small_release import small_schema, small_table

TABLE, SCHEMA = small_table(120), small_schema()
LIMIT, PRICE = 6.0, 2.0
ONCE = ("--method", "pegs-once", "--epsilon", PRICE, "--threads", 1)
PAID = {"method": "pegs-once", "epsilon": PRICE, "threads": 1, "progress": False}
SECRET = "Zebulon"


@pytest.fixture
def place(tmp_path):
    TABLE.write_csv(tmp_path / "data.csv")
    SCHEMA.save(tmp_path / "schema.toml")
    create_book(tmp_path / "b.book", BookPolicy(epsilon=LIMIT))
    return tmp_path


def states(place):
    return [entry.state for entry in read_book(place / "b.book").entries]


def left(place):
    """Return the budget that is left, to three digits."""
    return round(left_for(read_book(place / "b.book"), delta=0.0) or 0.0, 3)


def check_free(place):
    """Nothing was charged: no entry counts."""
    assert left(place) == LIMIT
    assert set(states(place)) <= {"withdrawn"}


def check_charged(place):
    """The whole reservation counts, and nobody gets it back."""
    assert left(place) == LIMIT - PRICE
    assert states(place)[-1] == "reading"
    withdrawn = pegs("book", "withdraw", place / "b.book", len(states(place)))
    check_refused(withdrawn, "only a run that has read nothing")


def run(place, command, data, *more, output=None):
    names = {"release": "run", "synthesize": "t.csv", "fit": "m.pegs"}
    line = [data, "--schema", place / "schema.toml", "--book", place / "b.book"]
    line += ["-o", place / (output or names[command]), *ONCE]
    line += [] if command == "fit" else ["--rows", 10]
    return pegs(command, *line, *more)


Fault = namedtuple("Fault", "name write words")


def csv_of(text, name="bad.csv"):
    def write(place):
        path = place / name
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


def parquet_of(frame, name="bad.parquet"):
    def write(place):
        getattr(frame, "write_parquet" if name.endswith("parquet") else "write_ipc")(place / name)
        return place / name

    return write


def several(place):
    folder = place / "several"
    folder.mkdir()
    TABLE.write_csv(folder / "1.csv")
    TABLE.drop("c").write_csv(folder / "2.csv")
    return folder


def truncated(place):
    TABLE.write_parquet(place / "cut.parquet")
    content = (place / "cut.parquet").read_bytes()
    (place / "cut.parquet").write_bytes(content[:-40])
    return place / "cut.parquet"


def workbook(frame):
    def write(place):
        frame.write_excel(place / "t.xlsx")
        return place / "t.xlsx"

    return write


DATED = TABLE.with_columns(b=pl.lit(dt.date(2020, 1, 1)))
GOOD_ROW = "x,p,0\n"

HEADERS = [
    Fault("no such file", lambda place: place / "none.csv", "no such file"),
    Fault("an empty file", csv_of(""), "the file is empty"),
    Fault("a column is missing", csv_of(f"a,b\n{SECRET},p\n"), "column 'c' of the schema"),
    Fault("a column more", csv_of(f"a,b,c,d\n{SECRET},p,0,1\n"), "column 'd' is not in the sch"),
    Fault("a name twice", csv_of(f"a,b,b\n{SECRET},p,0\n"), "'b' appears twice"),
    Fault("no name", csv_of(f"a,,c\n{SECRET},p,0\n"), "column 2 has no name"),
    Fault("another separator", csv_of(f"a;b;c\n{SECRET};p;0\n"), "not separated by commas"),
    Fault("an open quote", csv_of(f'a,"b,c\n{SECRET},"p",0\n'), "line 1: a quote is opened"),
    Fault("a quote inside", csv_of(f'a,b"x"c\n{SECRET},p,0\n'), "line 1: a quote stands inside"),
    Fault("names that are no text", csv_of(b"a,b,\xe9\nx,p,0\n"), "line 1: the text is not UTF-8"),
    Fault("a zero byte", csv_of(b"a,b,\0\nx,p,0\n"), "line 1: the file has zero bytes"),
    Fault("UTF-16", csv_of("a,b,c\nx,p,0\n".encode("utf-16")), "the file is UTF-16"),
    Fault("not compressed", csv_of("a,b,c\nx,p,0\n", "bad.csv.zst"), "is not compressed as"),
    # What is wrong with rows is not looked at where the header is wrong.
    Fault("both wrong", csv_of(b"a,b\nx,\xe9\n\0"), "column 'c' of the schema"),
    Fault("files that differ", several, "column 'c' of"),
    Fault("Parquet lacks a column", parquet_of(TABLE.drop("c")), "column 'c' of the schema"),
    Fault("Parquet of another type", parquet_of(DATED), "'b' is declared as Date"),
    Fault(
        "Parquet with a list", parquet_of(TABLE.with_columns(c=pl.lit([[1]]))), "holds large_list"
    ),
    Fault("Parquet that is cut off", truncated, "truncated"),
    Fault("Arrow of another type", parquet_of(DATED, "bad.arrow"), "'b' is declared as Date"),
    Fault("a workbook lacks a column", workbook(TABLE.drop("c")), "column 'c' of the schema"),
]
LATIN = Schema(SCHEMA.columns, reviewed=True, dialect=Dialect(encoding="cp1252"))
ROWS = [
    Fault("a value", csv_of(f"a,b,c\n{GOOD_ROW}{SECRET},p,0\n"), "1 value is not in the schema"),
    Fault("a value missing", csv_of("a,b,c\n,p,0\n"), "1 value is missing"),
    Fault("too few fields", csv_of(f"a,b,c\n{SECRET},p\n"), "line 2: 2 fields"),
    Fault("a blank line", csv_of(f"a,b,c\n{GOOD_ROW}\n{GOOD_ROW}"), "line 3 is blank"),
    Fault("a row is no text", csv_of(b"a,b,c\nx,p,\xe9\n"), "line 2: the text is not UTF-8"),
    Fault("a zero byte in a row", csv_of(b"a,b,c\nx,p,\0\n"), "line 2: the file has zero bytes"),
    Fault("an open quote in a row", csv_of(f'a,b,c\nx,p,"{SECRET}\n'), "never closed"),
    Fault("compressed", csv_of(f"a,b,c\n{SECRET},p,0\n", "bad.csv.gz"), "not in the schema"),
    Fault("Parquet", parquet_of(TABLE.with_columns(a=pl.lit(SECRET))), "not in the schema"),
    Fault(
        "Arrow", parquet_of(TABLE.with_columns(a=pl.lit(SECRET)), "b.arrow"), "not in the schema"
    ),
    Fault("a workbook", workbook(TABLE.with_columns(a=pl.lit(SECRET))), "not in the schema"),
]


def names(faults):
    return [fault.name for fault in faults]


@pytest.mark.parametrize("command", ["release", "synthesize", "fit"])
@pytest.mark.parametrize("fault", HEADERS, ids=names(HEADERS))
def test_what_the_header_tells_costs_nothing(place, command, fault):
    path = fault.write(place)
    before = snapshot(place)
    outcome = run(place, command, path)
    check_refused(outcome, fault.words)
    assert SECRET not in outcome.err
    check_free(place)
    assert "because no row was read; epsilon = 0 of 6 is spent in all." in last_line(outcome)
    after = snapshot(place)
    book = str(place / "b.book")
    assert {**before, book: b""} == {**after, book: b""}


@pytest.mark.parametrize("command", ["release", "synthesize", "fit"])
@pytest.mark.parametrize("fault", ROWS, ids=names(ROWS))
def test_what_a_row_tells_is_charged_in_full(place, command, fault):
    outcome = run(place, command, fault.write(place))
    check_refused(outcome, fault.words)
    assert SECRET not in outcome.err
    check_charged(place)
    assert last_line(outcome) == (
        f"Budget book {place / 'b.book'}: entry 1: it is charged in full, because rows were or may "
        "have been read; epsilon = 2 of 6 is spent in all."
    )


def last_line(outcome):
    return outcome.err.splitlines()[-1]


def test_an_encoding_is_told_by_its_own_bytes(place):
    LATIN.save(place / "schema.toml")
    for text, charged in ((b"a,\x81\nx,p,0\n", False), (b"a,b,c\nx,p,\x81\n", True)):
        outcome = run(place, "fit", csv_of(text)(place))
        check_refused(outcome, "the text is not windows-1252")
        assert (states(place)[-1] == "reading") == charged


def test_two_failures_in_a_row_leave_the_whole_budget(place):
    for _ in range(4):
        check_refused(run(place, "release", csv_of("a,b\nx,p\n")(place)), "column 'c'")
    check_free(place)
    assert run(place, "release", place / "data.csv").code == 0
    assert left(place) == LIMIT - PRICE


# Python


def failing(rows):
    def gone():
        yield rows
        raise RuntimeError("the source went away")

    return gone()


class Exports:
    """Somebody's table, which exports an Arrow stream and nothing else."""

    def __init__(self, frame):
        self._table = frame.to_arrow()

    def __arrow_c_stream__(self, requested=None):
        return self._table.__arrow_c_stream__(requested)


UNLISTED = TABLE.with_columns(a=pl.lit(SECRET))
FREE_FRAMES = {
    "polars": TABLE.drop("c"),
    "polars, another type": DATED,
    "lazy": TABLE.lazy().drop("c"),
    "pandas": TABLE.drop("c").to_pandas(),
    "pandas, another type": DATED.to_pandas().assign(b=pd.Timestamp("2020-01-01")),
    "pandas, a name twice": pd.DataFrame([["x", "p", "0"]], columns=["a", "b", "b"]),
    # What stands in the rows would be refused, too.
    "pandas, both wrong": pd.DataFrame({"a": ["x"], "b": [object()]}),
    "pyarrow": TABLE.drop("c").to_arrow(),
    "a reader of batches": TABLE.drop("c").to_arrow().to_reader(),
    "a dataset": ds.dataset(TABLE.drop("c").to_arrow()),
}
CHARGED_FRAMES = {
    "polars": UNLISTED,
    "lazy": UNLISTED.lazy(),
    "lazy, a cast fails": TABLE.lazy().with_columns(c=pl.col("a").cast(pl.Int8)),
    "pandas": UNLISTED.to_pandas(),
    "pandas, an object": TABLE.to_pandas().assign(a=object()),
    "pyarrow": UNLISTED.to_arrow(),
    "a reader of batches": UNLISTED.to_arrow().to_reader(),
    "a dataset": ds.dataset(UNLISTED.to_arrow()),
    # They show their columns with their first rows only.
    "chunks": lambda: iter([TABLE.drop("c")]),
    "chunks that end early": lambda: failing(TABLE),
    "no chunks": lambda: iter([]),
    "a stream": lambda: Exports(TABLE.drop("c")),
}
DOORS = {
    "synthesize": lambda data, schema, **told: pegsynth.synthesize(data, schema, rows=5, **told),
    "fit": lambda data, schema, **told: pegsynth.fit(data, schema, **told),
    "PeGS": lambda data, schema, **told: pegsynth.PeGS(
        **{name: value for name, value in told.items() if name != "progress"}
    ).fit(data, schema, progress=False),
}


def given(data):
    return data() if callable(data) else data


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", FREE_FRAMES)
def test_columns_of_dataframes_cost_nothing(place, door, kind):
    if kind == "a reader of batches":
        data = TABLE.drop("c").to_arrow().to_reader()
    else:
        data = FREE_FRAMES[kind]
    with pytest.raises(DataError) as caught:
        DOORS[door](data, SCHEMA, book=place / "b.book", **PAID)
    check_free(place)
    (note,) = book_notes(caught.value)
    assert "nothing is charged" in note


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", CHARGED_FRAMES)
def test_rows_of_dataframes_are_charged(place, door, kind):
    data = given(CHARGED_FRAMES[kind])
    if kind == "a reader of batches":
        data = UNLISTED.to_arrow().to_reader()
    with pytest.raises((DataError, RuntimeError)) as caught:
        DOORS[door](data, SCHEMA, book=place / "b.book", **PAID)
    check_charged(place)
    (note,) = book_notes(caught.value)
    assert "charged in full" in note
    assert SECRET not in str(caught.value)


def test_relations_of_duckdb(place):
    duckdb = pytest.importorskip("duckdb")
    table = TABLE.to_arrow()
    base = duckdb.connect()
    base.register("t", table)
    with pytest.raises(DataError, match="column 'c'"):
        pegsynth.fit(base.sql("select a, b from t"), SCHEMA, book=place / "b.book", **PAID)
    check_free(place)
    with pytest.raises(duckdb.Error):
        # DuckDB works on the rows when they are asked for, and one of them is no number.
        pegsynth.fit(
            base.sql("select a, b, c from t where a::int > 0"),
            SCHEMA,
            book=place / "b.book",
            **PAID,
        )
    assert states(place) == ["withdrawn", "reading"]


def test_release_and_verify_in_python(place):
    told = {"folder": place / "run", "rows": 5, "book": place / "b.book"}
    with pytest.raises(DataError, match="column 'c'"):
        pegsynth.release(TABLE.drop("c"), SCHEMA, **told, **PAID)
    with pytest.raises(PegsynthError, match="leave the report out"):
        pegsynth.release(iter([TABLE]), SCHEMA, **told, **PAID)
    measured = replace(SCHEMA, columns=(Feature("a", categories="private"), *SCHEMA.columns[1:]))
    with pytest.raises(PegsynthError, match="take two passes"):
        pegsynth.fit(iter([TABLE]), measured, book=place / "b.book", delta=1e-6, **PAID)
    check_free(place)


# verify


@pytest.fixture
def released(place):
    schema = Schema(
        (
            Feature("x", kind="ordinal", categories=tuple("01234")),
            Feature("y", kind="ordinal", categories=tuple("01234")),
        ),
        reviewed=True,
    )
    frame = pl.DataFrame({"x": list("01234") * 60, "y": list("01234") * 60})
    frame.write_csv(place / "xy.csv")
    schema.save(place / "xy.toml")
    flags = ("--rows", 200, "--epsilon", 20, "--method", "pegs-once", "--public-only")
    done("release", place / "xy.csv", "--schema", place / "xy.toml", "-o", place / "r", *flags)
    return place


@pytest.mark.parametrize(
    ("write", "words", "charged"),
    [
        (csv_of("x\n1\n"), "column 'y'", False),
        (csv_of("x,y,z\n1,1,1\n"), "column 'z'", False),
        (parquet_of(pl.DataFrame({"x": [True], "y": ["1"]}).cast({"x": pl.Date}, strict=False)),
         "declared as Date", False),
        (csv_of("x,y\n1,nobody\n"), "1 value is not", True),
        (csv_of("x,y\n1,\xe9\n".encode("latin-1")), "line 2", True),
    ],
    ids=["missing", "more", "type", "value", "bytes"],
)  # fmt: skip
def test_a_question_that_fails(released, write, words, charged):
    path = write(released)
    asked = ("--formula", "y ~ x", "--epsilon", PRICE, "--book", released / "b.book")
    outcome = pegs("verify", path, "--release", released / "r", *asked)
    check_refused(outcome, words)
    (check_charged if charged else check_free)(released)
    assert f"epsilon = {2 if charged else 0} of 6" in last_line(outcome)
    assert not list(released.glob("*.verification.json")) or charged


def test_a_question_that_cannot_be_asked_costs_nothing(released):
    for flags in (
        ("--formula", "y ~ nobody"),
        ("--formula", "y ~"),
        ("--formula", "y ~ x", "--ledger", released / "none" / "q.json"),
        ("--formula", "y ~ x", "--ledger", released / "r" / "public" / "privacy.json"),
    ):
        asked = (*flags, "--epsilon", PRICE, "--book", released / "b.book")
        outcome = pegs("verify", released / "xy.csv", "--release", released / "r", *asked)
        check_refused(outcome)
        check_free(released)


# Databases


@pytest.fixture
def database(place):
    pytest.importorskip("adbc_driver_sqlite")
    with sqlite3.connect(place / "t.db") as base:
        base.execute("create table good (a text, b text, c text)")
        base.execute("create table short (a text, b text)")
        base.execute("insert into good values ('x', 'p', '0')")
        base.execute("insert into short values ('x', 'p')")
    return f"sqlite:///{place / 't.db'}"


@pytest.mark.parametrize(
    ("flags", "words", "charged"),
    [
        (("--table", "short"), "column 'c'", False),
        (("--table", "none"), "none", False),
        (("--query", "select a, b from good"), "column 'c'", False),
        (("--query", "select a, b, zz from good"), "does not take it", False),
        (("--query", "select a, b, c from good order by a limit 1"), "cannot be booked", False),
        (("--query", f"select '{SECRET}' as a, b, c from good"), "1 value is not", True),
    ],
    ids=["column", "table", "query", "unknown", "not by rows", "value"],
)
def test_databases(place, database, flags, words, charged):
    outcome = run(place, "fit", database, *flags)
    assert outcome.code == 2
    assert words in outcome.err
    (check_charged if charged else check_free)(place)


# Panels and two tables


PEOPLE = Schema(
    (
        Feature("person", role="identifier"),
        Feature("year", kind="ordinal", categories=("1", "2", "3")),
        Feature("state", categories=("a", "b")),
    ),
    panel=Panel(unit="person", time="year", most=2, least=1),
    reviewed=True,
)


def test_panels(place):
    PEOPLE.save(place / "schema.toml")
    create_book(place / "p.book", BookPolicy(epsilon=LIMIT, unit="person"))
    (place / "p.book").replace(place / "b.book")
    good = pl.DataFrame({"person": ["i", "i"], "year": ["1", "2"], "state": ["a", "b"]})
    for frame, words, charged in (
        (good.drop("state"), "column 'state'", False),
        (good.drop("person"), "column 'person'", False),
        (good.with_columns(more=pl.lit(1)), "column 'more'", False),
        (good.with_columns(state=pl.lit("nobody")), "not in the schema", True),
    ):
        frame.write_csv(place / "panel.csv")
        check_refused(run(place, "release", place / "panel.csv"), words)
        (check_charged if charged else check_free)(place)


@pytest.mark.parametrize("second", [False, True])
def test_two_tables(place, second):
    schema = households_schema()
    schema.save(place / "schema.toml")
    create_book(place / "h.book", BookPolicy(epsilon=LIMIT, unit=schema.panel.unit))
    (place / "h.book").replace(place / "b.book")
    pair = list(households(40, seed=1))
    feature = next(n for n in pair[second].columns if n in schema.names)
    wrong = pair[second].drop(feature), pair[second].with_columns(pl.lit("nobody").alias(feature))
    for frame, charged in zip(wrong, (False, True), strict=True):
        tables = [*pair]
        tables[second] = frame
        with pytest.raises(DataError, match=f"column '{feature}"):
            pegsynth.synthesize(tuple(tables), schema, rows=9, book=place / "b.book", **PAID)
        (check_charged if charged else check_free)(place)
    told = {"folder": place / "r", "rows": 9, "book": place / "b.book"}
    with pytest.raises(PegsynthError, match="round_to cannot be combined with two tables"):
        pegsynth.release(tuple(pair), schema, **told, k=2, k_features=[feature], **PAID)
    assert left(place) == LIMIT - PRICE


# What needs no row at all


RULED = Schema(SCHEMA.columns, rules=(Rule.of({0: [0], 1: [0]}),), reviewed=True)
NARROW = Schema(
    tuple(Feature(name, categories=tuple(map(str, range(99)))) for name in "abcdef"),
    rules=tuple(Rule.of({i: [*range(1, 99)], i + 1: [*range(99)]}) for i in range(5)),
    reviewed=True,
)
"""A row in 99 to the fifth, 1e-10, obeys: 10,000 tries find one in a run of a million."""
UNTOLD = [
    ("release", ("--format", "xls"), "--format is csv or parquet"),
    ("release", ("-o", "none/run"), "parent folder does not exist"),
    ("release", ("-o", "data.csv"), "a file of that name"),
    ("release", ("-o", "there"), "--force"),
    ("release", ("--about", "schema.toml"), "schema.toml"),
    ("release", ("--about", "none.toml"), "none.toml"),
    ("release", ("--language", "xx"), "xx"),
    ("release", ("--k", 2), "quasi-identifier"),
    ("release", ("--round", "a=5"), "--round"),
    ("release", ("--holdout", "short.csv"), "lacks the column"),
    ("release", ("--holdout", "none.csv"), "none.csv"),
    ("release", ("--formula", "a ~ nobody"), "nobody"),
    ("release", ("--target", "nobody"), "nobody"),
    ("release", ("--quality", 0.1, "--accept", "none.toml"), "none.toml"),
    ("release", ("--quality", 0.1, "--accept", "schema.toml"), "schema.toml"),
    ("release", ("--quality", 0.1, "--resume", "x"), "--quality"),
    ("release", ("--quality", 0.1, "--quality-table", "a,nobody"), "nobody"),
    ("release", ("--analyses", "none.toml"), "none.toml"),
    ("release", ("--replicates", 2000), "--replicates must be 0, or 2 to 1000"),
    ("release", ("--replicates", 3, "--datasets", 2), "leave one of them out"),
    ("release", ("--complete", "--replicates", 3), "--complete"),
    ("release", ("--where", "a=nobody"), "no such category"),
    ("release", ("--where", "a=x", "--where", "b=p", "--schema", "ruled.toml"), "forbids together"),
    ("release", ("--decode", "model"), "--decode model"),
    ("release", ("--wide",), "--wide"),
    ("synthesize", ("-o", "t.ods"), "the extension is not known"),
    ("synthesize", ("-o", "none/t.csv"), "folder does not exist"),
    ("synthesize", ("--ledger", "none/l.json"), "folder does not exist"),
    ("synthesize", ("-o", "t.xlsx", "--rows", 2_000_000), "a sheet holds at most"),
    ("synthesize", ("-o", "data.csv"), "read as input"),
    ("synthesize", ("--resume", "none/x"), "folder does not exist"),
    ("synthesize", ("--resume", "data.csv"), "read as input"),
    ("synthesize", ("--resume", "schema.toml"), "schema.toml"),
    ("synthesize", ("-o", "sqlite:///none.db", "--output-table", "t", "--ledger", "l"), "none.db"),
    ("synthesize", ("--method", "contingency", "--schema", "narrow.toml"), "rows of independent"),
    ("fit", ("-o", "none/m.pegs"), "folder does not exist"),
    ("fit", ("--method", "pegs-capped", "--urn", "--rows", 9), "urns are not saved"),
    ("fit", ("--resume", "junk"), "no checkpoint"),
]


@pytest.mark.parametrize(("command", "flags", "words"), UNTOLD, ids=str)
def test_what_needs_no_row_costs_nothing(place, monkeypatch, command, flags, words):
    monkeypatch.chdir(place)
    (place / "there").mkdir()
    (place / "junk").write_text("junk")
    RULED.save(place / "ruled.toml")
    NARROW.save(place / "narrow.toml")
    TABLE.drop("c").write_csv(place / "short.csv")
    before = snapshot(place)
    outcome = run(place, command, "data.csv", *flags)
    check_refused(outcome, words)
    check_free(place)
    before.pop(str(place / "b.book"))
    assert before.items() <= snapshot(place).items()


POOLED = [
    ("none.csv", "no such file"),
    ("short.csv", "column 'c'"),
    ("strange.csv", "1 value is not in the schema"),
    ("forbidden.csv", "no row that obeys"),
]


@pytest.mark.parametrize("command", ["synthesize", "fit"])
@pytest.mark.parametrize(("pool", "words"), POOLED, ids=[pool for pool, _ in POOLED])
def test_seed_rows_are_read_before_the_book_is_charged(place, monkeypatch, command, pool, words):
    monkeypatch.chdir(place)
    TABLE.drop("c").write_csv("short.csv")
    (place / "strange.csv").write_text("a,b,c\nnobody,p,0\n")
    (place / "forbidden.csv").write_text("a,b,c\nx,p,0\n")
    RULED.save(place / "schema.toml")
    flags = ("--method", "pegs", "--seed-pool", pool, *(("--rows", 9) if command == "fit" else ()))
    outcome = run(place, command, "data.csv", *flags)
    check_refused(outcome, words)
    check_free(place)


@pytest.mark.parametrize(
    ("name", "output", "words"),
    [
        ("a b", "t.dta", "'a b' is not allowed in this format"),
        ("int", "t.dta", "'int' is not allowed in this format"),
        ("str12", "t.dta", "'str12' is not allowed in this format"),
        ("BY", "t.sav", "'BY' is not allowed in this format"),
        ("\u00fc" * 40, "t.sav", "is not allowed in this format"),
        ("A", "t.sav", "'a' and 'A' are the same in this format"),
        ("A", "sqlite", "'a' and 'A' are the same in this format"),
    ],
)
def test_names_that_a_format_does_not_allow(place, name, output, words):
    pytest.importorskip("pyreadstat")
    odd = Schema((*SCHEMA.columns, Feature(name, categories=("x", "y"))), reviewed=True)
    odd.save(place / "schema.toml")
    TABLE.with_columns(pl.lit("x").alias(name)).write_csv(place / "odd.csv")
    more = ()
    if output == "sqlite":
        (place / "t.db").touch()
        output = f"sqlite:///{place / 't.db'}"
        more = ("--output-table", "t", "--ledger", place / "t.json", "-o", output)
    outcome = run(place, "synthesize", place / "odd.csv", *more, output=output)
    check_refused(outcome, words)
    assert states(place) == []


def test_more_columns_than_a_database_takes(place):
    names = [f"c{number}" for number in range(2_001)]
    wide = Schema(tuple(Feature(name, categories=("x", "y")) for name in names), reviewed=True)
    wide.save(place / "schema.toml")
    (place / "wide.csv").write_text(",".join(names) + "\n")
    (place / "t.db").touch()
    more = ("--output-table", "t", "--ledger", place / "t.json", "-o", f"sqlite:///{place}/t.db")
    check_refused(run(place, "synthesize", place / "wide.csv", *more), "at most 2,000 columns")
    assert states(place) == []


def test_characters_that_an_encoding_lacks(place):
    polish = Feature("d", categories=("Ł", "l"))
    schema = Schema((*SCHEMA.columns, polish), reviewed=True, dialect=Dialect(encoding="latin-1"))
    schema.save(place / "schema.toml")
    TABLE.with_columns(d=pl.lit("l")).write_csv(place / "latin.csv")
    for command in ("release", "synthesize"):
        check_refused(run(place, command, place / "latin.csv"), "latin-1 does not have")
    assert states(place) == []


@pytest.mark.parametrize("command", ["release", "synthesize", "fit"])
def test_a_disk_that_is_full(place, monkeypatch, command):
    usage = shutil.disk_usage(place)
    monkeypatch.setattr(atomic.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    check_refused(
        run(place, command, place / "data.csv"), "bytes are needed there and 1,000 are free"
    )
    assert states(place) == []


def test_a_table_that_would_not_fit(place, monkeypatch):
    usage = shutil.disk_usage(place)
    monkeypatch.setattr(atomic.shutil, "disk_usage", lambda path: usage._replace(free=1 << 24))
    rows = ("--rows", 10_000_000)
    check_refused(
        run(place, "synthesize", place / "data.csv", *rows),
        "the disk is full: at least 30,016,384 bytes",
    )
    assert states(place) == []


def test_libraries_that_are_needed_later(place, monkeypatch):
    monkeypatch.setattr("pegsynth.tables.table_output.find_spec", lambda name: None)
    outcome = run(place, "synthesize", place / "data.csv", output="t.xlsx")
    check_refused(outcome, "it needs xlsxwriter")
    assert states(place) == []


def test_tables_that_are_wanted_and_declared_analyses(place):
    schema = replace(SCHEMA, columns=(*SCHEMA.columns, Feature("count", categories=("0", "1"))))
    schema.save(place / "schema.toml")
    TABLE.with_columns(count=pl.lit("1")).write_csv(place / "more.csv")
    (place / "wanted.toml").write_text('[[tables_wanted]]\nfeatures = ["a", "count"]\n')
    outcome = run(place, "release", place / "more.csv", "--analyses", place / "wanted.toml")
    check_refused(outcome, "'count'")
    number = Feature("n", kind="numeric", edges=(0.0, 1.0, 2.0, 3.0))
    Schema((*SCHEMA.columns, number), reviewed=True).save(place / "schema.toml")
    TABLE.with_columns(n=pl.lit(1.5)).write_csv(place / "numbers.csv")
    (place / "declared.toml").write_text('[[analyses]]\nformula = "n ~ C(a)"\n')
    outcome = run(place, "release", place / "numbers.csv", "--analyses", place / "declared.toml",
                  "--decode", "labels")  # fmt: skip
    check_refused(outcome, "leave out --decode labels")
    assert states(place) == []


# Models


def test_a_model_without_a_budget_is_charged_when_it_is_drawn_from(place, monkeypatch):
    flags = ("--method", "pegs")
    done(
        "fit", place / "data.csv", "--schema", place / "schema.toml", *flags, "-o", place / "m.pegs"
    )
    line = ("sample", place / "m.pegs", "--rows", 5, "--epsilon", PRICE, "--book", place / "b.book")
    for more, words in (
        (("-o", place / "none" / "t.csv"), "folder does not exist"),
        (("-o", place / "t.csv", "--where", "a=nobody"), "no such category"),
        (("-o", place / "t.csv", "--seed-pool", place / "none.csv"), "no such file"),
        (("-o", place / "t.csv", "--decode", "model"), "--decode model"),
    ):
        check_refused(pegs(*line, *more), words)
        check_free(place)

    def broken(*given, **told):
        raise DataError("the disk went away")

    monkeypatch.setattr("pegsynth.pipeline.running.open_writer", broken)
    check_refused(pegs(*line, "-o", place / "t.csv"), "the disk went away", "charged in full")
    assert left(place) == LIMIT - PRICE


# The border itself


SOURCES = {
    "csv": lambda place: place / "data.csv",
    "gzip": lambda place: csv_of((place / "data.csv").read_bytes(), "t.csv.gz")(place),
    "parquet": parquet_of(TABLE, "t.parquet"),
    "arrow": parquet_of(TABLE, "t.arrow"),
    "excel": workbook(TABLE),
    "polars": lambda place: TABLE,
    "lazy": lambda place: TABLE.lazy(),
    "pandas": lambda place: TABLE.to_pandas(),
    "pyarrow": lambda place: TABLE.to_arrow(),
    "batches": lambda place: TABLE.to_arrow().to_reader(),
    "dataset": lambda place: ds.dataset(TABLE.to_arrow()),
    "chunks": lambda place: iter([TABLE]),
    "stream": lambda place: Exports(TABLE),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("broken", [False, True], ids=["shipped", "twin"])
def test_the_entry_is_on_disk_before_the_first_row_is_asked_for(place, monkeypatch, kind, broken):
    """The twin begins when all is read, as a reader without a border would; it is seen."""
    seen = []
    opened = pipeline.open_table

    def watched(source, **told):
        reader = opened(source, **told)

        def part(part):
            def rows(*given, **more):
                seen.append(states(place)[-1])
                yield from part(*given, **more)

            return rows

        return replace(reader, parts=tuple(map(part, reader.parts)))

    monkeypatch.setattr(pipeline, "open_table", watched)
    if broken:
        monkeypatch.setattr(pipeline, "opening_reads", lambda source: False)
        monkeypatch.setattr(
            "pegsynth.tables.reader.TableReader.calling", lambda reader, before_rows: reader
        )
    source = SOURCES[kind](place)
    source = (
        str(source)
        if not isinstance(source, (pl.DataFrame, pl.LazyFrame)) and hasattr(source, "exists")
        else source
    )
    pegsynth.fit(source, SCHEMA, book=place / "b.book", **PAID)
    assert seen
    assert set(seen) == ({"reserved"} if broken else {"reading"})


def test_saved_counts_are_rows(place, monkeypatch):
    """A run that goes on from a checkpoint may ask for no row: its counts were read before."""
    line = (place / "data.csv", "--schema", place / "schema.toml", "-o", place / "m.pegs")
    told = (*line, "--method", "pegs", "--epsilon", PRICE, "--rows", 9, "--resume", place / "c")
    monkeypatch.setattr("pegsynth.methods.checkpoint.Checkpoint.remove", lambda checkpoint: None)
    done("fit", *told)
    assert (place / "c").exists()

    def broken(*given, **more):
        raise DataError("counts were looked at")

    monkeypatch.setattr("pegsynth.pipeline.fitting.fit_counted", broken)
    check_refused(pegs("fit", *told, "--book", place / "b.book"), "counts were looked at")
    check_charged(place)


KILLED = """
import os, signal, sys
from pegsynth.pipeline import fitting
from pegsynth.pipeline import running as pipeline
from pegsynth.cli.main import main

def killed(*given, **told):
    os.kill(os.getpid(), signal.SIGKILL)

{patch}
sys.argv = ["pegs", *sys.argv[1:]]
main()
"""
BEFORE = "fitting.warm_up = killed"
AFTER = "pipeline.Session = killed"


@pytest.mark.parametrize(("patch", "state"), [(BEFORE, "reserved"), (AFTER, "reading")])
def test_what_a_book_says_of_a_run_that_was_killed(place, patch, state):
    line = [place / "data.csv", "--schema", place / "schema.toml", "-o", place / "t.csv"]
    line += ["--rows", 5, "--book", place / "b.book", "--method", "pegs", "--epsilon", PRICE]
    code = KILLED.format(patch=patch)
    command = [sys.executable, "-c", code, "synthesize", *map(str, line)]
    ended = subprocess.run(command, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert states(place) == [state]
    # Nobody knows whether it is alive: until somebody says so, it counts.
    assert left(place) == LIMIT - PRICE
    shown = done("book", "show", place / "b.book").out
    withdrawn = pegs("book", "withdraw", place / "b.book", 1)
    if state == "reserved":
        assert "Entry 1 has read nothing yet; if its run is gone: pegs book withdraw" in shown
        assert withdrawn.code == 0
        check_free(place)
    else:
        assert "Entry 1 is reading, or was stopped while it was" in shown
        check_refused(withdrawn, "only a run that has read nothing")


def test_a_run_that_is_stopped_says_what_the_book_holds(place):
    line = [place / "data.csv", "--schema", place / "schema.toml", "-o", place / "t.csv"]
    line += ["--rows", 5, "--book", place / "b.book", "--method", "pegs", "--epsilon", PRICE]
    code = KILLED.format(patch=AFTER).replace("SIGKILL", "SIGTERM") + ""
    code = code.replace("signal.SIGTERM)", "signal.SIGTERM); __import__('time').sleep(60)")
    command = [sys.executable, "-c", code, "synthesize", *map(str, line)]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ended.returncode == 128 + signal.SIGTERM, ended.stderr
    assert "pegs: stopped" in ended.stderr
    assert "charged in full" in ended.stderr.splitlines()[-1]
    check_charged(place)


def test_an_error_of_the_program_says_what_the_book_holds(place, monkeypatch):
    code = KILLED.format(patch=AFTER).replace("os.kill(os.getpid(), signal.SIGKILL)", "1 / 0")
    line = [place / "data.csv", "--schema", place / "schema.toml", "-o", place / "t.csv"]
    line += ["--rows", 5, "--book", place / "b.book", "--method", "pegs", "--epsilon", PRICE]
    command = [sys.executable, "-c", code, "synthesize", *map(str, line)]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ended.returncode == 3
    assert "charged in full" in ended.stderr.splitlines()[-1]


def test_a_release_that_is_not_accepted_says_what_the_book_holds(place):
    (place / "strict.toml").write_text("single = 0.000001\n")
    flags = ("--quality", 0.2, "--accept", place / "strict.toml")
    outcome = run(place, "release", place / "data.csv", *flags)
    assert outcome.code == 1
    assert "was not accepted" in outcome.err
    assert "it is charged, because the run was done; epsilon = 2 of 6" in last_line(outcome)
    assert left(place) == LIMIT - PRICE


def test_notes_of_libraries_are_not_printed(place):
    """What others note on an error may hold values of the table."""
    code = """
import sys
from pegsynth.pipeline import running as pipeline
from pegsynth.cli.main import main
from pegsynth.errors import DataError

def broken(*given, **told):
    error = DataError("no")
    error.add_note("SECRET-4711")
    raise error

pipeline.Session = broken
sys.argv = ["pegs", *sys.argv[1:]]
main()
"""
    line = [place / "data.csv", "--schema", place / "schema.toml", "-o", place / "t.csv"]
    line += ["--rows", 5, "--book", place / "b.book", "--method", "pegs", "--epsilon", PRICE]
    command = [sys.executable, "-c", code, "synthesize", *map(str, line)]
    ended = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ended.returncode == 2
    assert "SECRET-4711" not in ended.stderr
    assert "charged in full" in ended.stderr


def test_the_command_in_its_own_process(place):
    (place / "short.csv").write_text("a,b\nx,p\n")
    line = (place / "short.csv", "--schema", place / "schema.toml", "-o", place / "t.csv")
    outcome = pegs_process("synthesize", *line, "--rows", 5, *ONCE, "--book", place / "b.book")
    check_refused(outcome, "column 'c'")
    assert "nothing is charged" in last_line(outcome)
    check_free(place)
