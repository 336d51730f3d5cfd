"""The ledger lists every public input that a run used, and none that it did not use (R10)."""

import json
import sqlite3
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
import pytest

import pegsynth
from command import check_refused, done, pegs
from contract import ENTRIES, Entry, contract_schema, contract_table
from pegsynth import Feature, Ledger, PegsynthError, Rule
from pegsynth.methods import ledgers as declarations
from pegsynth.methods.baselines.marginal import Marginal
from pegsynth.methods.ledgers import of_schema
from pegsynth.methods.released import _pegs_once
from pegsynth.schema.recoding import Recoding
from pegsynth.schema.rules import NamedRule

DIVERSE = Entry("pegs, l", "pegs", {"l": 1.2}, draws=None)
METHODS = (*(entry for entry in ENTRIES if entry.budgeted), DIVERSE)
ONCE = {"pegs-once", "pegs-once, approximate"}
GIBBS = {"pegs", "pegs, total", "pegs-rs", "pegs-capped", "pegs-capped, urn", "pegs, l"}
PUBLIC_ORDER = {"pegs", "pegs, l"}
"""Without a total epsilon nobody pays for an order, so heads follow the schema."""

PMI, TABLES = {"pmi"}, {"contingency", "log-linear", "marginal"}
ALL = ONCE | GIBBS | PMI | TABLES
ALWAYS = {"reviewed-schema", "unlisted-values", "public-options"}

PLAIN = contract_schema(rules=())
ROWS = contract_table(60)


def changed(name: str, /, **fields: Any):
    """Return the schema with one feature changed."""
    columns = [replace(f, **fields) if f.name == name else f for f in PLAIN.columns]
    return replace(PLAIN, columns=tuple(columns))


def with_heads(heads: dict[str, tuple[str, ...]]):
    columns = [replace(f, heads=heads.get(f.name, ())) for f in PLAIN.columns]
    return replace(PLAIN, columns=tuple(columns))


NAMES = PLAIN.names
ALL_HEADS = {name: tuple(other for other in NAMES if other != name)[:2] for name in NAMES}
PERSON = Feature("person", role="identifier")
PEOPLE = ROWS.with_columns(person=pl.Series([f"id{i % 50}" for i in range(len(ROWS))]))


@dataclass(frozen=True)
class Input:
    """A public input: how it is given, what it adds to the ledger for whom, who refuses it."""

    name: str
    code: str = ""
    uses: frozenset[str] = frozenset()
    refuse: frozenset[str] = frozenset()
    schema: Any = PLAIN
    data: pl.DataFrame = field(default_factory=lambda: ROWS)
    keywords: dict[str, Any] = field(default_factory=dict)
    flags: tuple[object, ...] = ()
    parameters: dict[str, Any] | None = None
    instead: frozenset[str] = frozenset()

    def codes(self, entry: Entry) -> set[str]:
        """Say exactly what the ledger of a method must assume."""
        expected = set(ALWAYS)
        if entry.name in PUBLIC_ORDER | (GIBBS if self.code == "public-heads" else set()):
            expected.add("feature-order")
        if entry.name in self.uses:
            expected |= {self.code} - {""}
            expected -= self.instead
        return expected

    def __str__(self) -> str:
        return self.name


def f(*names: set[str]) -> frozenset[str]:
    return frozenset().union(*names)


