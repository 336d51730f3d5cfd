"""What is attacked: one maker of cases for every kind of file that the product reads."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from checks.fuzz import model_cases, office, state_cases
from checks.fuzz.books import codebook_file
from checks.fuzz.cases import REVIEW, Case, Command, Make
from checks.fuzz.corpus import PER_ROW
from checks.fuzz.mutations import damaged
from checks.fuzz.tables import arrow_bytes, arrow_table, csv_bytes, parquet_bytes, sqlite_bytes
from checks.fuzz.trees import changed, json_text, toml_text

SCHEMA = ("--schema", "good/schema.toml")
ONE = ("--threads", "1")
ROWS = ("--rows", "5", *PER_ROW)
BUDGETS = (*(PER_ROW,) * 4, ("--epsilon", "1"))
"""A budget of the whole pays for edges too, and takes twenty times as long."""


def table_commands(
    data: str,
    source: random.Random,
    *extra: str,
    good: str = "data.csv",
    schema: Command = SCHEMA,
    budgets: Sequence[Command] = (PER_ROW,),
) -> tuple[Command, ...]:
    """Choose what reads a table: a draft, a fit, a release of rows, an evaluation.

    Parameters
    ----------
    good, schema
        A sound table of the same columns, and its schema.
    budgets
        What a release by the draft may cost.
    """
    kind = source.random()
    drafted: Command = ("schema", data, *extra, "-o", "out/s.toml")
    if kind < 0.3:
        return (drafted,)
    if kind < 0.5:
        return (("fit", data, *extra, *schema, *ONE, "-o", "out/m.pegs"),)
    if kind < 0.7:
        return (("synthesize", data, *extra, *schema, *ONE, *ROWS, "-o", "out/o.csv"),)
    if kind < 0.8 and not extra:
        output = ("--json", "out/m.json")
        return (("evaluate", f"good/{good}", data, *schema, *ONE, *output),)
    # A draft leaves edges of numbers to a release, which only a budget of the whole pays for.
    rows = ("--rows", "5", *(source.choice(budgets) if len(budgets) > 1 else budgets[0]))
    drawn = ("--schema", "out/s.toml", *ONE, *rows, "-o", source.choice(("out/o.csv", "out/o.pq")))
    return drafted, (REVIEW, "out/s.toml"), ("synthesize", data, *extra, *drawn)


def csv(source: random.Random, root: Path) -> Case:
    """Attack the reader of CSV, and of estimates."""
    if source.random() < 0.1:
        found = damaged((root / "good/estimates.csv").read_bytes(), source)
        return Case({"e.csv": found}, (("combine", "in/e.csv", "--rows", "20", "--rows-in", "40"),))
    if source.random() < 0.4:
        found = damaged((root / "good/data.csv").read_bytes(), source, (csv_bytes(source),))
    else:
        found = csv_bytes(source)
        found = damaged(found, source) if source.random() < 0.3 else found
    return Case({"bad.csv": found}, table_commands("in/bad.csv", source))


def parquet(source: random.Random, root: Path) -> Case:
    """Attack the reader of Parquet."""
    found = parquet_bytes(arrow_table(source), source)
    found = damaged(found, source, (found[::-1],)) if source.random() < 0.6 else found
    return Case({"bad.parquet": found}, table_commands("in/bad.parquet", source))


def arrow(source: random.Random, root: Path) -> Case:
    """Attack the reader of Arrow files and streams."""
    found = arrow_bytes(arrow_table(source), source)
    found = damaged(found, source, (found[::-1],)) if source.random() < 0.6 else found
    name = source.choice(("bad.arrow", "bad.feather", "bad.ipc"))
    return Case({name: found}, table_commands(f"in/{name}", source))


def sqlite(source: random.Random, root: Path) -> Case:
    """Attack the reader of SQLite databases."""
    found = sqlite_bytes(source)
    found = damaged(found, source) if source.random() < 0.6 else found
    return Case({"bad.db": found}, table_commands("sqlite:///in/bad.db", source, "--table", "t"))


def dialect(source: random.Random, root: Path) -> Case:
    """Attack the readers of text in other dialects, compressed or not."""
    name, found, flags = office.dialect_case(source, damaged)
    return Case({name: found}, table_commands(f"in/{name}", source, *flags, budgets=BUDGETS))


def statistics(source: random.Random, root: Path) -> Case:
    """Attack the readers of SPSS and Stata files, and of SAS transport files."""
    extension = source.choice(("sav", "sav", "zsav", "dta", "dta", "xpt"))
    found = office.statistics_bytes(source, extension)
    found = damaged(found, source, (found[::-1],)) if source.random() < 0.7 else found
    name = f"bad.{extension}"
    return Case({name: found}, table_commands(f"in/{name}", source, budgets=BUDGETS))


def sas(source: random.Random, root: Path) -> Case:
    """Attack the reader of SAS data sets."""
    found = office.sas_bytes(source)
    found = damaged(found, source, (found[::-1],)) if source.random() < 0.2 else found
    schema = ("--schema", "good/iris.toml")
    commands = table_commands(
        "in/bad.sas7bdat", source, good="iris.csv", schema=schema, budgets=BUDGETS
    )
    return Case({"bad.sas7bdat": found}, commands)


def codebook(source: random.Random, root: Path) -> Case:
    """Attack the readers of other programs' codebooks."""
    name, found = codebook_file(source)
    flags = ("--feature", "a") if name.endswith(".csv") else ()
    return Case({name: found}, (("schema", "--from", f"in/{name}", *flags, "-o", "out/s.toml"),))


