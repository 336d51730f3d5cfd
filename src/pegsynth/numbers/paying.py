"""The codec of a table that is itself paid for: edges and shapes out of a release's own budget.

`foreseen` says, before any data is read, what the bins will look like and what they cost at
most; `paid_codec` measures, through a privacy filter that holds the whole budget (R21).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.numbers.bin_shape import Shape
from pegsynth.numbers.edges_plan import check_budget, plan_numbers
from pegsynth.numbers.settle import bins_for, provisional, settle
from pegsynth.numbers.tree import NumberTree, exact_tree, measure
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
    """Public edges, and what they cost.

    Parameters
    ----------
    schema
        The codebook with edges.
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


def wants_codec(schema: Schema) -> bool:
    """Whether edges or shapes of any feature are to be measured."""
    return any(feature.wants_shape for feature in schema.features)


def foreseen(schema: Schema, budget: Budget, *, rows: int | None, private: bool) -> Foreseen:
    """Say what bins there will be, from public figures.

    Parameters
    ----------
    rows
        Number of original rows, or a guess.
    private
        Whether the method claims a guarantee; one that does not measures exactly.
    """
    if not private:
        return Foreseen(provisional(schema, _exact_bins(rows or 1)), budget)
    check_budget(schema, budget)
    whole = _whole(budget)
    plan = plan_numbers(schema, whole)
    amount = whole.amount * Fraction(plan.together)
    rest = replace(budget, paid=Allowance(whole.route, amount))
    return Foreseen(provisional(schema, plan.bins(rows or 1)), rest)


def paid_codec(
    schema: Schema,
    budget: Budget,
    counts: Counts,
    stream: RandomStream,
    *,
    rows_in: int | None,
    private: bool,
    filter_of: Callable[..., PrivacyFilter] = PrivacyFilter,
) -> PaidCodec:
    """Measure edges and shapes, and say what is left.

    Parameters
    ----------
    counts
        Exact counts of the grid of every feature that is measured.
    rows_in
        Number of original rows, if it is public; else the noisy counts tell.
    private
        Whether the method claims a guarantee.
    """
    if not private:
        exact = {name: exact_tree(line, schema[name]) for name, line in counts.items()}
        settled = settle(schema, exact, _exact_bins(_rows(exact)))
        return PaidCodec(settled.schema, settled.shapes, budget)
    check_budget(schema, budget)
    whole = _whole(budget)
    plan = plan_numbers(schema, whole)
    unit = schema.rows_per_unit if schema.unit else 1
    budget_filter = filter_of(whole, stream, rows_per_unit=unit, names=schema.names)
    trees = {
        name: measure(
            counts[name], schema[name], budget_filter, plan.share, index=schema.index(name)
        )
        for name in plan.names
    }
    settled = settle(schema, trees, plan.bins(rows_in or _rows(trees)))
    rest = replace(budget, paid=budget_filter.spent)
    return PaidCodec(settled.schema, settled.shapes, rest, budget_filter.done)


def _whole(budget: Budget) -> Allowance:
    return budget.whole("pure" if budget.delta is None else "zcdp")


def _exact_bins(rows: float) -> int:
    return bins_for(rows, EXACT_DEVIATION)


def _rows(trees: Mapping[str, NumberTree]) -> float:
    """Estimate the number of rows by the counts at the top of all trees."""
    return float(np.mean([tree.levels[0].counts.clip(0).sum() for tree in trees.values()]))
