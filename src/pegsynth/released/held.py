"""What published tables hold of a set of features, by their structure alone (R28)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

import numpy as np

from pegsynth.inference.ledger_support import LOUDEST
from pegsynth.released.draw import released_total
from pegsynth.released.pair_residuals import cell_noise
from pegsynth.released.published import NoisyTable, Released
from pegsynth.released.row_pool import cell_count


def published_tables(released: Released) -> tuple[NoisyTable, ...]:
    """Return the tables of several features.

    A residual counts as one, because one-way counts and pairs tell the rest of it (R27).
    """
    return (*released.blocks, *released.extra, *released.residuals)


def together(released: Released, features: Collection[int]) -> bool:
    """Whether one published table holds all of these features, and noise does not drown it."""
    wanted = set(features)
    loudest = LOUDEST * max(released_total(released), 1.0)
    return len(wanted) < 2 or any(
        wanted <= set(table.features) and table.deviation * _parts(released, table) <= loudest
        for table in published_tables(released)
    )


def _parts(released: Released, table: NoisyTable) -> int:
    """Return the number of cells; 1 for a residual, whose noise is in parts of a row (R27)."""
    return 1 if any(table is each for each in released.residuals) else len(table.counts)


def missing_pairs(released: Released, features: Collection[int]) -> list[tuple[int, int]]:
    """Return the pairs of these features that no published table holds."""
    pairs = combinations(sorted(set(features)), 2)
    return [pair for pair in pairs if not together(released, pair)]


def merged_categories(released: Released, feature: int) -> list[int]:
    """Return the categories of a feature that share their level with others."""
    levels = released.levels[feature]
    sizes = np.bincount(levels)
    found: list[int] = np.flatnonzero(sizes[levels] > 1).tolist()
    return found


def cell_deviation(released: Released, cell: Mapping[int, int]) -> float:
    """Return the deviation of the noise on a published count, of all tables that hold it.

    Independent noise is averaged by the inverse of its variance. Infinite where no table
    holds the cell.

    Parameters
    ----------
    cell
        Feature to category.
    """
    precision = sum(1.0 / variance for variance in _variances(released, cell))
    return 1.0 / math.sqrt(precision) if precision else math.inf


def _variances(released: Released, cell: Mapping[int, int]) -> Iterator[float]:
    if len(cell) == 1:
        (feature,) = cell
        # Public shares have no noise to speak of.
        yield released.one_ways[feature].deviation ** 2
    if any(code in merged_categories(released, feature) for feature, code in cell.items()):
        return
    if released.residuals and len(cell) > 1:
        yield variance_by_parts(released, tuple(cell))
    for table in (*released.blocks, *released.extra):
        if set(cell) <= set(table.features):
            own = cell_count(tuple(cell), released.sizes)
            yield table.deviation**2 * (len(table.counts) / own)


def variance_by_parts(released: Released, features: tuple[int, ...]) -> float:
    """Return the variance of a cell that is the sum of residuals of all its parts (R27).

    Infinite if one of these was not measured. Public shares were not: their counts have the noise
    of the number of rows, and are as true as the shares that were stated.
    """
    if any(released.public[feature] for feature in features):
        return math.inf
    sizes = released.sizes
    variance = released.total[1] ** 2 / cell_count(features, sizes) ** 2
    for width in range(1, len(features) + 1):
        for part in combinations(features, width):
            apart = cell_count(features, sizes) / cell_count(part, sizes)
            variance += _residual_variance(released, part) / apart**2
    return variance


def _residual_variance(released: Released, features: tuple[int, ...]) -> float:
    levels = [released.sizes[feature] for feature in features]
    if len(features) == 1:
        return released.one_ways[features[0]].deviation ** 2 * (1 - 1 / levels[0])
    precision = sum(
        cell_noise(table.deviation, levels) ** -2
        for table in released.residuals
        if set(table.features) == set(features)
    )
    return 1.0 / precision if precision else math.inf
