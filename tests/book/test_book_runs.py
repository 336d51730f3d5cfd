"""Runs with a budget book: reserved before the table is read, settled after, refused beyond."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

import pegsynth
from command import check_refused, done, pegs
from pegsynth.errors import BudgetError, ModelError, OutputError
from pegsynth.privacy import Ledger, NotPrivate
from pegsynth.schema import Feature
from pegsynth.storage.book import book_file as files
from pegsynth.storage.book import booking as bookings
from pegsynth.storage.book.book_file import create_book, read_book
from pegsynth.storage.book.book_policy import BookPolicy
from pegsynth.storage.book.booking import add_earlier, booked, withdraw
from small_release import settled_plan, small_schema, small_table

TABLE, SCHEMA = small_table(120), small_schema()


@pytest.fixture
def place(tmp_path):
    TABLE.write_csv(tmp_path / "data.csv")
    SCHEMA.save(tmp_path / "schema.toml")
    return tmp_path


@pytest.fixture
def book(place):
    create_book(place / "b.book", BookPolicy(epsilon=1.0))
    return place / "b.book"


def run(place, *flags, command="synthesize", data="data.csv", out="t.csv"):
    line = (place / data, "--schema", place / "schema.toml", "--rows", 10, "-o", place / out)
    return pegs(command, *line, *flags)


def states(book):
    return [entry.state for entry in read_book(book).entries]


ONCE = ("--method", "pegs-once", "--threads", 1)


def test_a_run_is_reserved_and_settled_by_its_ledger(place, book):
    outcome = run(place, *ONCE, "--epsilon", 0.6, "--book", book)
    assert outcome.code == 0, outcome.err
    assert "entry 1; epsilon = 0.6 of 1 is spent in all." in outcome.err
    (entry,) = read_book(book).entries
    assert (entry.state, entry.run, entry.method) == ("settled", "synthesize", "pegs-once")
    ledger = place / "t.csv.privacy.json"
    assert entry.ledger == hashlib.sha256(ledger.read_bytes()).hexdigest()
    assert float(entry.settled.epsilon) == pytest.approx(0.6)
    assert entry.settled.within(entry.reserved)


def test_a_run_beyond_the_book_is_refused_before_the_table_is_looked_for(place, book):
    assert run(place, *ONCE, "--epsilon", 0.6, "--book", book).code == 0
    before = book.read_bytes()
    refused = run(place, *ONCE, "--epsilon", 0.5, "--book", book, data="missing.csv", out="u.csv")
    check_refused(refused, "does not cover this run", "epsilon = 1.1", "1 is allowed")
    assert "missing.csv" not in refused.err
    assert book.read_bytes() == before
    assert not (place / "u.csv").exists()


def test_a_run_that_read_nothing_gives_everything_back(place, book):
    check_refused(run(place, *ONCE, "--epsilon", 1, "--book", book, data="none.csv"), "none.csv")
    assert states(book) == ["withdrawn"]
    assert run(place, *ONCE, "--epsilon", 1, "--book", book).code == 0
    assert states(book) == ["withdrawn", "settled"]


def test_a_run_that_failed_while_reading_stays_spent_in_full(place, book):
    """What its random choices were nobody knows; that the table was read is certain."""
    (place / "bad.csv").write_text("a,b,c\nx,p,0\nnobody,p,0\n")
    check_refused(run(place, *ONCE, "--epsilon", 0.6, "--book", book, data="bad.csv"), "bad.csv")
    assert states(book) == ["reading"]
    check_refused(run(place, *ONCE, "--epsilon", 0.6, "--book", book), "does not cover")
    shown = done("book", "show", book).out
    assert "Entry 1 is reading, or was stopped while it was" in shown
    assert "epsilon = 0.6 of 1 is spent in all" in shown
    check_refused(pegs("book", "withdraw", book, 1), "only a run that has read nothing")


def test_a_release_says_whether_a_book_adds_it_up(place, book):
    told = run(place, *ONCE, "--epsilon", 0.5, "--public-only", command="release", out="r")
    assert "No budget book was named (--book)" in told.err
    told = run(
        place, *ONCE, "--epsilon", 0.5, "--public-only", "--book", book, command="release", out="s"
    )
    assert "No budget book" not in told.err
    assert "entry 1; epsilon = 0.5 of 1 is spent in all." in told.err
    assert read_book(book).entries[0].run == "release"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--epsilon", 1, "--seed", 3), "came from a seed"),
        (("--alpha", 0), "without virtual rows"),
        (("--method", "bootstrap"), "no privacy result"),
        (("--epsilon", 0.5, "--delta", 1e-9), "pure runs only"),
        (("--l", 2), "not differential privacy"),
    ],
)
def test_what_a_book_cannot_hold_is_refused(place, book, flags, words):
    check_refused(run(place, "--method", "pegs", *flags, "--book", book), book, words)
    assert read_book(book).entries == ()


def test_a_schema_that_nobody_reviewed_is_refused(place, book):
    small_schema(reviewed=False).save(place / "schema.toml")
    flags = (*ONCE, "--epsilon", 0.5, "--accept-unreviewed-schema", "--book", book)
    check_refused(run(place, *flags), "nobody has declared")


def test_models_are_booked_when_they_are_fitted_or_when_they_are_drawn_from(place, book):
    line = (place / "data.csv", "--schema", place / "schema.toml", "-o", place / "m.pegs")
    refused = pegs("fit", *line, "--method", "pegs", "--book", book)
    check_refused(refused, "give it to pegs sample")
    done("fit", *line, "--method", "pegs", "--epsilon", 0.5, "--rows", 20, "--book", book)
    drawn = ("--rows", 5, "-o", place / "t.csv")
    check_refused(pegs("sample", place / "m.pegs", *drawn, "--book", book), "paid for when it was")
    done("sample", place / "m.pegs", *drawn)
    done("fit", *line, "--method", "pegs")
    sample = ("sample", place / "m.pegs", *drawn, "--epsilon", 0.5, "--book", book)
    assert "epsilon = 1 of 1 is spent" in done(*sample).err
    check_refused(pegs(*sample), "does not cover")
    assert [entry.run for entry in read_book(book).entries] == ["fit", "sample"]


def test_python_takes_a_book_too(book):
    pegsynth.synthesize(TABLE, SCHEMA, rows=5, epsilon=0.3, method="pegs-once", book=book)
    pegsynth.fit(TABLE, SCHEMA, epsilon=0.3, method="pegs-once", book=str(book))
    sampler = pegsynth.PeGS(epsilon=0.3, method="pegs-once", book=book)
    sampler.fit(TABLE, SCHEMA)
    assert states(book) == ["settled"] * 3
    with pytest.raises(BudgetError, match="does not cover this run"):
        sampler.fit(TABLE, SCHEMA)


def test_measured_edges_reserve_the_whole_budget(place, book):
    features = tuple(f for f in SCHEMA.columns if f.name != "c")
    number = pegsynth.Feature("c", "numeric", edges="private", lowest=0, highest=2, dtype="int64")
    measured = pegsynth.Schema((*features, number), reviewed=True)
    pegsynth.synthesize(TABLE, measured, rows=5, epsilon=0.7, method="pegs", book=book)
    (entry,) = read_book(book).entries
    assert float(entry.reserved.epsilon) == 0.7
    assert entry.settled.within(entry.reserved)


# Who, when, whom


@pytest.mark.parametrize("delta", [1e-6, 3e-7])
def test_a_book_of_the_same_delta_covers_private_categories(place, delta):
    names = [TABLE.columns[0]]
    features = [
        Feature(f.name, private_categories=True) if f.name in names else f for f in SCHEMA.features
    ]
    schema = replace(SCHEMA, columns=tuple(features))
    create_book(place / "c.book", BookPolicy(epsilon=1.0, delta=delta, private_categories=True))
    told = {"rows": 10, "epsilon": 1.0, "delta": delta, "book": place / "c.book"}
    pegsynth.synthesize(TABLE, schema, method="pegs-once", **told)
    (entry,) = read_book(place / "c.book").entries
    assert entry.settled.within(entry.reserved)
    with pytest.raises(BudgetError, match="more than the tenth of delta"):
        pegsynth.synthesize(TABLE, schema, method="pegs-once", **told | {"epsilon": 0.01})


def test_limits_of_a_year_start_anew_and_the_clock_may_not_go_back(place, monkeypatch):
    path = place / "y.book"

    def at(year):
        monkeypatch.setattr(files, "now", lambda: datetime(year, 5, 1, tzinfo=UTC))

    at(2030)
    create_book(path, BookPolicy(epsilon=2.5, epsilon_per_year=1.0))

    def spend():
        plan = settled_plan(SCHEMA, method="pegs-once", epsilon=1.0, rows=5)
        with booked(path, SCHEMA, plan, run="test", seeded=False) as booking:
            booking.begin()

    spend()
    with pytest.raises(BudgetError, match="in this year, and 1 is allowed"):
        spend()
    at(2031)
    spend()
    at(2030)
    with pytest.raises(BudgetError, match="clock"):
        spend()
    at(2032)
    with pytest.raises(BudgetError, match=r"in all, and 2\.5 is allowed"):
        spend()


def test_only_named_accounts_may_spend(place, monkeypatch):
    create_book(place / "n.book", BookPolicy(epsilon=1.0, spenders=("nobody-else",)))
    check_refused(
        run(place, *ONCE, "--epsilon", 0.1, "--book", place / "n.book"), "may not spend from"
    )
    monkeypatch.setattr(bookings, "account", lambda: "nobody-else")
    assert run(place, *ONCE, "--epsilon", 0.1, "--book", place / "n.book").code == 0


def test_runs_on_other_units_do_not_add_up(place, book):
    with_units = small_schema(rows_per_unit=2)
    plan = settled_plan(with_units, method="pegs-once", epsilon=0.5, rows=5)
    with (
        pytest.raises(BudgetError, match="protects single rows, and this run protects units of"),
        booked(book, with_units, plan, run="test", seeded=False),
    ):
        pass
    create_book(place / "u.book", BookPolicy(epsilon=1.0, unit="person"))
    with booked(place / "u.book", with_units, plan, run="test", seeded=False):
        pass
    assert states(place / "u.book") == ["reserved"]


# What stands in the way of double spending


def test_a_withdrawn_reservation_stops_its_run_before_it_reads(book):
    plan = settled_plan(SCHEMA, method="pegs-once", epsilon=1.0, rows=5)
    with booked(book, SCHEMA, plan, run="test", seeded=False) as booking:
        withdraw(book, 1)
        with pytest.raises(BudgetError, match="was withdrawn while this run was starting"):
            booking.begin()
    assert states(book) == ["withdrawn"]


def test_a_query_that_does_not_select_rows_one_by_one_reads_nothing(place, book):
    import sqlite3

    with sqlite3.connect(place / "t.db") as base:
        base.execute("create table t (a text, b text, c text)")
        base.execute("insert into t values ('x', 'p', '0')")
    address = f"sqlite:///{place / 't.db'}"
    query = "select a, b, c from t order by a limit 5"
    with pytest.raises(BudgetError, match="one row of the database may change"):
        pegsynth.synthesize(
            address, SCHEMA, rows=5, epsilon=0.5, method="pegs-once", book=book, query=query
        )
    assert states(book) == ["withdrawn"]


def test_a_run_that_comes_out_dearer_is_written_down_as_it_came_out(book, monkeypatch):
    """Nothing in the product does this; should it, the book is right and everybody is told."""
    plan = settled_plan(SCHEMA, method="pegs-once", epsilon=0.2, rows=5)
    dearer = settled_plan(SCHEMA, method="pegs-once", epsilon=0.9, rows=5)
    with booked(book, SCHEMA, plan, run="test", seeded=False) as booking:
        booking.begin()
        with pytest.raises(BudgetError, match="larger price than was reserved"):
            booking.settle(Ledger(dearer.events))
    assert float(read_book(book).spent().epsilon) == pytest.approx(0.9)
    little = settled_plan(SCHEMA, method="pegs-once", epsilon=0.05, rows=5)
    with booked(book, SCHEMA, little, run="test", seeded=False) as booking:
        booking.begin()
        with pytest.raises(BudgetError, match="larger price"):
            booking.settle(Ledger((NotPrivate.because("no-proof"),)))
    assert read_book(book).spent() is None
    with (
        pytest.raises(BudgetError, match="came out without a guarantee"),
        booked(book, SCHEMA, plan, run="test", seeded=False),
    ):
        pass
    assert "without a limit" in done("book", "show", book).out


# The file


def test_earlier_releases_are_put_in_once(place, book):
    run(place, *ONCE, "--epsilon", 2, out="old.csv")
    ledger = place / "old.csv.privacy.json"
    assert "epsilon = 2 of 1 is spent" in done("book", "add", book, ledger).err
    check_refused(pegs("book", "add", book, ledger), "in the book already")
    check_refused(run(place, *ONCE, "--epsilon", 0.1, "--book", book), "does not cover")
    run(place, "--method", "bootstrap", out="none.csv")
    check_refused(pegs("book", "add", book, place / "none.csv.privacy.json"), "cannot be booked")
    with pytest.raises(ModelError, match="cannot be opened"):
        add_earlier(book, [place / "no.json"])


def test_a_book_is_made_and_shown(place):
    path = place / "n.book"
    made = ("book", "create", path, "--epsilon", 3, "--delta", 1e-6, "--table", "stays")
    done(*made, "--epsilon-per-year", 1, "--spender", "anna", "--private-categories")
    check_refused(pegs(*made), "never replaced")
    shown = done("book", "show", path).out
    for words in ("Budget book of stays", "delta:    1e-6, a tenth of it", "spenders: anna"):
        assert words in shown
    content = json.loads(done("book", "show", path, "--json").out)
    assert content["policy"]["epsilon_per_year"] == 1.0
    assert content["spent"]["rho"] == "0"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "pegs book"),
        (("make", "b"), "takes one of create, show, add, withdraw"),
        (("create", "new.book"), "needs a limit"),
        (("create", "new.book", "--epsilon", "0"), "above 0"),
        (("create", "new.book", "--epsilon", "1", "--delta", "2"), "delta must lie"),
        (("create", "new.book", "--delta", "1e-9"), "needs a limit"),
        (("create", "new.book", "--epsilon", "1", "--private-categories"), "needs a --delta"),
        (("show", "none.book"), "none.book"),
        (("show", "b.book", "--epsilon", "1"), "when a book is made"),
        (("withdraw", "b.book", "x"), "named by its number"),
        (("withdraw", "b.book", "7"), "no entry 7"),
        (("add", "b.book"), "one or more ledgers"),
    ],
)
def test_bad_words_are_refused(place, book, monkeypatch, words, message):
    monkeypatch.chdir(place)
    outcome = pegs("book", *words)
    assert outcome.code == 2
    assert message in outcome.err
    assert not (place / "new.book").exists()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: "",
        lambda text: "[]",
        lambda text: text.replace('"rho": "0', '"rho": "-1'),
        lambda text: text.replace('"rho": "0', '"rho": "NaN", "x": "'),
        lambda text: text.replace('"number": 1', '"number": 2'),
        lambda text: text.replace('"settled"', '"unsettled"', 1),
        lambda text: text.replace('"epsilon": 1.0', '"epsilon": "much"', 1),
    ],
)
def test_a_damaged_book_is_refused_and_nothing_is_read(place, book, damage):
    assert run(place, *ONCE, "--epsilon", 0.5, "--book", book).code == 0
    broken = damage(book.read_text())
    assert broken != book.read_text()
    book.write_text(broken)
    check_refused(run(place, *ONCE, "--epsilon", 0.1, "--book", book, data="no.csv"), "damaged")


@pytest.mark.parametrize("other", [0, 2])
def test_a_book_of_another_format_is_refused(book, other):
    book.write_text(book.read_text().replace('"format": 1', f'"format": {other}'))
    with pytest.raises(ModelError, match=f"format {other}, and this program reads format 1 only"):
        read_book(book)


def test_a_book_with_a_second_hard_link_is_refused_and_nothing_is_read(place, book):
    """Replaced under one name it would stay as it was under the other: two books."""
    other = place / "other.book"
    other.hardlink_to(book)
    before = book.read_bytes()
    for each in (book, other):
        refused = run(place, *ONCE, "--epsilon", 0.5, "--book", each, data="no.csv")
        check_refused(refused, each.name, "2 names (hard links)", "remove the others")
        check_refused(pegs("book", "show", each), "hard links")
        assert each.read_bytes() == before
    other.unlink()
    assert run(place, *ONCE, "--epsilon", 0.5, "--book", book).code == 0


def test_a_symbolic_link_is_the_book_that_it_leads_to(place, book):
    link = place / "link.book"
    link.symlink_to(book.name)
    for each in (link, book):
        assert run(place, *ONCE, "--epsilon", 0.4, "--book", each).code == 0
    assert link.is_symlink()
    assert states(book) == ["settled", "settled"]
    check_refused(run(place, *ONCE, "--epsilon", 0.4, "--book", link), "does not cover this run")
    loop = place / "loop.book"
    loop.symlink_to(loop.name)
    check_refused(run(place, *ONCE, "--epsilon", 0.4, "--book", loop), "loop.book")


def test_a_link_that_is_moved_during_a_run_leads_to_no_other_entry(place, book):
    other, link = place / "other.book", place / "link.book"
    create_book(other, BookPolicy(epsilon=1.0))
    link.symlink_to(book.name)
    plan = settled_plan(SCHEMA, method="pegs-once", epsilon=0.3, rows=5)
    with booked(link, SCHEMA, plan, run="fit", seeded=False) as booking:
        link.unlink()
        link.symlink_to(other.name)
        booking.begin()
    assert (states(book), states(other)) == (["reading"], [])


def test_the_permissions_of_a_book_stay(place, book):
    book.chmod(0o660)
    run(place, *ONCE, "--epsilon", 0.5, "--book", book)
    assert book.stat().st_mode & 0o777 == 0o660


def test_a_book_that_cannot_be_written_stops_the_run(place, book, monkeypatch):
    def full(*_, **__):
        raise OutputError("cannot write: the disk is full")

    monkeypatch.setattr(files, "atomic_text", full)
    check_refused(run(place, *ONCE, "--epsilon", 0.5, "--book", book), "the disk is full")
    assert read_book(book).entries == ()
    assert not (place / "t.csv").exists()
