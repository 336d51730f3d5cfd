"""The second round: weigh the pool to every table, measure what it predicts worst, repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64, Int64
from pegsynth.kernels import pool_loops as kernels
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.released.candidates import Room, cheap_to_score, spread_out
from pegsynth.released.counted import MergedTable
from pegsynth.released.details import linked
from pegsynth.released.first_round import MEAN_ABSOLUTE_NORMAL, whole_penalty
from pegsynth.released.margins import Margins
from pegsynth.released.published import NoisyTable
from pegsynth.released.row_pool import Features, Pool, cell_count
from pegsynth.released.smoothing import fitted_to, shrunken
from pegsynth.released.steps import Steps

UInt16 = NDArray[np.uint16]

_PAIR = 2
_ALL_ANEW = 10
_ALL_SWEPT = 160


@dataclass
class PoolFit:
    """A pool, the tables that its weights should meet, and how to get there.

    Parameters
    ----------
    pace
        Part of the way that weights go to meet a pair at its turn, on the scale of logarithms.
        Pairs that no weights can meet all at once would undo each other at full pace.
    """

    pool: Pool
    margins: Margins
    steps: Steps
    features: list[Features] = field(default_factory=list)
    keys: list[UInt16] = field(default_factory=list)
    targets: list[Float64] = field(default_factory=list)
    pace: float = 1.0

    def start(self, blocks: Sequence[tuple[Features, Float64]]) -> None:
        """Weigh all rows alike, then meet the one-way counts and the blocks."""
        self.pool.weigh(self.margins.total)
        for feature in range(len(self.pool.sizes)):
            self._aim((feature,), self.margins.counts(feature))
        for features, counts in blocks:
            self._aim(features, counts)
        self.sweep()

    def meet(self, targets: Sequence[tuple[Features, Float64]], sweeps: int) -> None:
        """Weigh all rows alike, then meet these tables and no others."""
        self.pool.weigh(self.margins.total)
        wanted = [features for features, _ in targets]
        if self.features != wanted:
            self.features, self.keys = wanted, [self.pool.keys(each) for each in wanted]
        self.targets = [counts for _, counts in targets]
        self.sweep(sweeps)

    def expected(self, keys: UInt16, cells: int) -> Float64:
        """Return what the weighted pool expects in the cells of a table."""
        return kernels.weigh_cells(keys, self.pool.weights, cells)

    def take(self, table: NoisyTable) -> bool:
        """Add a measured table, and say whether it moved by more than its noise."""
        keys = self.pool.keys(table.features)
        expected = self.expected(keys, len(table.counts))
        if self.steps.fold:
            self.margins.fold(table, table.features)
            for feature in linked(self.margins.details, table.features):
                self.targets[feature] = self.margins.counts(feature)
        estimate = shrunken(table.counts.astype(np.float64), expected, table.deviation)
        target = self._consistent(table.features, estimate, expected).ravel()
        if not target.any():
            target = expected  # noise below zero everywhere says nothing
        moved = float(np.abs(target - expected).sum())
        self._aim(table.features, target, keys)
        self.sweep(only=self._near(table.features))
        return moved > MEAN_ABSOLUTE_NORMAL * table.deviation * len(target)

    def _near(self, features: Features) -> list[int]:
        """Return the tables to rake after one was added: where they are many, those it moves.

        These share a feature with it. All have their turn now and then, and at the end.
        """
        count = len(self.features)
        if count <= _ALL_SWEPT or count % _ALL_ANEW == 0:
            return []
        return [place for place in range(count) if set(features) & set(self.features[place])]

    def _consistent(self, features: Features, estimate: Float64, expected: Float64) -> Float64:
        """Fit a table to what is known of its parts: one-way counts, and pairs of a triple."""
        shape = [self.pool.sizes[feature] for feature in features]
        places = range(len(features))
        margins: dict[tuple[int, ...], Float64] = {}
        margins |= {(place,): self.margins.counts(features[place]) for place in places}
        if len(features) > 2:
            cells = expected.reshape(shape)
            for pair in combinations(places, 2):
                if any({features[i] for i in pair} <= set(known) for known in self.features):
                    others = tuple(place for place in places if place not in pair)
                    margins[pair] = cells.sum(axis=others)
        return fitted_to(estimate.reshape(shape), margins)

    def sweep(self, times: int = 1, only: Sequence[int] = ()) -> None:
        """Rake the weights to every table in turn, or to some."""
        turns = list(only) or list(range(len(self.keys)))
        sums = self.expected(self.keys[turns[0]], len(self.targets[turns[0]]))
        for turn in range(times * len(turns)):
            table, following = turns[turn % len(turns)], turns[(turn + 1) % len(turns)]
            factors = kernels.rake_factors(sums, self.targets[table], self.steps.most_factor)
            if self.pace < 1 and len(self.features[table]) == _PAIR:
                factors **= self.pace
            sums = self.pool.scale(
                self.keys[table], factors, self.keys[following], len(self.targets[following])
            )

    def _aim(self, features: Features, target: Float64, keys: UInt16 | None = None) -> None:
        self.features.append(features)
        self.keys.append(self.pool.keys(features) if keys is None else keys)
        self.targets.append(target)


@dataclass
class SecondRound:
    """Chooses and measures tables of a confidential table that the pool predicts badly."""

    table: MergedTable
    fit: PoolFit
    budget_filter: PrivacyFilter
    steps: Steps
    left_share: float
    share: float
    measured: int = 0
    candidates: dict[Features, Int64] = field(default_factory=dict)
    distances: dict[Features, int] = field(default_factory=dict)
    linked: set[Features] = field(default_factory=set)
    renewed: int = 1

    def next(self) -> NoisyTable | None:
        """Choose the next table and measure it; None when the budget is used up."""
        if self.measured >= self.steps.rounds or self.left_share < 0.2 * self.share:
            return None
        last = self.measured == self.steps.rounds - 1 or self.left_share < 1.2 * self.share
        share = self.left_share if last else self.share
        choice = self.steps.second_choices * share
        deviation = self.budget_filter.deviation(share - choice)
        self._find_candidates(deviation)
        tables = list(self.candidates)
        if not tables:
            return None
        chosen = tables[
            self.budget_filter.choose(
                self._scores(tables, deviation),
                choice,
                purpose="second round",
                among="tables of two or three features" if self.steps.triples else "pairs",
                features_of=tables.__getitem__,
            )
        ]
        noisy, deviation = self.budget_filter.measure(
            self.candidates[chosen],
            share - choice,
            purpose="table",
            features=chosen,
            levels=[self.fit.pool.sizes[each] for each in chosen],
        )
        self.left_share -= share
        self.measured += 1
        self.linked.update(combinations(chosen, 2))
        self._forget(chosen)
        return NoisyTable(chosen, noisy, deviation)

    def heard(self, *, moved: bool) -> None:
        """Double the budget of the next table after one that its noise has drowned."""
        if self.steps.anneal and not moved:
            self.share *= 2

    def _scores(self, tables: list[Features], deviation: float) -> list[int]:
        """Return scores of sensitivity 1; those of triples are divided, which lowers it.

        A distance is taken from what the pool expected at some earlier time, which is
        paid-for output just as well (`_forget`).
        """

        def work(features: Features) -> int:
            expected = self.fit.pool.expected(features)
            return int(kernels.distance(self.candidates[features], expected))

        new = [features for features in tables if features not in self.distances]
        self.distances.update(zip(new, self.fit.pool.each(work, new), strict=True))
        cells = np.array([len(self.candidates[features]) for features in tables])
        penalties = whole_penalty(MEAN_ABSOLUTE_NORMAL * deviation * cells).tolist()
        scores = []
        for features, penalty in zip(tables, penalties, strict=True):
            score = self.distances[features] - penalty
            scores.append(score if len(features) == 2 else score // self.steps.triple_divisor)
        return scores

    def _forget(self, measured: Features) -> None:
        """Drop all distances; where they are many only those that a measured table changes most.

        Those are pairs that share a feature with it, and triples that share a pair; the
        others are taken anew now and then, ever more rarely.
        """
        if cheap_to_score(len(self.candidates), self.fit.pool.rows):
            self.distances.clear()
        elif self.measured >= _ALL_ANEW * self.renewed:
            self.renewed *= 2
            self.distances.clear()
        near = [f for f in self.distances if len(set(f) & set(measured)) >= len(f) - 1]
        for features in near:
            del self.distances[features]

    def _find_candidates(self, deviation: float) -> None:
        """Pairs, and triples with two pairs of which something was measured (paid output)."""
        sizes = self.fit.pool.sizes
        features = range(len(sizes))
        wanted: list[Features] = [] if self.candidates else list(combinations(features, 2))
        wanted = [table for table in wanted if cell_count(table, sizes) <= self.steps.most_cells]
        room = Room.of(len(sizes) * (len(sizes) - 1) // 2, self.fit.pool.rows)
        if len(room.half().part(wanted, sizes)) < len(wanted):
            wanted = sorted(room.half().part(spread_out(wanted, self.fit.pool), sizes))
        if self.steps.triples:
            covered = {
                triple for table in self.fit.features for triple in combinations(sorted(table), 3)
            }
            wanted += [
                triple
                for triple in self._linked_triples()
                if triple not in self.candidates
                and triple not in covered
                and MEAN_ABSOLUTE_NORMAL * deviation * cell_count(triple, sizes)
                <= self.fit.margins.total
            ]
        small = [t for t in wanted if cell_count(t, sizes) <= self.steps.most_cells]
        small = room.left(self.candidates, sizes).part(small, sizes)
        self.table.ask(small)
        self.candidates.update((table, self.table.count(table)) for table in small)

    def _linked_triples(self) -> list[Features]:
        if not self.linked:
            for table in self.fit.features:
                self.linked.update(combinations(sorted(table), 2))
        near: dict[int, set[int]] = {}
        for left, right in self.linked:
            near.setdefault(left, set()).add(right)
            near.setdefault(right, set()).add(left)
        found = {
            tuple(sorted((middle, *ends)))
            for middle, others in near.items()
            for ends in combinations(sorted(others), 2)
        }
        return sorted(found)
