"""Exact audit of private edges, shapes and rare categories: noisy counts, step by step (R21, R31).

The shipped measurement runs on a few numbers with a privacy filter that records every step.
The neighbouring table then follows the same path, as for released blocks
(`auditing/released.py`). What is published is compared as well: the tree, the settled schema,
the shapes and the events.

Exact audit of dates and times: the noisy tree over a calendar, weekdays, differences (R21).

Cases run like those of numbers (`auditing/numbers.py`). A difference is read off two dates of one
row, so that a row still lies in one cell of the grid.

Exact audit of recodings: one draw from a recoded table, every outcome enumerated (R31).

A table of raw values is recoded and encoded as a release does it, and the shipped kernel draws one
row from it. Whether the whole holds the price of the draw is found by going through all small
tables and all their neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from pegsynth.auditing.cases import SCALE, Case
from pegsynth.auditing.divergence import Distribution, Loss, Table, worst_loss
from pegsynth.auditing.released import SUM_STEPS, Path, cell_share
from pegsynth.auditing.watched import OFFSETS, Explorer, Output, WatchedFilter
from pegsynth.codec.codec import encode
from pegsynth.codec.column_encoders import DifferenceEncoder
from pegsynth.codec.encoding import ColumnEncoder
from pegsynth.codec.measured_numbers import Settled, measure, settle
from pegsynth.codec.number_grid import grid_feature
from pegsynth.codec.tree import Filter, NumberTree
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.bins import Noise
from pegsynth.methods import get
from pegsynth.privacy import Allowance, Budget, Ledger, UnitBound
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.hierarchy import Hierarchy
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


DATES = "dates"
FIRST = Feature("first", kind="date", edges=("2020-01-01", "2021-12-31"), missing=("",))  # type: ignore[arg-type]
"""The date that others are counted from."""


def date_counts(feature: Feature, values: list[Any]) -> Int64:
    """Count dates, given as texts, on the grid of their feature."""
    grid = grid_feature(feature)
    codes = ColumnEncoder(grid).encode(pl.Series(feature.name, values, dtype=pl.String))
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
    pairs = (
        *(("2020-03-18", "2020-03-01"), ("2020-02-01", "2020-03-01"), ("2020-03-19", "2020-03-01")),
        *((None, "2020-03-01"), ("2020-03-18", None)),
    )
    texts: dict[str, Any] = {"count": date_counts}
    return [
        number_case("dates", date, dates, **texts),
        number_case("dates, approximate", date, dates, delta=DELTA, **texts),
        number_case("dates, two rows per unit", date, dates, unit=2, **texts),
        number_case(
            "dates with a time", stamp, ("2020-02-29T12:30:00", "2020-02-29T13:00:00"), **texts
        ),
        number_case("times of day", clock, ("12:30:00", "12:30:01", "12:44:59", None), **texts),
        number_case("weekdays", weekly, dates, **texts),
        number_case("weekdays, approximate", weekly, dates, delta=DELTA, **texts),
        number_case("dates inside public edges", shaped, dates[:3], **texts),
        number_case(
            "days after another date", after, pairs, others=(FIRST,), count=difference_counts
        ),
    ]


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
