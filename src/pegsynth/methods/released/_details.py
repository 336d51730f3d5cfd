"""Features that belong to another, which the schema says or a paid search finds (R33).

A detail is drawn given its parent, by one-way shares that were paid for and a map of what belongs
to what. It needs no block, and no row has a detail that does not belong to its parent. The one-way
shares of a detail are made to agree with those of its parent, which are known better.

Where the schema says nothing, one feature may still tell another, as a code tells its group. Such
a pair is chosen by how many rows the best map explains; that number is measured, and where it is
next to all rows, so is the table of both, of which the map is read off. What follows is
post-processing (R11): the told feature becomes a `Detail`, and no row breaks the map.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.levels import alone, merged, merged_along
from pegsynth.errors import ParameterError
from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.methods.drawn_features import clamped_codes
from pegsynth.methods.gibbs.order import detail_features
from pegsynth.methods.released._row_pool import Features
from pegsynth.methods.released._values import (
    MOST_TABLE_CELLS,
    Allowed,
    CountedTable,
    Detail,
    Domain,
    NoisyTable,
)
from pegsynth.schema.related_columns import ancestors, belongs_to, has_map

if TYPE_CHECKING:
    from pegsynth.options import MethodOptions
    from pegsynth.schema import Schema


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


def hierarchies(schema: Schema) -> list[Sequence[Int64]]:
    """Return what the categories of every feature belong to, level by level."""
    return [ancestors(feature) for feature in schema.features]


def domain_of(schema: Schema, options: MethodOptions) -> Domain:
    """Return the domain of a table whose rows are counted as they are."""
    apart = set(clamped_codes(schema, options))
    apart |= {schema.index(name) for table in schema.tables_wanted for name in table.features}
    panel = schema.panel
    return Domain(
        schema.category_counts,
        tuple(feature.kind != "nominal" for feature in schema.features),
        schema.names,
        tuple(schema.rules),
        details_of(schema),
        tuple(hierarchies(schema)),
        public_lines(schema),
        frozenset(apart),
        # The number of rows of a panel's unit settles what is absent (R24).
        schema.index(panel.count) if panel is not None and panel.wide else None,
    )


def public_lines(schema: Schema) -> tuple[NDArray[np.float64] | None, ...]:
    """Return the public shares of every feature, None where the schema states none."""
    return tuple(
        np.array(feature.shares) / math.fsum(feature.shares) if feature.shares else None
        for feature in schema.features
    )


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


Codes = NDArray[np.uint32]

MAP_PURPOSES = frozenset({"rows that a map explains", "map"})
"""What the ledger calls the noise of this search; replicates keep its maps as they are."""

MOST_DEPENDENCES = 0.12
"""What the search for features that others tell costs at the most."""
MOST_LEVELS = 2_000
"""No feature that merges, or that such a search is about, has more levels."""
_DEPENDENCE = 0.008
"""What the search for one dependence costs, half for the choice and half for its check."""
MOST_MAP = 0.03
"""The most that one map costs."""
_AUDIBLE = 0.08
"""The part of the rows that the noise of the choice may reach."""
_UNEXPLAINED = 0.002
"""The part of the rows that a map may leave unexplained."""
_LOT_CELLS = 1 << 22
_LEAST_VARIED = 0.1
_SLACK = 0.05
_GAP = 2.0
_LEAST_MAP = 0.002
_WRONG = 0.01
_HALVINGS = 12


@dataclass(frozen=True)
class Search:
    """What a search for dependences knows beforehand: public figures and paid output.

    Parameters
    ----------
    shares
        One-way shares of all categories of every feature.
    total
        Estimated number of rows.
    closed
        Features that others speak of already: rules, details, given values, an l.
    """

    table: CountedTable
    shares: Sequence[Float64]
    total: float
    budget_filter: PrivacyFilter
    closed: Collection[int] = ()

    def run(self) -> tuple[NoisyTable, ...]:
        """Find dependences one after the other, until one fails its check."""
        found = list[NoisyTable]()
        pairs = self._candidates()
        if not self._is_audible(len(pairs)):
            return ()
        scores, explained, counts = self._looked_at(pairs)
        spent = 0.0
        while spent + _DEPENDENCE + MOST_MAP <= MOST_DEPENDENCES:
            open_pairs = [pair for pair in pairs if _is_open(pair, found)]
            if not open_pairs:
                break
            index = self.budget_filter.choose(
                [scores[pair] for pair in open_pairs],
                _DEPENDENCE / 2,
                purpose="dependence",
                among="pairs of features, the first of which tells the second",
                features_of=open_pairs.__getitem__,
            )
            pair = open_pairs[index]
            spent += _DEPENDENCE
            if not self._is_told(explained[pair], pair):
                break
            share = map_share(self.budget_filter.price, self.shares, self.total, pair)
            noisy, deviation = self.budget_filter.measure(
                counts(pair),
                share,
                purpose="map",
                features=pair,
                levels=[len(self.shares[each]) for each in pair],
            )
            spent += share
            found.append(NoisyTable(pair, noisy, deviation))
        return tuple(found)

    def _candidates(self) -> list[Features]:
        """Return pairs whose one-way shares let the first tell the second."""
        sizes = [len(line) for line in self.shares]
        usable = [
            feature
            for feature, size in enumerate(sizes)
            if feature not in self.closed and 2 <= size <= MOST_LEVELS
        ]
        largest = [float(line.max()) for line in self.shares]
        varied = [1.0 - float(np.square(line).sum()) for line in self.shares]
        found: list[Features] = []
        for pair in combinations(usable, 2):
            if sizes[pair[0]] * sizes[pair[1]] > MOST_TABLE_CELLS:
                continue
            found += [
                (teller, told)
                for teller, told in (pair, pair[::-1])
                if varied[told] >= _LEAST_VARIED
                and largest[teller] <= largest[told] + _SLACK
                and varied[told] <= varied[teller] + _SLACK
            ]
        return found

    def _is_audible(self, candidates: int) -> bool:
        """Say whether a choice among so many could find a dependence at all."""
        if not candidates:
            return False
        price = self.budget_filter.price
        scale = price.deviation(_DEPENDENCE / 2)
        if price.allowance.route == "pure":
            scale *= math.sqrt(2)
        return scale * math.log(candidates + 1) <= _AUDIBLE * self.total

    def _looked_at(
        self, pairs: list[Features]
    ) -> tuple[dict[Features, int], dict[Features, int], Callable[[Features], Int64]]:
        """Return scores, the rows that best maps explain, and what counts a pair's table."""
        sizes = [len(line) for line in self.shares]
        usable = {feature for pair in pairs for feature in pair}
        lines = [
            alone(size) if feature in usable else np.zeros(size, dtype=np.int64)
            for feature, size in enumerate(sizes)
        ]
        table = self.table.merged(lines)
        scores: dict[Features, int] = {}
        explained: dict[Features, int] = {}
        wanted = set(pairs)
        for lot in _lots(sorted({tuple(sorted(pair)) for pair in pairs}), sizes):
            table.ask(lot)
            for pair in lot:
                counts = table.count(pair).reshape([sizes[each] for each in pair])
                first, second = (self.shares[each] for each in pair)
                common = overlap(counts, np.multiply.outer(first, second) * self.total)
                for ordered, axis in ((pair, 1), (pair[::-1], 0)):
                    if ordered in wanted:
                        explained[ordered] = rows_explained(counts, axis)
                        scores[ordered] = explained[ordered] - common
        return scores, explained, table.count

    def _is_told(self, explained: int, pair: Features) -> bool:
        """Measure how many rows the best map explains, and say whether it is next to all."""
        noisy, deviation = self.budget_filter.measure(
            np.array([explained], dtype=np.int64),
            _DEPENDENCE / 2,
            purpose="rows that a map explains",
            features=pair,
        )
        least = self.total * (1 - _UNEXPLAINED) - 3 * deviation
        return float(noisy[0]) >= least


