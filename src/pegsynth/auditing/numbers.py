"""Exact audit of private edges, shapes and rare categories: noisy counts, step by step (R21, R31).

The shipped measurement runs on a few numbers with a privacy filter that records every step.
The neighbouring table then follows the same path, as for released blocks
(`auditing/released.py`). What is published is compared as well: the tree, the settled schema,
the shapes and the events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from pegsynth.arrays import Int64
from pegsynth.auditing.divergence import Table
from pegsynth.auditing.released import SUM_STEPS, Path, cell_share
from pegsynth.auditing.watched import OFFSETS, Explorer, Output, WatchedFilter
from pegsynth.mechanisms.bins import Noise
from pegsynth.numbers.measured_numbers import measure
from pegsynth.numbers.number_grid import grid_feature
from pegsynth.numbers.settle import Settled, settle
from pegsynth.numbers.tree import Filter, NumberTree
from pegsynth.privacy import Allowance, Ledger, UnitBound
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.encoding import ColumnEncoder
from pegsynth.schema.recoding import Recoding

NUMBERS = "numbers"
BINS = 3
DELTA = 1e-9

Measure = Callable[..., NumberTree]
Count = Callable[[Feature, list[Any]], Int64]
Settle = Callable[[Schema, Mapping[str, NumberTree], Int64], Settled]


def exact_counts(feature: Feature, values: list[Any]) -> Int64:
    """Count numbers on the grid of their feature, as a table of them is read."""
    grid = grid_feature(feature)
    kind = pl.Float64 if feature.kind == "numeric" else pl.String
    codes = ColumnEncoder(grid).encode(pl.Series(feature.name, values, dtype=kind))
    return np.bincount(codes, minlength=grid.category_count).astype(np.int64)


def measured_in_few_steps(
    counts: Int64, feature: Feature, budget_filter: Filter, share: float
) -> NumberTree:
    """Measure as a release does; its clipped sum takes so few steps that noise can be listed."""
    return measure(counts, feature, budget_filter, share, steps=SUM_STEPS)


def settled_by_tree(schema: Schema, trees: Mapping[str, NumberTree], counts: Int64) -> Settled:
    """Settle a schema; the exact counts are not looked at."""
    return settle(schema, trees, BINS)


@dataclass(frozen=True)
class NumberCase:
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
    pairs
        Tables, each with the rows of the unit that its neighbour has more.
    count, measure, settle
        What is audited.
    """

    name: str
    feature: Feature
    values: tuple[Any, ...]
    amount: Fraction
    pairs: tuple[tuple[Table, Table], ...]
    delta: float | None = None
    rows_per_unit: int = 1
    others: tuple[Feature, ...] = ()
    turns: int = len(OFFSETS)
    cell_law: Callable[[Noise, int, int], Fraction] = cell_share
    count: Count = exact_counts
    measure: Measure = measured_in_few_steps
    settle: Settle = settled_by_tree

    @property
    def stated(self) -> float:
        """The epsilon that the amount stands for."""
        if self.delta is None:
            return float(self.amount)
        return epsilon_at(float(self.amount), delta=self.delta)

    def run(self, table: Table, answer: Callable[..., Output]) -> Path:
        """Measure and settle along a path."""
        allowance = Allowance("pure" if self.delta is None else "zcdp", self.amount)
        budget_filter = WatchedFilter(
            allowance, RandomStream("audit"), rows_per_unit=self.rows_per_unit, answer=answer
        )
        counts = self.count(self.feature, [self.values[row[0]] for row in table])
        tree = self.measure(counts, self.feature, budget_filter, 1.0)
        settled = self.settle(self.schema, {self.feature.name: tree}, counts)
        published = (*_plain(tree, settled), budget_filter.events)
        bound = (UnitBound(rows_per_unit=self.rows_per_unit),) if self.rows_per_unit > 1 else ()
        ledger = Ledger((*bound, *budget_filter.events), delta=self.delta or 0.0)
        return Path(tuple(budget_filter.steps), published, ledger)

    @property
    def schema(self) -> Schema:
        """The schema of the feature; one that it is counted from has public edges."""
        return Schema((self.feature, *self.others))

    def paths(self, table: Table, turn: int) -> Iterator[Path]:
        """Yield the one path of a table under one pattern of noise."""
        yield self.run(table, Explorer(turn).answer)


def _plain(tree: NumberTree, settled: Settled) -> tuple[Any, ...]:
    """Return all that is published as plain values."""
    arrays: list[tuple[str, Any]] = list(tree.arrays().items())
    for shape in settled.shapes.values():
        arrays += shape.arrays().items()
    lines = tuple((name, tuple(line.tolist())) for name, line in arrays)
    return str(tree.header()), lines, settled.schema


def number_case(
    name: str,
    feature: Feature,
    values: tuple[Any, ...],
    *,
    amount: Fraction | int = 40,
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
    pairs = tuple((table, (row,) * unit) for table in tables for row in rows)
    return NumberCase(name, feature, values, Fraction(amount), pairs, delta, unit, **audited)


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
