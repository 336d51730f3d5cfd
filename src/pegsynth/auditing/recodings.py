"""Exact audit of recodings: one draw from a recoded table, every outcome enumerated (R31).

A table of raw values is recoded and encoded as a release does it, and the shipped kernel draws one
row from it. Whether the whole holds the price of the draw is found by going through all small
tables and all their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import polars as pl

from pegsynth.auditing.cases import SCALE, Case
from pegsynth.auditing.divergence import Distribution, Loss, Table, worst_loss
from pegsynth.methods import get
from pegsynth.privacy import Budget
from pegsynth.schema import Feature, Schema
from pegsynth.schema.codec import encode
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.recoding import Recoding

RECODINGS = "recodings"
ALPHA = 2.0
"""Virtual rows of every category: one draw costs log(1 + 1/2) = 0.4055."""
MOST_ROWS = 6

Values = Sequence[Any]


def codes_by_row(feature: Feature, values: Values) -> Table:
    """Return the codes of raw values, as a table of them is read."""
    if not values:
        return ()
    codes = encode(pl.DataFrame({feature.name: list(values)}, strict=False), Schema((feature,)))
    return tuple((int(code),) for code in codes[:, 0])


@dataclass(frozen=True)
class RecodingCase:
    """One tiny release of one recoded feature.

    Parameters
    ----------
    feature
        The feature, with its recoding.
    values
        Raw values that a row can have.
    recoded
        What is audited: raw values of all rows in, codes of rows out.
    """

    name: str
    feature: Feature
    values: tuple[Any, ...]
    recoded: Callable[[Feature, Values], Table] = codes_by_row
    most_rows: int = MOST_ROWS
    _known: dict[Table, Distribution] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def case(self) -> Case:
        """The release of codes, settled."""
        schema = Schema((self.feature,), reviewed=True)
        method: Any = get("pegs")
        public = {"order": "public", "prior": "uniform", "seed_pool": "uniform"}
        options = method.options(heads=0, tail_bits=0, rows=1, **public)
        plan = method.settle(schema, Budget(alpha=ALPHA), options, scale=SCALE)
        return Case(self.name, schema, plan, most_rows=self.most_rows)

    @property
    def claimed(self) -> float:
        """The epsilon of the ledger."""
        return self.case.claim.guarantee.epsilon or 0.0

    def distribution(self, table: Table) -> Distribution:
        """Return the exact probability of every output for raw values, named by their places."""
        codes = tuple(sorted(self.recoded(self.feature, [self.values[row[0]] for row in table])))
        if codes not in self._known:
            self._known[codes] = self.case.distribution(codes)
        return self._known[codes]

    def loss(self) -> Loss:
        """Return the worst over all tables of raw values and their neighbours."""
        return worst_loss(self.distribution, (len(self.values),), self.most_rows)


def recoding_cases() -> list[RecodingCase]:
    """Return a case for every kind of recoding."""
    code = Feature("x", categories=("a", "b", "c", "d"), missing=("",))
    number = Feature("x", kind="numeric", edges=(0.0, 10.0, 20.0, 40.0), dtype="int64")
    parents = Hierarchy.of({"a": "A", "b": "A", "c": "C", "d": "C"})
    texts = ("a", "b", "c", "d", None)
    numbers = (1, 14, 16, 99)
    return [
        RecodingCase(
            "groups", replace(code, recoding=Recoding(groups=(("ends", ("a", "d")),))), texts
        ),
        RecodingCase(
            "hierarchy",
            replace(code, categories=(), recoding=Recoding(hierarchy=parents)),
            texts,
        ),
        RecodingCase(
            "prefix",
            replace(code, recoding=Recoding(hierarchy=Hierarchy(prefixes=(1,)))),
            ("aa", "ab", "b", "cd", None),
        ),
        RecodingCase("top and round", replace(number, recoding=Recoding(top=20, round=5)), numbers),
    ]
