"""How large the noise is on the best published count of a feature, read off a ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations

from pegsynth.privacy import Ledger, NoisyCounts, NoisyResiduals
from pegsynth.schema import Schema

MOST_TOGETHER = 3


def published_noise(ledger: Ledger, schema: Schema) -> Mapping[frozenset[str], float]:
    """Return the standard deviation of the noise on counts of features, for every known set.

    A count of fewer features than a table has is a sum of its cells, with the noise of them all.
    Tables in which categories of one of the features were merged do not count these.
    """
    sizes = dict(zip(schema.names, schema.category_counts, strict=True))
    best: dict[frozenset[str], float] = {}
    for event in ledger.events:
        if not isinstance(event, NoisyCounts) or not event.levels or not event.features:
            continue
        if event.table_cells != math.prod(event.levels):
            continue
        variance = noise_variance(event)
        levels = dict(zip(event.features, event.levels, strict=True))
        whole = [name for name, level in levels.items() if level >= sizes.get(name, 0)]
        for count in range(1, min(MOST_TOGETHER, len(whole)) + 1):
            for names in combinations(whole, count):
                summed = math.prod(levels[name] for name in levels if name not in names)
                deviation = math.sqrt(float(variance) * summed)
                key = frozenset(names)
                best[key] = min(best.get(key, math.inf), deviation)
    return best


def noise_variance(event: NoisyCounts | NoisyResiduals) -> Fraction:
    """Return the variance of the noise on one cell, for Laplace noise that of the continuous law.

    The discrete laws vary a little less.
    """
    scale = Fraction(event.scale_numerator, event.scale_denominator)
    return scale if event.mechanism == "discrete-gaussian" else 2 * scale * scale
