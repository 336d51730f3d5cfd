"""Whether the residuals of all pairs are measured, on which levels and with how much (R27).

Public figures decide, and noisy ones that were paid for: the domain, the budget, the noisy number
of rows, and the levels that noisy one-way counts leave. The table itself is not looked at.

Order and heads by pair tables that are known already: nothing is chosen privately.

The feature that depends on the others most comes first; then always the one that depends most on
one placed before. Its heads are those that it depends on most. Its distribution given the heads
has their pair tables and no interaction beyond them (maximum entropy), by iterative scaling.
All of it is post-processing of paid-for numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import Price
from pegsynth.methods.released.counted import level_counts
from pegsynth.methods.released.details import Detail
from pegsynth.methods.released.level_merging import Merging
from pegsynth.methods.released.pair_residuals import (
    cell_noise,
    dependence,
    noise_on_pairs,
    pair_weights,
    residual_pairs,
    saved_by_residuals,
)
from pegsynth.methods.released.pool_fit import Margins
from pegsynth.methods.released.row_pool import Features, Pool, cell_count
from pegsynth.methods.released.second_round import pairs_at_once
from pegsynth.methods.released.smoothing import fitted_to
from pegsynth.methods.released.steps import Steps

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
    most = pairs_at_once(max(rows, total), steps.most_pairs)
    if not (steps.residuals and steps.second_round and 0 < len(pairs) <= most):
        return False
    if sum(category_counts) > steps.most_pair_levels:
        return False
    share = steps.pairs_share * (1 - steps.least_margins)
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
    apart = steps.told_together * noise_on_pairs(price, 1.0, pairs, category_counts, total)
    wanted = steps.wanted_pair_error
    if price.allowance.route == "pure":
        ones, apart, wanted = math.sqrt(ones), math.sqrt(apart), math.sqrt(wanted)
    needed = ((ones + apart) / wanted) ** 2
    whole = min(max(needed, steps.least_all_pairs), 1.0)
    least, most = steps.least_beside_pairs, steps.most_beside_pairs
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
    if not (steps.residuals and steps.second_round and every and rest > 0):
        return PairPlan()
    least = steps.pairs_merge_below * _usual_noise(price, steps.pairs_share * rest, every, fine)
    levels = merging.levels(shares, total, least)
    sizes = level_counts(levels)
    pairs = _worth_measuring(residual_pairs(sizes, merging.details), merging)
    # Few levels make little noise because they tell little.
    few = sum(sizes) < steps.pairs_least_levels * sum(fine)
    # Every pair takes memory and time for each row of the pool.
    most = pairs_at_once(max(rows, round(total)), steps.most_pairs)
    # A law of all pairs takes memory and time for every two levels.
    many = sum(sizes) > steps.most_pair_levels
    if few or many or not 0 < len(pairs) <= most:
        return PairPlan()
    whole = noise_on_pairs(price, rest, pairs, sizes, total)
    needed = (whole / steps.wanted_pair_error) ** 2
    part = min(max(needed, steps.least_pairs), steps.pairs_share)
    bearable = bearable_noise(pairs, sizes, steps)
    if noise_on_pairs(price, part * rest, every, fine, total) > bearable_noise(every, fine, steps):
        # What is quiet only after merging tells less than it seems to.
        bearable = min(bearable, steps.merged_pairs_below)
    if noise_on_pairs(price, part * rest, pairs, sizes, total) > bearable:
        return PairPlan()
    first = steps.first_round * (1 - part) * rest if part <= steps.blocks_beside_pairs else 0.0
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


_MOST_CELLS = 20_000
_PASSES = 10
_LEAST = 1e-9


@dataclass(frozen=True)
class PairNetwork:
    """Pair tables, and how features are drawn by them.

    Parameters
    ----------
    tables
        Estimated counts of every known pair.
    """

    tables: Mapping[Features, Float64]
    strength: Mapping[Features, float]
    sizes: tuple[int, ...]
    heads: int

    @classmethod
    def of(
        cls, tables: Mapping[Features, Float64], sizes: tuple[int, ...], steps: Steps
    ) -> PairNetwork:
        """Judge the pairs by their mutual information."""
        return cls(tables, dependence(tables), sizes, steps.heads)

    def order(self, features: Sequence[int], last: Collection[int] = ()) -> list[int]:
        """Return features in the order of drawing; some may have to come last."""
        turn = [each for each in features if each not in last]
        placed: list[int] = []
        for group in (turn, [each for each in features if each in last]):
            left = list(group)
            while left:
                following = max(left, key=lambda each: (self._pull(each, placed or left), -each))
                left.remove(following)
                placed.append(following)
        return placed

    def _pull(self, feature: int, others: Sequence[int]) -> float:
        found = [self.of_pair(feature, other) for other in others if other != feature]
        return max(found, default=0.0)

    def of_pair(self, first: int, second: int) -> float:
        """Return how much two features depend on each other; 0 if that was not measured."""
        return self.strength.get((min(first, second), max(first, second)), 0.0)

    def heads_of(self, feature: int, placed: Sequence[int]) -> Features:
        """Return the heads of a feature among those placed before it."""
        found: list[int] = []
        cells = self.sizes[feature]
        for other in sorted(placed, key=lambda each: (-self.of_pair(feature, each), each)):
            if len(found) == self.heads or self.of_pair(feature, other) <= 0:
                break
            if cells * self.sizes[other] <= _MOST_CELLS:
                found.append(other)
                cells *= self.sizes[other]
        return tuple(sorted(found))

    def shares(self, feature: int, heads: Features, pool: Pool, margins: Margins) -> Float64:
        """Return the distribution of a feature for every key of its heads."""
        own = margins.shares[feature]
        known = pool.counts(heads) / pool.rows
        shape = [*(self.sizes[each] for each in heads), self.sizes[feature]]
        wanted: dict[tuple[int, ...], Float64] = {}
        last = len(heads)
        for place, head in enumerate(heads):
            table = self._pair(head, feature)
            wanted[place, last] = table / table.sum()
        if last > 1:
            wanted[tuple(range(last))] = known.reshape(shape[:-1])
        start = np.outer(known, own) + _LEAST / cell_count(heads, self.sizes)
        cells = fitted_to(start.reshape(shape), wanted, passes=_PASSES).reshape(-1, shape[-1])
        sums = cells.sum(axis=1, keepdims=True)
        given: Float64 = np.where(sums > 0, cells / np.where(sums > 0, sums, 1.0), own)
        return given

    def _pair(self, first: int, second: int) -> Float64:
        if first < second:
            return self.tables[first, second]
        return self.tables[second, first].T
