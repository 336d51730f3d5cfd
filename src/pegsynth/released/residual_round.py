"""The pool fitted to residuals: all pairs first, then what they do not tell (R27).

Where the residuals of all pairs were measured, order and heads follow from pair tables, the pool
is raked to these, and the second round measures residuals only: of triples that the pool predicts
badly, and once more of pairs that deserve less noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from pegsynth.arrays import Float64, Int64
from pegsynth.kernels import pool_loops as kernels
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.mechanisms.residuals import centred
from pegsynth.released.candidates import MOST_POOL, rows_at_once
from pegsynth.released.counted import MergedTable
from pegsynth.released.first_round import whole_penalty
from pegsynth.released.hidden_classes import HiddenClasses, fitted_classes
from pegsynth.released.pair_network import PairNetwork
from pegsynth.released.pair_residuals import (
    PAIR,
    PairEstimates,
    cell_noise,
    free_cells,
    projected,
    summed_noise,
)
from pegsynth.released.published import NoisyTable
from pegsynth.released.row_pool import Features, cell_count
from pegsynth.released.second_round import PoolFit
from pegsynth.released.smoothing import fitted_to, shrunken
from pegsynth.released.steps import Steps

_FIRST_SWEEPS = 4
_MOST_TRIPLES = 400


@dataclass
class ResidualFit(PoolFit):
    """A pool whose weights should meet one-way counts, all pairs, and chosen triples."""

    estimates: PairEstimates | None = None
    links: set[Features] = field(default_factory=set)

    def begin(
        self,
        residuals: Sequence[NoisyTable],
        order: Sequence[int] = (),
        blocks: Sequence[tuple[Features, Float64]] = (),
    ) -> None:
        """Weigh the pool to one-way counts, all pairs and blocks.

        Without blocks it is drawn here, by pair tables, in their own order or a given one. Where
        these have more free cells than the weights of the largest pool can meet, whatever rows are
        asked for, it is drawn by hidden classes.
        """
        steps, sizes = self.steps, self.pool.sizes
        self.estimates = PairEstimates.of(residuals, sizes)
        pairs = self.estimates.pairs
        free = sum(free_cells([sizes[each] for each in pair]) for pair in pairs)
        crowded = steps.classes and free > steps.most_crowded * rows_at_once(len(pairs), MOST_POOL)
        law = None
        if steps.classes and (steps.shrink or crowded):
            law = fitted_classes(
                self.estimates, self.margins, self.pool.uniforms, most_turns=steps.class_turns
            )
            if steps.shrink and law.misfit <= steps.most_misfit:
                self.estimates.expect(law.pair, self.margins)
        tables = self.estimates.tables(self.margins, shrink=steps.shrink)
        if crowded:
            self.pace = steps.crowded_pace
        if blocks:
            for features, _ in blocks:
                self.links.update(combinations(sorted(features), PAIR))
        else:
            self._draw(tables, order, law if crowded else None)
        self.start([(pair, table.ravel()) for pair, table in tables.items()])
        for features, counts in blocks:
            shape = [self.pool.sizes[each] for each in features]
            target = fitted_to(counts.reshape(shape), self._parts(features)).ravel()
            self._aim(features, target if target.any() else self.pool.expected(features))
        # What is left over afterwards should be what these tables do not tell.
        self.sweep(_FIRST_SWEEPS)

    def _draw(
        self,
        tables: Mapping[Features, Float64],
        order: Sequence[int],
        law: HiddenClasses | None = None,
    ) -> None:
        """Draw all features, by a law of hidden classes or by their heads, details after others."""
        pool, margins = self.pool, self.margins
        classes = pool.deal(law.shares) if law is not None else None
        details = {each.feature: each for each in margins.details}
        network = PairNetwork.of(tables, pool.sizes, self.steps)
        plain = [each for each in range(len(pool.sizes)) if each not in details]
        for feature in order or [*network.order(plain), *details]:
            if feature in details:
                parent = details[feature].parent
                details[feature].place(pool, margins.shares[parent], margins.shares[feature])
                continue
            heads = network.heads_of(feature, [each for each in pool.placed if each not in details])
            if law is not None and classes is not None:
                pool.draw_by(feature, classes, law.of(feature))
            elif heads:
                pool.draw(feature, heads, network.shares(feature, heads, pool, margins))
            else:
                pool.draw(feature, (), margins.shares[feature][None, :])
            self.links.update(tuple(sorted((head, feature))) for head in heads)

    def take(self, table: NoisyTable) -> bool:
        """Add a measured residual, and say whether it moved by more than its noise."""
        levels = [self.pool.sizes[each] for each in table.features]
        place = self._place(table.features)
        keys = self.keys[place] if place is not None else self.pool.keys(table.features)
        expected = self.expected(keys, len(table.counts))
        if len(table.features) == PAIR and self.estimates is not None:
            self.estimates.add(table)
            target = self.estimates.counts(
                table.features, self.margins, shrink=self.steps.shrink
            ).ravel()
        else:
            noisy = expected + projected(table, levels) - centred(expected, levels)
            cells = shrunken(noisy, expected, cell_noise(table.deviation, levels))
            target = fitted_to(cells.reshape(levels), self._parts(table.features)).ravel()
        if not target.any():
            target = expected  # noise below zero everywhere says nothing
        moved = float(np.abs(target - expected).sum())
        if place is None:
            self._aim(table.features, target, keys)
        else:
            self.targets[place] = target
        self.sweep(only=self._near(table.features))
        return moved > summed_noise(table.deviation, levels)

    def _parts(self, features: Features) -> dict[tuple[int, ...], Float64]:
        """Return what a table's pairs and one-way counts should be."""
        parts: dict[tuple[int, ...], Float64] = {}
        for width in (1, PAIR):
            for part in combinations(range(len(features)), width):
                names = tuple(features[place] for place in part)
                known = self._place(tuple(sorted(names)))
                if known is not None:
                    shape = [self.pool.sizes[each] for each in sorted(names)]
                    table = self.targets[known].reshape(shape)
                    parts[part] = table if names == tuple(sorted(names)) else table.T
        return parts

    def _place(self, features: Features) -> int | None:
        return self.features.index(features) if features in self.features else None

    def _near(self, features: Features) -> list[int]:
        """Return the tables that share a feature with some others, which are raked again."""
        wanted = set(features)
        return [place for place, each in enumerate(self.features) if wanted & set(each)]


