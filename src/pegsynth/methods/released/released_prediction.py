"""What released blocks will be worth, from public figures alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegsynth.kernels.arrays import Float64
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.plan_model import PublicFigures, figures_of
from pegsynth.methods.released.budget_split import block_deviation, margin_weights, split_budget
from pegsynth.methods.released.domain import public_lines
from pegsynth.methods.released.pooled_release import is_pooled, parts_of, transition_domain
from pegsynth.methods.released.released_blocks import (
    ReleasedPlan,
    allowance_of,
    price_of,
)
from pegsynth.methods.released.steps import Steps

if TYPE_CHECKING:
    from pegsynth.schema import Schema


def block_noise(schema: Schema, plan: ReleasedPlan) -> float:
    """Return the standard deviation of the noise on a block of the first round."""
    table = _measured_table(schema, plan)
    weights = margin_weights(table.counts, table.public)
    steps = Steps(heads=plan.heads)
    split = split_budget(table.price, table.rows_in, table.counts, weights, steps)
    return block_deviation(table.price, split, len(table.counts))


def released_figures(schema: Schema, plan: ReleasedPlan) -> PublicFigures:
    """Return what the formula of the plan needs; of a pooled panel, about its transitions (R24)."""
    if not is_pooled(schema):
        return figures_of(schema, plan)
    table = _measured_table(schema, plan)
    return PublicFigures.of(
        table.counts, table.price, rows_in=table.rows_in, rows=plan.options.rows or 1
    )


@dataclass(frozen=True)
class _MeasuredTable:
    """The table whose noise counts most: its categories, public shares, price and rows."""

    counts: Sequence[int]
    public: Sequence[Float64 | None]
    price: Price
    rows_in: int


def _measured_table(schema: Schema, plan: ReleasedPlan) -> _MeasuredTable:
    rows_in = plan.options.rows_in or (plan.options.rows or 1)
    if not is_pooled(schema):
        lines = public_lines(schema)
        return _MeasuredTable(schema.category_counts, lines, price_of(plan), rows_in)
    domain = transition_domain(schema)
    price = Price(parts_of(allowance_of(plan.budget))[1], domain.rows_per_unit)
    # How many rows units have is not known before: half of what they may.
    half = -(-domain.rows_per_unit // 2)
    return _MeasuredTable(domain.sizes, domain.public, price, rows_in * half)
