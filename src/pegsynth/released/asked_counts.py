"""Counts of a table that was asked for, with intervals that hold the noise (R11).

Everything comes from published tables, so nothing is charged. *Raw* counts are what published
tables say of the cells, averaged by the inverse of their variances: unbiased, with the noise of
the mechanism and nothing else, so their intervals hold. *Shrunk* counts pull them towards what the
model expects without these tables, as far as the noise says (empirical Bayes): nearer on average,
but how near in a cell is not known, so they have no interval of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from pegsynth.arrays import Float64
from pegsynth.errors import ParameterError
from pegsynth.random import RandomStream
from pegsynth.released.draw import pool_rows, rebuild, released_total
from pegsynth.released.held import merged_categories, published_tables
from pegsynth.released.published import NoisyTable, Released
from pegsynth.released.row_pool import Features, Pool
from pegsynth.released.smoothing import shrunken
from pegsynth.released.steps import Steps
from pegsynth.schema.rules import Rule

MODEL_ROWS = 200_000


@dataclass(frozen=True)
class AskedCounts:
    """Counts of all cells of a table, the last feature varying fastest.

    Parameters
    ----------
    raw
        Unbiased counts.
    deviation
        Standard deviation of their noise.
    laplace
        Whether that is Laplace noise of one table.
    shrunk
        Counts pulled towards the model.
    """

    raw: Float64
    deviation: float
    laplace: bool
    shrunk: Float64

    def reach(self, level: float) -> float:
        """Return how far an interval of the raw counts reaches to either side."""
        if self.laplace:
            return -self.deviation / math.sqrt(2.0) * math.log(1 - level)
        return NormalDist().inv_cdf((1 + level) / 2) * self.deviation


def asked_counts(
    released: Released,
    features: Features,
    names: Sequence[str],
    stream: RandomStream,
    *,
    pure: bool,
    steps: Steps | None = None,
    rules: Sequence[Rule] = (),
    threads: int = 1,
) -> AskedCounts:
    """Return what published tables say of the cells of some features.

    Parameters
    ----------
    features, names
        The features of the table, and the names of all features.
    pure
        Whether the noise is Laplace noise.

    Raises
    ------
    ParameterError
        If no published table holds these features, or merges their categories.
    """
    holding = _holding(released, features, names)
    raw, variance = _averaged(released, holding, features)
    expected = _expected(released, holding, features, stream, steps or Steps(), rules, threads)
    deviation = math.sqrt(variance)
    shrunk = shrunken(raw, expected, deviation)
    return AskedCounts(raw, deviation, pure and len(holding) == 1, shrunk)


def _holding(released: Released, features: Features, names: Sequence[str]) -> list[NoisyTable]:
    """Return the published tables that have these features, unmerged."""
    shown = " x ".join(names[feature] for feature in features)
    if len(features) == 1:
        (feature,) = features
        ones = [] if released.public[feature] else [released.one_ways[feature]]
        if merged_categories(released, feature):
            return ones
    else:
        ones = []
    found = [t for t in published_tables(released) if set(features) <= set(t.features)]
    remedy = "declare it under [[tables_wanted]] before the model is fitted"
    if not found and not ones:
        raise ParameterError(f"no published table holds {shown}; {remedy}")
    if merged := [names[f] for f in features if found and merged_categories(released, f)]:
        raise ParameterError(
            f"published tables of {shown} merge rare categories of {merged[0]}; {remedy}"
        )
    return [*ones, *found]


def _averaged(
    released: Released, tables: Sequence[NoisyTable], features: Features
) -> tuple[Float64, float]:
    """Return counts averaged over tables, and the variance of their noise."""
    total, precision = np.zeros(1), 0.0
    for table in tables:
        one_way = len(table.features) == 1
        sizes = [len(released.levels[f]) if one_way else released.sizes[f] for f in table.features]
        cells = table.counts.astype(np.float64).reshape(sizes)
        kept = [table.features.index(feature) for feature in features]
        others = tuple(axis for axis in range(cells.ndim) if axis not in kept)
        summed = cells.sum(axis=others)
        order = np.argsort(np.argsort(kept))
        counts = np.transpose(summed, order).ravel()
        weight = 1.0 / (table.deviation**2 * (len(table.counts) / len(counts)))
        total, precision = total + weight * counts, precision + weight
    return total / precision, 1.0 / precision


def _expected(
    released: Released,
    holding: Sequence[NoisyTable],
    features: Features,
    stream: RandomStream,
    steps: Steps,
    rules: Sequence[Rule],
    threads: int,
) -> Float64:
    """Return what the model expects of the cells without the tables of the second round there."""
    if len(features) == 1:
        return np.full(len(released.levels[features[0]]), released_total(released)) / len(
            released.levels[features[0]]
        )
    extra = tuple(table for table in released.extra if not any(table is each for each in holding))
    steps = steps.under_noise() if released.loud else steps
    rows = min(pool_rows(released, max(round(released_total(released)), 1), steps), MODEL_ROWS)
    pool = Pool(released.sizes, rows, stream, rules=rules, threads=threads)
    rebuild(replace(released, extra=extra), pool, steps)
    return pool.expected(features)
