"""How far released tables will be from those of the data, predicted from public figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pegsynth.arrays import Float64
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.forecast import MARGINAL_LOSS, UNIFORM_LOSS
from pegsynth.methods.pooled_release import is_pooled, parts_of, transition_design
from pegsynth.methods.released_blocks import ReleasedPlan, allowance_of, price_of, public_lines
from pegsynth.released import Steps
from pegsynth.released.fit import block_deviation, margin_weights, split_budget

if TYPE_CHECKING:
    from pegsynth.schema import Schema

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


def released_error(schema: Schema, plan: ReleasedPlan) -> tuple[float, float]:
    """Predict the noise on a block of released tables, and the error of pair tables.

    One-way counts are off by their noise; of what pairs add to them, the part is lost that
    the noise of a block of average size would drown. Where transitions are pooled, it is about
    their table (R24).
    """
    rows_in = plan.options.rows_in or (plan.options.rows or 1)
    if not is_pooled(schema):
        lines = public_lines(schema)
        return _error(schema.category_counts, lines, price_of(plan), rows_in, plan.heads)
    design = transition_design(schema)
    price = Price(parts_of(allowance_of(plan.budget))[1], design.rows_per_unit)
    # How many rows units have is not known before: half of what they may.
    rows_in *= -(-design.rows_per_unit // 2)
    return _error(design.sizes, design.public, price, rows_in, plan.heads)


def _error(
    counts: Sequence[int],
    public: Sequence[Float64 | None],
    price: Price,
    rows_in: int,
    heads: int,
) -> tuple[float, float]:
    steps = Steps(heads=heads)
    weights = margin_weights(counts, public)
    split = split_budget(price, rows_in, counts, weights, steps)
    one_way = [
        _MEAN_ABSOLUTE_NORMAL * count * price.deviation(split.margins * float(weight)) / 2
        for count, weight in zip(counts, weights, strict=True)
        if weight > 0
    ]
    margins = min(sum(one_way) / len(counts) / rows_in / 2, UNIFORM_LOSS)
    noise = block_deviation(price, split, len(counts))
    cells = math.exp(2 * sum(map(math.log, counts)) / len(counts))
    drowned = _MEAN_ABSOLUTE_NORMAL * noise * cells / (2 * rows_in)
    return noise, margins + MARGINAL_LOSS * drowned / (1 + drowned)
