"""Exact audit of pooled transitions: people folded, both tables released, path by path (R24).

People have one to three rows. A table of them is folded and encoded as a release does it, and the
shipped code measures first rows and transitions along a path whose outputs are given. A neighbour
has one person more, with all rows. What must hold is what the audit of released blocks asks for;
the price of every step is the one that the ledger states for a whole person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, islice
from typing import Any

import numpy as np

from pegsynth.auditing.divergence import Table
from pegsynth.auditing.panels import History, Line, folded_codes
from pegsynth.auditing.released import AUDITED, RESIDUALS, Path, all_of, cell_share
from pegsynth.auditing.watched import Explorer, Output, Step, WatchedFilter
from pegsynth.mechanisms.bins import Noise
from pegsynth.methods import get
from pegsynth.methods.pooled_release import fit_pooled
from pegsynth.methods.released_blocks import ReleasedPlan
from pegsynth.privacy import Budget, Event, Ledger, PooledRows, UnitBound, Unspent
from pegsynth.privacy.noise_events import NoisySums
from pegsynth.random import RandomStream
from pegsynth.released import PrivacyFilter, Steps
from pegsynth.schema import Feature, Schema
from pegsynth.schema.panel import POOLED, Panel
from pegsynth.schema.wide_schema import wide_schema

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
            pooled = PooledRows(rows_per_unit=event.rows_per_unit, step=step.done)
            yield replace(step, event=pooled)
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
