"""Exact audits of what a release measures before it counts: numbers, dates, categories.

Private edges, shapes and rare categories (R21, R31): the shipped measurement runs on a few numbers
with a privacy filter that records every step. The neighbouring table then follows the same path
(`auditing/paths.py`). What is published is compared as well: the tree, the settled schema, the
shapes and the events. Dates and times go the same way: the noisy tree over a calendar, weekdays,
differences. A difference is read off two dates of one row, so that a row still lies in one cell of
the grid.

Private categories (R29): the shipped search runs on tables of a few texts, once for every value
that the noise can take, which tells how likely every text is to be found; and once for every set of
texts that can be found, which tells what is published then. Neighbours are compared by these exact
laws:

- what is published under one table and cannot be under the other has no more than delta';
- the rest is no further apart than rho says;
- at the epsilon that the ledger claims, the two are apart by no more than the stated delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from pegsynth.auditing.divergence import ROUNDING, Finding, Loss, Table, divergence, exactly
from pegsynth.auditing.exact_laws import noise_law
from pegsynth.auditing.paths import Answer, Output, Path, PathCase, Watch, WatchedFilter
from pegsynth.codec.encoding import ColumnEncoder, DifferenceEncoder
from pegsynth.codec.finding_categories import (
    Part,
    counted_values,
    find_categories,
    plan_categories,
)
from pegsynth.codec.measured_numbers import Settled, measure, settle
from pegsynth.codec.number_grid import grid_feature
from pegsynth.codec.tree import Filter, NumberTree
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.noise import noise_of
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.privacy import Allowance, CategoriesFound, Ledger, UnitBound
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.recorded import delta_taken
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


CATEGORIES = "categories"
FEATURE = Feature("x", private_categories=True)

Texts = tuple[str, ...]
Law = Mapping[Hashable, Fraction]
_FAR = 10**6


@dataclass(frozen=True)
class Claim:
    """What is said of one release: its own figures, and those at the stated delta."""

    delta_taken: float
    rho: float
    epsilon: float
    delta: float


def claimed_by(ledger: Ledger) -> Claim:
    """Return what a ledger claims."""
    guarantee = ledger.guarantee
    unit = guarantee.rows_per_unit
    return Claim(
        float(delta_taken(ledger.events, rows_per_unit=unit)),
        math.inf if guarantee.rho is None else guarantee.rho,
        math.inf if guarantee.epsilon is None else guarantee.epsilon,
        guarantee.delta or 0.0,
    )


@dataclass(frozen=True)
class Worst:
    """The worst over all pairs of a case, and what is claimed.

    Parameters
    ----------
    lost
        Largest mass of what cannot be published under the neighbour.
    loss
        Largest divergence of the rest.
    apart
        Largest delta at the claimed epsilon.
    """

    lost: float
    loss: Loss
    apart: float
    claim: Claim

    @property
    def holds(self) -> bool:
        """Whether all that must hold does."""
        slack = 1 + ROUNDING
        return (
            self.lost <= self.claim.delta_taken * slack
            and self.loss.rho <= self.claim.rho * slack
            and self.apart <= self.claim.delta * slack
        )


def counted(table: Texts) -> list[Part]:
    """Count a table as it is counted when it is read."""
    frame = pl.DataFrame({FEATURE.name: list(table)}, schema={FEATURE.name: pl.String})
    return list(counted_values(lambda: iter([frame]), (FEATURE,)))


@dataclass(frozen=True)
class CategoriesCase:
    """One tiny search.

    Parameters
    ----------
    amount
        The rho that the search costs.
    delta, delta_share
        The stated delta, and the part of it that the search may take.
    pairs
        Tables of texts, each with the rows of the unit that its neighbour has more.
    count, budget_filter, find, claim
        What is audited.
    """

    name: str
    amount: Fraction
    delta: float
    pairs: tuple[tuple[Texts, Texts], ...]
    rows_per_unit: int = 1
    delta_share: Fraction = Fraction(1, 2)
    count: Callable[[Texts], list[Part]] = counted
    budget_filter: type[WatchedFilter] = WatchedFilter
    find: Callable[..., dict[str, tuple[str, ...]]] = find_categories
    claim: Callable[[Ledger], Claim] = claimed_by

    def run(self, parts: list[Part], answer: Answer) -> tuple[Texts, Ledger]:
        """Search a counted table with given noise; return what is published."""
        schema = Schema((FEATURE,))
        allowance = Allowance("zcdp", self.amount)
        price = Price(allowance, self.rows_per_unit)
        plan = plan_categories(schema, price, 0.9, delta=Fraction(self.delta) * self.delta_share)
        budget_filter = self.budget_filter(
            allowance, RandomStream("audit"), rows_per_unit=self.rows_per_unit, answer=answer
        )
        found = self.find(schema, plan, parts, budget_filter)
        bound = (UnitBound(rows_per_unit=self.rows_per_unit),) if self.rows_per_unit > 1 else ()
        return found["x"], Ledger((*bound, *budget_filter.done), delta=self.delta)

    def finding(self, part: str) -> Finding:
        """Return what the audit of the case found."""
        worst = audit_categories(self)
        name = f"{self.name}; delta' {worst.lost:.3g} of {worst.claim.delta_taken:.3g}"
        return exactly(part, name, Loss(math.inf, worst.claim.rho), worst.loss, holds=worst.holds)

    def law(self, table: Texts) -> tuple[Law, Ledger]:
        """Return the exact law of what is published, and the ledger."""
        parts = self.count(table)
        texts = [text for part in parts for text in part.texts]
        _, ledger = self.run(parts, partial(_everywhere, 0))
        event = next(each for each in ledger.events if isinstance(each, CategoriesFound))
        shares = dict.fromkeys(texts, Fraction(0))
        sizes = noise_law(noise_of(event.noise))
        for value in range(-max(sizes), max(sizes) + 1):
            published, _ = self.run(parts, partial(_everywhere, value))
            for text in published:
                shares[text] += sizes.get(abs(value), Fraction(0))
        law: dict[Hashable, Fraction] = {}
        for taken in product((False, True), repeat=len(texts)):
            chance = math.prod(
                (shares[t] if yes else 1 - shares[t] for t, yes in zip(texts, taken, strict=True)),
                start=Fraction(1),
            )
            if chance > 0:
                pattern = [_FAR if yes else -_FAR for yes in taken]
                published, _ = self.run(parts, partial(_taken, pattern))
                law[published] = law.get(published, Fraction(0)) + chance
        return law, ledger


def _everywhere(value: int, _: object, counts: Output) -> Output:
    return tuple(count + value for count in counts)


def _taken(offsets: Sequence[int], _: object, counts: Output) -> Output:
    return tuple(count + offset for count, offset in zip(counts, offsets, strict=False))


def audit_categories(case: CategoriesCase) -> Worst:
    """Compare every table of a case with its neighbour."""
    lost, loss, apart = 0.0, Loss(), 0.0
    claim = Claim(math.inf, math.inf, 0.0, 1.0)
    known: dict[Texts, tuple[Law, Ledger]] = {}
    # Rows come in any order, and the unit's may come first.
    pairs = ((table, other) for table, more in case.pairs for other in (table + more, more + table))
    for table, neighbour in pairs:
        for each in (table, neighbour):
            if each not in known:
                known[each] = case.law(each)
        (first, ledger), (second, _) = known[table], known[neighbour]
        claim = case.claim(ledger)
        for ours, other in ((first, second), (second, first)):
            lost = max(lost, float(sum(p for o, p in ours.items() if o not in other)))
            apart = max(apart, _apart(ours, other, claim.epsilon))
        if first.keys() & second.keys():
            loss = loss.worse(divergence(_shared(first, second), _shared(second, first)))
    return Worst(lost, loss, apart, claim)


def _shared(ours: Law, other: Law) -> Law:
    """Return the law given that what is published can be published under both."""
    kept = {outcome: chance for outcome, chance in ours.items() if outcome in other}
    total = sum(kept.values())
    return {outcome: chance / total for outcome, chance in kept.items()}


def _apart(ours: Law, other: Law, epsilon: float) -> float:
    """Return the smallest delta with which one law is within `epsilon` of the other."""
    factor = math.exp(min(epsilon, 700.0))
    gaps = (float(p) - factor * float(other.get(o, Fraction(0))) for o, p in ours.items())
    return math.fsum(max(gap, 0.0) for gap in gaps)


def categories_case(
    name: str, amount: Fraction, delta: float, units: tuple[Texts, ...]
) -> CategoriesCase:
    """Make a case: tables of one text, or two, at and below the threshold, and these units."""
    case = CategoriesCase(name, amount, delta, (), max(map(len, units)))
    _, ledger = case.run([], partial(_everywhere, 0))
    (event,) = (each for each in ledger.events if isinstance(each, CategoriesFound))
    full = ("b",) * event.threshold
    tables = ((), ("b",), full, full + ("a",) * event.threshold)
    return replace(case, pairs=tuple((table, unit) for table in tables for unit in units))


def categories_cases() -> list[CategoriesCase]:
    """Return a case for every way in which a unit may change the counts.

    Noise is small, so that a threshold of a few rows is enough and a table can reach it.
    """
    one: tuple[Texts, ...] = (("a",), ("b",), ("c",))
    two: tuple[Texts, ...] = (("a", "a"), ("a", "c"), ("b", "b"), ("b", "c"))
    return [
        categories_case("one row", Fraction(1), 1e-3, one),
        categories_case("one row, more noise", Fraction(1, 8), 1e-2, one),
        categories_case("two rows per unit, worst apart", Fraction(1, 16), 0.2, two),
        categories_case("two rows per unit, worst together", Fraction(4), 1e-3, two),
    ]
