"""Releases of every kind, for tests that read their documents.

`RUNS` are all entries of the contract suite, and combinations: measured edges and categories,
drafted schemas, dropped columns, weights, panels, two tables, units, paid quality, declared
analyses, budget books, dates, rules, seeds, schemas that nobody reviewed. `write_run` makes the
release folder of one, by the command itself.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from command import done
from contract import ENTRIES, RULE, Entry, contract_schema, contract_table
from pegsynth.datasets import households, households_schema, panel, panel_schema
from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis, WantedTable
from pegsynth.schema.recoding import Recoding
from pegsynth.schema.toml import dumps

ONCE = ("--method", "pegs-once", "--epsilon", 5, "--delta", 1e-9)
ABOUT = {
    "title": "Invented visits",
    "owner": "Office of Invented Statistics",
    "contact": "data@office.example",
    "row": "visit",
    "purpose": "teaching",
    "why_epsilon": "Agreed beforehand.",
    "preprocessing": "Visits without a date were left out.",
    "refresh": "once a year",
    "review_date": "2031-05-01",
    "date": "2030-01-02",
    "licence": "https://creativecommons.org/licenses/by/4.0/",
    "url": "https://office.example/visits",
    "region": "Nowhere",
    "sector": "Healthcare",
    "owner_type": "Government",
    "keywords": ["visits"],
    "description": "Visits that nobody made.",
}
_POLICY = ("--k", 3, "--k-features", "a,b")
_PEOPLE = 80


def with_more(table: pl.DataFrame) -> pl.DataFrame:
    """Put columns that a release leaves out, in the middle and at the end."""
    words = np.random.default_rng(3)
    name = pl.Series("name", [f"name {i}" for i in range(table.height)])
    weight = pl.Series("stature", words.normal(170, 10, table.height).round(1))
    note = pl.Series("remark", ["none"] * table.height)
    return table.with_columns(name, weight, note).select(
        "name", "a", "b", "remark", "s", "n", "stature", "d"
    )


def book(*columns: Feature, rules: tuple[Any, ...] = (), **more: Any) -> Schema:
    """Return the schema of the contract with some columns changed or added."""
    known = {each.name: each for each in contract_schema().columns}
    known |= {each.name: each for each in columns}
    return Schema(tuple(known.values()), rules=rules, **{"reviewed": True} | more)


def _measured() -> Feature:
    return Feature("n", "numeric", edges="private", missing=("",), dtype="double")


def _found(name: str) -> Feature:
    return Feature(name, categories="private", missing=("",))


def _all_measured() -> Schema:
    return Schema((_measured(), *map(_found, ("a", "b", "s", "d"))), reviewed=True)


def _drafted() -> Schema:
    columns = (replace(each, drafted_from_data=True) for each in contract_schema(rules=()).columns)
    return Schema(tuple(columns), rules=(replace(RULE, drafted_from_data=True),), reviewed=True)


def _dropped() -> Schema:
    ours = {each.name: each for each in contract_schema(rules=()).columns}
    columns = (
        Feature("name", role="identifier"),
        *(ours[name] for name in ("d", "a", "b", "s", "n")),
        Feature("remark", role="drop"),
        Feature("stature", role="drop"),
    )
    return Schema(columns, reviewed=True)


def _by_person(table: pl.DataFrame) -> pl.DataFrame:
    words = np.random.default_rng(4)
    return table.with_columns(
        person=pl.Series([f"p{i}" for i in words.integers(0, _PEOPLE, table.height)])
    )


PERSON = Feature("person", role="identifier")


def _dated(table: pl.DataFrame) -> pl.DataFrame:
    words = np.random.default_rng(5)
    start = [
        dt.date(2020, 1, 1) + dt.timedelta(int(i)) for i in words.integers(0, 900, table.height)
    ]
    end = [each + dt.timedelta(int(words.integers(0, 30))) for each in start]
    return table.with_columns(start=pl.Series(start), end=pl.Series(end))


START = Feature(
    "start", "date", edges="year", lowest=dt.date(2020, 1, 1), highest=dt.date(2024, 1, 1)
)
END = Feature("end", "date", edges=(0.0, 2.0, 7.0, 31.0), after="start")


def _recoded() -> Schema:
    return book(
        Feature(
            "n",
            "numeric",
            edges=(0.0, 10.0, 40.0),
            recoding=Recoding(top=40.0, round=5.0),
            missing=("",),
            dtype="double",
        ),
        Feature("a", categories=("x", "y", "z"), recoding=Recoding(groups={"first": ("x", "y")})),
        Feature("a_text", label_of="a", value_labels=(("first", "one of two"), ("z", "other"))),
        Feature(
            "b",
            categories=("p", "q"),
            missing=("", "-9"),
            keep_missing_codes=True,
            unknown="category",
            role="quasi-identifier",
        ),
        Feature(
            "s",
            "ordinal",
            categories=("1", "2", "3"),
            dtype="int64",
            shares=(0.3, 0.3, 0.4),
            role="quasi-identifier",
        ),
    )


def _with_text(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(a_text=pl.col("a")).select("a_text", "d", "n", "s", "b", "a")


def _rare() -> Schema:
    listed = ("1", "2", "3", "4", "5", "6")
    return book(Feature("s", "nominal", categories=listed, recoding=Recoding(rare="paid")))


def _declared() -> Schema:
    return book(
        analyses=(Analysis("n ~ C(d) + s"),),
        tables_wanted=(WantedTable(("a", "d")),),
    )


def _details() -> Schema:
    columns = (
        Feature("d", categories=("no", "yes"), heads=("b",)),
        Feature("fine", categories=("no", "yes 1", "yes 2"), parent="d"),
    )
    return book(*columns)


def _fine(table: pl.DataFrame) -> pl.DataFrame:
    words = np.random.default_rng(6)
    parts = [each if each == "no" else f"yes {1 + int(words.integers(2))}" for each in table["d"]]
    return table.with_columns(fine=pl.Series(parts))


@dataclass(frozen=True)
class Run:
    """One release.

    Parameters
    ----------
    name
        What is special about it.
    data, schema
        The table, or two, and the codebook.
    flags
        Flags of ``pegs release``.
    about
        Content of about.toml; None: there is none.
    files
        Files that flags name, by the text that stands for them, as "{accept}".
    """

    name: str
    data: Callable[[], Any] = contract_table
    schema: Callable[[], Schema] = contract_schema
    flags: tuple[object, ...] = ONCE
    rows: int | None = 60
    about: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    book: bool = False

    def __str__(self) -> str:
        return self.name


def _of_entry(entry: Entry) -> Run:
    return Run(f"contract: {entry.name}", flags=tuple(entry.flags))


def _people() -> pl.DataFrame:
    return panel(60, seed=2)


def _small_panel() -> Schema:
    schema = panel_schema()
    return replace(schema, panel=replace(schema.panel, most=3))


def _pooled_panel() -> Schema:
    schema = panel_schema()
    return replace(schema, panel=replace(schema.panel, most=3, transitions="pooled"))


def _measured_panel() -> Schema:
    schema = _small_panel()
    bounds = {"lowest": dt.date(2019, 1, 1), "highest": dt.date(2024, 1, 1)}
    admitted = Feature("admitted", "date", edges="private", **bounds)
    columns = tuple(admitted if c.name == "admitted" else c for c in schema.columns)
    return replace(schema, columns=columns)


def _changed(change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[], pl.DataFrame]:
    return lambda: change(contract_table())


COMBINED = (
    Run("measured edges", schema=lambda: book(_measured())),
    Run(
        "measured edges between bounds",
        schema=lambda: book(replace(_measured(), lowest=0.0, highest=50.0)),
    ),
    Run(
        "edges with a measured shape",
        schema=lambda: book(
            Feature("n", "numeric", edges=(0.0, 20.0, 50.0), inside="measured", missing=("",))
        ),
    ),
    Run(
        "measured edges, uniform inside",
        schema=lambda: book(replace(_measured(), inside="uniform")),
    ),
    Run("measured categories", schema=lambda: book(_found("a"), _found("b"))),
    Run("all measured", schema=_all_measured),
    Run("drafted", schema=_drafted),
    Run(
        "drafted, in the order of the schema",
        schema=_drafted,
        flags=("--method", "pegs", "--epsilon", 5000, "--order", "public"),
    ),
    Run("dropped", _changed(with_more), _dropped, about=ABOUT),
    Run("replicates", flags=(*ONCE, "--replicates", 4), about=ABOUT),
    Run(
        "replicates, named",
        flags=(*ONCE, "--replicates", 3, "--weight-name", "w", "--where", "d=yes"),
    ),
    Run("replicates, parquet", flags=(*ONCE, "--replicates", 3, "--format", "parquet")),
    Run("replicates, dropped", _changed(with_more), _dropped, (*ONCE, "--replicates", 3)),
    Run("panel", _people, _small_panel, about=ABOUT | {"unit": "patient"}),
    Run("panel, wide", _people, _small_panel, (*ONCE, "--wide")),
    Run(
        "panel, wide, about",
        _people,
        _small_panel,
        (*ONCE, "--wide"),
        about=ABOUT | {"unit": "patient"},
    ),
    Run("panel, pooled", _people, _pooled_panel),
    Run("panel, replicates", _people, _small_panel, (*ONCE, "--replicates", 3)),
    Run("panel, measured", _people, _measured_panel),
    Run("panel, tables", _people, _small_panel, (*ONCE, "--datasets", 2)),
    Run("two tables", lambda: households(90, seed=1), households_schema),
    Run(
        "two tables, parquet",
        lambda: households(90, seed=1),
        households_schema,
        (*ONCE, "--format", "parquet", "--datasets", 2),
        about=ABOUT | {"unit": "household"},
    ),
    Run(
        "unit",
        _changed(_by_person),
        lambda: book(PERSON, unit="person", rows_per_unit=3),
        about=ABOUT | {"unit": "patient"},
    ),
    Run("unit, one row", _changed(_by_person), lambda: book(PERSON, unit="person")),
    Run("quality", flags=(*ONCE, "--quality", 0.2)),
    Run(
        "quality, accepted",
        _changed(_by_person),
        lambda: book(PERSON, unit="person", rows_per_unit=3),
        (*ONCE, "--quality", 0.2, "--quality-table", "a,b,d", "--accept", "{accept}"),
        files={"accept": "single = 1.0\ntable = 1.0\n"},
    ),
    Run("declared", schema=_declared),
    Run("declared, replicates", schema=_declared, flags=(*ONCE, "--replicates", 3)),
    Run(
        "declared, categories",
        schema=lambda: book(analyses=(Analysis("d ~ C(a)", "binomial"),)),
        flags=(*ONCE, "--datasets", 2),
    ),
    Run("declared, quality", schema=_declared, flags=(*ONCE, "--quality", 0.1)),
    Run("book", book=True, about=ABOUT),
    Run("dates", _changed(_dated), lambda: book(START, END)),
    Run(
        "dates, measured",
        _changed(_dated),
        lambda: book(Feature("start", "date", edges="private"), END, _measured()),
    ),
    Run("rules", schema=lambda: contract_schema(rules=(RULE,))),
    Run("seeded", flags=(*ONCE, "--seed", 3)),
    Run("seeded, dated", flags=(*ONCE, "--seed", 3), about=ABOUT),
    Run(
        "unreviewed",
        schema=lambda: book(reviewed=False),
        flags=(*ONCE, "--accept-unreviewed-schema"),
    ),
    Run(
        "unreviewed, drafted",
        schema=lambda: replace(_drafted(), reviewed=False),
        flags=(*ONCE, "--accept-unreviewed-schema"),
    ),
    Run("tables with own noise", flags=(*ONCE, "--datasets", 3)),
    Run("tables with shared noise", flags=(*ONCE, "--datasets", 3, "--shared-noise")),
    Run(
        "tables under virtual rows",
        flags=("--method", "pegs", "--epsilon-per-row", 5, "--datasets", 3),
    ),
    Run(
        "tables from urns",
        flags=("--method", "marginal", "--epsilon", 20, "--datasets", 3, "--rows-in", 300),
    ),
    Run("tables without a guarantee", flags=("--method", "cart", "--datasets", 2)),
    Run("completed", flags=(*ONCE, "--complete", "--datasets", 2)),
    Run("completed, one table", flags=(*ONCE, "--complete", "--imputations", 2)),
    Run(
        "completed, without a guarantee", flags=("--method", "cart", "--datasets", 2, "--complete")
    ),
    Run(
        "policy",
        flags=(*ONCE, *_POLICY, "--round", "n=5", "--language", "de,fr,es,pt"),
        about=ABOUT,
    ),
    Run(
        "policy without a guarantee",
        flags=(*ONCE, *_POLICY, "--seed", 3, "--language", "de,fr,es,pt"),
    ),
    Run("l-diversity", schema=book, flags=("--method", "pegs", "--l", 1.5)),
    Run("kept columns", schema=book, flags=("--method", "cart", "--synthesize", "a"), rows=None),
    Run(
        "kept columns, tables",
        schema=book,
        flags=("--method", "cart", "--synthesize", "a", "--datasets", 2),
        rows=None,
    ),
    Run("given", flags=(*ONCE, "--where", "d=yes")),
    Run("labels", flags=(*ONCE, "--decode", "labels")),
    Run("recoded", schema=_recoded, flags=(*ONCE, "--rows-in", 300)),
    Run("recoded, described", _changed(_with_text), _recoded),
    Run("resampled", flags=("--method", "contingency", "--alpha", 0, "--no-guarantee")),
    Run(
        "with a delta that does not help",
        flags=("--method", "pegs-capped", "--epsilon", 20, "--delta", 1e-9),
    ),
    Run("rare merged", schema=_rare),
    Run("details", _changed(_fine), _details, ("--method", "pegs", "--epsilon-per-row", 5)),
    Run("unit that nobody enforced", about=ABOUT | {"unit": "patient"}),
    Run("pure", flags=("--method", "pegs-once", "--epsilon", 0.5)),
    Run("languages", flags=(*ONCE, "--language", "de,fr,es,pt"), schema=_drafted),
    Run(
        "languages, measured",
        schema=lambda: book(replace(_measured(), lowest=0.0), _found("a")),
        flags=(*ONCE, "--language", "de,fr,es,pt"),
    ),
    Run("public only", flags=(*ONCE, "--public-only")),
)

RUNS = (*map(_of_entry, ENTRIES), *COMBINED)


def write_run(run: Run, home: Path) -> Path:
    """Write the release of a run into a folder and return it."""
    data = run.data()
    tables = data if isinstance(data, tuple) else (data,)
    paths = []
    for number, table in enumerate(tables, start=1):
        paths.append(home / f"data-{number}.parquet")
        table.write_parquet(paths[-1])
    (home / "schema.toml").write_text(dumps(run.schema()))
    flags = [*run.flags, *(("--rows", run.rows) if run.rows is not None else ())]
    if run.about is not None:
        text = "\n".join(f"{key} = {json.dumps(value)}" for key, value in run.about.items())
        (home / "about.toml").write_text(text)
        flags += ["--about", home / "about.toml"]
    for name, text in run.files.items():
        (home / name).write_text(text)
    flags = [home / str(flag)[1:-1] if str(flag).startswith("{") else flag for flag in flags]
    if run.book:
        budget = ("--epsilon", 50, "--delta", 1e-6)
        done("book", "create", home / "table.book", *budget, "--table", "visits")
        flags += ["--book", home / "table.book"]
    folder = home / "release"
    outcome = done(
        *("release", *paths, "--schema", home / "schema.toml", "--threads", 1),
        *("-o", folder, *flags),
    )
    (home / "said.txt").write_text(outcome.out + outcome.err)
    return folder
