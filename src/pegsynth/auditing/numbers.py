"""Exact audit of private edges, shapes and rare categories: noisy counts, step by step (R21, R31).

The shipped measurement runs on a few numbers with a privacy filter that records every step.
The neighbouring table then follows the same path (`auditing/paths.py`). What is published is
compared as well: the tree, the settled schema, the shapes and the events.

Dates and times go the same way: the noisy tree over a calendar, weekdays, differences. A
difference is read off two dates of one row, so that a row still lies in one cell of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from pegsynth.auditing.divergence import Table
from pegsynth.auditing.paths import Answer, Path, PathCase, Watch
from pegsynth.codec.encoding import ColumnEncoder, DifferenceEncoder
from pegsynth.codec.measured_numbers import Settled, measure, settle
from pegsynth.codec.number_grid import grid_feature
from pegsynth.codec.tree import Filter, NumberTree
from pegsynth.kernels.arrays import Int64
from pegsynth.privacy import Allowance, Ledger, UnitBound
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.recoding import Recoding

NUMBERS, DATES = "numbers", "dates"
BINS = 3
DELTA = 1e-9
SUM_STEPS = 1

Measure = Callable[..., NumberTree]
Count = Callable[[Feature, list[Any]], Int64]
Settle = Callable[[Schema, Mapping[str, NumberTree], Int64], Settled]


def exact_counts(feature: Feature, values: list[Any]) -> Int64:
    """Count numbers, or dates as texts, on the grid of their feature, as a table is read."""
    grid = grid_feature(feature)
    kind = pl.Float64 if feature.kind == "numeric" else pl.String
    codes = ColumnEncoder(grid).encode(pl.Series(feature.name, values, dtype=kind))
    return np.bincount(codes, minlength=grid.category_count).astype(np.int64)


def difference_counts(feature: Feature, values: list[Any]) -> Int64:
    """Count dates by how long after another they are; every value is a pair of texts."""
    grid = grid_feature(feature)
    own, first = ([pair[place] for pair in values] for place in (0, 1))
    table = pl.DataFrame(
        {feature.name: own, FIRST.name: first},
        schema={feature.name: pl.String, FIRST.name: pl.String},
    )
    codes = DifferenceEncoder(grid, FIRST).encode_batch(table)
    return np.bincount(codes, minlength=grid.category_count).astype(np.int64)


def measured_in_few_steps(
    counts: Int64, feature: Feature, budget_filter: Filter, share: float
) -> NumberTree:
    """Measure as a release does; its clipped sum takes so few steps that noise can be listed."""
    return measure(counts, feature, budget_filter, share, steps=SUM_STEPS)


def settled_by_tree(schema: Schema, trees: Mapping[str, NumberTree], counts: Int64) -> Settled:
    """Settle a schema; the exact counts are not looked at."""
    return settle(schema, trees, BINS)


@dataclass(frozen=True, kw_only=True)
class NumberCase(PathCase):
    """One tiny measurement.

    Parameters
    ----------
    feature
        The feature that is measured.
    values
        Numbers, or texts, that rows can have, None for missing; a row names one by its position.
        For dates they are whatever `count` takes.
    amount
        What may be spent: an epsilon, or a rho where there is a delta.
    others
        Features that it is counted from, with public edges.
    count, measure, settle
        What is audited.
    """

    feature: Feature
    values: tuple[Any, ...]
    amount: Fraction
    others: tuple[Feature, ...] = ()
    count: Count = exact_counts
    measure: Measure = measured_in_few_steps
    settle: Settle = settled_by_tree

    def run(self, table: Table, answer: Answer) -> Path:
        """Measure and settle along a path."""
        allowance = Allowance("pure" if self.delta is None else "zcdp", self.amount)
        budget_filter = Watch(self.budget_filter, answer).filter_of(
            allowance, RandomStream("audit"), rows_per_unit=self.rows_per_unit
        )
        counts = self.count(self.feature, [self.values[row[0]] for row in table])
        tree = self.measure(counts, self.feature, budget_filter, 1.0)
        schema = Schema((self.feature, *self.others))
        settled = self.settle(schema, {self.feature.name: tree}, counts)
        published = (*_plain(tree, settled), budget_filter.events)
        bound = (UnitBound(rows_per_unit=self.rows_per_unit),) if self.rows_per_unit > 1 else ()
        ledger = Ledger((*bound, *budget_filter.events), delta=self.delta or 0.0)
        return Path(tuple(budget_filter.steps), published, ledger)


def _plain(tree: NumberTree, settled: Settled) -> tuple[Any, ...]:
    """Return all that is published as plain values."""
    arrays: list[tuple[str, Any]] = list(tree.arrays().items())
    for shape in settled.shapes.values():
        arrays += shape.arrays().items()
    lines = tuple((name, tuple(line.tolist())) for name, line in arrays)
    noise = tuple(level.deviation for level in tree.levels)
    return (tree.name, noise, tree.laplace), lines, settled.schema


def number_case(
    name: str,
    feature: Feature,
    values: tuple[Any, ...],
    *,
    amount: float = 40.0,
    delta: float | None = None,
    unit: int = 1,
    **audited: Any,
) -> NumberCase:
    """Make a case: tables of up to twelve rows, each with every number as one more row.

    The amount is so large that a few rows stand out and their nodes are split.
    """
    rows = [(place,) for place in range(len(values))]
    tables: list[Table] = [(), (rows[0],), (rows[0],) * 6, (rows[0], rows[-1], rows[-1])]
    # Numbers on both sides of their mean, so that one of them is at the bound of the sum.
    tables.append((rows[0],) * 6 + (rows[-2],) * 6)
    return NumberCase(
        name=name,
        stated=float(amount) if delta is None else epsilon_at(amount, delta=delta),
        delta=delta,
        feature=feature,
        values=values,
        amount=Fraction(amount),
        pairs=tuple((table, (row,) * unit) for table in tables for row in rows),
        rows_per_unit=unit,
        **audited,
    )


def number_cases() -> list[NumberCase]:
    """Return a case for every kind of grid and both kinds of noise."""
    unsettled = Feature("x", kind="numeric", private_edges=True)
    whole = replace(unsettled, lowest=0, highest=40, missing=("",), dtype="int64")
    real = replace(unsettled, lowest=-2.0, highest=1.5)
    far = replace(unsettled, lowest=0, highest=4000, dtype="int64")
    public = Feature("x", kind="numeric", edges=(0.0, 3.0, 20.0), inside="measured", dtype="int64")
    numbers = (17.0, 18.0, 0.0, 3.0, None)
    rare = Feature(
        "x", categories=("a", "b", "c", "d"), missing=("",), recoding=Recoding(rare="paid")
    )
    return [
        number_case("whole numbers", whole, numbers),
        number_case("whole numbers, approximate", whole, numbers, delta=DELTA),
        number_case("two rows per unit", whole, numbers, unit=2),
        number_case("real numbers", real, (1.0, 1.0625, -1.5, 0.0), amount=70),
        number_case("round numbers", far, (1000.0, 1003.0, 999.0, 5000.0), amount=70),
        number_case("shape inside public edges", public, (17.0, 18.0, 2.0)),
        number_case("rare categories", rare, ("a", "b", "c", None), amount=4),
        number_case("rare categories, approximate", rare, ("a", "d", None), amount=4, delta=DELTA),
    ]


FIRST = Feature("first", kind="date", edges=("2020-01-01", "2021-12-31"), missing=("",))  # type: ignore[arg-type]
"""The date that others are counted from."""


def date_cases() -> list[NumberCase]:
    """Return a case for every kind of grid, for weekdays and for differences."""
    private: dict[str, Any] = {"edges": "private", "missing": ("",)}
    year: dict[str, Any] = {"lowest": "2020-01-01", "highest": "2021-12-31"}
    date = Feature("x", kind="date", **private, **year)
    stamp = Feature("x", kind="datetime", resolution="minute", **private, **year)
    clock = Feature("x", kind="time", **private)
    weekly = Feature("x", kind="date", weekday=True, **private, **year)
    after = Feature("x", kind="date", after=FIRST.name, highest=40, **private)
    public: Any = ("2020-01-01", "2020-06-15", "2021-12-31")
    shaped = Feature("x", kind="date", edges=public, inside="measured")
    dates = ("2020-02-29", "2020-03-01", "2021-12-31", "1999-01-01", None)
    stamps = ("2020-02-29T12:30:00", "2020-02-29T13:00:00")
    clocks = ("12:30:00", "12:30:01", "12:44:59", None)
    pairs = (
        *(("2020-03-18", "2020-03-01"), ("2020-02-01", "2020-03-01"), ("2020-03-19", "2020-03-01")),
        *((None, "2020-03-01"), ("2020-03-18", None)),
    )
    differences = partial(number_case, others=(FIRST,), count=difference_counts)
    return [
        number_case("dates", date, dates),
        number_case("dates, approximate", date, dates, delta=DELTA),
        number_case("dates, two rows per unit", date, dates, unit=2),
        number_case("dates with a time", stamp, stamps),
        number_case("times of day", clock, clocks),
        number_case("weekdays", weekly, dates),
        number_case("weekdays, approximate", weekly, dates, delta=DELTA),
        number_case("dates inside public edges", shaped, dates[:3]),
        differences("days after another date", after, pairs),
    ]
