"""Measure the numbers of a feature: a noisy tree, then one clipped sum (R21).

`measure` is the only way from the exact counts of a grid to anything that may be published.
"""

from __future__ import annotations

from pegsynth.arrays import Int64
from pegsynth.numbers.clipped_sum import STEPS, SUM_PART, with_sum
from pegsynth.numbers.tree import Filter, NumberTree, measure_tree
from pegsynth.schema.feature import Feature


def has_sum(feature: Feature) -> bool:
    """Whether a clipped sum is measured of a feature."""
    return feature.kind == "numeric" and feature.inside != "uniform"


def measure(
    counts: Int64,
    feature: Feature,
    budget_filter: Filter,
    share: float,
    *,
    index: int = 0,
    rows: float | None = None,
    sum_part: float = SUM_PART,
    steps: int = STEPS,
) -> NumberTree:
    """Measure the numbers of a feature with a part of a budget.

    Parameters
    ----------
    counts
        Exact counts of the cells of the feature's grid, then of its special categories.
    budget_filter
        The privacy filter that adds the noise and writes an event for every step.
    share
        The most of the whole that may be spent; what is not spent stays in the privacy filter.
    index
        Position of the feature, for the events.
    rows
        Number of rows, public or paid for before; None where neither is known.
    sum_part
        The part of it that the clipped sum takes, where there is one.
    steps
        Steps between the centre and the bound of a clipped sum; audits take few.
    """
    part = sum_part * share if has_sum(feature) else 0.0
    tree = measure_tree(counts, feature, budget_filter, share - part, index=index)
    if not part:
        return tree
    return with_sum(tree, counts, feature, budget_filter, part, index=index, rows=rows, steps=steps)
