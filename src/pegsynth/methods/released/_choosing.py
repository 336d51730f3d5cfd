"""What is measured next, by private choices: blocks first, then what the pool predicts worst.

The first round places one feature after the other. A candidate is a feature not yet placed and up
to three heads among those that are. Its score is how far its true table lies from what the pool
and the one-way shares expect, less what the noise of its block would add; one row changes it by at
most 1 (R10). A feature may also be placed without heads, at score 0.

The second round measures what the weighted pool predicts worst, fits it to that, and repeats. How
many tables it looks at, and how often, follows from what processor and memory allow, from public
figures and the noisy number of rows. A candidate costs one pass over the pool whenever its
distance is taken, and the memory of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._estimates import Margins, given_lines, on_simplex, shrunken
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._pairs import MEAN_ABSOLUTE_NORMAL, PAIR, summed_noise
from pegsynth.methods.released._row_pool import Features, Pool, Ruled, cell_count
from pegsynth.methods.released._values import MOST_TABLE_CELLS, MergedTable, NoisyTable

MOST_PENALTY = float(1 << 60)
WIDE_TABLE = 24
"""Beyond so many features heads are looked for along the blocks that exist already."""
_MOST_VISITS = 2_000_000_000
"""Rows of the pool that are visited when the distances of all pairs are taken: seconds."""
_MOST_CELLS = 1 << 24
_LEAST_CANDIDATES = 800
_ROUNDS_PER_FEATURE = 2
_ALL_ANEW = 10
_MOST_TRIPLES = 400
TRIPLE_DIVISOR, RESIDUAL_DIVISOR = 4, 2
"""What scores of triples are divided by, whole tables and residuals: a pair serves more figures."""


@dataclass
class FirstRound:
    """Chooses and measures blocks of a confidential table, one feature after the other."""

    table: MergedTable
    pool: Pool
    margins: Margins
    budget_filter: PrivacyFilter
    steps: Steps
    choice_share: float
    left_share: float
    _heads: list[Features] = field(default_factory=list)
    _candidates: Int64 = field(default_factory=lambda: np.zeros((0, 4), dtype=np.int64))
    _parents: dict[int, Features] = field(default_factory=dict)
    _ruled: dict[int, Ruled | None] = field(default_factory=dict)

    def next(self, left: list[int]) -> tuple[int, NoisyTable | None]:
        """Choose a feature and its heads among those left, and measure its block."""
        self._look(left)
        candidates = self._candidates[np.isin(self._candidates[:, 1], left)]
        share = self.left_share / len(left)
        penalty = (
            MEAN_ABSOLUTE_NORMAL
            * self.budget_filter.deviation(share)
            * self.steps.care.block_penalty
        )
        distances, cells = candidates[:, 2:].T
        scores: list[int] = (distances - whole_penalty(penalty * cells)).tolist()
        scores += [0] * len(left)
        index = self.budget_filter.choose(
            scores,
            self.choice_share,
            purpose="heads",
            among=f"blocks of a feature to draw next and up to {self.steps.heads} drawn before it",
            features_of=lambda index: self._features(index, candidates, left),
        )
        feature, heads = self._candidate(index, candidates, left)
        self._parents[feature] = heads
        if not heads:
            return feature, None
        features = (*heads, feature)
        counts = self.table.count(features)
        noisy, deviation = self.budget_filter.measure(
            counts,
            share,
            purpose="block",
            features=features,
            levels=[self.pool.sizes[each] for each in features],
        )
        self.left_share -= share
        return feature, NoisyTable(features, noisy, deviation)

    def _candidate(self, index: int, candidates: Int64, left: list[int]) -> tuple[int, Features]:
        """Return a feature and its heads; those without heads come last."""
        alone = index - len(candidates)
        if alone >= 0:
            return left[alone], ()
        number, feature = candidates[index, :2].tolist()
        return feature, self._heads[number]

    def _features(self, index: int, candidates: Int64, left: list[int]) -> Features:
        """Return the features of a candidate's block, the one that it draws last."""
        feature, heads = self._candidate(index, candidates, left)
        return (*heads, feature)

    def _look(self, left: list[int]) -> None:
        """Take the distances of the candidates that the feature placed last makes possible.

        A candidate is a line: the number of its heads, its feature, the distance of its
        table from what is expected, and the cells of that table.
        """
        sizes = self.pool.sizes
        wanted = {
            heads: [f for f in left if cell_count((*heads, f), sizes) <= MOST_TABLE_CELLS]
            for heads in self._new_heads()
        }
        self.table.ask([(*heads, f) for heads, features in wanted.items() for f in features])

        scale = self.margins.total / self.pool.rows
        ruled = self._ruled
        for feature in left:
            if feature not in ruled or not self.pool.same_rules(feature):
                ruled[feature] = self.pool.ruled(feature)

        def work(item: tuple[int, Features]) -> list[tuple[int, int, int, int]]:
            number, heads = item
            keys, cells = self.pool.keys(heads), self.pool.cells(heads)
            expected: Float64 = kernels.count_cells(keys, cells).astype(np.float64) * scale
            lines = []
            for feature, counts in zip(
                wanted[heads], self.table.extended(heads, wanted[heads]), strict=True
            ):
                shares, rules = self.margins.shares[feature], ruled[feature]
                if rules is None:
                    away = kernels.distance_from_product(counts, expected, shares)
                else:
                    # What rules settle is known already, and no reason to measure a table.
                    reference = rules.counts(keys, cells, shares).ravel() * scale
                    away = kernels.distance(counts, reference)
                lines.append((number, feature, int(away), len(counts)))
            return lines

        found = self.pool.each(work, enumerate(wanted, len(self._heads)))
        self._heads += wanted
        kept = self._candidates[np.isin(self._candidates[:, 1], left)]
        new = np.array([line for lines in found for line in lines], dtype=np.int64).reshape(-1, 4)
        self._candidates = np.concatenate([kept, new])

    def _new_heads(self) -> Iterator[Features]:
        newest = self.pool.placed[-1]
        others = [feature for feature in self.pool.placed if feature != newest]
        if len(self.pool.sizes) > WIDE_TABLE:
            near = set(self._parents.get(newest, ()))
            near |= {h for parent in near for h in self._parents.get(parent, ())}
            others = [feature for feature in others if feature in near]
        for count in range(self.steps.heads):
            for chosen in combinations(others, count):
                heads = tuple(sorted((*chosen, newest)))
                if cell_count(heads, self.pool.sizes) <= MOST_TABLE_CELLS:
                    yield heads


