"""Details: features whose categories each belong to one category of their parent.

A detail is drawn given its parent, by one-way shares that were paid for and the public map of what
belongs to what. It needs no block, and no row has a detail that does not belong to its parent. The
one-way shares of a detail are made to agree with those of its parent, which are known better.
All of it is post-processing (R11).

Details of a parent in a release of blocks: what the schema says of them, checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.gibbs.order import detail_features
from pegsynth.methods.released.row_pool import Pool
from pegsynth.methods.released.smoothing import fitted_to
from pegsynth.schema.related_columns import ancestors, belongs_to, has_map

if TYPE_CHECKING:
    from pegsynth.schema import Schema


from pegsynth.codec.levels import alone, merged, merged_along
from pegsynth.methods.released.steps import MOST_LEVELS

Allowed = np.ndarray[tuple[int, int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class Detail:
    """A feature that belongs to another.

    Parameters
    ----------
    feature, parent
        Places of both.
    allowed
        For every category of the parent, and every category or level of the feature, whether
        they go together; public.
    """

    feature: int
    parent: int
    allowed: Allowed

    def on_levels(self, levels: Int64, above: Int64 | None = None) -> Detail:
        """Return the same on merged levels, of the parent as well where they are given.

        Levels of a public detail do not cross a category of its parent.
        """
        merged = np.zeros((len(self.allowed), int(levels.max()) + 1), dtype=bool)
        for category, level in enumerate(levels.tolist()):
            merged[:, level] |= self.allowed[:, category]
        if above is None:
            return Detail(self.feature, self.parent, merged)
        lines = np.zeros((int(above.max()) + 1, merged.shape[1]), dtype=bool)
        np.logical_or.at(lines, above, merged)
        return Detail(self.feature, self.parent, lines)

    def turned(self) -> Detail:
        """Return what goes together, seen from the feature."""
        return Detail(self.parent, self.feature, self.allowed.T)

    def joint(self, parent: Float64, own: Float64) -> Float64:
        """Return shares of both together that agree with the parent's, and nearly with its own."""
        table = np.where(self.allowed, np.outer(parent, own), 0.0)
        return fitted_to(table, {(1,): own, (0,): parent})

    def given(self, parent: Float64, own: Float64) -> Float64:
        """Return the distribution of the feature for every category of its parent."""
        joint = self.joint(parent, own)
        sums = joint.sum(axis=1, keepdims=True)
        even = self.allowed / self.allowed.sum(axis=1, keepdims=True)
        shares: Float64 = np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), even)
        return shares

    def place(self, pool: Pool, parent: Float64, own: Float64) -> None:
        """Draw the feature of every row of a pool given its parent.

        Where a rule leaves nothing that belongs to the parent the row dies; so it does where a
        rounded sum would have carried it past the last category that belongs.
        """
        pool.draw(self.feature, (self.parent,), self.given(parent, own))
        columns = pool.columns
        pool.alive &= self.allowed[columns[self.parent], columns[self.feature]]


def allowed_pairs(belongs: Int64, parents: int, listed: int) -> Allowed:
    """Return what goes together.

    Parameters
    ----------
    belongs
        For every category of a detail the one of its parent; below 0: any.
    parents, listed
        Categories of the parent in all, and those of them that are not special: special ones,
        such as missing, go with every detail.
    """
    allowed: Allowed = (belongs[None, :] == np.arange(parents)[:, None]) | (belongs < 0)[None, :]
    allowed[listed:] = True
    return allowed


def within_parent(detail: Detail) -> Int64:
    """Return a number for every category of a detail, the same for those that go alike."""
    _, numbers = np.unique(detail.allowed, axis=1, return_inverse=True)
    return np.asarray(numbers, dtype=np.int64).ravel()


def details_on_levels(
    public: Sequence[Detail], told: Sequence[Detail], levels: Sequence[Int64]
) -> tuple[Detail, ...]:
    """Return details on merged levels; the parents of public ones keep their categories."""
    return (
        *(each.on_levels(levels[each.feature]) for each in public),
        *(each.on_levels(levels[each.feature], levels[each.parent]) for each in told),
    )


def linked(details: Sequence[Detail], features: Sequence[int]) -> set[int]:
    """Return features, and all whose shares move with theirs."""
    found = set(features)
    for detail in details:
        if {detail.feature, detail.parent} & found:
            found |= {detail.feature, detail.parent}
    return found


def check_details(method: str, schema: Schema) -> None:
    """Refuse details that nothing public leads to their parent."""
    details = [schema.features[i] for i in detail_features(schema)]
    for feature in details:
        if not has_map(feature):
            raise ParameterError(
                f"feature {feature.name!r}: {method} draws a detail given its parent by a public "
                "hierarchy; state hierarchy and level = 0 in the schema, leave `parent` out, or "
                "use --method pegs"
            )
    for detail in details_of(schema):
        childless = [i for i, line in enumerate(detail.allowed) if not line.any()]
        if childless:
            names = schema.names
            raise ParameterError(
                f"feature {names[detail.feature]!r}: nothing belongs to category number "
                f"{childless[0] + 1} of its parent {names[detail.parent]!r}; list a category that "
                "does, or leave that one out"
            )


def details_of(schema: Schema) -> tuple[Detail, ...]:
    """Return the details of a schema, parents first, on their categories."""
    found = []
    for place in detail_features(schema):
        feature = schema.features[place]
        parent = schema[feature.parent or ""]
        belongs = belongs_to(feature, parent)
        allowed = allowed_pairs(belongs, parent.category_count, parent.bin_count)
        found.append(Detail(place, schema.index(parent.name), allowed))
    return tuple(found)


def parents_of(schema: Schema) -> set[int]:
    """Return the places of features that others are details of: these stay whole."""
    return {schema.index(feature.parent) for feature in schema.features if feature.parent}


def hierarchies(schema: Schema) -> list[Sequence[Int64]]:
    """Return what the categories of every feature belong to, level by level."""
    return [ancestors(feature) for feature in schema.features]


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
