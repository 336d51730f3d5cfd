"""The cases: each runs in an empty folder, with inputs in ``in/`` and outputs beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import pegsynth
from checks.golden import tables
from checks.golden.command import pegs
from checks.golden.tables import shown, write

CASES: dict[str, Callable[[], None]] = {}

TOTAL: dict[str, Any] = {"epsilon": 20.0}
ENTRIES: dict[str, dict[str, Any]] = {
    "pegs": {"method": "pegs", "epsilon_per_row": 5.0},
    "pegs-total": {"method": "pegs", "epsilon": 5000.0},
    "pegs-rs": {"method": "pegs-rs", **TOTAL},
    "pegs-capped": {"method": "pegs-capped", **TOTAL, "urn": False},
    "pegs-capped-urn": {"method": "pegs-capped", **TOTAL, "urn": True},
    "pegs-once": {"method": "pegs-once", **TOTAL},
    "pegs-once-approximate": {"method": "pegs-once", "epsilon": 5.0, "delta": 1e-9},
    "contingency": {"method": "contingency", "epsilon_per_row": 2.0},
    "log-linear": {"method": "contingency", "epsilon": 900.0, "log_linear": True},
    "marginal": {"method": "marginal", **TOTAL},
    "pmi": {"method": "pmi", "epsilon_per_row": 10.0},
    "bootstrap": {"method": "bootstrap"},
    "mi": {"method": "mi"},
    "cart": {"method": "cart"},
    "forest": {"method": "forest"},
}
"""Those of the contract suite."""
SEED = ("--seed", 7)
ONCE = ("--method", "pegs-once", "--epsilon", 5, "--delta", 1e-9, *SEED)
ABOUT = """
title = "Invented rows"
owner = "Office of Invented Statistics"
contact = "data@office.example"
row = "stay"
unit = "patient"
purpose = "Tests"
date = 2026-01-02
"""

Case = Callable[[], None]


def case(made: Case) -> Case:
    """Make a function a case, under its name."""
    CASES[made.__name__.strip("_").replace("_", "-")] = made
    return made


def _flags(options: dict[str, Any]) -> Iterator[object]:
    for name, value in options.items():
        flag = name.replace("_", "-")
        yield f"--no-{flag}" if value is False else f"--{flag}"
        if not isinstance(value, bool):
            yield value


def _plain() -> tuple[object, ...]:
    """Write the plain table; return what a command takes of it."""
    schema, data = write("plain", tables.PLAIN, tables.plain())
    return data, "--schema", schema


def _command(name: str) -> None:
    data, flags = _plain(), [*_flags(ENTRIES[name]), *SEED]
    pegs("synthesize", "synthesize", *data, *flags, "--rows", 150, "-o", "rows.csv")
    if name in ("pegs-capped-urn", "log-linear"):
        # Such models cannot be saved.
        return
    pegs("fit", "fit", *data, *flags, *_fitted_rows(name), "-o", "model.pegs")
    pegs("sample", "sample", "model.pegs", "--rows", 80, *SEED, "-o", "sampled.parquet")
    pegs("inspect", "inspect", "model.pegs", "--confidential")


def _fitted_rows(name: str) -> tuple[object, ...]:
    return ("--rows", 150) if "epsilon" in ENTRIES[name] else ()


def _python(name: str) -> None:
    schema, _ = write("plain", tables.PLAIN)
    options = ENTRIES[name] | {"rows": 120, "datasets": 2, "seed": 7}
    made = pegsynth.synthesize(tables.plain(), schema, **options)
    for number, frame in enumerate(made.frames):
        shown(f"rows-{number}", frame)
    Path("ledger.json").write_text(made.ledger.to_json())
    Path("explained.txt").write_text(f"{made.ledger!r}\n{made.ledger.explain()}\n")
    made.save("saved")


def _release(name: str) -> None:
    options = [*_flags(ENTRIES[name]), *SEED]
    pegs("release", "release", *_plain(), *options, "--rows", 150, "-o", "folder")


for _name in ENTRIES:
    CASES[f"command-{_name}"] = partial(_command, _name)
    CASES[f"python-{_name}"] = partial(_python, _name)
    CASES[f"release-{_name}"] = partial(_release, _name)


def _read(name: str, write_table: Callable[[pl.DataFrame], tuple[object, ...]]) -> None:
    """Draft, count and resample a table: what is drawn is what was read."""
    schema, _ = write("plain", tables.PLAIN)
    data = write_table(tables.plain())
    options = ("--method", "bootstrap", "--rows", 100, *SEED)
    pegs("draft", "schema", *data, "-o", "draft.toml", "--min-count", 5)
    pegs("private", "schema", "--private", *data, "-o", "private.toml")
    if "--separator" not in data:
        # The count of a schema reads text as the schema says.
        pegs("count", "schema", "count", schema, *data)
    pegs("rows", "synthesize", *data, "--schema", schema, *options, "-o", "rows.csv")
    suffix = Path(str(data[0])).suffix
    if suffix in (".parquet", ".arrow", ".sav", ".dta", ".xlsx"):
        pegs("same", "synthesize", *data, "--schema", schema, *options, "-o", f"same{suffix}")


def _csv(frame: pl.DataFrame, name: str, **options: Any) -> tuple[object, ...]:
    frame.write_csv(f"in/{name}", **options)
    return (f"in/{name}",)


def _packed(frame: pl.DataFrame) -> tuple[object, ...]:
    import gzip

    Path("in/t.csv.gz").write_bytes(gzip.compress(frame.write_csv().encode()))
    return ("in/t.csv.gz",)


def _dialect(frame: pl.DataFrame) -> tuple[object, ...]:
    numbers = pl.col("n").cast(pl.String).str.replace(".", ",", literal=True)
    text = frame.with_columns(numbers).write_csv(separator=";")
    Path("in/t.csv").write_bytes(text.encode("windows-1252"))
    return ("in/t.csv", "--separator", ";", "--decimal", ",", "--encoding", "windows-1252")


def _parquet(frame: pl.DataFrame) -> tuple[object, ...]:
    frame.write_parquet("in/t.parquet")
    return ("in/t.parquet",)


def _parts(frame: pl.DataFrame) -> tuple[object, ...]:
    Path("in/parts").mkdir()
    frame[:100].write_parquet("in/parts/1.parquet")
    frame[100:].write_parquet("in/parts/2.parquet")
    return ("in/parts",)


def _arrow(frame: pl.DataFrame) -> tuple[object, ...]:
    frame.write_ipc("in/t.arrow")
    return ("in/t.arrow",)


def _excel(frame: pl.DataFrame) -> tuple[object, ...]:
    frame.write_excel("in/t.xlsx", worksheet="stays")
    return ("in/t.xlsx", "--table", "stays")


def _statistics(frame: pl.DataFrame, kind: str) -> tuple[object, ...]:
    import pyreadstat

    texts = frame.with_columns(pl.col(pl.String).fill_null("")).to_pandas()
    writer = {"sav": "write_sav", "dta": "write_dta", "xpt": "write_xport"}[kind]
    getattr(pyreadstat, writer)(texts, f"in/t.{kind}")
    return (f"in/t.{kind}",)


def _duckdb(frame: pl.DataFrame, *chosen: object) -> tuple[object, ...]:
    import duckdb

    with duckdb.connect("in/t.duckdb") as base:
        base.register("given", frame.to_arrow())
        base.execute("create table stays as select * from given")
    return ("in/t.duckdb", *chosen)


def _sqlite(frame: pl.DataFrame) -> tuple[object, ...]:
    import sqlite3

    with sqlite3.connect("in/t.db") as base:
        base.execute("create table stays (a text, b text, s integer, n real, d text)")
        base.executemany("insert into stays values (?, ?, ?, ?, ?)", frame.rows())
    base.close()
    return ("sqlite:///in/t.db", "--table", "stays")


READERS: dict[str, Callable[[pl.DataFrame], tuple[object, ...]]] = {
    "csv": partial(_csv, name="t.csv"),
    "tsv": partial(_csv, name="t.tsv", separator="\t"),
    "gzip": _packed,
    "dialect": _dialect,
    "parquet": _parquet,
    "folder": _parts,
    "arrow": _arrow,
    "excel": _excel,
    "spss": partial(_statistics, kind="sav"),
    "stata": partial(_statistics, kind="dta"),
    "sas": partial(_statistics, kind="xpt"),
    "duckdb": lambda frame: _duckdb(frame, "--table", "stays"),
    "sqlite": _sqlite,
}
for _name, _writer in READERS.items():
    CASES[f"read-{_name}"] = partial(_read, _name, _writer)


@case
def read_frames() -> None:
    """Every kind of object that Python hands over."""
    import duckdb
    import pyarrow.dataset as ds

    schema, _ = write("plain", tables.PLAIN)
    frame = tables.plain()
    frame.write_parquet("in/t.parquet")
    connection = duckdb.connect()
    sources: dict[str, Any] = {
        "polars": frame,
        "lazy": frame.lazy(),
        "categorical": frame.with_columns(pl.col("a").cast(pl.Categorical)),
        "pandas": frame.to_pandas(),
        "pandas-nullable": frame.to_pandas().convert_dtypes(),
        "pyarrow": frame.to_arrow(),
        "dataset": ds.dataset("in/t.parquet"),
        "reader": frame.to_arrow().to_reader(),
        "chunks": iter([frame[:100], frame[100:]]),
        "relation": connection.from_arrow(frame.to_arrow()),
        "path": Path("in/t.parquet"),
    }
    for name, source in sources.items():
        made = pegsynth.synthesize(source, schema, method="bootstrap", rows=100, seed=7)
        shown(name, made.frames[0])
    drafted = pegsynth.Schema.draft(frame.to_pandas(), min_count=5)
    drafted.save("draft.toml")


def _kind(schema: str, table: pl.DataFrame, *options: object) -> None:
    """Release a table of some kind, and draw it by another method."""
    data = write("table", schema, table)
    given = (data[1], "--schema", data[0])
    pegs("check", "schema", "check", data[0])
    pegs("show", "schema", "show", data[0])
    pegs("count", "schema", "count", data[0], data[1])
    pegs("once", "release", *given, *ONCE, "--rows", 100, *options, "-o", "once")
    pegs("fit", "fit", *given, *ONCE, "-o", "model.pegs")
    pegs("sample", "sample", "model.pegs", *SEED, "--rows", 60, "-o", "sampled.csv")
    if "[[analyses]]" in schema:
        # They require pegs-once.
        return
    other = ("--method", "pegs-capped", "--epsilon", 50, "--delta", 1e-6, "--rows", 60)
    pegs("capped", "synthesize", *given, *other, *SEED, "-o", "capped.csv")


@case
def dates() -> None:
    """Dates, moments and times of day, some measured."""
    _kind(tables.DATES, tables.dated())


@case
def dates_typed() -> None:
    """The same from columns with types, in Python."""
    schema, _ = write("dates", tables.DATES)
    frame = tables.dated().with_columns(
        pl.col("admitted", "discharged").str.to_date("%d.%m.%Y", strict=False)
    )
    made = pegsynth.synthesize(frame, schema, rows=100, method="pegs-once", epsilon=5.0, seed=7)
    shown("rows", made.frames[0])
    pandas = pegsynth.synthesize(
        frame.to_pandas(), schema, rows=100, method="marginal", epsilon=5.0, seed=7
    )
    shown("pandas", pandas.frames[0])


@case
def recodings() -> None:
    """Bounds, rounding, groups, hierarchies, labels, rare categories."""
    Path("in/icd.csv").write_text("code,parent\nI20,heart\nI21,heart\nJ10,lung\nJ11,lung\n")
    _kind(tables.RECODED, tables.recoded())


@case
def measured() -> None:
    """Private categories and private edges."""
    _kind(tables.MEASURED, tables.plain())


@case
def bounded_units() -> None:
    """People with several rows, of which two count."""
    _kind(tables.UNITS, tables.units())


@case
def declared() -> None:
    """Declared analyses and tables."""
    _kind(tables.PLAIN + tables.DECLARED, tables.plain())
    pegs("plan", "plan", "--schema", "in/table.toml", "--rows", 100, "--epsilon", 5)
    pegs("tables", "tables", "model.pegs", "--of", "a,b")
    pegs("inspect", "inspect", "model.pegs", "--analysis", "n ~ C(a) + s")


@case
def panel_folded() -> None:
    """A panel whose rows are folded."""
    _kind(tables.PANEL.format(most=3, more=""), tables.panel(3))
    wide = ("--rows", 60, "--wide", *ONCE, "-o", "wide.csv")
    pegs("wide", "synthesize", "in/table.csv", "--schema", "in/table.toml", *wide)


@case
def panel_pooled() -> None:
    """A panel whose transitions are pooled."""
    schema, data = write(
        "table", tables.PANEL.format(most=5, more='transitions = "pooled"'), tables.panel(5)
    )
    given = (data, "--schema", schema)
    pegs("release", "release", *given, *ONCE, "--rows", 80, "--datasets", 2, "-o", "folder")
    pegs("fit", "fit", *given, *ONCE, "-o", "model.pegs")
    pegs("sample", "sample", "model.pegs", *SEED, "--rows", 60, "-o", "sampled.csv")


@case
def two_tables() -> None:
    """Households and members, by command and in Python."""
    homes, members = tables.pair()
    schema, first = write("homes", tables.PAIR, homes)
    members.write_csv("in/members.csv")
    given = (first, "in/members.csv", "--schema", schema)
    pegs("release", "release", *given, *ONCE, "--rows", 80, "-o", "folder")
    made = pegsynth.synthesize(
        (homes, members), schema, rows=80, method="pegs-once", epsilon=5.0, seed=7
    )
    for number, frame in enumerate(made.frames[0]):
        shown(f"python-{number}", frame)


@case
def replicates() -> None:
    """Replicate weights inside and beside the table, and what analysts compute with them."""
    data = _plain()
    weights = ("--rows", 150, "--replicates", 5)
    pegs("rows", "synthesize", *data, *ONCE, *weights, "--weight-name", "w", "-o", "rows.csv")
    pegs("inside", "release", *data, *ONCE, *weights, "--weights-inside", "-o", "inside")
    made = pegsynth.Release.load("inside")
    results = {
        "formula": made.replicated("n ~ C(a) + s"),
        "means": made.replicated(pegsynth.inference.procedures.means("n", by="a")),
        "shares": made.replicated(pegsynth.inference.procedures.shares("b")),
        "quantiles": made.replicated(pegsynth.inference.procedures.quantiles("n", [0.25, 0.5])),
    }
    for name, result in results.items():
        shown(name, result.to_frame())
    model = pegsynth.fit(
        tables.plain(), "in/plain.toml", method="pegs-once", epsilon=5.0, delta=1e-9, seed=7
    )
    shown("model", model.replicates(4, rows=100))
    shown("counts", pegsynth.published_counts(model, ["a", "d"]))
    Path("supported.txt").write_text(repr(pegsynth.supported(model, "n ~ C(a)")))


@case
def completed() -> None:
    """Missing values imputed from synthetic rows."""
    data = _plain()
    several = ("--rows", 120, "--datasets", 3, "--complete", "--imputations", 2)
    pegs("release", "release", *data, *ONCE, *several, "-o", "folder")
    one = "folder/public/synthetic-1.csv"
    pegs("impute", "impute", one, "--schema", "in/plain.toml", *SEED, "-o", "again")
    made = pegsynth.synthesize(
        tables.plain(), "in/plain.toml", rows=100, method="marginal", epsilon=5.0, seed=7
    )
    shown("python", pegsynth.impute(made, imputations=1, seed=7)[0][0])


@case
def published() -> None:
    """A release with everything that can be asked for."""
    data = _plain()
    Path("in/about.toml").write_text(ABOUT)
    tables.plain(100, seed=9).write_csv("in/holdout.csv")
    asked = ("--about", "in/about.toml", "--language", "de,fr,es,pt", "--holdout", "in/holdout.csv")
    judged = ("--target", "d", "--formula", "n ~ C(a) + s", "--rows", 150)
    policy = ("--k", 3, "--round", "n=5", "--format", "parquet")
    pegs("full", "release", *data, *ONCE, *asked, *judged, *policy, "-o", "full")
    Path("in/accept.toml").write_text("single = 0.9\npair = 0.9\n")
    quality = ("--replicates", 0, "--quality", 0.2, "--accept", "in/accept.toml", "--rows", 150)
    pegs("quality", "release", *data, *ONCE, *quality, "-o", "quality")
    pegs("compare", "compare", "full", "quality", "--report", "compare.html")
    question = ("--formula", "n ~ C(a) + s", "--epsilon", 3, *SEED)
    pegs("verify", "verify", "in/plain.csv", "--release", "full", *question)
    pegs("ledgers", "inspect", "full/public/privacy.json", "quality/public/privacy.json")
    pegs("public", "release", *data, *ONCE, "--rows", 50, "--public-only", "-o", "public")
    where = ("--where", "a=y", "--decode", "labels", "--rows", 50)
    pegs("where", "release", *data, *ONCE, *where, "--datasets", 2, "-o", "where")
    kept = ("--synthesize", "d", "--method", "cart", *SEED)
    lawful = "in/lawful.csv"
    tables.plain().filter((pl.col("a") != "x") | (pl.col("d") == "no")).write_csv(lawful)
    pegs("kept", "synthesize", lawful, *data[1:], *kept, "-o", "kept.csv")
    python = pegsynth.release(
        tables.plain(),
        "in/plain.toml",
        folder="python",
        rows=60,
        method="marginal",
        epsilon=2.0,
        seed=7,
        about="in/about.toml",
        languages=["de"],
    )
    shown("python-rows", python.frames[0])


@case
def evaluated() -> None:
    """Utility and risk of somebody's table."""
    write("plain", tables.PLAIN, tables.plain())
    tables.plain(250, seed=2).write_csv("in/synthetic.csv")
    tables.plain(100, seed=3).write_csv("in/holdout.csv")
    given = ("in/plain.csv", "in/synthetic.csv", "--schema", "in/plain.toml")
    pages = ("--json", "metrics.json", "--report", "report.html", "--per-record")
    asked = ("--holdout", "in/holdout.csv", "--target", "d", "--known", "a,b", "--infer", "d")
    pegs("evaluate", "evaluate", *given, *pages, *asked, "--formula", "n ~ C(a) + s")
    metrics = pegsynth.evaluate(
        tables.plain(), [tables.plain(250, seed=2), tables.plain(250, seed=4)], "in/plain.toml"
    )
    Path("python.json").write_text(metrics.to_json())
    pegsynth.report(metrics, "python.html")
    shown("frame", metrics.to_frame())


