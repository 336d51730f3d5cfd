"""Which categories of a feature share a level, by public figures and noisy counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.codec.levels import alone, merged, merged_along
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.released.dependences import MOST_LEVELS
from pegsynth.methods.released.details import Detail, within_parent


@dataclass(frozen=True)
class Merging:
    """By which public figures categories merge into levels."""

    merge: bool
    ordered: Sequence[bool]
    whole: Sequence[bool]
    above: Sequence[Sequence[Int64]]
    details: Sequence[Detail]
    told: Sequence[Detail] = ()

    def levels(self, shares: Sequence[Float64], total: float, least: float) -> tuple[Int64, ...]:
        """Merge what the noise of a block of the first round would drown.

        Categories merge only where they tell the same levels, so what is told comes first.
        """
        enough = max(least, total / MOST_LEVELS)
        lines: dict[int, Int64] = {}
        first = [each.feature for each in reversed(self.told)]
        for feature in (*first, *(i for i in range(len(shares)) if i not in first)):
            telling = [
                within_parent(each.on_levels(lines[each.feature]).turned())
                for each in self.told
                if each.parent == feature
            ]
            lines[feature] = self._line(feature, shares[feature] * total, enough, telling)
        return tuple(lines[feature] for feature in range(len(shares)))

    def _line(
        self, feature: int, counts: Float64, enough: float, telling: Sequence[Int64]
    ) -> Int64:
        if not self.merge or len(counts) <= 2 or (self.whole and self.whole[feature]):
            return alone(len(counts))
        parents = [within_parent(each) for each in self.details if each.feature == feature]
        if telling:
            _, numbers = np.unique(np.stack(telling), axis=1, return_inverse=True)
            parents = [np.asarray(numbers, dtype=np.int64).ravel()]
        lines = self.above[feature] if self.above else ()
        if parents or lines:
            return merged_along(counts, enough, lines, *parents)
        return merged(counts, enough, ordered=self.ordered[feature])
