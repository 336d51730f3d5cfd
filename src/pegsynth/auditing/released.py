"""Exact audit of released blocks and of pooled transitions, path by path (R6, R10, R11, R24).

Tiny tables are released by the shipped code along every path (`auditing/paths.py`). For pooled
transitions people have one to three rows: a table of them is folded, and first rows and
transitions are measured. A neighbour has one person more, with all rows, and the price of every
step is the one that the ledger states for a whole person.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import numpy as np

from pegsynth.auditing.cases import RULES, tiny_schema
from pegsynth.auditing.coded_rows import History, folded_codes, histories
from pegsynth.auditing.divergence import Table, all_rows, all_tables
from pegsynth.auditing.paths import OFFSETS, Answer, Path, PathCase, Step, Watch
from pegsynth.methods import get
from pegsynth.methods.released import (
    CodedValues,
    Released,
    ReleasedPlan,
    Steps,
    ValueTable,
    Work,
    fit_pooled,
    fit_released,
)
from pegsynth.privacy import Budget, Event, Ledger, NoisySums, PooledRows, UnitBound, Unspent
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.declared import Analysis, Family, WantedTable
from pegsynth.schema.hierarchy import Hierarchy
from pegsynth.schema.panel import POOLED, Panel
from pegsynth.schema.recoding import Recoding
from pegsynth.schema.wide_schema import wide_schema

RESIDUALS = Steps(pairs_below=math.inf, merge=False, rounds=3)
"""Steps that measure residuals whatever their noise (R27), few enough for a small scale of it."""
AUDITED = Steps(loud_margins=0.45, drowned_above=math.inf, residuals=False, rounds=10)
"""Tiny tables are loud: one-way counts would take so much that the noise of blocks is too wide.
Features of few levels would have all pairs measured, which `RESIDUALS` audits."""
BESIDE_BLOCKS = replace(AUDITED, merge=False)
"""Levels that are merged into one have no residual to be measured by the second round."""
SUM_STEPS = 1
_MOST_PATHS = 2
"""Choices of heads that are followed for every table of people; each is exact."""


def all_of(released: Released) -> tuple[Any, ...]:
    """Return everything that a release of blocks publishes, to be compared."""
    return (
        released.total,
        (released.loud, released.by_pairs),
        released.order,
        tuple(tuple(line.tolist()) for line in released.levels),
        tuple(
            (each.features, tuple(each.counts.tolist()), each.deviation)
            for each in (
                *released.one_ways,
                *released.blocks,
                *released.extra,
                *released.maps,
                *released.residuals,
            )
        ),
        tuple(
            (str(each.bounds.tolist()), tuple(each.sums.tolist()), each.deviation)
            for each in released.sums
        ),
    )


@dataclass(frozen=True, kw_only=True)
class ReleasedCase(PathCase):
    """One tiny release of blocks.

    Parameters
    ----------
    schema, plan
        The public part of the release.
    steps
        Other steps than those of the plan: tiny tables are too loud for residuals otherwise.
    values
        What adds up the values of rows for declared analyses.
    """

    schema: Schema
    plan: ReleasedPlan
    steps: Steps = AUDITED
    values: Callable[..., ValueTable] = CodedValues

    def run(self, table: Table, answer: Answer) -> Path:
        """Release a table along a path; pools are the same for all tables."""
        watch = Watch(self.budget_filter, answer)
        counts = self.schema.category_counts
        codes = np.array(table, dtype=np.uint8).reshape(-1, len(counts))
        fit, spent = fit_released(
            codes,
            self.schema,
            self.plan,
            Work(
                RandomStream("audit"),
                steps=self.steps,
                sum_steps=SUM_STEPS,
                filter_of=watch.filter_of,
            ),
            values=self.values(codes, self.schema),
        )
        # The ledger is published too, with all that its events say.
        published = (*all_of(fit.released), spent.events)
        return Path(watch.steps, published, Ledger(spent.events, delta=self.delta or 0.0))


def released_case(
    name: str,
    counts: tuple[int, ...] = (2, 2),
    *,
    epsilon: float = 12.0,
    delta: float | None = None,
    pairs: Sequence[tuple[Table, Table]] | None = None,
    schema: Schema | None = None,
    **changes: Any,
) -> ReleasedCase:
    """Settle a plan; by default every table of at most one row has every neighbour."""
    schema = schema or tiny_schema(counts)
    if pairs is None:
        units = [rows for rows in all_tables(counts, 1) if rows]
        pairs = [(table, more) for table in all_tables(counts, 1) for more in units]
    return ReleasedCase(
        name=name,
        stated=epsilon,
        delta=delta,
        pairs=tuple(pairs),
        rows_per_unit=schema.rows_per_unit if schema.unit else 1,
        schema=schema,
        plan=_planned(schema, epsilon, delta),
        **changes,
    )


def _planned(schema: Schema, epsilon: float, delta: float | None) -> Any:
    method = get("pegs-once")
    return method.settle(schema, Budget(epsilon=epsilon, delta=delta), method.options(rows=2))


def _with_detail() -> Schema:
    """Return a schema whose second feature belongs to the first; real rows may break that."""
    by_prefix = Recoding(hierarchy=Hierarchy(prefixes=(1,)), level=0)
    detail = Feature("x1", categories=("a1", "a2", "b1"), parent="x0", recoding=by_prefix)
    return Schema((Feature("x0", categories=("a", "b")), detail), reviewed=True)


def with_analysis(unit: int | None = None, *, family: Family = "gaussian") -> Schema:
    """Return a schema of two small numbers that declares a regression and a table (R26)."""
    numbers = (
        Feature("x0", kind="ordinal", categories=("0", "1", "2")),
        Feature("x1", kind="ordinal", categories=("0", "1")),
    )
    declared: dict[str, Any] = {
        "analyses": (
            Analysis("I(x0 > 0) ~ x1" if family == "binomial" else "x0 ~ x1", family, 0.3),
        ),
        "tables_wanted": (WantedTable(("x0", "x1"), share=0.2),),
    }
    if unit is None:
        return Schema(numbers, reviewed=True, **declared)
    person = Feature(name="person", role="identifier")
    return Schema((person, *numbers), "person", unit, reviewed=True, **declared)


def released_cases(*, full: bool = False) -> list[ReleasedCase]:
    """Return a case for every way in which blocks are released."""
    triple = tuple(
        (table, (row,))
        for table in ((), ((0, 0, 0),), ((0, 0, 0), (0, 1, 1)))
        for row in (all_rows((2, 2, 2)) if full else ((0, 0, 0), (1, 0, 1)))
    )
    turns: dict[str, Any] = {"turns": len(OFFSETS) if full else 1}
    pair = (((), ((0, 0),)), (((0, 1),), ((0, 0),)), (((0, 0),), ((1, 1),)))
    told = (((0, 0),) * 60 + ((1, 1),) * 60, ((0, 0),) * 90 + ((1, 0),) * 29 + ((1, 1),))
    telling = tuple((table, (row,)) for table in told for row in ((0, 0), (0, 1)))
    near: dict[str, Any] = {"epsilon": 6.0, "delta": 1e-9}
    units: dict[str, Any] = {
        "schema": tiny_schema((2, 2), unit=2),
        "pairs": (((), ((0, 0), (0, 0))), (((0, 1),), ((0, 0), (1, 1)))),
    }
    three = partial(released_case, counts=(2, 2, 2))
    residuals = partial(released_case, steps=RESIDUALS)
    return [
        released_case("noise, choices, adaptive amounts", **turns),
        released_case("approximate", **near, **turns),
        three("three features", pairs=triple, **turns),
        three("three features, approximate", pairs=triple[-2:], **near, **turns),
        released_case(
            "rule that a real row breaks", schema=tiny_schema((2, 2), rules=RULES), pairs=pair
        ),
        released_case("detail given its parent", (2, 3), pairs=pair, schema=_with_detail()),
        released_case("a feature tells another", epsilon=60.0, pairs=telling, **turns),
        released_case(
            "a feature tells another, approximate", epsilon=30.0, delta=1e-9, pairs=telling, turns=1
        ),
        released_case("two rows per unit", **units),
        released_case("two rows per unit, approximate", **units, **near),
        released_case(
            "residuals beside blocks",
            (2, 3),
            pairs=pair,
            steps=BESIDE_BLOCKS,
            **near | {"epsilon": 8.0, "turns": 2},
        ),
        residuals("residuals", pairs=pair),
        residuals("residuals, approximate", (2, 3), pairs=pair, **near),
        residuals("residuals of pairs and a triple", (2, 2, 2), pairs=triple[-2:]),
        residuals("residuals, two rows per unit", **units, **near),
        *analysis_cases(),
    ]


def analysis_cases() -> list[ReleasedCase]:
    """Return cases with a declared regression and a table that is wanted (R26)."""
    pair = (((), ((2, 0),)), (((2, 0), (0, 1)), ((2, 1),)), (((0, 0),), ((1, 1),)))
    twice = (((), ((2, 0), (2, 0))), (((0, 1),), ((2, 0), (0, 0))))
    near: dict[str, Any] = {"epsilon": 6.0, "delta": 1e-9}
    one = partial(released_case, counts=(3, 2), pairs=pair, turns=1)
    several = partial(one, pairs=twice, schema=with_analysis(2))
    linear, logistic, products = (
        with_analysis(family=family) for family in ("gaussian", "binomial", "poisson")
    )
    return [
        one("declared analysis", schema=linear),
        one("declared analysis, approximate", schema=linear, **near),
        one("declared logistic analysis, approximate", schema=logistic, **near),
        one("declared products", schema=products),
        one("declared products, approximate", schema=products, **near),
        several("declared analysis, two rows per unit", epsilon=30.0),
        several("declared analysis, two rows per unit, approximate", **near),
    ]


@dataclass(frozen=True, kw_only=True)
class PooledCase(PathCase):
    """One tiny release of a panel.

    Parameters
    ----------
    schema, plan
        The public part of the release; the schema is that of the long table.
    people
        Everything that a person may be; a table names each of its people by the place here.
    steps
        As in `ReleasedCase`.
    folded
        Histories in, wide codes out.
    """

    schema: Schema
    plan: ReleasedPlan
    people: tuple[History, ...]
    steps: Steps = AUDITED
    folded: Callable[[Schema, Sequence[History]], Table] = folded_codes

    def run(self, table: Table, answer: Answer) -> Path:
        """Release people along a path."""
        watch = Watch(self.budget_filter, answer)
        wide = wide_schema(self.schema)
        codes = self.folded(self.schema, [self.people[person[0]] for person in table])
        fit, spent = fit_pooled(
            np.array(codes, dtype=np.uint8).reshape(-1, len(wide.features)),
            wide,
            self.plan,
            Work(RandomStream("audit"), steps=self.steps, filter_of=watch.filter_of),
        )
        published = (*all_of(fit.first), *all_of(fit.transitions), spent.events)
        steps = tuple(_as_stated(watch.steps, spent.events))
        return Path(steps, published, Ledger(spent.events, delta=self.delta or 0.0))

    def paths(self, table: Table, turn: int) -> Iterator[Path]:
        """Yield a few paths of a table under one pattern of noise."""
        return islice(super().paths(table, turn), _MOST_PATHS)


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
    people: Sequence[History] = (),
    **changes: Any,
) -> PooledCase:
    """Settle a release of people whose rows have a time."""
    person = Feature("person", role="identifier")
    time = Feature("t", kind="ordinal", categories=("1", "2"))
    panel = Panel("person", "t", most, transitions=POOLED)
    schema = Schema((person, time), panel=panel, reviewed=True)
    people = tuple(people or histories((("1",), ("2",)), 3))
    tables: list[Table] = [(), ((0,), (len(people) - 1,))]
    return PooledCase(
        name=name,
        stated=epsilon,
        delta=delta,
        # Each table with the person that its neighbour has more.
        pairs=tuple((table, ((more,),)) for table in tables for more in range(len(people))),
        turns=1,
        schema=schema,
        plan=_planned(wide_schema(schema), epsilon, delta),
        people=people,
        **changes,
    )


def pooled_cases() -> list[PooledCase]:
    """Return releases of pooled transitions along both routes."""
    near: dict[str, Any] = {"epsilon": 30.0, "delta": 1e-9}
    return [
        pooled_case("pooled transitions", epsilon=60.0),
        pooled_case("pooled transitions, approximate", **near),
        pooled_case("pooled transitions, residuals", steps=RESIDUALS, **near),
        pooled_case("pooled transitions, rows cut at two", most=2, **near),
    ]
