"""The pool fitted to residuals: all pairs first, then what they do not tell (R27).

Where the residuals of all pairs were measured, order and heads follow from pair tables, the pool
is raked to these, and the second round measures residuals only: of triples that the pool predicts
badly, and once more of pairs that deserve less noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods.released.counted import MergedTable
from pegsynth.methods.released.first_round import whole_penalty
from pegsynth.methods.released.hidden_classes import HiddenClasses, fitted_classes
from pegsynth.methods.released.joint_fit import CLOSENESS, JointFit, likely_closeness
from pegsynth.methods.released.pair_plan import PairNetwork
from pegsynth.methods.released.pair_residuals import PAIR, PairEstimates, free_cells, summed_noise
from pegsynth.methods.released.pool_fit import PoolFit
from pegsynth.methods.released.published import NoisyTable
from pegsynth.methods.released.row_pool import Features, cell_count
from pegsynth.methods.released.second_round import MOST_POOL, rows_at_once
from pegsynth.methods.released.steps import Steps

_FIRST_SWEEPS = 4
_MOST_TRIPLES = 400


@dataclass
class ResidualFit(JointFit):
    """A pool whose weights meet one-way counts, all pairs, and chosen triples.

    Parameters
    ----------
    measured
        Residuals of all pairs, and of what was chosen after them.
    estimates
        What residuals tell of every pair.
    law
        The law of hidden classes, where one was fitted.
    blocks
        Blocks of a quiet table, which drew the pool.
    links
        Pairs of a feature and one that it was drawn by.
    crowded
        Whether pairs have more free cells than weights can meet.
    """

    measured: Sequence[NoisyTable] = ()
    estimates: PairEstimates | None = None
    law: HiddenClasses | None = None
    blocks: Sequence[NoisyTable] = ()
    links: set[Features] = field(default_factory=set)
    crowded: bool = False

    def draw(
        self,
        residuals: Sequence[NoisyTable],
        order: Sequence[int] = (),
        blocks: Sequence[NoisyTable] = (),
    ) -> None:
        """Estimate all pairs; without blocks, draw the pool by them.

        It is drawn in their own order or a given one. Where pairs have more free cells than the
        weights of the largest pool can meet, whatever rows are asked for, it is drawn by hidden
        classes.
        """
        steps, sizes = self.steps, self.pool.sizes
        self.measured, self.blocks = tuple(residuals), blocks
        self.estimates = PairEstimates.of(residuals, sizes)
        pairs = self.estimates.pairs
        free = sum(free_cells([sizes[each] for each in pair]) for pair in pairs)
        crowded = steps.classes and free > steps.most_crowded * rows_at_once(len(pairs), MOST_POOL)
        self.crowded = crowded
        if steps.classes and (steps.shrink or crowded):
            self.law = fitted_classes(
                self.estimates,
                self.margins,
                self.pool.uniforms,
                most_turns=steps.class_turns,
                useful_below=math.inf if crowded else steps.useful_misfit,
            )
            if steps.shrink and self.law.misfit <= steps.most_misfit:
                self.estimates.expect(self.law.pair, self.margins)
        if blocks:
            for block in blocks:
                self.links.update(combinations(sorted(block.features), PAIR))
        else:
            # A first round that chose no heads at all has drawn the pool already.
            self.pool.begin_again()
            tables = self.estimates.tables(self.margins, shrink=steps.shrink)
            self._draw(tables, order, self.law if crowded else None)

    def begin(self) -> None:
        """Weigh the pool to one-way counts, all pairs and blocks."""
        self.pool.weigh(self.margins.total)
        if self._law_is_likelier():
            self._follow_law()
        self._begin_here()
        for residual in self.measured:
            if len(residual.features) == PAIR:
                self._measured_residual(residual, self._levels(residual.features))
        for block in self.blocks:
            self._measured(block)
        self._settle_closeness()
        # What is left over afterwards should be what these tables do not tell.
        self.sweep(_FIRST_SWEEPS)

    @property
    def _estimates(self) -> PairEstimates:
        if self.estimates is None:
            raise ValueError("pairs are estimated when the pool is drawn")
        return self.estimates

    def _of_pair(self, pair: Features) -> tuple[Float64, Float64, float]:
        """Return a pair as it was measured, the variance of its cells, and their freedom."""
        noisy = self._estimates.noisy(pair, self.margins).ravel()
        variance = np.full(len(noisy), 1 / self._estimates.precisions[pair])
        return noisy, variance, free_cells(self._levels(pair)) / len(noisy)

    def _levels(self, features: Features) -> list[int]:
        return [self.pool.sizes[each] for each in features]

    def _law_is_likelier(self) -> bool:
        """Say whether the law of hidden classes explains pairs better than the pool does.

        A law has been fitted to the same pairs: half of its free figures are taken off.
        """
        law = self.law
        if law is None or not self.steps.shrink:
            return False
        by_law, by_pool = np.zeros(len(CLOSENESS)), np.zeros(len(CLOSENESS))
        for pair in self._estimates.pairs:
            noisy, variance, spread = self._of_pair(pair)
            told = law.pair(pair).ravel() * self.margins.total
            by_law += spread * likely_closeness(noisy, told, variance)
            by_pool += spread * likely_closeness(noisy, self.pool.expected(pair), variance)
        return bool(by_law.max() - law.figures / 2 > by_pool.max())

    def _times_closer(self) -> float:
        # What weights cannot meet looks like what the pool does not know.
        return self.steps.crowded_closeness if self.crowded else super()._times_closer()

    def _follow_law(self) -> None:
        """Rake the pool to what the law says of all pairs."""
        law, total = self.law, self.margins.total
        if law is not None:
            said = [(pair, law.pair(pair).ravel() * total) for pair in self._estimates.pairs]
            PoolFit(self.pool, self.margins, self.steps).meet(said, self.steps.last_sweeps)

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

    def _near(self, features: Features) -> list[int]:
        """Return the tables that share a feature with some others, which are fitted again."""
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