INPUTS = (
    Input("nothing"),
    Input("shares", "public-shares", f(ONCE), schema=changed("a", shares=(0.5, 0.25, 0.25)),
          parameters={"features": ["a"]}),
    Input("heads", "public-heads", f(GIBBS), schema=with_heads(ALL_HEADS),
          parameters={"features": list(NAMES)}, instead=f({"feature-order"})),
    Input("some heads", "public-heads", f(GIBBS), schema=with_heads({"d": ("a",)}),
          parameters={"features": ["d"]}),
    Input("heads that are not used", schema=with_heads(ALL_HEADS),
          keywords={"heads": 0}, flags=("--heads", 0),
          uses=f(PUBLIC_ORDER), instead=f({"feature-order"}), refuse=f(ONCE)),
    Input("rules", "public-rules", f(ALL),
          schema=replace(PLAIN, rules=(Rule.of({0: [0], 2: [1]}),)),
          parameters={"features": ["a", "s"], "count": 1}),
    Input("unit", "unit-column", f(ALL), data=PEOPLE,
          schema=replace(PLAIN, columns=(*PLAIN.columns, PERSON), unit="person", rows_per_unit=2),
          parameters={"column": "person", "rows_per_unit": 2}),
    Input("parent", "public-parents", f(GIBBS, PMI), refuse=f(ONCE),
          schema=changed("d", parent="a"), parameters={"features": ["d"]}),
    Input("recoding", "public-recodings", f(ALL),
          schema=changed("d", recoding=Recoding(groups={"first": PLAIN["d"].categories[:1]})),
          parameters={"features": ["d"], "rules": ["1 group"]}),
    Input("rows in", "rows-in", f(ALL), keywords={"rows_in": 60}, flags=("--rows-in", 60),
          parameters={"rows_in": 60}),
    Input("seed pool", "public-seed-pool", f(GIBBS, PMI), refuse=f(ONCE, TABLES),
          keywords={"seed_pool": "pool.csv"}, flags=("--seed-pool", "pool.csv"),
          parameters={"file": "pool.csv"}),
    Input("given values", "given-values", f(ALL - {"marginal"}), refuse=f({"marginal"}),
          keywords={"where": {"a": "x"}}, flags=("--where", "a=x"), parameters={"features": ["a"]}),
    Input("l", "public-l", f({"pegs, l"}), refuse=f(ALL - {"pegs, l"}),
          keywords={"l": 1.2}, flags=("--l", 1.2), schema=changed("a", l=1.5),
          parameters={"features": [*NAMES], "l": ["1.5", "1.2", "1.2", "1.2", "1.2"]}),
    Input("l that nobody asked for", schema=changed("a", l=1.5),
          code="public-l", uses=f({"pegs, l"})),
    Input("plain query", "rowwise-query", f(ALL), parameters={"declared": False},
          keywords={"query": "SELECT * FROM people"}, flags=("--query", "SELECT * FROM people")),
    Input("declared query", "rowwise-query", f(ALL), parameters={"declared": True},
          keywords={"query": "SELECT * FROM people ORDER BY a", "query_is_rowwise": True},
          flags=("--query", "SELECT * FROM people ORDER BY a", "--query-is-rowwise")),
    Input("unlisted values", "unlisted-values", f(ALL), schema=changed("a", unknown="category"),
          parameters={"refused": ["b", "s", "n", "d"], "category": ["a"]}),
    Input("drafted", "reviewed-schema", f(ALL), schema=changed("n", drafted_from_data=True),
          parameters={"drafted_from_data": ["n"], "categories": ["a", "b", "s", "d"],
                      "edges": ["n"]}),
)  # fmt: skip


