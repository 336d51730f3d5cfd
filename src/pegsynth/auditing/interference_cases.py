"""Every method with a fitting budget, and the small table that all of them are tried on.

What the audit of non-interference releases: every method, and every pair of capabilities.

A `Capability` is what a user adds to a schema, to the flags or to the commands of a release. Two
of them make a configuration; a combination that the program refuses is compared as well.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from pegsynth.auditing.interference import Configuration, Tables
from pegsynth.schema import Feature, Rule, Schema
from pegsynth.schema.toml import dumps

CATEGORIES = {"a": ("x", "y", "z"), "b": ("p", "q"), "s": ("1", "2", "3"), "d": ("no", "yes")}
EDGES = (0.0, 10.0, 20.0, 50.0)
RULE = Rule.of({0: [0], 4: [1]})
"""a = x never goes with d = yes; some real rows break it."""


def contract_schema(*, rules: tuple[Rule, ...] = (RULE,)) -> Schema:
    """Return the codebook of the table."""
    columns = (
        Feature("a", categories=CATEGORIES["a"]),
        Feature("b", categories=CATEGORIES["b"], missing=("",)),
        Feature("s", "ordinal", categories=CATEGORIES["s"], dtype="int64"),
        Feature("n", "numeric", edges=EDGES, missing=("",), dtype="double"),
        Feature("d", categories=CATEGORIES["d"]),
    )
    return Schema(columns, rules=rules, reviewed=True)


def contract_table(rows: int = 300, *, seed: int = 1) -> pl.DataFrame:
    """Return dependent columns with missing values, some rows breaking the rule."""
    words = np.random.default_rng(seed)
    first = words.integers(0, 3, rows)
    last = (first > 0) ^ (words.random(rows) < 0.2)
    second = (first + words.integers(0, 2, rows)) % 3
    number = np.round(10 * first + 20 * words.random(rows), 1)
    return pl.DataFrame(
        {
            "a": [CATEGORIES["a"][i] for i in first],
            "b": [("p", "q", None)[i] for i in second],
            "s": words.integers(1, 4, rows),
            "n": [None if words.random() < 0.1 else float(x) for x in number],
            "d": [CATEGORIES["d"][int(i)] for i in last],
        }
    )


@dataclass(frozen=True)
class Entry:
    """A method, its budget, and the kind of draws in its ledger (released blocks have none)."""

    name: str
    method: str
    budget: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    draws: str | None = None

    @property
    def budgeted(self) -> bool:
        """Whether a budget is stated."""
        return bool(self.budget)

    @property
    def keywords(self) -> dict[str, Any]:
        """Method, budget and options as a call in Python takes them."""
        return {"method": self.method, **self.budget, **self.options}

    @property
    def flags(self) -> list[str]:
        """The same for the command line."""
        given: list[str] = []
        for name, value in self.keywords.items():
            flag = "--" + name.replace("_", "-")
            if value is False:
                given.append("--no-" + flag[2:])
            else:
                given += [flag] if value is True else [flag, str(value)]
        return given

    def __str__(self) -> str:
        return self.name


TOTAL = {"epsilon": 20.0}

ENTRIES = (
    Entry("pegs", "pegs", {"epsilon_per_row": 5.0}, draws="pegs"),
    Entry("pegs, total", "pegs", {"epsilon": 5000.0}, draws="pegs"),
    Entry("pegs-rs", "pegs-rs", TOTAL, draws="pegs-rs"),
    Entry("pegs-capped", "pegs-capped", TOTAL, {"urn": False}, draws="pegs-capped"),
    Entry("pegs-capped, urn", "pegs-capped", TOTAL, {"urn": True}, draws="urn"),
    Entry("pegs-once", "pegs-once", TOTAL),
    Entry("pegs-once, approximate", "pegs-once", {"epsilon": 5.0, "delta": 1e-9}),
    Entry("contingency", "contingency", {"epsilon_per_row": 2.0}, draws="contingency"),
    Entry("log-linear", "contingency", {"epsilon": 900.0}, {"log_linear": True}, draws="pmi"),
    Entry("marginal", "marginal", TOTAL, draws="urn"),
    Entry("pmi", "pmi", {"epsilon_per_row": 10.0}, draws="pmi"),
    Entry("bootstrap", "bootstrap"),
    Entry("mi", "mi"),
    Entry("cart", "cart"),
    Entry("forest", "forest"),
)


Keys: TypeAlias = dict[str, dict[str, str]]
Flags: TypeAlias = dict[str, str | None]
Arguments: TypeAlias = tuple[str, ...]

FEATURES: Keys = {
    "pid": {"role": '"identifier"'},
    "age": {"kind": '"numeric"', "dtype": '"int64"', "edges": "[0, 18, 40, 65, 110]"},
    "pay": {
        "kind": '"numeric"',
        "decimals": "2",
        "edges": "[0, 100, 1000, 10000]",
        "missing": '[""]',
    },
    "code": {"categories": '["a", "b", "c", "d", "e"]', "unknown": '"category"'},
    "chap": {"categories": '["A", "B"]', "unknown": '"category"'},
    "sex": {"categories": '["f", "m"]', "missing": '[""]', "unknown": '"category"'},
    "day": {
        "kind": '"date"',
        "edges": '["2000-01-01", "2010-01-01", "2020-01-01", "2030-01-01"]',
        "missing": '[""]',
    },
}
FLAGS: Flags = {"--rows": "40", "--epsilon": "3", "--threads": "1"}
RELEASED: Flags = {"--public-only": "", "--about": "@about.toml"}
ABOUT = """title = "Invented"
owner = "Nobody"
contact = "nobody@example.org"
row = "a row"
unit = "a person"
purpose = "an audit"
date = "2026-01-01"
"""

_DRAWN = ("--where", "--replicates", "--complete", "--decode")
_PANEL = '[panel]\nunit = "pid"\ntime = "day"\nfixed = ["sex"]\n'
_TWO = """[[tables]]
name = "homes"
key = "pid"
features = ["chap", "sex"]
[[tables]]
name = "people"
key = "pid"
order = "age"
most = 3
least = 0
"""
_ANALYSES = """[[analyses]]
formula = "pay ~ age * C(code)"
[[analyses]]
formula = "I(pay > 500) ~ age + C(sex)"
family = "binomial"
[[analyses]]
formula = "code ~ age + pay"
family = "multinomial"
"""
_HIERARCHY = '{ a = "A", b = "A", c = "B", d = "B", e = "B" }'
_BOOK = ("book", "create", "@kept/book", "--epsilon", "900", "--delta", "1e-5")


@dataclass(frozen=True)
class Capability:
    """What a user adds to a release.

    Parameters
    ----------
    head
        How the rows of a table belong together; a release has one at most.
    features
        Keys of features in the schema.
    tail
        What stands at the end of the schema.
    flags
        Flags of the release with their values, "" for none; None takes a flag away.
    before, after
        Commands before and after the release.
    suffix
        Of the table's file.
    saved
        Whether a model is saved, shown and sampled instead.
    """

    name: str
    head: str = ""
    features: Keys = field(default_factory=dict)
    tail: str = ""
    flags: Flags = field(default_factory=dict)
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    suffix: str = "csv"
    saved: bool = False


CAPABILITIES = (
    Capability("units", '[table]\nunit = "pid"\nrows_per_unit = 3\n'),
    Capability("folded panel", _PANEL + "most = 3\n"),
    Capability("pooled panel", _PANEL + 'most = 4\ntransitions = "pooled"\n'),
    Capability("two tables", _TWO),
    Capability(
        "measured edges", features={"age": {"edges": '"private"'}, "pay": {"edges": '"private"'}}
    ),
    Capability(
        "measured categories",
        features={"code": {"categories": '"private"', "unknown": ""}},
        flags={"--delta": "1e-6"},
    ),
    Capability("measured dates", features={"day": {"edges": '"private"', "weekday": "true"}}),
    Capability("rare categories", features={"code": {"rare": '"paid"'}}),
    Capability("rules", tail='[[rules]]\nforbid = { sex = ["m"], code = ["a"] }\n'),
    Capability(
        "recodings",
        features={
            "age": {"top": "90", "bottom": "10", "round": "5"},
            "code": {
                "groups": '{ first = ["a", "b"] }',
                "categories": '["first", "c", "d", "e"]',
                "unknown": '"category"',
            },
        },
    ),
    Capability(
        "details",
        features={"code": {"parent": '"chap"', "hierarchy": _HIERARCHY, "level": "0"}},
    ),
    Capability("public shares", features={"chap": {"shares": "[0.5, 0.4, 0.1]"}}),
    Capability("analyses", tail=_ANALYSES),
    Capability("tables wanted", tail='[[tables_wanted]]\nfeatures = ["chap", "code"]\n'),
    Capability("replicates", flags={"--replicates": "3"}),
    Capability("datasets", flags={"--datasets": "2"}),
    Capability("shared noise", flags={"--datasets": "2", "--shared-noise": ""}),
    Capability("quality", flags={"--quality": "0.3"}),
    Capability("given values", flags={"--where": "sex=f"}),
    Capability("completion", flags={"--complete": "", "--imputations": "2"}),
    Capability("policy", flags={"--k": "3", "--k-features": "sex,code", "--round": "pay=10"}),
    Capability("labels", flags={"--decode": "labels"}),
    Capability("languages", flags={"--language": "de,fr"}),
    Capability("parquet", flags={"--format": "parquet"}, suffix="parquet"),
    Capability("threads", flags={"--threads": "2"}),
    Capability("internal report", flags={"--public-only": None}),
    Capability(
        "resume",
        flags={"--resume": "@kept/resume", "--method": "pegs-rs", "--epsilon": "500"},
    ),
    Capability("book", flags={"--book": "@kept/book"}, before=_BOOK),
    Capability("verify", after=("verify", "--formula", "age ~ pay + C(sex)", "--epsilon", "1")),
    Capability("saved model", saved=True),
    Capability("approximate", flags={"--delta": "1e-6"}),
    Capability("much noise", flags={"--epsilon": "0.05"}),
    Capability("little noise", flags={"--epsilon": "300"}),
    *(
        Capability(name, flags={"--method": name, "--epsilon": "500"})
        for name in ("pegs", "pegs-rs", "pegs-capped", "contingency", "marginal", "pmi")
    ),
)
"""Everything that a release can be combined with."""

COMBINED = (
    ("units", "measured edges", "rules", "replicates", "languages", "book"),
    ("units", "analyses", "tables wanted", "recodings", "datasets", "parquet", "approximate"),
    ("folded panel", "measured categories", "threads", "completion"),
    ("pooled panel", "measured dates"),
    ("two tables", "rare categories", "little noise", "shared noise"),
    ("details", "public shares", "policy", "quality", "verify", "internal report"),
    ("saved model", "given values", "approximate"),
    ("much noise", "units", "labels"),
    ("resume", "units"),
    ("pegs",),
    ("pegs-rs", "rules", "quality"),
    ("pegs-capped", "measured edges", "units"),
    ("contingency", "given values"),
    ("marginal", "datasets"),
    ("pmi", "saved model"),
)
"""Few combinations that have every capability, for a short audit."""


def configuration(*parts: Capability, turn: int = 0) -> Configuration | None:
    """Combine capabilities; None where two of them say how rows belong together."""
    if sum(bool(each.head) for each in parts) > 1:
        return None
    head = "".join(each.head for each in parts)
    two = head == _TWO
    features: Keys = {
        name: keys | {k: v for each in parts for k, v in each.features.get(name, {}).items()}
        for name, keys in FEATURES.items()
        if not (two and name == "pid")
    }
    blocks = [
        "\n".join(
            ["[[features]]", f'name = "{name}"', *(f"{k} = {v}" for k, v in keys.items() if v)]
        )
        for name, keys in features.items()
    ]
    tail = "".join(each.tail for each in parts)
    schema = "\n".join(["format = 1", "reviewed = true", head, *blocks, tail])
    suffix = next((each.suffix for each in parts if each.suffix != "csv"), "csv")
    tables = tables_of(suffix, units=bool(head), two=two, empty=turn % 2 == 1)
    data = tuple(f"@data/{name}" for name in tables[0])
    flags = FLAGS | {k: v for each in parts for k, v in each.flags.items()}
    unit = ("--unit", "pid") if head else ()
    commands: list[Arguments] = [(*each.before, *unit) for each in parts if each.before]
    if any(each.saved for each in parts):
        method = flags.get("--method") or "pegs-once"
        drawn = {k: v for k, v in flags.items() if k in (*_DRAWN, "--rows", "--threads")}
        fitted = {k: v for k, v in flags.items() if k not in (*_DRAWN, "--method")}
        commands += _through_a_model(data, method, _spelled(fitted), _spelled(drawn), suffix)
    else:
        commands.append(_release(data, _spelled(RELEASED | flags)))
    commands += [
        (each.after[0], *data, "--release", "@out/release", *each.after[1:])
        for each in parts
        if each.after
    ]
    name = " with ".join(each.name for each in parts) or "plain"
    files = {"schema.toml": schema, "about.toml": ABOUT}
    return Configuration(name, tuple(commands), files, tables, turn)


def _spelled(flags: Flags) -> tuple[str, ...]:
    return tuple(text for k, v in flags.items() if v is not None for text in (k, v) if text)


def _release(data: Arguments, flags: Arguments) -> Arguments:
    return ("release", *data, "--schema", "@schema.toml", "-o", "@out/release", *flags)


def _through_a_model(
    data: Arguments, method: str, fitted: Arguments, drawn: Arguments, suffix: str = "csv"
) -> Iterator[Arguments]:
    """Fit, show and sample a model; that of `pegs-once` may be shared."""
    model = f"@{'out' if method == 'pegs-once' else 'kept'}/model.pegs"
    yield "fit", *data, "--schema", "@schema.toml", "-o", model, "--method", method, *fitted
    yield "inspect", model
    yield "sample", model, "-o", f"@out/synthetic.{suffix}", *drawn


# Tables


def tables_of(
    suffix: str = "csv", *, units: bool = False, two: bool = False, empty: bool = False
) -> tuple[Tables, Tables, Tables]:
    """Return a table, one that has nothing in common with it, and the first with a unit more.

    Parameters
    ----------
    units
        Whether a unit has several rows.
    two
        Whether units and their rows are two tables.
    empty
        Whether the second table has no rows at all.
    """
    numbers = random.Random(3)
    usual = [_row(numbers, str(n)) for n in range(40) for _ in range(numbers.randint(1, 3))]
    hostile = [_hostile(numbers, "x") for _ in range(5)] + [_hostile(numbers, "y")]
    # A row of all-known values that no fit survives comes first.
    new: list[tuple[str | None, ...]] = [
        ("new", "5", "-1.7976931348623157e308", "a", "C", "f", "9999-12-31")
    ]
    new += [_hostile(numbers, "new") for _ in range(15 if units else 0)]
    found = []
    for rows in (usual, [] if empty else hostile, [*usual, *new]):
        frame = pl.DataFrame(rows, schema=dict.fromkeys(FEATURES, pl.String), orient="row")
        if two:
            homes = frame.select("pid", "chap", "sex").unique(
                "pid", keep="first", maintain_order=True
            )
            members = frame.drop("chap", "sex")
            found.append({f"homes.{suffix}": homes, f"people.{suffix}": members})
        else:
            found.append({f"table.{suffix}": frame})
    return found[0], found[1], found[2]


def _row(numbers: random.Random, unit: str) -> tuple[str, ...]:
    code = numbers.choice("abcde")
    return (
        unit,
        str(numbers.randint(0, 100)),
        f"{numbers.uniform(0, 2000):.2f}",
        code,
        "A" if code in "ab" else "B",
        numbers.choice("fm"),
        f"20{numbers.randint(10, 20)}-0{numbers.randint(1, 9)}-1{numbers.randint(0, 9)}",
    )


def _hostile(numbers: random.Random, unit: str) -> tuple[str | None, ...]:
    """Return a row of values that stand at the ends of what a column can hold, or outside."""
    return (
        unit,
        numbers.choice(["0", "-5", "1000000000", "9223372036854775807", "-9223372036854775808"]),
        numbers.choice([None, "0", "-3.25", "1e-300", "1e300", "-1.7976931348623157e308"]),
        numbers.choice(["a", "z", "zz", "a b"]),
        numbers.choice(["A", "C"]),
        numbers.choice([None, "f", "x"]),
        numbers.choice([None, "1970-01-01", "0001-01-01", "9999-12-31"]),
    )


def _contract_tables(*, empty: bool) -> tuple[Tables, Tables, Tables]:
    """Return tables of the contract suite: listed values only, as its schema refuses others."""
    usual = contract_table(120)
    other = usual.head(7).with_columns(a=pl.lit("x"), b=pl.lit(None, pl.String), d=pl.lit("yes"))
    more = pl.concat([usual, other.head(1).with_columns(n=pl.lit(1e9))])
    other = other.clear() if empty else other
    return {"table.csv": usual}, {"table.csv": other}, {"table.csv": more}


# Configurations


def groups(*, full: bool) -> Iterator[tuple[str, list[Configuration]]]:
    """Yield configurations with a name for each group of them.

    Parameters
    ----------
    full
        Every capability and every pair of them, beside the short list of combinations.
    """
    yield "contract suite", list(contract_configurations())
    by_name = {each.name: each for each in CAPABILITIES}
    sets = [tuple(by_name[name] for name in names) for names in COMBINED]
    yield "combinations", _made(sets)
    for number, first in enumerate(CAPABILITIES if full else ()):
        others = CAPABILITIES[number + 1 :]
        yield first.name, _made([(first,), *((first, other) for other in others)])


def _made(sets: Sequence[tuple[Capability, ...]]) -> list[Configuration]:
    made = [configuration(*parts, turn=turn % 2) for turn, parts in enumerate(sets)]
    return [each for each in made if each is not None]


def contract_configurations() -> Iterator[Configuration]:
    """Yield what the contract suite claims something for: as a release, and by a saved model."""
    files = {"schema.toml": dumps(contract_schema()), "about.toml": ABOUT}
    other, none = (_contract_tables(empty=empty) for empty in (False, True))
    data, rows = ("@data/table.csv",), ("--rows", "40")
    for entry in filter(lambda each: each.budget, ENTRIES):
        flags = (*entry.flags, *rows, "--threads", "1")
        release = _release(data, (*_spelled(RELEASED), *flags))
        yield Configuration(entry.name, (release,), files, other)
        commands = _through_a_model(data, entry.method, flags[2:], rows)
        yield Configuration(f"{entry.name}, saved", tuple(commands), files, none, turn=1)
