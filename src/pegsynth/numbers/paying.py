"""The codec of a table that is itself paid for: edges, shapes and categories (R21, R29).

`foreseen` says, before any data is read, what bins and categories there will be and what they
cost at most; `paid_codec` measures, through a privacy filter that holds the whole budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pegsynth.categories import (
    Part,
    delta_for,
    find_categories,
    frequent_categories,
    plan_categories,
    private_names,
    provisional_categories,
    settled_categories,
)
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.numbers.bin_shape import Shape
from pegsynth.numbers.edges_plan import (
    COUNT_SHARE,
    check_budget,
    plan_numbers,
    price_of,
    search_share,
)
from pegsynth.numbers.measured_numbers import has_sum, measure
from pegsynth.numbers.settle import bins_for, provisional, settle
from pegsynth.numbers.tree import NumberTree, exact_tree
from pegsynth.privacy import Allowance, Budget, Event
from pegsynth.random import RandomStream
from pegsynth.schema.schema import Schema

Counts = Mapping[str, NDArray[np.int64]]

EXACT_DEVIATION = 1.0
"""What bins are chosen by where nothing is perturbed: as if one row were the noise."""


@dataclass(frozen=True)
class Foreseen:
    """A schema with as many bins as there will be, and what is left of the budget then."""

    schema: Schema
    budget: Budget


@dataclass(frozen=True)
class PaidCodec:
    """Public edges and categories, and what they cost.

    Parameters
    ----------
    schema
        The codebook with edges and categories.
    shapes
        How values lie inside the bins, by name.
    events
        What the ledger says of it.
    budget
        The budget with what was spent taken off.
    """

    schema: Schema
    shapes: Mapping[str, Shape]
    budget: Budget
    events: tuple[Event, ...] = field(default=())


@dataclass(frozen=True)
class CodecCounts:
    """What a codec is made of: exact and confidential.

    Parameters
    ----------
    grids
        Counts of the grid of every feature whose numbers are measured.
    candidates
        Values of the features whose categories are private, with their counts.
    """

    grids: Counts = field(default_factory=dict)
    candidates: Iterable[Part] = ()


def wants_codec(schema: Schema) -> bool:
    """Whether edges, shapes or categories of any feature are to be measured."""
    return any(each.wants_shape or each.private_categories for each in schema.features)


def wants_numbers(schema: Schema) -> bool:
    """Whether edges or shapes of any feature are to be measured."""
    return any(each.wants_shape and each.binned for each in schema.features)


def wants_grids(schema: Schema) -> bool:
    """Whether counts on public grids are to be measured: numbers, or what is rare (R31)."""
    return any(feature.wants_shape for feature in schema.features)


def foreseen(schema: Schema, budget: Budget, *, rows: int | None, private: bool) -> Foreseen:
    """Say what bins and categories there will be, from public figures.

    Parameters
    ----------
    rows
        Number of original rows, or a guess.
    private
        Whether the method claims a guarantee; one that does not measures exactly.
    """
    if not private:
        return Foreseen(_provisional(schema, _exact_bins(rows or 1)), budget)
    check_budget(schema, budget)
    budget = _with_delta_taken(schema, budget)
    whole = whole_of(budget)
    plan = plan_numbers(schema, whole, rows=rows)
    each = search_share(schema, price_of(schema, whole), rows)
    share = Fraction(plan.together) + Fraction(each) * len(private_names(schema))
    if rows is None and plan.names:
        share += Fraction(COUNT_SHARE)
    rest = replace(budget, paid=Allowance(whole.route, whole.amount * share))
    return Foreseen(_provisional(schema, plan.bins(rows or 1)), rest)


def paid_codec(
    schema: Schema,
    budget: Budget,
    counts: CodecCounts,
    stream: RandomStream,
    *,
    rows_in: int | None,
    private: bool,
    filter_of: Callable[..., PrivacyFilter] = PrivacyFilter,
) -> PaidCodec:
    """Measure edges and shapes, find categories, and say what is left.

    Parameters
    ----------
    counts
        What is measured.
    rows_in
        Number of original rows, if it is public; else the noisy counts tell.
    private
        Whether the method claims a guarantee.
    """
    names = private_names(schema)
    if not private:
        if names:
            schema = settled_categories(schema, frequent_categories(counts.candidates, names))
        exact = {name: exact_tree(line, schema[name]) for name, line in counts.grids.items()}
        settled = settle(schema, exact, _exact_bins(_rows(exact)))
        return PaidCodec(settled.schema, settled.shapes, budget)
    check_budget(schema, budget)
    budget = _with_delta_taken(schema, budget)
    whole = whole_of(budget)
    price = price_of(schema, whole)
    budget_filter = filter_of(whole, stream, rows_per_unit=price.rows_per_unit, names=schema.names)
    rows = rows_in
    if rows is None and counts.grids:
        rows = _noisy_rows(counts.grids, budget_filter)
    plan = plan_numbers(schema, whole, rows=rows)
    found: dict[str, tuple[str, ...]] = {}
    if names:
        # By public figures: a noisy number of rows would make delta' differ from path to path.
        each = search_share(schema, price, rows_in)
        search = plan_categories(schema, price, each, delta=budget.delta_taken)
        found = find_categories(schema, search, counts.candidates, budget_filter)
    trees = {
        name: measure(
            counts.grids[name],
            schema[name],
            budget_filter,
            plan.share if has_sum(schema[name]) else plan.share * (1 - plan.sum_part),
            index=schema.index(name),
            rows=rows,
            sum_part=plan.sum_part,
        )
        for name in plan.names
    }
    settled = settle(settled_categories(schema, found), trees, plan.bins(rows or 1))
    rest = replace(budget, paid=budget_filter.spent)
    return PaidCodec(settled.schema, settled.shapes, rest, budget_filter.done)


def _with_delta_taken(schema: Schema, budget: Budget) -> Budget:
    return replace(budget, delta_taken=delta_for(schema, budget.delta))


def _provisional(schema: Schema, bins: int) -> Schema:
    return provisional(provisional_categories(schema), bins)


def whole_of(budget: Budget) -> Allowance:
    """Return what a budget has for the whole release, and its currency."""
    return budget.whole("pure" if budget.delta is None else "zcdp")


def _exact_bins(rows: float) -> int:
    return bins_for(rows, EXACT_DEVIATION)


def _noisy_rows(grids: Counts, budget_filter: PrivacyFilter) -> int:
    """Pay for the number of rows: it says how much of the budget edges are worth."""
    total = next(iter(grids.values())).sum()
    noisy, _ = budget_filter.measure(np.array([total]), COUNT_SHARE, purpose="total")
    return max(int(noisy[0]), 1)


def _rows(trees: Mapping[str, NumberTree]) -> float:
    """Estimate the number of rows by the counts at the top of all trees."""
    if not trees:
        return 1.0
    return float(np.mean([tree.levels[0].counts.clip(0).sum() for tree in trees.values()]))