def expected_codes(entry: Entry, given: Input) -> set[str]:
    expected = given.codes(entry)
    if entry is DIVERSE:
        expected.add("public-l")
    return expected


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder with the tables in it, and a database."""
    monkeypatch.chdir(tmp_path)
    PEOPLE.write_csv("people.csv")
    ROWS.write_csv("rows.csv")
    ROWS.head(20).write_csv("pool.csv")
    with sqlite3.connect("rows.db") as database:
        database.execute("CREATE TABLE people (a TEXT, b TEXT, s INTEGER, n REAL, d TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", ROWS.rows())
    database.close()
    return tmp_path


def by_call(entry: Entry, given: Input) -> Ledger:
    data: Any = "sqlite:///rows.db" if "query" in given.keywords else given.data
    keywords = {**entry.keywords, **given.keywords}
    return pegsynth.synthesize(data, given.schema, rows=4, threads=1, **keywords).ledger


def by_command(entry: Entry, given: Input, command=("synthesize",), output="out.csv"):
    given.schema.save("schema.toml")
    table = "people.csv" if given.schema.unit else "rows.csv"
    data = "sqlite:///rows.db" if "query" in given.keywords else table
    flags = [*entry.flags, *given.flags, "--rows", 4, "--threads", 1]
    return [*command, data, "--schema", "schema.toml", *flags, "-o", output]


def check(ledger: Ledger, entry: Entry, given: Input) -> None:
    """Exactly what is expected, each once, with what it is about, and said in words."""
    codes = [each.code for each in ledger.assumptions]
    assert sorted(codes) == sorted(expected_codes(entry, given))
    assert ledger.guarantee.kind == ("l-diversity" if entry is DIVERSE else entry_kind(entry))
    statement = ledger.statement()
    for each in ledger.assumptions:
        assert f"- {each.text}\n" in statement
        if each.code == given.code and given.parameters is not None:
            assert each.parameters == given.parameters


def entry_kind(entry: Entry) -> str:
    return "approximate" if "delta" in entry.budget else "pure"


PAIRS = [
    pytest.param(entry, given, id=f"{entry}-{given}")
    for entry in METHODS
    for given in INPUTS
    # `l` is the budget of this entry, whatever is asked for beside it.
    if not (entry is DIVERSE and given.name == "l")
]


@pytest.mark.parametrize(("entry", "given"), PAIRS)
def test_the_library_lists_what_it_used(home, entry, given):
    if entry.name in given.refuse:
        with pytest.raises(PegsynthError):
            by_call(entry, given)
        return
    check(by_call(entry, given), entry, given)


@pytest.mark.parametrize(("entry", "given"), PAIRS)
def test_the_command_lists_what_it_used(home, entry, given):
    if entry.name in given.refuse:
        check_refused(pegs(*by_command(entry, given)))
        return
    done(*by_command(entry, given))
    text = (home / "out.csv.privacy.json").read_text()
    check(Ledger.from_json(text), entry, given)


# What the rows of the table above rest on: each is caught when it is wrong.


@pytest.mark.parametrize(
    ("module", "name", "method"),
    [(_pegs_once, "of_shares", "pegs-once"), (declarations, "_rules", "marginal")],
)
def test_an_input_that_is_not_listed_is_caught(home, monkeypatch, module, name, method):
    (entry,) = (each for each in METHODS if each.name == method)
    (given,) = (each for each in INPUTS if name.endswith(each.name))
    check(by_call(entry, given), entry, given)
    monkeypatch.setattr(module, name, lambda *_: ())
    with pytest.raises(AssertionError):
        check(by_call(entry, given), entry, given)


def test_an_input_that_is_listed_without_being_used_is_caught(home, monkeypatch):
    (entry,) = (each for each in METHODS if each.name == "marginal")
    (given,) = (each for each in INPUTS if each.name == "shares")
    monkeypatch.setattr(
        Marginal, "declared_structure", lambda self, schema, plan: declarations.of_shares(schema)
    )
    with pytest.raises(AssertionError):
        check(by_call(entry, given), entry, given)


# Options


OPTIONS = {
    "pegs": {"heads", "tail_bits", "order", "prior", "sweeps", "seed_rows"},
    "pegs-rs": {"heads", "tail_bits", "order", "prior", "sweeps", "seed_rows", "block_size"},
    "pegs-capped": {
        "heads", "tail_bits", "order", "prior", "sweeps", "seed_rows", "visits", "chains", "urn",
    },
    "pegs-once": {"heads"},
    "contingency": {"log_linear"},
    "marginal": set(),
    "pmi": {"sweeps", "seed_rows"},
}  # fmt: skip


@pytest.mark.parametrize("entry", METHODS, ids=str)
def test_options_are_those_that_the_method_has(home, entry):
    (options,) = (
        each.parameters
        for each in by_call(entry, INPUTS[0]).assumptions
        if each.code == "public-options"
    )
    assert set(options) - {"method", "rows", "datasets"} == OPTIONS[entry.method]
    assert (options["method"], options["rows"], options["datasets"]) == (entry.method, 4, 1)


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        (("--tail-bits", 3), "tail_bits", 3),
        (("--heads", 1), "heads", 1),
        (("--sweeps", 2), "sweeps", 2),
        (("--order", "public"), "order", "public"),
        (("--seed-pool", "pool.csv"), "seed_rows", "file"),
    ],
)
def test_options_are_listed_as_they_were_stated(home, flags, name, value):
    entry = ENTRIES[0]
    done(*by_command(entry, INPUTS[0]), *flags)
    stated = json.loads((home / "out.csv.privacy.json").read_text())["assumptions"]
    (options,) = (each["parameters"] for each in stated if each["code"] == "public-options")
    assert options[name] == value


# Every way to a ledger


@pytest.mark.parametrize("name", ["shares", "rules", "unit", "rows in", "given values"])
def test_a_release_says_it_on_its_page_too(home, name):
    (given,) = (each for each in INPUTS if each.name == name)
    (entry,) = (each for each in METHODS if each.name == "pegs-once")
    command = by_command(entry, given, ("release",), "run")
    done(*command, "--public-only")
    ledger = Ledger.from_json((home / "run/public/privacy.json").read_text())
    check(ledger, entry, given)
    page = (home / "run/public/PRIVACY.md").read_text()
    for each in ledger.assumptions:
        assert f"- {each.text}\n" in page
    assert str(ledger.programs[0]) in page


def test_an_estimator_lists_the_same(home):
    for entry in METHODS:
        for given in INPUTS[:3]:
            model = pegsynth.PeGS(rows=4, threads=1, **entry.keywords)
            model.fit(given.data, given.schema)
            check(model.ledger, entry, given)


def test_a_saved_model_keeps_what_its_fit_used(home):
    """A given value at the time of drawing is nobody's assumption: the file is public."""
    given = replace(INPUTS[1], flags=("--rows-in", 60))
    given.schema.save("schema.toml")
    fit = ("fit", "rows.csv", "--schema", "schema.toml", "--method", "pegs-once", "--epsilon", 9)
    done(*fit, "--rows", 4, "--rows-in", 60, "-o", "m.pegs")
    done("sample", "m.pegs", "--rows", 9, "--where", "a=x", "-o", "o.csv")
    ledger = Ledger.from_json((home / "o.csv.privacy.json").read_text())
    codes = {each.code: each.parameters for each in ledger.assumptions}
    assert set(codes) == {*ALWAYS, "public-shares", "rows-in"}
    assert codes["public-options"]["rows"] == 4
    shown = done("inspect", "m.pegs").out
    for each in ledger.assumptions:
        assert f"assumed: {each.text}" in shown