def whole_penalty(amounts: Float64) -> Int64:
    """Round what noise would add to whole numbers that leave room for any distance.

    Scores must fit in 64 bits whatever the table holds: the bound is public.
    """
    return np.rint(np.minimum(amounts, MOST_PENALTY)).astype(np.int64)


def place_block(block: NoisyTable, pool: Pool, margins: Margins, steps: Steps) -> None:
    """Draw the feature of a block given its heads."""
    counts = block_counts(block, pool, margins, steps)
    pool.draw(block.features[-1], block.features[:-1], block_shares(block, counts, margins))


def block_counts(block: NoisyTable, pool: Pool, margins: Margins, steps: Steps) -> Float64:
    """Estimate the cells of a block, with the pool's own counts of its heads at hand."""
    noisy = block.counts.astype(np.float64)
    *heads, feature = block.features
    ruled, scale = pool.ruled(feature), margins.total / pool.rows
    counted = pool.counts(tuple(heads))
    expected = np.outer(counted, margins.shares[feature]).ravel() * scale
    if ruled is not None:
        keys = pool.keys(tuple(heads))
        expected = ruled.counts(keys, len(counted), margins.shares[feature]).ravel() * scale
    projected = on_simplex(noisy, block.deviation**2, margins.total)
    part = steps.care.pulled
    if not part or not steps.shrink:
        return projected
    pulled = shrunken(noisy, expected, block.deviation)
    if not pulled.any():
        pulled = expected  # noise below zero everywhere says nothing
    if not pulled.any():
        return projected  # and rules leave nothing to expect
    pulled = pulled * (margins.total / pulled.sum())
    mixed: Float64 = (1 - part) * projected + part * pulled
    return mixed


def block_shares(block: NoisyTable, counts: Float64, margins: Margins) -> Float64:
    """Return the distribution of a block's feature for every key of its heads."""
    feature = block.features[-1]
    return given_lines(counts.reshape(-1, margins.sizes[feature]), margins.shares[feature])