@dataclass
class ResidualRound:
    """Chooses and measures residuals of a confidential table that the pool predicts badly."""

    table: MergedTable
    fit: ResidualFit
    budget_filter: PrivacyFilter
    steps: Steps
    left_share: float
    share: float
    measured: int = 0
    candidates: dict[Features, Int64] = field(default_factory=dict)

    def next(self) -> NoisyTable | None:
        """Choose the next residual and measure it; None when the budget is used up."""
        if self.measured >= self.steps.rounds or self.left_share < 0.2 * self.share:
            return None
        last = self.measured == self.steps.rounds - 1 or self.left_share < 1.2 * self.share
        share = self.left_share if last else self.share
        choice = self.steps.second_choices * share
        self._find_candidates()
        tables = list(self.candidates)
        if not tables:
            return None
        chosen = tables[
            self.budget_filter.choose(
                self._scores(tables, share - choice),
                choice,
                purpose="second round",
                among="residuals of two or three features",
                features_of=tables.__getitem__,
            )
        ]
        # Measured again, it has so little noise that the pool's own error is the larger one.
        counts = self.candidates.pop(chosen)
        noisy, deviation = self.budget_filter.measure_residual(
            counts,
            share - choice,
            purpose="residual",
            features=chosen,
            levels=self._levels(chosen),
        )
        self.left_share -= share
        self.measured += 1
        return NoisyTable(chosen, noisy, deviation)

    def heard(self, *, moved: bool) -> None:
        """Double the budget of the next residual after one that its noise has drowned."""
        if self.steps.anneal and not moved:
            self.share *= 2

    def _scores(self, tables: list[Features], share: float) -> list[int]:
        """Return scores of sensitivity 1; those of triples are divided, which lowers it."""

        def work(features: Features) -> int:
            expected = self.fit.pool.expected(features)
            return int(kernels.distance(self.candidates[features], expected))

        distances = self.fit.pool.each(work, tables)
        price = self.budget_filter.price
        noise = []
        for features in tables:
            levels = self._levels(features)
            noise.append(summed_noise(price.residual_deviation(share, levels), levels))
        penalties = whole_penalty(np.array(noise)).tolist()
        return [
            (away - penalty) // (1 if len(features) == PAIR else self.steps.residual_divisor)
            for features, away, penalty in zip(tables, distances, penalties, strict=True)
        ]

    def _find_candidates(self) -> None:
        """Pairs of a feature and a head of its, and triples that hold two of these."""
        if self.measured or self.fit.estimates is None:
            return
        wanted = [pair for pair in self.fit.estimates.pairs if pair in self.fit.links]
        if self.steps.triples:
            wanted += self._linked_triples()[:_MOST_TRIPLES]
        small = [
            table
            for table in wanted
            if cell_count(table, self.fit.pool.sizes) <= self.steps.most_cells
            and min(self._levels(table)) > 1
        ]
        self.table.ask(small)
        self.candidates.update((table, self.table.count(table)) for table in small)

    def _linked_triples(self) -> list[Features]:
        near: dict[int, set[int]] = {}
        for left, right in self.fit.links:
            near.setdefault(left, set()).add(right)
            near.setdefault(right, set()).add(left)
        found = {
            tuple(sorted((middle, *ends)))
            for middle, others in near.items()
            for ends in combinations(sorted(others), PAIR)
        }
        return sorted(found)

    def _levels(self, features: Features) -> list[int]:
        return [self.fit.pool.sizes[each] for each in features]