def rows_explained(counts: Int64, axis: int) -> int:
    """Return how many rows the best map explains: the largest cell of every line.

    A row more adds 1 to one cell, and so 0 or 1 to this number (R33).
    """
    return int(counts.max(axis=axis).sum())


def overlap(counts: Int64, expected: Float64) -> int:
    """Return how many rows are where independence expects them.

    A row more adds 0 or 1 to this number too; expectations are whole numbers (R33).
    """
    return int(np.minimum(counts, np.rint(expected).astype(np.int64)).sum())


def map_share(price: Price, shares: Sequence[Float64], total: float, pair: Features) -> float:
    """Return the least part of the whole that maps nearly all rows, as one-way counts say."""
    teller, told = pair
    counts, others = shares[teller] * total, len(shares[told]) - 1
    low, high = _LEAST_MAP, MOST_MAP
    if low >= high or _wrong(counts, others, price.deviation(low)) <= _WRONG * total:
        return min(low, high)
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        if _wrong(counts, others, price.deviation(middle)) <= _WRONG * total:
            high = middle
        else:
            low = middle
    return high


def _wrong(counts: Float64, others: int, deviation: float) -> float:
    """Return a bound on the rows of categories that noise maps to a wrong one."""
    chances = [0.5 * math.erfc(count / (2 * deviation)) * others for count in counts.tolist()]
    return float(np.minimum(chances, 1.0) @ counts)