@dataclass(frozen=True)
class Room:
    """How many more candidates there may be.

    Parameters
    ----------
    tables, cells
        The most of both.
    """

    tables: int
    cells: int

    @classmethod
    def of(cls, pairs: int, pool_rows: int) -> Room:
        """Return what a pool leaves room for: all pairs if that may be, and as many triples."""
        bearable = _MOST_VISITS // max(pool_rows, 1)
        return cls(max(2 * min(pairs, bearable), _LEAST_CANDIDATES), _MOST_CELLS)

    def half(self) -> Room:
        """Return the half that pairs may take."""
        return Room(self.tables // 2, self.cells // 2)

    def left(self, taken: Iterable[Features], sizes: Sequence[int]) -> Room:
        """Return what is left when some are taken."""
        counts = [cell_count(table, sizes) for table in taken]
        return Room(max(self.tables - len(counts), 0), max(self.cells - sum(counts), 0))

    def part(self, tables: Sequence[Features], sizes: Sequence[int]) -> list[Features]:
        """Return the first ones that fit."""
        reached = np.cumsum([cell_count(table, sizes) for table in tables])
        fitting = int(np.searchsorted(reached, self.cells, side="right"))
        return list(tables[: min(fitting, self.tables)])


def rounds_for(features: int, least: int) -> int:
    """Return the most tables of the second round: more where there are many features."""
    return max(least, _ROUNDS_PER_FEATURE * features) if least else 0


def spread_out(tables: Sequence[Features], pool: Pool) -> list[Features]:
    """Return tables in a random order, chosen without looking at anything."""
    order = np.argsort(pool.uniforms(len(tables)), kind="stable")
    return [tables[index] for index in order]


@dataclass
class Round:
    """Chooses and measures tables of a confidential table that the pool predicts badly.

    Of a pair its residual is measured where that has less noise (R27): margins are known
    already, and are not paid for again. Where the residuals of all pairs were measured before,
    nothing else is: of triples, and once more of pairs that deserve less noise.

    Parameters
    ----------
    left_share, share
        Parts of the whole budget: what is left, and what a table takes.
    links
        Where all pairs were measured: the pairs of a feature and one that it was drawn by.
    """

    table: MergedTable
    fit: JointFit
    budget_filter: PrivacyFilter
    steps: Steps
    left_share: float
    share: float
    links: Collection[Features] | None = None
    measured: int = 0
    candidates: dict[Features, Int64] = field(default_factory=dict)
    distances: dict[Features, int] = field(default_factory=dict)
    linked: set[Features] = field(default_factory=set)
    renewed: int = 1
    tables: list[NoisyTable] = field(default_factory=list)
    residuals: list[NoisyTable] = field(default_factory=list)

    def next(self) -> bool:
        """Choose the next table, measure it and fit the pool; False when the budget is used up."""
        if self.measured >= self.steps.rounds or self.left_share < 0.2 * self.share:
            return False
        last = self.measured == self.steps.rounds - 1 or self.left_share < 1.2 * self.share
        share = self.left_share if last else self.share
        choice = self.steps.care.second_choices * share
        self._find_candidates(self.budget_filter.deviation(share - choice))
        tables = list(self.candidates)
        if not tables:
            return False
        chosen = tables[
            self.budget_filter.choose(
                self._scores(tables, share - choice),
                choice,
                purpose="second round",
                among=self._among(),
                features_of=tables.__getitem__,
            )
        ]
        self.left_share -= share
        self.measured += 1
        moved = self._measure(chosen, share - choice)
        self._forget(chosen)
        if not moved:
            # Its noise has drowned this one.
            self.share *= 2
        return True

    def _among(self) -> str:
        if self.links is not None:
            return "residuals of two or three features"
        return "tables of two or three features" if self.steps.triples else "pairs"

    def _measure(self, features: Features, share: float) -> bool:
        """Measure a table or its residual; say whether it moved the pool by more than noise."""
        counts, levels = self.candidates[features], self._levels(features)
        if self._by_residual(features):
            noisy, deviation = self.budget_filter.measure_residual(
                counts, share, purpose="residual", features=features, levels=levels
            )
            self.residuals.append(NoisyTable(features, noisy, deviation))
            return self.fit.take_residual(self.residuals[-1])
        noisy, deviation = self.budget_filter.measure(
            counts, share, purpose="table", features=features, levels=levels
        )
        self.tables.append(NoisyTable(features, noisy, deviation))
        return self.fit.take(self.tables[-1])

    def _by_residual(self, features: Features) -> bool:
        """Say whether a residual has less noise than the same part of its table.

        Under rho it always has. Laplace noise on the residual of 2 x 2 levels is as loud as that
        on the table, and louder for any others.
        """
        if self.links is not None:
            return True
        if self.budget_filter.route == "pure":
            return False
        return len(features) == PAIR and min(self._levels(features)) > 1

    def _noise(self, features: Features, share: float) -> float:
        """Return the expected sum of absolute noise on a table."""
        levels, price = self._levels(features), self.budget_filter.price
        if self._by_residual(features):
            return summed_noise(price.residual_deviation(share, levels), levels)
        return MEAN_ABSOLUTE_NORMAL * price.deviation(share) * math.prod(levels)

    def _levels(self, features: Features) -> list[int]:
        return [self.fit.pool.sizes[each] for each in features]

    def _scores(self, tables: list[Features], share: float) -> list[int]:
        """Return scores of sensitivity 1; those of triples are divided, which lowers it.

        A distance is taken from what the pool expected at some earlier time, which is
        paid-for output just as well (`_forget`).
        """

        def work(features: Features) -> int:
            expected = self.fit.pool.expected(features)
            return int(kernels.distance(self.candidates[features], expected))

        new = [features for features in tables if features not in self.distances]
        self.distances.update(zip(new, self.fit.pool.each(work, new), strict=True))
        # Many tables have few shapes.
        shapes = [tuple(self._levels(features)) for features in tables]
        noise_of = {
            shape: self._noise(features, share)
            for shape, features in dict(zip(shapes, tables, strict=True)).items()
        }
        penalties = whole_penalty(np.array([noise_of[shape] for shape in shapes])).tolist()
        divisor = TRIPLE_DIVISOR if self.links is None else RESIDUAL_DIVISOR
        return [
            (self.distances[features] - penalty) // (1 if len(features) == PAIR else divisor)
            for features, penalty in zip(tables, penalties, strict=True)
        ]

    def _forget(self, measured: Features) -> None:
        """Drop the distances that a measured table changes most.

        Those are pairs that share a feature with it, and triples that share a pair; the
        others are taken anew now and then, ever more rarely.
        """
        if self.links is not None:
            # Measured twice, it has so little noise that the pool's own error is the larger one.
            del self.candidates[measured]
        if self.measured >= _ALL_ANEW * self.renewed:
            self.renewed *= 2
            self.distances.clear()
        near = [f for f in self.distances if len(set(f) & set(measured)) >= len(f) - 1]
        for features in near:
            del self.distances[features]

    def _find_candidates(self, deviation: float) -> None:
        """Look for tables to choose from; which are looked at does not depend on the table."""
        sizes = self.fit.pool.sizes
        if self.links is None:
            wanted = [*self._all_pairs(), *self._new_triples(deviation)]
        else:
            wanted = [] if self.measured else self._beside_all_pairs(self.links)
        small = [t for t in wanted if cell_count(t, sizes) <= MOST_TABLE_CELLS]
        room = Room.of(len(sizes) * (len(sizes) - 1) // 2, self.fit.pool.rows)
        small = room.left(self.candidates, sizes).part(small, sizes)
        self.table.ask(small)
        self.candidates.update((table, self.table.count(table)) for table in small)

    def _all_pairs(self) -> list[Features]:
        """Return all pairs, at first, or as many as there is room for."""
        sizes, pool = self.fit.pool.sizes, self.fit.pool
        if self.candidates:
            return []
        pairs = [
            pair
            for pair in combinations(range(len(sizes)), PAIR)
            if cell_count(pair, sizes) <= MOST_TABLE_CELLS
        ]
        room = Room.of(len(sizes) * (len(sizes) - 1) // 2, pool.rows).half()
        if len(room.part(pairs, sizes)) < len(pairs):
            return sorted(room.part(spread_out(pairs, pool), sizes))
        return pairs

    def _new_triples(self, deviation: float) -> list[Features]:
        """Return triples with two pairs of which something was measured (paid output)."""
        if not self.steps.triples:
            return []
        measured = [table.features for table in self.fit.tables]
        covered = {triple for table in measured for triple in combinations(table, 3)}
        self.linked.update(pair for table in measured for pair in combinations(table, PAIR))
        sizes = self.fit.pool.sizes
        return [
            triple
            for triple in triples_along(self.linked)
            if triple not in self.candidates
            and triple not in covered
            and MEAN_ABSOLUTE_NORMAL * deviation * cell_count(triple, sizes)
            <= self.fit.margins.total
        ]

    def _beside_all_pairs(self, links: Collection[Features]) -> list[Features]:
        """Return pairs of a feature and a head of its, and triples that hold two of these."""
        known = [table.features for table in self.fit.tables if table.residual is not None]
        wanted = [pair for pair in known if pair in links]
        if self.steps.triples:
            wanted += triples_along(links)[:_MOST_TRIPLES]
        return [table for table in wanted if min(self._levels(table)) > 1]


def triples_along(links: Iterable[Features]) -> list[Features]:
    """Return the triples of features of which two pairs are linked."""
    near: dict[int, set[int]] = {}
    for left, right in links:
        near.setdefault(left, set()).add(right)
        near.setdefault(right, set()).add(left)
    found = {
        tuple(sorted((middle, *ends)))
        for middle, others in near.items()
        for ends in combinations(sorted(others), PAIR)
    }
    return sorted(found)