@case
def combined() -> None:
    """Estimates of several tables."""
    lines = [f"a,{1 + i / 10},0.04\nb,{2 - i / 10},0.09\n" for i in range(5)]
    Path("in/estimates.csv").write_text("term,estimate,variance\n" + "".join(lines))
    for rule in ("plug-in", "fully", "partial", "own-noise"):
        sizes = ("--rule", rule, "--rows", 500, "--rows-in", 1000)
        pegs(rule, "combine", "in/estimates.csv", *sizes)
    result = pegsynth.combine([1.0, 1.1, 1.3], [0.1, 0.1, 0.2], rule="fully", rows=50, rows_in=90)
    Path("python.txt").write_text(repr(result))


@case
def planned() -> None:
    """What methods could do with a budget."""
    schema, _ = write("plain", tables.PLAIN)
    given = ("--schema", schema, "--rows", 200)
    pegs("pure", "plan", *given, "--epsilon", 2)
    pegs("both", "plan", *given, "--epsilon", 1, "--delta", 1e-6, "--curve", "curve.svg")
    pegs("many", "plan", *given, "--epsilon", 5, "--datasets", 3, "--rows-in", 300)
    forecast = pegsynth.plan(schema, epsilon=1.0, rows=200)
    Path("python.txt").write_text(f"{forecast}\n{forecast.best}\n")
    shown("frame", forecast.to_frame())
    pegs("auto", "synthesize", *_plain(), "--epsilon", 9, "--rows", 99, *SEED, "-o", "auto.csv")