def test_a_model_without_a_budget_lists_what_drawing_used(home):
    given = INPUTS[2]
    given.schema.save("schema.toml")
    done("fit", "rows.csv", "--schema", "schema.toml", "-o", "m.pegs")
    draw = ("sample", "m.pegs", "--rows", 9, "--epsilon-per-row", 1, "--seed-pool", "pool.csv")
    done(*draw, "-o", "o.csv")
    ledger = Ledger.from_json((home / "o.csv.privacy.json").read_text())
    assert {each.code for each in ledger.assumptions} == {
        *ALWAYS,
        "public-heads",
        "public-seed-pool",
    }


def test_a_private_order_needs_no_public_one(home):
    """A total epsilon pays for the heads, so nothing is said of a public order."""
    ledger = by_call(ENTRIES[1], INPUTS[0])
    assert {each.code for each in ledger.assumptions} == ALWAYS


def test_an_unreviewed_schema_declares_nothing(home):
    schema = replace(PLAIN, reviewed=False)
    ledger = pegsynth.synthesize(
        ROWS, schema, rows=4, epsilon_per_row=1, accept_unreviewed_schema=True
    ).ledger
    codes = {each.code for each in ledger.assumptions}
    assert codes == {"unlisted-values", "public-options", "feature-order"}
    assert ledger.guarantee.kind == "none"


def test_runs_that_assume_the_same_say_it_once(home):
    ledgers = [by_call(ENTRIES[0], given) for given in (INPUTS[0], INPUTS[8])]
    both = Ledger.combine(ledgers)
    assert both.statement().count("all options of the run") == 1


def test_names_that_steer_a_terminal_are_written_as_escapes(home):
    """A ledger with them could not be read again."""
    name, person = "a\x1b[2J", "who\x07"
    columns = changed("a", name=name, shares=(0.5, 0.25, 0.25)).columns
    schema = replace(PLAIN, columns=(*columns, Feature(person, role="identifier")), unit=person)
    data = PEOPLE.rename({"a": name, "person": person})
    for entry in METHODS:
        keywords = {**entry.keywords, "rows": 4, "threads": 1}
        ledger = pegsynth.synthesize(data, schema, **keywords).ledger
        text = ledger.to_json()
        assert "\x1b" not in text
        assert "\x07" not in text
        assert Ledger.from_json(text).events == ledger.events


def test_rules_that_a_table_suggested_are_named_by_label_or_number():
    first, second = (PLAIN[name].categories[0] for name in ("a", "b"))
    values = (("a", (first,)), ("b", (second,)))
    rules = (
        NamedRule(values, "no such pair", True),
        NamedRule((values[0], ("d", PLAIN["d"].categories[:1])), "", True),
    )
    schema = replace(PLAIN, rules=rules, reviewed=True)
    (reviewed,) = (each for each in of_schema(schema) if each.code == "reviewed-schema")
    assert reviewed.parameters["drafted_rules"] == ["no such pair", "rule 2"]
    assert "rules that were first suggested by a table" in reviewed.text
