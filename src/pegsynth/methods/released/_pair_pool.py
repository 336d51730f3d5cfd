"""A pool that is drawn by the tables of all pairs, and starts close to them (R27).

The feature that depends on the others most comes first; then always the one that depends most on
one placed before. Its heads are those that it depends on most. Its distribution given the heads
has their pair tables and no interaction beyond them (maximum entropy), by iterative scaling. Where
pairs have more free cells than weights can meet, rows are dealt to latent classes instead.
All of it is post-processing of paid-for numbers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pegsynth.kernels.arrays import Float64
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._cells import CLOSENESS, FittedTable, likely_closeness
from pegsynth.methods.released._estimates import Margins, fitted_to, given_lines
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._pairs import (
    PAIR,
    HiddenClasses,
    PairEstimates,
    dependence,
    fitted_classes,
    free_cells,
)
from pegsynth.methods.released._row_pool import MOST_POOL, Features, Pool, cell_count, rows_at_once
from pegsynth.methods.released._values import NoisyTable

_SWEEPS = 10
_CROWDED_CLOSENESS = 6.0
"""What weights cannot meet looks like what the pool does not know."""
_MOST_CROWDED = 0.5
_CLASS_TURNS = 300
_MOST_MISFIT = 3.0
_USEFUL_MISFIT = 10.0
_MOST_CELLS = 20_000
_PASSES = 10
_LEAST = 1e-9


@dataclass(frozen=True)
class PairModel:
    """What residuals tell of all pairs.

    Parameters
    ----------
    residuals
        As they were measured.
    estimates
        What they tell of every pair.
    classes
        The latent class model, where one was fitted.
    crowded
        Whether pairs have more free cells than weights can meet.
    """

    residuals: tuple[NoisyTable, ...]
    estimates: PairEstimates
    classes: HiddenClasses | None
    crowded: bool

    @classmethod
    def of(
        cls, residuals: Sequence[NoisyTable], pool: Pool, margins: Margins, steps: Steps
    ) -> PairModel:
        """Estimate all pairs. Whether they are crowded does not depend on the rows asked for."""
        estimates = PairEstimates.of(residuals, pool.sizes)
        pairs, classes = estimates.pairs, None
        free = sum(free_cells([pool.sizes[each] for each in pair]) for pair in pairs)
        crowded = free > _MOST_CROWDED * rows_at_once(len(pairs), MOST_POOL)
        if steps.shrink or crowded:
            classes = fitted_classes(
                estimates,
                margins,
                pool.uniforms,
                most_turns=_CLASS_TURNS,
                useful_below=math.inf if crowded else _USEFUL_MISFIT,
            )
            if steps.shrink and classes.misfit <= _MOST_MISFIT:
                estimates.expect(classes.pair, margins)
        return cls(tuple(residuals), estimates, classes, crowded)

    def draw(
        self, pool: Pool, margins: Margins, steps: Steps, order: Sequence[int] = ()
    ) -> set[Features]:
        """Draw all features, in their own order or a given one; return pairs drawn together.

        They are drawn by latent classes or by their heads, details after others.
        """
        # A first round that chose no heads at all has drawn the pool already.
        pool.begin_again()
        tables = self.estimates.tables(margins, shrink=steps.shrink)
        model = self.classes if self.crowded else None
        classes = pool.deal(model.shares) if model is not None else None
        details = {each.feature: each for each in margins.details}
        network = PairNetwork.of(tables, pool.sizes, steps)
        plain = [each for each in range(len(pool.sizes)) if each not in details]
        links: set[Features] = set()
        for feature in order or [*network.order(plain), *details]:
            if feature in details:
                parent = details[feature].parent
                details[feature].place(pool, margins.shares[parent], margins.shares[feature])
                continue
            heads = network.heads_of(feature, [each for each in pool.placed if each not in details])
            if model is not None and classes is not None:
                pool.draw_by(feature, classes, model.of(feature))
            elif heads:
                pool.draw(feature, heads, network.shares(feature, heads, pool, margins))
            else:
                pool.draw(feature, (), margins.shares[feature][None, :])
            links.update((min(head, feature), max(head, feature)) for head in heads)
        return links

    def start(self, fit: JointFit, blocks: Sequence[NoisyTable] = ()) -> None:
        """Weigh a pool to one-way counts, all pairs and blocks."""
        fit.pairs = self
        fit.pool.weigh(fit.margins.total)
        if self.classes is not None and self.explains_more_than(fit):
            fit.followed = follow(self.classes, self.estimates.pairs, fit)
        if self.crowded:
            fit.times_closer = _CROWDED_CLOSENESS
        fit.start(blocks, [each for each in self.residuals if len(each.features) == PAIR])

    def explains_more_than(self, fit: JointFit) -> bool:
        """Say whether the latent class model explains pairs better than the pool does.

        It has been fitted to the same pairs: half of its free figures are taken off.
        """
        if self.classes is None or not fit.steps.shrink:
            return False
        pool, margins = fit.pool, fit.margins
        by_classes, by_pool = np.zeros(len(CLOSENESS)), np.zeros(len(CLOSENESS))
        for pair in self.estimates.pairs:
            noisy = self.estimates.noisy(pair, margins).ravel()
            variance = np.full(len(noisy), 1 / self.estimates.precisions[pair])
            spread = free_cells([pool.sizes[each] for each in pair]) / len(noisy)
            told = self.classes.pair(pair).ravel() * margins.total
            by_classes += spread * likely_closeness(noisy, told, variance)
            by_pool += spread * likely_closeness(noisy, pool.expected(pair), variance)
        return bool(by_classes.max() - self.classes.figures / 2 > by_pool.max())


def follow(
    classes: HiddenClasses, pairs: Sequence[Features], fit: JointFit
) -> Sequence[FittedTable]:
    """Rake a pool to what a latent class model says of all pairs; return these tables."""
    total = fit.margins.total
    said = [(pair, classes.pair(pair).ravel() * total) for pair in pairs]
    raked = JointFit(fit.pool, fit.margins, fit.steps)
    raked.meet(said, _SWEEPS)
    return raked.tables


def links_of(blocks: Sequence[NoisyTable]) -> set[Features]:
    """Return the pairs of features that blocks hold."""
    return {pair for block in blocks for pair in combinations(sorted(block.features), PAIR)}


@dataclass(frozen=True)
class PairNetwork:
    """Pair tables, and how features are drawn by them.

    Parameters
    ----------
    tables
        Estimated counts of every known pair.
    """

    tables: Mapping[Features, Float64]
    strength: Mapping[Features, float]
    sizes: tuple[int, ...]
    heads: int

    @classmethod
    def of(
        cls, tables: Mapping[Features, Float64], sizes: tuple[int, ...], steps: Steps
    ) -> PairNetwork:
        """Judge the pairs by their mutual information."""
        return cls(tables, dependence(tables), sizes, steps.heads)

    def order(self, features: Sequence[int], last: Collection[int] = ()) -> list[int]:
        """Return features in the order of drawing; some may have to come last."""
        turn = [each for each in features if each not in last]
        placed: list[int] = []
        for group in (turn, [each for each in features if each in last]):
            left = list(group)
            while left:
                following = max(left, key=lambda each: (self._pull(each, placed or left), -each))
                left.remove(following)
                placed.append(following)
        return placed

    def _pull(self, feature: int, others: Sequence[int]) -> float:
        found = [self.of_pair(feature, other) for other in others if other != feature]
        return max(found, default=0.0)

    def of_pair(self, first: int, second: int) -> float:
        """Return how much two features depend on each other; 0 if that was not measured."""
        return self.strength.get((min(first, second), max(first, second)), 0.0)

    def heads_of(self, feature: int, placed: Sequence[int]) -> Features:
        """Return the heads of a feature among those placed before it."""
        found: list[int] = []
        cells = self.sizes[feature]
        for other in sorted(placed, key=lambda each: (-self.of_pair(feature, each), each)):
            if len(found) == self.heads or self.of_pair(feature, other) <= 0:
                break
            if cells * self.sizes[other] <= _MOST_CELLS:
                found.append(other)
                cells *= self.sizes[other]
        return tuple(sorted(found))

    def shares(self, feature: int, heads: Features, pool: Pool, margins: Margins) -> Float64:
        """Return the distribution of a feature for every key of its heads."""
        own = margins.shares[feature]
        known = pool.counts(heads) / pool.rows
        shape = [*(self.sizes[each] for each in heads), self.sizes[feature]]
        wanted: dict[tuple[int, ...], Float64] = {}
        last = len(heads)
        for place, head in enumerate(heads):
            table = self._pair(head, feature)
            wanted[place, last] = table / table.sum()
        if last > 1:
            wanted[tuple(range(last))] = known.reshape(shape[:-1])
        start = np.outer(known, own) + _LEAST / cell_count(heads, self.sizes)
        cells = fitted_to(start.reshape(shape), wanted, passes=_PASSES).reshape(-1, shape[-1])
        return given_lines(cells, own)

    def _pair(self, first: int, second: int) -> Float64:
        if first < second:
            return self.tables[first, second]
        return self.tables[second, first].T
