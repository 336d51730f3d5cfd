"""The first round: order and heads by private choices, a noisy block for every feature.

A candidate is a feature not yet placed and up to three heads among those that are. Its
score is how far its true table lies from what the pool and the one-way shares expect, less
what the noise of its block would add; one row changes it by at most 1 (R10). A feature may
also be placed without heads, at score 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released.counted import MergedTable
from pegsynth.methods.released.one_way import Margins
from pegsynth.methods.released.published import NoisyTable
from pegsynth.methods.released.row_pool import Features, Pool, Ruled, cell_count
from pegsynth.methods.released.smoothing import on_simplex, shrunken
from pegsynth.methods.released.steps import MOST_TABLE_CELLS, Steps

MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
MOST_PENALTY = float(1 << 60)
WIDE_TABLE = 24
"""Beyond so many features heads are looked for along the blocks that exist already."""


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
            MEAN_ABSOLUTE_NORMAL * self.budget_filter.deviation(share) * self.steps.block_penalty
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
    if not steps.pulled or not steps.shrink:
        return projected
    pulled = shrunken(noisy, expected, block.deviation)
    if not pulled.any():
        pulled = expected  # noise below zero everywhere says nothing
    if not pulled.any():
        return projected  # and rules leave nothing to expect
    pulled = pulled * (margins.total / pulled.sum())
    mixed: Float64 = (1 - steps.pulled) * projected + steps.pulled * pulled
    return mixed


def block_shares(block: NoisyTable, counts: Float64, margins: Margins) -> Float64:
    """Return the distribution of a block's feature for every key of its heads."""
    feature = block.features[-1]
    table = counts.reshape(-1, margins.sizes[feature])
    sums = table.sum(axis=1, keepdims=True)
    given: Float64 = np.where(
        sums > 0, table / np.where(sums > 0, sums, 1.0), margins.shares[feature]
    )
    return given
