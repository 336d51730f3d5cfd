"""How far released tables will be from those of the data, predicted from public figures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pegsynth.methods.forecast import MARGINAL_LOSS, UNIFORM_LOSS
from pegsynth.methods.released_blocks import ReleasedPlan, price_of, public_lines
from pegsynth.released import Steps
from pegsynth.released.fit import block_deviation, margin_weights, split_budget

if TYPE_CHECKING:
    from pegsynth.schema import Schema

_MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)


def released_error(schema: Schema, plan: ReleasedPlan) -> tuple[float, float]:
    """Predict the noise on a block of released tables, and the error of pair tables.

    One-way counts are off by their noise; of what pairs add to them, the part is lost that
    the noise of a block of average size would drown.
    """
    counts, steps, price = schema.category_counts, Steps(heads=plan.heads), price_of(plan)
    rows_in = plan.options.rows_in or (plan.options.rows or 1)
    weights = margin_weights(counts, public_lines(schema))
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
