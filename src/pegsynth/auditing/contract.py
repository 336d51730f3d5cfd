"""Every method with a fitting budget, and the small table that all of them are tried on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from pegsynth.schema import Feature, Rule, Schema

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
