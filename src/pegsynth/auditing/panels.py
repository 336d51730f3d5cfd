"""Exact audit of folding: one row drawn from a folded table, every outcome enumerated (R24).

People have histories of one to three rows, of which two count. A table of them is folded and
encoded as a release does it, and one row is drawn from the counts of wide rows with virtual rows
(R1). Whether the whole holds the price of one draw is found by going through all small tables and
all people that may be added.

Exact audit of pooled transitions: people folded, both tables released, path by path (R24).

People have one to three rows. A table of them is folded and encoded as a release does it, and the
shipped code measures first rows and transitions along a path whose outputs are given. A neighbour
has one person more, with all rows. What must hold is what the audit of released blocks asks for;
the price of every step is the one that the ledger states for a whole person.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, islice, product
from typing import Any

import msgspec
import numpy as np
import polars as pl

from pegsynth.auditing.divergence import Distribution, Loss, Table, all_rows, worst_loss
from pegsynth.auditing.released import AUDITED, RESIDUALS, Path, all_of, cell_share
from pegsynth.auditing.watched import Explorer, Output, Step, WatchedFilter
from pegsynth.codec.codec import encode, encode_table, one_matrix
from pegsynth.codec.folded_reader import folded_reader
from pegsynth.codec.folding import Folding
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods import get
from pegsynth.methods.released.pooled_release import fit_pooled
from pegsynth.methods.released.released_blocks import ReleasedPlan
from pegsynth.methods.released.steps import Steps
from pegsynth.privacy import Budget, Event, Ledger, PooledRows, UnitBound, Unspent
from pegsynth.privacy.noise_events import NoisySums
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import POOLED, Panel
from pegsynth.schema.wide_schema import wide_schema
from pegsynth.tables.table_input import open_table

PANELS = "panels"
ALPHA = 2
"""Virtual rows of every cell: one draw costs log(1 + 1/2) = 0.4055."""
MOST_UNITS = 1

Line = tuple[Any, ...]
History = tuple[Line, ...]
"""The rows of one person."""


def folded_codes(schema: Schema, people: Sequence[History]) -> Table:
    """Return the wide codes of people, as a table of their rows is read."""
    if not people:
        return ()
    names = [column.name for column in schema.columns]
    lines = [(f"p{person}", *line) for person, history in enumerate(people) for line in history]
    frame = pl.DataFrame(lines, schema=names, orient="row")
    with open_table(frame) as reader:
        wide = folded_reader(reader, schema)
        codes = one_matrix(encode_table(wide, wide_schema(schema), need_unit=False))
    return tuple(tuple(map(int, line)) for line in codes)


def folded_pairs(schema: Schema, people: Sequence[History]) -> Table:
    """Return the wide codes of units in two tables; the first line of each is its own."""
    if not people or schema.panel is None:
        return ()
    key, fixed = schema.panel.unit, schema.panel.fixed
    others = [name for name in schema.names if name not in fixed]
    units = [(f"p{unit}", *lines[0]) for unit, lines in enumerate(people)]
    rows = [(f"p{unit}", *line) for unit, lines in enumerate(people) for line in lines[1:]]
    first = pl.DataFrame(units, schema=[key, *fixed], orient="row")
    texts = dict.fromkeys([key, *others], pl.String)
    second = pl.DataFrame(rows or None, schema=texts, orient="row")
    folding = Folding(schema)
    wide = folding.fold(folding.prepared(second), folding.prepared_units(first))
    codes = encode(wide, wide_schema(schema), need_unit=False)
    return tuple(tuple(map(int, line)) for line in codes)


@dataclass(frozen=True)
class PanelCase:
    """One tiny release of a panel.

    Parameters
    ----------
    schema
        The codebook of the long table; its first column names the unit.
    values
        What a row may be, the unit aside.
    folded
        What is audited: histories in, wide codes out.
    most_rows
        The longest history that is tried.
    """

    name: str
    schema: Schema
    values: tuple[Line, ...]
    folded: Callable[[Schema, Sequence[History]], Table] = folded_codes
    most_rows: int = 3
    most_units: int = MOST_UNITS
    _known: dict[Table, Distribution] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def histories(self) -> list[History]:
        """Everything that a person may be."""
        return [
            history
            for size in range(1, self.most_rows + 1)
            for history in combinations_with_replacement(self.values, size)
        ]

    @cached_property
    def cells(self) -> list[tuple[int, ...]]:
        """Wide rows that the rules of the folded table allow."""
        wide = wide_schema(self.schema)
        rows = np.array(all_rows(wide.category_counts), dtype=np.uint32)
        return [tuple(map(int, row)) for row in rows[~wide.breaks_a_rule(rows)]]

    @property
    def claimed(self) -> float:
        """The price of one draw from the counts of wide rows, for a whole person (R1, R18)."""
        return math.log(1 + 1 / ALPHA)

    def distribution(self, table: Table) -> Distribution:
        """Return the exact probability of every output; people are named by their histories."""
        people = [self.histories[person[0]] for person in table]
        codes = tuple(sorted(self.folded(self.schema, people)))
        if codes not in self._known:
            self._known[codes] = self._law(codes)
        return self._known[codes]

    def _law(self, codes: Table) -> Distribution:
        """Return the law of one draw; a wide row that no unit can be has no cell."""
        counts = Counter(codes)
        weights = {cell: counts[cell] + ALPHA for cell in self.cells}
        total = sum(weights.values())
        return {cell: Fraction(weight, total) for cell, weight in weights.items()}

    def loss(self) -> Loss:
        """Return the worst over all tables of people and one person more."""
        return worst_loss(self.distribution, (len(self.histories),), self.most_units)


@dataclass(frozen=True)
class PairCase(PanelCase):
    """One tiny release of two tables.

    Parameters
    ----------
    own
        What the row of a unit may be.
    """

    own: tuple[Line, ...] = ()

    @cached_property
    def histories(self) -> list[History]:
        """Everything that a unit may be: its own row, and none to some of the second table."""
        return [
            (own, *lines)
            for own in self.own
            for size in range(self.most_rows + 1)
            for lines in combinations_with_replacement(self.values, size)
        ]


def panel_cases() -> list[PanelCase]:
    """Return panels with times of every kind, fixed features and missing times."""
    person = Feature("person", role="identifier")
    state = Feature("x", categories=("a", "b"))
    panel = Panel("person", "t", 2)
    ordinal = Feature("t", kind="ordinal", categories=("1", "2"))
    number = Feature("t", kind="numeric", edges=(0.0, 5.0, 10.0), dtype="int64", missing=("",))
    fixed = Panel("person", "t", 2, ("x",))
    lines = tuple(product(("1", "2"), ("a", "b")))
    own = Feature("z", categories=("y", "n"))
    pair = Panel("person", "t", 1, ("z",), tables=("units", "rows"), least=0)
    timed = tuple(product((1, 9, None), ("a", "b")))
    return [
        PanelCase("ordinal time", Schema((person, ordinal, state), panel=panel), lines),
        PanelCase(
            "contradicting fixed values", Schema((person, ordinal, state), panel=fixed), lines
        ),
        PanelCase(
            "times that may be missing",
            Schema((person, number, state), panel=fixed),
            timed,
            most_rows=2,
        ),
        PairCase(
            "two tables",
            Schema((person, own, ordinal, state), panel=pair),
            (("1", "a"), ("2", "b")),
            folded=folded_pairs,
            most_rows=2,
            own=(("y",), ("n",)),
        ),
    ]


_MOST_PATHS = 2
"""Choices of heads that are followed for every table; each is exact."""


@dataclass(frozen=True)
class PooledCase:
    """One tiny release of a panel.

    Parameters
    ----------
    schema
        The codebook of the long table; its first column names the unit.
    plan
        The release, settled.
    values
        What a row may be, the unit aside.
    folded
        Histories in, wide codes out.
    most_rows
        The longest history that is tried.
    turns
        Patterns of noise that are tried.
    """

    name: str
    schema: Schema
    plan: ReleasedPlan
    values: tuple[Line, ...]
    folded: Callable[[Schema, Sequence[History]], Table] = folded_codes
    most_rows: int = 3
    turns: int = 1
    steps: Steps = AUDITED
    cell_law: Callable[[Noise, int, int], Fraction] = cell_share

    @cached_property
    def histories(self) -> list[History]:
        """Everything that a person may be."""
        return [
            history
            for size in range(1, self.most_rows + 1)
            for history in combinations_with_replacement(self.values, size)
        ]

    @cached_property
    def pairs(self) -> tuple[tuple[Table, Table], ...]:
        """Tables of people, each with the person that its neighbour has more."""
        people = [(number,) for number in range(len(self.histories))]
        longest = len(self.histories) - 1
        tables: list[Table] = [(), ((0,), (longest,))]
        return tuple((table, (person,)) for table in tables for person in people)

    @property
    def stated(self) -> float:
        """The epsilon that was asked for."""
        return self.plan.budget.epsilon or 0.0

    @property
    def delta(self) -> float | None:
        """None where the claim is pure."""
        return self.plan.budget.delta

    @property
    def rows_per_unit(self) -> int:
        """A person is one wide row."""
        return 1

    def run(self, table: Table, answer: Callable[..., Output]) -> Path:
        """Release people along a path."""
        watched: list[WatchedFilter] = []

        def filter_of(*arguments: Any, **options: Any) -> PrivacyFilter:
            watched.append(WatchedFilter(*arguments, answer=answer, **options))
            return watched[-1]

        wide = wide_schema(self.schema)
        people = [self.histories[person[0]] for person in table]
        codes = self.folded(self.schema, people)
        fit, spent = fit_pooled(
            np.array(codes, dtype=np.uint8).reshape(-1, len(wide.features)),
            wide,
            self.plan,
            RandomStream("audit"),
            filter_of=filter_of,
            steps=self.steps,
        )
        taken = [step for each in watched for step in each.steps]
        published = (*all_of(fit.first), *all_of(fit.transitions), spent.events)
        ledger = Ledger(spent.events, delta=self.plan.budget.delta or 0.0)
        return Path(tuple(_as_stated(taken, spent.events)), published, ledger)

    def paths(self, table: Table, turn: int) -> Iterator[Path]:
        """Yield paths of a table under one pattern of noise."""
        explorer = Explorer(turn)

        def following() -> Iterator[Path]:
            yield self.run(table, explorer.answer)
            while explorer.following():
                yield self.run(table, explorer.answer)

        return islice(following(), _MOST_PATHS)


def _as_stated(steps: Sequence[Step], events: Sequence[Event]) -> Iterator[Step]:
    """Yield steps, each priced for as many rows of a person as the ledger states."""
    stated = [event for event in events if not isinstance(event, UnitBound | Unspent)]
    for step, event in zip(steps, stated, strict=True):
        if isinstance(event, PooledRows) and not isinstance(step.done, NoisySums):
            yield replace(step, event=msgspec.structs.replace(event, step=step.done))
        else:
            yield step


def pooled_case(
    name: str,
    *,
    epsilon: float,
    delta: float | None = None,
    most: int = 3,
    **changes: Any,
) -> PooledCase:
    """Settle a release of people whose rows have a time."""
    person = Feature("person", role="identifier")
    time = Feature("t", kind="ordinal", categories=("1", "2"))
    panel = Panel("person", "t", most, transitions=POOLED)
    schema = Schema((person, time), panel=panel, reviewed=True)
    budget = Budget(epsilon=epsilon, delta=delta)
    method = get("pegs-once")
    plan = method.settle(wide_schema(schema), budget, method.options(rows=2))
    return PooledCase(name, schema, plan, (("1",), ("2",)), **changes)


def pooled_cases() -> list[PooledCase]:
    """Return releases of pooled transitions along both routes."""
    return [
        pooled_case("pooled transitions", epsilon=60.0),
        pooled_case("pooled transitions, approximate", epsilon=30.0, delta=1e-9),
        pooled_case("pooled transitions, residuals", epsilon=30.0, delta=1e-9, steps=RESIDUALS),
        pooled_case("pooled transitions, rows cut at two", epsilon=30.0, delta=1e-9, most=2),
    ]
