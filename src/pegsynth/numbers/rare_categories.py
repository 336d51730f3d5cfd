"""Rare categories, merged by noisy counts that a release pays for (R31).

The one-way counts of a feature are looked at once, through a privacy filter (`tree.measure`). What
comes out of it is public, and so are the groups that `merged_rare` makes of categories whose noisy
count is small. The recoding by these groups is row-wise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pegsynth.arrays import Int64
from pegsynth.errors import ParameterError
from pegsynth.released.levels import merged, merged_along
from pegsynth.schema.feature import Feature
from pegsynth.schema.parents import ancestors
from pegsynth.schema.recoding import RARE_LABEL, Recoding

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
