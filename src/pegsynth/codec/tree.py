"""Noisy trees over the grids of numbers (R21).

`measure_tree` takes the exact counts of a grid and looks at them through a privacy filter and in
no other way: first at all octaves, then level by level at the children of those nodes whose
noisy count stood out of the noise. One row changes one cell of each level, so every level
costs what one noisy table costs, whichever nodes are looked at (R11). What comes out is a
`NumberTree`, which may be published; all else in this package is made of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from pegsynth.codec.number_grid import LEVELS, Grid, grid_of
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.schema.feature import Feature

PURPOSE = "edges"
RARE = "rare"
LEVEL_SHARES = (0.5, 0.25, 0.18, 0.07)
"""Parts of a feature's amount for octaves, eighths, parts and round numbers."""
WEEKDAY_SHARE = 0.1
"""The part of it that weekdays take, where they are measured."""
SPLIT_ABOVE = (8.0, 8.0, 6.0)
"""A node is split if its noisy count is above this many deviations of its children's noise."""
NOT_KNOWN = -np.inf
_LIKELY_CHILDREN = 2.0
_WEEKDAYS, SUM_NODES = 7, 4
_NO_NOISE = 1e-8
_SLACK = 1 - 1e-9


class ExactCounts:
    """A filter that adds no noise, for methods that promise nothing (R10).

    A caller has to record that the release is not private.
    """

    route = "zcdp"

    def measure(self, counts: Int64, share: float, **about: object) -> tuple[Int64, float]:
        """Return the counts, or sums, as they are."""
        return counts, self.deviation(share)

    measure_sums = measure

    def deviation(self, share: float) -> float:
        """Return next to nothing, so that every node that holds a row is split."""
        return _NO_NOISE


Filter: TypeAlias = PrivacyFilter | ExactCounts


@dataclass(frozen=True, eq=False)
class Level:
    """What was measured of one level: nodes, their noisy counts, the noise's deviation.

    Of the first level the nodes are all octaves, then the feature's special categories. A
    level at which nothing was worth looking at has no nodes.
    """

    nodes: Int64
    counts: Int64
    deviation: float


@dataclass(frozen=True, eq=False)
class NumberTree:
    """Noisy counts of a feature, level by level; public once they are paid for.

    Parameters
    ----------
    name
        Name of the feature.
    levels
        What was measured, from octaves down; weekdays, or a clipped sum, come last.
    laplace
        Whether the noise is Laplace or Gaussian.
    """

    name: str
    levels: tuple[Level, ...]
    laplace: bool

    @property
    def noisy(self) -> bool:
        """Whether there is noise on its counts; exact ones are confidential."""
        return self.levels[0].deviation > _NO_NOISE

    @property
    def weekday(self) -> Level | None:
        """What was measured of weekdays, where it was: the level after all others."""
        return self._last(_WEEKDAYS)

    @property
    def clipped_sum(self) -> Level | None:
        """The clipped sum, where it was measured: the level after all others.

        Its nodes are the cells of the centre and of the bound, the number of rows, and the most
        that a row adds.
        """
        return self._last(SUM_NODES)

    def _last(self, nodes: int) -> Level | None:
        last = self.levels[-1]
        return last if len(self.levels) > LEVELS and len(last.nodes) == nodes else None

    def arrays(self) -> dict[str, Int64]:
        """Return the measurements as plain arrays, for a file."""
        found = {}
        for number, level in enumerate(self.levels):
            found[f"nodes{number}"], found[f"counts{number}"] = level.nodes, level.counts
        return found


