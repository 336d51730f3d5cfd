"""Levels: categories merged where the noise of a block would drown them.

Neighbours of an ordered feature merge into runs that are large enough; categories of any
other feature that are too small become one level, or one for each part of a public
hierarchy. At the end a level's rows are split again by the one-way shares of its categories.

Rare categories, merged by noisy counts that a release pays for (R31).

The one-way counts of a feature are looked at once, through a privacy filter (`tree.measure`). What
comes out of it is public, and so are the groups that `merged_rare` makes of categories whose noisy
count is small. The recoding by these groups is row-wise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64, Int64, UInt16
from pegsynth.kernels.pool_loops import grouped, shuffled, spread_within, uniforms
from pegsynth.schema.feature import Feature
from pegsynth.schema.recoding import RARE_LABEL, Recoding
from pegsynth.schema.related_columns import ancestors


def alone(categories: int) -> Int64:
    """Return a level for every category."""
    return np.arange(categories, dtype=np.int64)


def merged(counts: Float64, least: float, *, ordered: bool) -> Int64:
    """Return the level of every category, such that levels count at least `least`.

    What is left over joins the run before it, or else its neighbours across what is large.
    """
    return _runs(counts, least) if ordered else _lumped(counts, least)


def merged_along(
    counts: Float64, least: float, above: Sequence[Int64], within: Int64 | None = None
) -> Int64:
    """Return levels that merge small categories with those that belong to the same.

    What belongs together is still too small merges on the next level of the hierarchy, and in
    the end with all that is left.

    Parameters
    ----------
    above
        For each level of the hierarchy a number for what every category belongs to, nearest
        level first.
    within
        A number for every category: those of different numbers never merge.
    """
    inside = np.zeros(len(counts), dtype=np.int64) if within is None else within
    groups = alone(len(counts))
    small = counts < least
    for line in (*above, np.zeros(len(counts), dtype=np.int64)):
        if not small.any():
            break
        names = np.stack([line, inside])[:, small]
        _, numbers = np.unique(names, axis=1, return_inverse=True)
        # Numbers of their own, beyond those of groups that are large enough already.
        groups[small] = groups.max() + 1 + numbers.ravel()
        sums = np.bincount(groups, weights=counts, minlength=int(groups.max()) + 1)
        small &= sums[groups] < least
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _lumped(counts: Float64, least: float) -> Int64:
    large = counts >= least
    if np.count_nonzero(~large) < 2:
        return alone(len(counts))
    levels = np.full(len(counts), np.count_nonzero(large), dtype=np.int64)
    levels[large] = np.arange(np.count_nonzero(large))
    return levels


def _runs(counts: Float64, least: float) -> Int64:
    levels = np.full(len(counts), -1, dtype=np.int64)
    level, start, before = 0, 0, -1
    small: list[tuple[int, int]] = []

    def close(end: int) -> None:
        """Give the open run a level if it is large enough, else to the run before it."""
        nonlocal level, start, before
        if start < end:
            if counts[start:end].sum() >= least:
                levels[start:end] = before = level
                level += 1
            elif before >= 0:
                levels[start:end] = before
            else:
                small.append((start, end))
        start = end

    for category, count in enumerate(counts):
        if count >= least:
            close(category)
            levels[category], before, start = level, -1, category + 1
            level += 1
        elif counts[start : category + 1].sum() >= least:
            close(category + 1)
    close(len(counts))
    # What is left between large ones merges in its order too, across them: far ends stay apart.
    rows, left = 0.0, level
    for first, end in small:
        levels[first:end] = left
        rows += counts[first:end].sum()
        if rows >= least:
            rows, left = 0.0, left + 1
    if left > level:
        levels[levels == left] = left - 1
    return levels


def split_again(
    column: UInt16, levels: Int64, shares: Float64, words: NDArray[np.uint64]
) -> NDArray[np.uint32]:
    """Return categories for a column of levels, those of a level in their shares.

    Inside a level rows get equally spaced quantiles, in the random order of `words`: one
    for each row and one for each level.
    """
    size = int(levels.max()) + 1
    members = np.argsort(levels, kind="stable")
    if size == len(levels):
        return members.astype(np.uint32)[column]
    first = np.searchsorted(levels[members], np.arange(size + 1))
    order = shuffled(words[: len(column)])
    rows, starts = grouped(column, order, size)
    return spread_within(rows, starts, members, first, shares, uniforms(words[len(column) :]))


RARE_BELOW = 4.0
"""A category is rare if its noisy count is below this many deviations of the noise."""


def rare_grid(feature: Feature) -> Feature:
    """Return the feature as it is counted: all categories apart."""
    return replace(feature, recoding=_settled(feature, ()), shares=())


def merged_rare(feature: Feature, noisy: Int64, deviation: float) -> Feature:
    """Return the feature with rare categories as groups.

    Small categories of a hierarchy merge with what belongs to the same first, neighbours of an
    ordinal feature with each other, and all others become one.

    Parameters
    ----------
    noisy, deviation
        Noisy counts of all categories, special ones too, and the deviation of their noise.
    """
    if len(noisy) != feature.category_count:
        raise ParameterError(f"feature {feature.name!r}: counts are not of its categories")
    listed = feature.bin_count
    counts = np.maximum(noisy[:listed], 0).astype(np.float64)
    least = RARE_BELOW * deviation
    above = [line[:listed] for line in ancestors(feature)]
    if above:
        levels = merged_along(counts, least, above)
    else:
        levels = merged(counts, least, ordered=feature.kind == "ordinal")
    groups = []
    for level in range(int(levels.max()) + 1):
        members = np.flatnonzero(levels == level)
        if len(members) > 1:
            texts = tuple(feature.categories[code] for code in members)
            groups.append((_name(feature, members, above), texts))
    return replace(feature, recoding=_settled(feature, tuple(groups)))


def _settled(feature: Feature, groups: tuple[tuple[str, tuple[str, ...]], ...]) -> Recoding:
    """Return the recoding with further groups; what was a group already stays one."""
    recoding = feature.recoding or Recoding()
    before = dict(recoding.groups)
    made = {
        name: tuple(text for each in texts for text in (each, *before.get(each, ())))
        for name, texts in groups
    }
    gone = {text for _, texts in groups for text in texts}
    kept = {name: texts for name, texts in before.items() if name not in gone}
    return replace(recoding, rare=None, groups=tuple((kept | made).items()))


def _name(feature: Feature, members: Int64, above: list[Int64]) -> str:
    """Return what merged categories are called: what they belong to, or from where to where."""
    first, last = feature.categories[members[0]], feature.categories[members[-1]]
    if feature.kind == "ordinal" and last != first and members[-1] - members[0] == len(members) - 1:
        return f"{first} to {last}"
    recoding = feature.recoding
    for level, line in enumerate(above):
        if len(set(line[members].tolist())) == 1 and recoding and recoding.hierarchy:
            return f"{recoding.hierarchy.above(first)[level]} {RARE_LABEL}"
    return RARE_LABEL