@case
def schemas() -> None:
    """Drafts, checks, and schemas in other people's formats."""
    schema, data = write("plain", tables.PLAIN, tables.plain())
    pegs("check", "schema", "check", schema)
    pegs("show", "schema", "show", schema)
    pegs("inspect", "inspect", schema)
    for kind, suffix in {
        "frictionless": "json",
        "ddi": "xml",
        "csvw": "json",
        "sdv": "json",
    }.items():
        file = f"{kind}.{suffix}"
        pegs(f"to-{kind}", "schema", schema, "--to", kind, "-o", file)
        pegs(f"from-{kind}", "schema", "--from", file, "-o", f"{kind}.toml")
    pegs("binned", "schema", data, "--binning", "quantile", "--bins", 4, "-o", "binned.toml")
    dated = write("dates", tables.DATES, tables.dated())
    pegs("dates", "schema", dated[1], "-o", "dates.toml")
    types = ("--types", "s=int64,n=double", "-o", "private.toml")
    pegs("private", "schema", "--private", data, *types)
    loaded = pegsynth.Schema.load(schema)
    loaded.save("saved.toml")
    Path("repr.txt").write_text(repr(loaded))


@case
def book() -> None:
    """A budget book; runs with a book have no seed, so only what they cost is compared."""
    options = ("--method", "marginal", "--epsilon", 1, "--rows", 50)
    pegs("create", "book", "create", "t.book", "--epsilon", 2.5, "--table", "invented")
    pegs("run", "synthesize", *_plain(), *options, "--book", "t.book", "-o", "in/1.csv")
    run = ("in/plain.csv", "--schema", "in/plain.toml", *options)
    less = ("--epsilon", 0.75)
    pegs("earlier", "synthesize", *run, *less, "-o", "in/2.csv")
    pegs("add", "book", "add", "t.book", "in/2.csv.privacy.json")
    pegs("refused", "synthesize", *run, "--book", "t.book", "-o", "in/3.csv", status=2)
    pegs("show", "book", "show", "t.book")
    pegs("json", "book", "show", "t.book", "--json")