def measure_tree(
    counts: Int64, feature: Feature, budget_filter: Filter, share: float, *, index: int = 0
) -> NumberTree:
    """Measure the noisy tree of a feature; see `measured_numbers.measure`."""
    if not feature.binned:
        return _one_way(counts, feature, budget_filter, share, index=index)
    grid = grid_of(feature)
    special = feature.category_count - feature.bin_count
    if len(counts) != grid.cells + special:
        raise ParameterError(f"feature {feature.name!r}: counts are not of its grid")
    cells, specials = counts[: grid.cells], counts[grid.cells :]
    about: dict[str, Any] = {"purpose": PURPOSE, "features": (index,)}
    weekday: list[Level] = []
    if feature.weekday:
        # Seven disjoint sets of cells: a level like any other, though it nests in none (R21).
        line, part = grid.weekday_totals(cells), WEEKDAY_SHARE * share * _SLACK
        noisy, deviation = budget_filter.measure(line, part, levels=(len(line),), **about)
        weekday, share = (
            [Level(np.arange(len(line)), noisy, deviation)],
            (1 - WEEKDAY_SHARE) * share,
        )
    first = LEVEL_SHARES[0] * share * _SLACK
    top = np.concatenate((grid.totals(cells, 0), specials))
    noisy, deviation = budget_filter.measure(top, first, levels=(len(top),), **about)
    levels = [Level(np.arange(len(top)), noisy, deviation)]
    known = noisy[: grid.nodes(0)].astype(np.float64)
    left = share * _SLACK - first
    for level in range(1, LEVELS):
        part = _part(left, level, known, budget_filter) if left > 0 else 0.0
        parents = grid.parents(level)
        divided = np.bincount(parents) > 1
        enough = SPLIT_ABOVE[level - 1] * budget_filter.deviation(part) if part > 0 else np.inf
        split = divided & (known > enough)
        # A node that is not divided on this level is not measured twice.
        known = np.where(divided[parents], NOT_KNOWN, known[parents])
        nodes = np.flatnonzero(split[parents])
        if len(nodes):
            below = grid.totals(cells, level)[nodes]
            noisy, deviation = budget_filter.measure(below, part, levels=(len(nodes),), **about)
            known[nodes] = noisy
            levels.append(Level(nodes, noisy, deviation))
            left -= part
        else:
            levels.append(Level(nodes, nodes, 0.0))
    tree = NumberTree(feature.name, (*levels, *weekday), budget_filter.route == "pure")
    return measured_again(tree, counts, grid, budget_filter, left, index=index)


def measured_again(
    tree: NumberTree, counts: Int64, grid: Grid, budget_filter: Filter, share: float, *, index: int
) -> NumberTree:
    """Return a tree whose octaves are more precise by a further amount, if none was divided."""
    first, *below = tree.levels
    if share <= 0 or any(len(level.nodes) for level in below[: LEVELS - 1]):
        return tree
    top = np.concatenate((grid.totals(counts[: grid.cells], 0), counts[grid.cells :]))
    noisy, deviation = budget_filter.measure(
        top, share, purpose=PURPOSE, features=(index,), levels=(len(top),)
    )
    levels = (_combined(first, Level(first.nodes, noisy, deviation)), *below)
    return replace(tree, levels=levels)


def _combined(one: Level, other: Level) -> Level:
    """Return the mean of two measurements of the same nodes, each by its precision."""
    precise = [1 / level.deviation**2 for level in (one, other)]
    counts = np.average([one.counts, other.counts], axis=0, weights=precise)
    return Level(one.nodes, np.rint(counts).astype(np.int64), sum(precise) ** -0.5)


def _one_way(
    counts: Int64, feature: Feature, budget_filter: Filter, share: float, *, index: int
) -> NumberTree:
    """Measure the categories of a feature whose rare ones are merged: a tree of one level (R31)."""
    noisy, deviation = budget_filter.measure(
        counts, share * _SLACK, purpose=RARE, features=(index,), levels=(len(counts),)
    )
    level = Level(np.arange(len(counts)), noisy, deviation)
    return NumberTree(feature.name, (level,), budget_filter.route == "pure")


def exact_tree(counts: Int64, feature: Feature) -> NumberTree:
    """Return the tree of exact counts: confidential, and for unprotected methods only."""
    return measure_tree(counts, feature, ExactCounts(), 1.0)


def _part(left: float, level: int, known: Float64, budget_filter: Filter) -> float:
    """Return how much of what is left goes into a level: all, if none below can follow.

    It depends on noisy counts that were paid for, which a filter allows (R11).
    """
    here = LEVEL_SHARES[level] / sum(LEVEL_SHARES[level:])
    if level + 1 == LEVELS:
        return left
    part, rest = here * left, (1 - here) * left
    largest = float(known.max()) / _LIKELY_CHILDREN
    return part if largest > SPLIT_ABOVE[level] * budget_filter.deviation(rest) else left