def _is_open(pair: Features, found: Sequence[NoisyTable]) -> bool:
    """Say whether a pair is new: a feature is told once, and never by what it tells."""
    told_by = {table.features[1]: table.features[0] for table in found}
    teller, told = pair
    above = teller
    while above in told_by:
        above = told_by[above]
        if above == told:
            return False
    return told not in told_by


def _lots(pairs: Sequence[Features], sizes: Sequence[int]) -> Iterator[list[Features]]:
    """Yield pairs in lots that are counted together."""
    lot: list[Features] = []
    cells = 0
    for pair in pairs:
        cells += sizes[pair[0]] * sizes[pair[1]]
        if lot and cells > _LOT_CELLS:
            yield lot
            lot, cells = [], sizes[pair[0]] * sizes[pair[1]]
        lot.append(pair)
    if lot:
        yield lot


def told_details(maps: Sequence[NoisyTable], sizes: Sequence[int]) -> tuple[Detail, ...]:
    """Return the features that others tell, on their categories, tellers first."""
    left = list(maps)
    placed: list[Detail] = []
    while left:
        told = {table.features[1] for table in left}
        table = next(each for each in left if each.features[0] not in told)
        left.remove(table)
        teller, feature = table.features
        cells = table.counts.reshape(sizes[teller], sizes[feature])
        placed.append(Detail(feature, teller, allowed_by(cells, table.deviation)))
    return tuple(placed)


def allowed_by(cells: Int64 | Float64, deviation: float) -> Allowed:
    """Return what goes together: the largest cell of a line, and all that noise lets tie with it.

    A told category that no line leads to stays with the line where its own cell is largest.
    """
    allowed: Allowed = cells >= cells.max(axis=1, keepdims=True) - _GAP * deviation
    for lost in np.flatnonzero(~allowed.any(axis=0)):
        allowed[int(cells[:, lost].argmax()), lost] = True
    return allowed


def agreed_shares(shares: Sequence[Float64], told: Sequence[Detail]) -> tuple[Float64, ...]:
    """Return one-way shares of categories; what is told has the shares that its teller leaves."""
    lines = list(shares)
    for each in told:
        joint = each.joint(lines[each.parent], lines[each.feature])
        own = joint.sum(axis=0)
        lines[each.feature] = own / own.sum()
    return tuple(lines)


def tell(
    codes: Codes,
    told: Sequence[Detail],
    shares: Sequence[Float64],
    uniforms: Callable[[int], Float64],
    given: Mapping[int, int] | None = None,
) -> None:
    """Write over told categories that do not go with the category that tells them.

    Merged levels were split one by one; a map is about categories. Given values stay.
    """
    for each in told:
        if given and each.feature in given:
            continue
        teller = codes[:, each.parent]
        rows = np.flatnonzero(~each.allowed[teller, codes[:, each.feature]])
        reached = np.cumsum(each.given(shares[each.parent], shares[each.feature]), axis=1)
        drawn = kernels.draw_lines(teller[rows].astype(np.uint16), reached, uniforms(len(rows)))
        codes[rows, each.feature] = drawn