@case
def audited() -> None:
    """The audit of one method."""
    pegs("marginal", "audit", "--method", "marginal")


@case
def estimator() -> None:
    """The estimator, saved models and rows kept by an index."""
    write("plain", tables.PLAIN)
    peg = pegsynth.PeGS(method="pegs-once", epsilon=5.0, seed=7)
    Path("parameters.txt").write_text(repr(peg.get_params()))
    shown("estimator", peg.fit(tables.plain(), "in/plain.toml").sample(50))
    model = pegsynth.fit(
        tables.plain().to_pandas(), "in/plain.toml", method="marginal", epsilon=5.0, rows=90, seed=7
    )
    model.save("model.pegs")
    again = pegsynth.load("model.pegs")
    Path("loaded.repr.txt").write_text(f"{again!r}\n{again.rows_left}\n{again.ledger.statement()}")


@case
def errors() -> None:
    """Wrong inputs: exit status and message."""
    data = _plain()
    out = ("-o", "in/never.csv")
    good = ("--method", "marginal", "--epsilon", 1, "--rows", 50)
    refused = partial(pegs, status=2)
    for name, changed in {
        "unlisted": tables.plain().with_columns(a=pl.lit("w")),
        "missing": tables.plain().with_columns(a=pl.lit(None)),
        "not-a-number": tables.plain().with_columns(n=pl.lit("many")),
        "column-gone": tables.plain().drop("d"),
        "column-more": tables.plain().with_columns(e=pl.lit(1)),
    }.items():
        changed.write_csv("in/wrong.csv")
        refused(f"table-{name}", "synthesize", "in/wrong.csv", *data[1:], *good, *out)
    for name, text in {
        "empty": "",
        "ragged": "a,b,s,n,d\nx,p,1\n",
        "open-quote": 'a,b,s,n,d\n"x,p,1,2,no\n',
        "twice": "a,a,s,n,d\nx,p,1,2,no\n",
    }.items():
        Path("in/text.csv").write_text(text)
        refused(f"text-{name}", "synthesize", "in/text.csv", *data[1:], *good, *out)
    for name, wrong in {
        "toml": tables.PLAIN + "[[",
        "key": tables.PLAIN.replace("label =", "lable ="),
        "kind": tables.PLAIN.replace('"numeric"', '"number"'),
        "edges": tables.PLAIN.replace("[0, 10, 20, 50]", "[0, 20, 10]"),
        "twice": tables.PLAIN + '[[features]]\nname = "a"\ncategories = ["x"]\n',
        "rule": tables.PLAIN.replace('a = ["x"]', 'a = ["w"]'),
        "unreviewed": tables.PLAIN.replace("reviewed = true", "reviewed = false"),
    }.items():
        Path("in/wrong.toml").write_text(wrong)
        given = ("in/plain.csv", "--schema", "in/wrong.toml", *good)
        refused(f"schema-{name}", "synthesize", *given, *out)
    for name, options in {
        "no-budget": ("--method", "pegs", "--rows", 50),
        "two-budgets": (*good, "--epsilon-per-row", 1),
        "negative": (*good, "--epsilon", -1),
        "no-rows": ("--method", "marginal", "--epsilon", 1),
        "method": (*good, "--method", "magic"),
        "where": (*good, "--where", "a=w"),
        "query": (*good, "--query", "select 1"),
        "replicates": (*good, "--replicates", 5),
    }.items():
        refused(f"option-{name}", "synthesize", *data, *options, *out)
    refused("no-file", "synthesize", "in/none.csv", *data[1:], *good, *out)
    refused("no-extension", "synthesize", "in/plain.toml", *data[1:], *good, *out)
    refused("no-command", "magic")
    refused("no-model", "sample", "in/plain.csv", "--rows", 5, *out)
    refused("formula", "evaluate", data[0], *data, "--formula", "n ~ q", "--json", "in/m.json")
    pegs("made", "release", *data, *good, *SEED, "-o", "folder")
    refused("exists", "release", *data, *good, *SEED, "-o", "folder")
    calls: dict[str, Callable[[], Any]] = {
        "option": lambda: pegsynth.synthesize(tables.plain(), "in/plain.toml", epsilom=1.0),
        "object": lambda: pegsynth.synthesize(3, "in/plain.toml", epsilon=1.0, rows=5),
        "feature": lambda: pegsynth.Feature("a", kind="numeric", edges=(3, 1)),
        "budget": lambda: pegsynth.Budget(epsilon=-1.0),
    }
    for name, call in calls.items():
        try:
            call()
        except (pegsynth.PegsynthError, TypeError) as error:
            Path(f"python-{name}.txt").write_text(f"{type(error).__name__}: {error}\n")
