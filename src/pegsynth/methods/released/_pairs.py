"""All pairs at once: the residual of every pair of features is measured once (R27).

Where the noise on all pairs together is small beside the number of rows, nothing need be chosen:
one-way counts and the residuals of all pairs tell every pair table. Later measurements of the
second round are residuals too, of pairs that deserve less noise and of triples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from pegsynth.kernels.arrays import Float64
from pegsynth.mechanisms.privacy_filter import Price, PrivacyFilter
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._estimates import (
    Margins,
    fitted_to,
    on_simplex,
    ratio_weights,
    shrunken,
)
from pegsynth.methods.released._values import Detail, MergedTable, NoisyTable
from pegsynth.methods.released.row_pool import Features, cell_count

MEAN_ABSOLUTE_NORMAL = math.sqrt(2 / math.pi)
PAIR = 2


def residual_pairs(
    sizes: Sequence[int], details: Sequence[Detail] = (), most_cells: int = 1 << 15
) -> list[Features]:
    """Return the pairs to measure: not those of a detail and its parent, which are public.

    Pairs of the same levels stand together, because they share their noise.
    """
    given = {tuple(sorted((each.feature, each.parent))) for each in details}
    pairs = [
        pair
        for pair in combinations(range(len(sizes)), 2)
        if pair not in given
        and min(sizes[pair[0]], sizes[pair[1]]) > 1
        and cell_count(pair, sizes) <= most_cells
    ]
    return sorted(pairs, key=lambda pair: (sorted(sizes[each] for each in pair), pair))


def free_cells(levels: Sequence[int]) -> int:
    """Return how many cells of a table are free once its margins are given."""
    return math.prod(count - 1 for count in levels)


def saved_by_residuals(pairs: Sequence[Features], sizes: Sequence[int]) -> float:
    """Return how many times the cells of all pairs are those that margins leave free.

    So much more budget would full tables of these pairs take for the same noise.
    """
    levels = [[sizes[each] for each in pair] for pair in pairs]
    return sum(map(math.prod, levels)) / sum(map(free_cells, levels))


def pair_weights(pairs: Sequence[Features], sizes: Sequence[int]) -> Float64:
    """Return how a budget is split over pairs: such that the sum of errors is least.

    A pair with f free cells, measured with the part r of the budget, is off by about f/sqrt(r)
    in all; the best parts are in proportion to f^(2/3).
    """
    weights = np.array([free_cells([sizes[each] for each in pair]) ** (2 / 3) for pair in pairs])
    shares: Float64 = weights / weights.sum()
    return shares


def noise_on_pairs(
    price: Price, share: float, pairs: Sequence[Features], sizes: Sequence[int], total: float
) -> float:
    """Return the error of pair tables by the noise of their residuals alone, on average.

    It is a total variation: half of the summed absolute noise, over the number of rows. Public
    figures and noisy ones that were paid for decide it.
    """
    errors = []
    for pair, weight in zip(pairs, pair_weights(pairs, sizes), strict=True):
        levels = [sizes[each] for each in pair]
        deviation = price.residual_deviation(share * float(weight), levels)
        errors.append(summed_noise(deviation, levels) / (2 * total))
    return float(np.mean(errors))


def summed_noise(deviation: float, levels: Sequence[int]) -> float:
    """Return the expected sum of absolute noise over a table that residual noise leaves."""
    return MEAN_ABSOLUTE_NORMAL * cell_noise(deviation, levels) * math.prod(levels)


def cell_noise(deviation: float, levels: Sequence[int]) -> float:
    """Return the deviation of the noise on a cell, in rows, once it is projected (R27)."""
    cells = math.prod(levels)
    return deviation / cells * math.sqrt(free_cells(levels) / cells)


def measure_pairs(
    table: MergedTable,
    budget_filter: PrivacyFilter,
    pairs: Sequence[Features],
    sizes: Sequence[int],
    share: float,
) -> list[NoisyTable]:
    """Measure the residual of every pair with its part of the budget."""
    table.ask(pairs)
    found = []
    for pair, weight in zip(pairs, pair_weights(pairs, sizes), strict=True):
        levels = [sizes[each] for each in pair]
        noisy, deviation = budget_filter.measure_residual(
            table.count(pair), share * float(weight), purpose="pairs", features=pair, levels=levels
        )
        found.append(NoisyTable(pair, noisy, deviation))
    return found


def projected(table: NoisyTable, levels: Sequence[int]) -> Float64:
    """Return a noisy residual in rows, on tables without margins (R27)."""
    return centred(table.counts.astype(np.float64), levels) / math.prod(levels)


@dataclass
class PairEstimates:
    """What all measured residuals of a pair tell of it, by the inverse of their variances."""

    sizes: tuple[int, ...]
    sums: dict[Features, Float64] = field(default_factory=dict)
    precisions: dict[Features, float] = field(default_factory=dict)
    means: dict[Features, Float64] = field(default_factory=dict)
    ratios: Float64 | None = None

    @classmethod
    def of(cls, residuals: Sequence[NoisyTable], sizes: tuple[int, ...]) -> PairEstimates:
        """Start from measured residuals; those of more than two features are passed over."""
        estimates = cls(sizes)
        for each in residuals:
            if len(each.features) == PAIR:
                estimates.add(each)
        return estimates

    @property
    def pairs(self) -> list[Features]:
        """The pairs that were measured."""
        return list(self.sums)

    def add(self, table: NoisyTable) -> None:
        """Take in another measurement of a pair."""
        pair, levels = table.features, self._levels(table.features)
        precision = cell_noise(table.deviation, levels) ** -2
        self.sums[pair] = self.sums.get(pair, 0.0) + projected(table, levels) * precision
        self.precisions[pair] = self.precisions.get(pair, 0.0) + precision

    def residual(self, pair: Features) -> Float64:
        """Return the mean of all measurements of a pair's residual, in rows."""
        mean: Float64 = self.sums[pair] / self.precisions[pair]
        return mean

    def noisy(self, pair: Features, margins: Margins) -> Float64:
        """Return a pair's table as one-way counts and its residual tell it, noise and all."""
        levels = self._levels(pair)
        mean = self._mean(pair, margins).ravel()
        cells = mean - centred(mean, levels) + self.residual(pair)
        return cells.reshape(levels)

    def expect(self, law: Callable[[Features], Float64], margins: Margins) -> None:
        """Expect what a law says of every pair; how much it says is told by all pairs together.

        Parameters
        ----------
        law
            Returns the cells of a pair in any unit; they are fitted to the one-way counts.
        """
        self.means = {
            pair: fitted_to(law(pair) * margins.total, self._margins(pair, margins))
            for pair in self.sums
        }
        cells = [mean.size for mean in self.means.values()]
        deviations = [self.precisions[pair] ** -0.5 for pair in self.means]
        self.ratios = ratio_weights(
            np.concatenate([self.noisy(pair, margins).ravel() for pair in self.means]),
            np.concatenate([mean.ravel() for mean in self.means.values()]),
            np.repeat(deviations, cells),
        )

    def counts(self, pair: Features, margins: Margins, *, shrink: bool) -> Float64:
        """Estimate the cells of a pair's table, with the one-way counts as its margins.

        Shrinkage pulls it towards what is expected as far as the noise says, which is
        independence if nothing better is known; without it the table is only projected on
        counts that are possible (R28).
        """
        noisy = self.noisy(pair, margins).ravel()
        deviation = self.precisions[pair] ** -0.5
        if shrink:
            cells = shrunken(noisy, self._mean(pair, margins).ravel(), deviation, self.ratios)
        else:
            cells = on_simplex(noisy, deviation**2, margins.total)
        return fitted_to(cells.reshape(self._levels(pair)), self._margins(pair, margins))

    def tables(self, margins: Margins, *, shrink: bool) -> dict[Features, Float64]:
        """Estimate all pair tables."""
        return {pair: self.counts(pair, margins, shrink=shrink) for pair in self.sums}

    def _margins(self, pair: Features, margins: Margins) -> dict[tuple[int, ...], Float64]:
        return {(place,): margins.counts(each) for place, each in enumerate(pair)}

    def _mean(self, pair: Features, margins: Margins) -> Float64:
        alone = np.outer(margins.counts(pair[0]), margins.shares[pair[1]])
        return self.means.get(pair, alone)

    def _levels(self, features: Features) -> list[int]:
        return [self.sizes[each] for each in features]


def dependence(tables: Mapping[Features, Float64]) -> dict[Features, float]:
    """Return the mutual information of every pair table, in nats."""
    found = {}
    for pair, table in tables.items():
        shares = table / table.sum()
        product = np.outer(shares.sum(axis=1), shares.sum(axis=0))
        some = shares > 0
        found[pair] = float((shares[some] * np.log(shares[some] / product[some])).sum())
    return found
