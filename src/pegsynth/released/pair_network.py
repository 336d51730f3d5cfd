"""Order and heads by pair tables that are known already: nothing is chosen privately.

The feature that depends on the others most comes first; then always the one that depends most on
one placed before. Its heads are those that it depends on most. Its distribution given the heads
has their pair tables and no interaction beyond them (maximum entropy), by iterative scaling.
All of it is post-processing of paid-for numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.arrays import Float64
from pegsynth.released.margins import Margins
from pegsynth.released.pair_residuals import dependence
from pegsynth.released.row_pool import Features, Pool, cell_count
from pegsynth.released.smoothing import fitted_to
from pegsynth.released.steps import Steps

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
