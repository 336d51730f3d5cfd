"""Whether the residuals of all pairs are measured, on which levels and with how much (R27).

Public figures decide, and noisy ones that were paid for: the domain, the budget, the noisy number
of rows, and the levels that noisy one-way counts leave. The table itself is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.released.counted import level_counts
from pegsynth.methods.released.details import Detail
from pegsynth.methods.released.level_merging import Merging
from pegsynth.methods.released.pair_residuals import (
    cell_noise,
    noise_on_pairs,
    pair_weights,
    residual_pairs,
    saved_by_residuals,
)
from pegsynth.methods.released.rounds import pairs_at_once
from pegsynth.methods.released.row_pool import Features
from pegsynth.methods.released.steps import FIRST_ROUND, Steps

_MERGED_PAIRS_BELOW = 0.03
"""The noise on all pairs up to which they are measured where only merging makes it so low."""
_MOST_PAIRS = 600
"""More pairs, or levels, take too much time and memory."""
_MOST_LEVELS = 3_000
_PAIRS_SHARE = 0.97
"""All pairs get between these parts of what one-way counts leave."""
_LEAST_PAIRS = 0.4
_WANTED_PAIR_ERROR = 0.002
"""The error of pairs that is worth paying for."""
_MERGE_BELOW = 2.0
"""Categories with fewer rows than so many deviations of the noise on a pair merge."""
_LEAST_LEVELS = 0.5
"""The part of all categories that must be left as levels."""
_TOLD_TOGETHER = 0.85
"""Pairs have so much in common that they are off by this part of their noise."""
_LEAST_WHOLE = 0.5
"""What one-way counts and pairs get together, at the least."""
_LEAST_MARGINS = 0.2
"""One-way counts beside all pairs get between these parts of the budget."""
_MOST_MARGINS = 0.6
_ANY_CELLS = 1 << 40


@dataclass(frozen=True)
class PairPlan:
    """What is to be measured of all pairs.

    Parameters
    ----------
    pairs
        The pairs; none if their noise would be too loud.
    levels
        The level of every category of each feature.
    share
        The part of the whole budget for all pairs together.
    first
        The part for blocks of the first round, which only quiet tables have.
    """

    pairs: tuple[Features, ...] = ()
    levels: tuple[Int64, ...] = ()
    share: float = 0.0
    first: float = 0.0


def pairs_are_quiet(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    details: Sequence[Detail],
    steps: Steps,
    rows: int = 1,
) -> bool:
    """Say whether all pairs can be measured on all categories, before anything else is known.

    Parameters
    ----------
    rows
        Rows that are to be drawn.
    """
    pairs = residual_pairs(category_counts, details)
    most = pairs_at_once(max(rows, total), _MOST_PAIRS)
    if not (steps.residuals and 0 < len(pairs) <= most):
        return False
    if sum(category_counts) > _MOST_LEVELS:
        return False
    share = _PAIRS_SHARE * (1 - steps.least_margins)
    noise = noise_on_pairs(price, share, pairs, category_counts, total)
    return noise <= bearable_noise(pairs, category_counts, steps)


def bearable_noise(pairs: Sequence[Features], sizes: Sequence[int], steps: Steps) -> float:
    """Return the noise up to which all pairs are measured at once.

    The more of a full table's budget goes to margins, the worse are blocks, and the louder
    residuals may be.
    """
    return steps.pairs_below * saved_by_residuals(pairs, sizes)


def margins_beside_pairs(
    price: Price,
    total: int,
    category_counts: Sequence[int],
    details: Sequence[Detail],
    margin_error: float,
    steps: Steps,
) -> float:
    """Return the part of the budget for one-way counts that makes the error of pairs least.

    With the part f a pair is off by A/sqrt(f) through its two margins and by B/sqrt(1 - f) through
    its residual: the sum of their squares is least, and (A + B)^2, at f = A/(A + B). Pure budgets
    have f in place of its root. Pairs have much in common, which lowers B.

    Parameters
    ----------
    margin_error
        The error of one-way tables if everything went there.
    """
    pairs = residual_pairs(category_counts, details)
    ones = math.sqrt(2) * margin_error
    apart = _TOLD_TOGETHER * noise_on_pairs(price, 1.0, pairs, category_counts, total)
    wanted = _WANTED_PAIR_ERROR
    if price.allowance.route == "pure":
        ones, apart, wanted = math.sqrt(ones), math.sqrt(apart), math.sqrt(wanted)
    needed = ((ones + apart) / wanted) ** 2
    whole = min(max(needed, _LEAST_WHOLE), 1.0)
    least, most = _LEAST_MARGINS, _MOST_MARGINS
    return min(max(whole * ones / (ones + apart), least), most)


def plan_pairs(
    price: Price,
    rest: float,
    shares: Sequence[Float64],
    total: float,
    merging: Merging,
    steps: Steps,
    rows: int = 1,
) -> PairPlan:
    """Return what to measure of all pairs; of `rest` they get the more, the louder they are.

    Parameters
    ----------
    rest
        The part of the budget that one-way counts leave.
    shares
        Noisy shares of all categories.
    rows
        Rows that are to be drawn.
    """
    fine = [len(line) for line in shares]
    every = _worth_measuring(residual_pairs(fine, merging.details, most_cells=_ANY_CELLS), merging)
    if not (steps.residuals and every and rest > 0):
        return PairPlan()
    least = _MERGE_BELOW * _usual_noise(price, _PAIRS_SHARE * rest, every, fine)
    levels = merging.levels(shares, total, least)
    sizes = level_counts(levels)
    pairs = _worth_measuring(residual_pairs(sizes, merging.details), merging)
    # Few levels make little noise because they tell little.
    few = sum(sizes) < _LEAST_LEVELS * sum(fine)
    # Every pair takes memory and time for each row of the pool.
    most = pairs_at_once(max(rows, round(total)), _MOST_PAIRS)
    # A law of all pairs takes memory and time for every two levels.
    many = sum(sizes) > _MOST_LEVELS
    if few or many or not 0 < len(pairs) <= most:
        return PairPlan()
    whole = noise_on_pairs(price, rest, pairs, sizes, total)
    needed = (whole / _WANTED_PAIR_ERROR) ** 2
    part = min(max(needed, _LEAST_PAIRS), _PAIRS_SHARE)
    bearable = bearable_noise(pairs, sizes, steps)
    if noise_on_pairs(price, part * rest, every, fine, total) > bearable_noise(every, fine, steps):
        # What is quiet only after merging tells less than it seems to.
        bearable = min(bearable, _MERGED_PAIRS_BELOW)
    if noise_on_pairs(price, part * rest, pairs, sizes, total) > bearable:
        return PairPlan()
    first = FIRST_ROUND * (1 - part) * rest if part <= steps.blocks_beside_pairs else 0.0
    return PairPlan(tuple(pairs), levels, part * rest, first)


def _worth_measuring(pairs: Sequence[Features], merging: Merging) -> list[Features]:
    """Leave out pairs with a feature that another one tells (R33)."""
    told = {each.feature for each in merging.told}
    return [pair for pair in pairs if not told & set(pair)]


def _usual_noise(
    price: Price, share: float, pairs: Sequence[Features], sizes: Sequence[int]
) -> float:
    """Return the noise on a cell of a pair, in rows, that half of the pairs have at most."""
    found = []
    for pair, weight in zip(pairs, pair_weights(pairs, sizes), strict=True):
        levels = [sizes[each] for each in pair]
        deviation = price.residual_deviation(share * float(weight), levels)
        found.append(cell_noise(deviation, levels))
    return float(np.median(found))
