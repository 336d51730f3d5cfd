"""How loud the noise on released tables will be, from public figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pegsynth.methods.released_blocks import ReleasedPlan, price_of, public_lines
from pegsynth.released import Steps
from pegsynth.released.fit import block_deviation, margin_weights, split_budget

if TYPE_CHECKING:
    from pegsynth.schema import Schema


def block_noise(schema: Schema, plan: ReleasedPlan) -> float:
    """Return the standard deviation of the noise on a block of the first round."""
    counts, steps, price = schema.category_counts, Steps(heads=plan.heads), price_of(plan)
    rows_in = plan.options.rows_in or (plan.options.rows or 1)
    weights = margin_weights(counts, public_lines(schema))
    split = split_budget(price, rows_in, counts, weights, steps)
    return block_deviation(price, split, len(counts))