def excel(source: random.Random, root: Path) -> Case:
    """Attack the reader of workbooks, from outside and from within their archive."""
    found = office.excel_bytes(source)
    kind = source.random()
    if kind < 0.2:
        found = damaged(found, source, (found[::-1],))
    elif kind < 0.7:
        found = office.inner_damage(found, source, damaged)
    name = source.choice(("bad.xlsx",) * 5 + ("bad.xlsm", "bad.xls", "bad.xlsb"))
    return Case({name: found}, table_commands(f"in/{name}", source, budgets=BUDGETS))


def duckdb(source: random.Random, root: Path) -> Case:
    """Attack the reader of DuckDB files, mostly with checksums that fit."""
    found = (root / "good/data.duckdb").read_bytes()
    kind = source.random()
    if kind < 0.6:
        found = office.duckdb_mended(office.rewritten(found, source))
    elif kind < 0.9:
        found = damaged(found, source, (found[::-1],))
    flags = source.choice(
        ((), (), ("--table", "t"), ("--table", "u"), ("--query", "SELECT a FROM t"))
    )
    commands = table_commands("in/bad.duckdb", source, *flags, budgets=BUDGETS)
    return Case({"bad.duckdb": found}, commands)


def schema(source: random.Random, root: Path) -> Case:
    """Attack the reader of codebooks, and all that believes them."""
    text = (root / "good" / source.choice(("schema.toml", "rich.toml"))).read_bytes()
    if source.random() < 0.35:
        found = damaged(text, source)
    else:
        tree = changed(tomllib.loads(text.decode()), source, toml=True)
        found = toml_text(tree if isinstance(tree, dict) else {"features": tree}).encode(
            "utf-8", "surrogatepass"
        )
    path = "in/s.toml"
    budget = source.choice((PER_ROW, PER_ROW, ("--epsilon", "1"), ("--l", "1.2"), ("--alpha", "0")))
    rows = ("--rows", "5", *budget, "--accept-unreviewed-schema")
    kind = source.random()
    if kind < 0.25:
        command: Command = ("inspect", path)
    elif kind < 0.4:
        command = ("plan", "--schema", path, "--rows", "5", "--epsilon", "1")
    elif kind < 0.6:
        command = ("fit", "good/data.csv", "--schema", path, *ONE, "-o", "out/m.pegs")
    elif kind < 0.95:
        output = ("-o", source.choice(("out/o.csv", "out/o.parquet")))
        command = ("synthesize", "good/data.csv", "--schema", path, *ONE, *rows, *output)
    else:
        tables = ("good/data.csv", "good/once.csv")
        command = ("evaluate", *tables, "--schema", path, *ONE, "--json", "out/m.json")
    return Case({"s.toml": found}, (command,))


def ledger(source: random.Random, root: Path) -> Case:
    """Attack the reader of ``privacy.json``."""
    text = (root / "good" / source.choice(("once.json", "row.json"))).read_bytes()
    found = _json(text, source)
    kind = source.random()
    if kind < 0.6:
        command: Command = ("inspect", "in/p.json")
    elif kind < 0.8:
        command = ("inspect", "in/p.json", "good/row.json")
    else:
        command = ("combine", "good/estimates.csv", "--rows", "20", "--ledger", "in/p.json")
    return Case({"p.json": found}, (command,))


def metrics(source: random.Random, root: Path) -> Case:
    """Attack the reader of ``metrics.json`` and the page that shows it."""
    found = _json((root / "good/metrics.json").read_bytes(), source)
    return Case({"m.json": found}, calls=(state_cases.metrics_call(found, source),))


def _json(text: bytes, source: random.Random) -> bytes:
    import json

    if source.random() < 0.3:
        return damaged(text, source)
    tree = changed(json.loads(text), source)
    return json_text(tree).encode("utf-8", "surrogatepass")


TARGETS: Mapping[str, tuple[int, Make]] = {
    "csv": (18, csv),
    "parquet": (12, parquet),
    "arrow": (12, arrow),
    "sqlite": (8, sqlite),
    "dialect": (8, dialect),
    "statistics": (8, statistics),
    "sas": (4, sas),
    "codebook": (6, codebook),
    "excel": (8, excel),
    "duckdb": (5, duckdb),
    "schema": (16, schema),
    "model": (12, model_cases.model),
    "spent": (5, model_cases.spent),
    "ledger": (12, ledger),
    "metrics": (5, metrics),
    "study": (6, state_cases.study),
    "resume": (6, state_cases.resume),
}
"""Every target by name: its share of a campaign, and what makes its cases."""
