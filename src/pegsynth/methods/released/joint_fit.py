"""Weights that meet all measurements at once, each as far as its noise allows.

Tables were measured as y_t with noise of variance v_t on every cell, and rows were drawn for a
pool by weights w_0. The weights sought are those that minimise

    sum over tables of |A_t w - y_t|^2 / (2 v_t)  +  c KL(w || w_0),

where A_t w are the sums of weights by the cells of table t and KL is the divergence of weights
that need not have the same total. The first part is what the noise makes likely, the second keeps
close to the pool what nobody measured: a cell that the pool expects s rows in may be off by about
sqrt(s/c). The measurements themselves tell the closeness c, as the one that makes their distances
from the pool most likely (`likely_closeness`), and non-negativity comes by itself.

The solution has weights w = w_0 exp(sum of potentials of a row's cells). The potentials of one
table, given those of all others, solve an equation for each cell, in closed form by Wright's omega
function (`soft_potentials`). Going through the tables in turn costs what raking does, and leads to
the one minimum, because the problem in the potentials is concave.

A residual says nothing of margins. The y of its table is made of it and of the margins that the
weights have at its turn, so sweeps come to rest where y and the weights agree. Its noise has fewer
free directions than cells, but v is the variance of a cell: residuals weigh more than they should,
four times as much for 2 x 2 levels. Counting directions instead brought nothing.

All of it is post-processing of paid-for numbers (R11).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released.ordered_products import (
    TWO_LEVELS,
    AddedProducts,
    standard_scores,
    tilt_towards,
    tilted,
)
from pegsynth.methods.released.pair_residuals import (
    MEAN_ABSOLUTE_NORMAL,
    PAIR,
    cell_noise,
    free_cells,
    projected,
    summed_noise,
)
from pegsynth.methods.released.pool_fit import PoolFit, UInt16
from pegsynth.methods.released.published import NoisyTable
from pegsynth.methods.released.row_pool import MOST_CELLS, Features, cell_count
from pegsynth.methods.released.smoothing import Axes

CLOSENESS = np.geomspace(2.0**-24, 2.0**8, 33)
"""Values of c that likelihoods are taken for."""
_NEVER_SAID = 0.01
_NEXT_TO_NOTHING = -30.0
_LEAST_TOTAL = 1e-6
_MOST_TILTED = 3
_ALL_ANEW = 10
_ALL_SWEPT = 160
_MOST_AIMS = 1 << 25
"""Cells of rows, over all tables, that are looked at when rows are taken from the pool."""


@dataclass
class JointFit(PoolFit):
    """A pool whose weights meet noisy tables by their precisions.

    Parameters
    ----------
    noisy, variances
        What was measured of each table, and the variance of the noise on its cells.
    potentials
        Logarithms of the factors by which each table scales the weights of its cells.
    likelihoods
        For each table, how likely its distance from the pool is under every `CLOSENESS`.
    closeness
        The c in use.
    base
        The weights to stay close to.
    places
        Where a table stands, or its residual (True).
    residuals
        By place: what a residual was measured as, in rows (R27). It says nothing of margins, so
        what a pair should meet is made of it and of `ones`, and a triple of it and of the margins
        that the weights give it.
    ones
        One-way counts of the weighted pool when they had their last turn.
    products
        Sums of products of ordered features, which noise does not bend.
    tilts
        By place: the product of scores in every cell of a pair, where a sum of products is met
        and not a table.
    """

    noisy: list[Float64] = field(default_factory=list)
    variances: list[Float64] = field(default_factory=list)
    potentials: list[Float64] = field(default_factory=list)
    likelihoods: list[Float64] = field(default_factory=list)
    closeness: float = _NEVER_SAID
    base: Float64 = field(default_factory=lambda: np.zeros(0))
    places: dict[tuple[Features, bool], int] = field(default_factory=dict)
    residuals: dict[int, Float64] = field(default_factory=dict)
    ones: list[Float64] = field(default_factory=list)
    products: AddedProducts = field(default_factory=lambda: AddedProducts({}))
    tilts: dict[int, Float64] = field(default_factory=dict)

    def start(self, blocks: Sequence[NoisyTable]) -> None:
        """Weigh all rows alike, then meet the one-way counts and the blocks."""
        self.pool.weigh(self.margins.total)
        self._begin_here()
        for block in blocks:
            self._measured(block)
        self._settle_closeness()
        self.sweep()

    def _begin_here(self) -> None:
        """Take the weights as they are for those to stay close to; add the one-way counts."""
        self.base = self.pool.weights.copy()
        for feature in range(len(self.pool.sizes)):
            self._add((feature,), *self.margins.known(feature))
        super().sweep(1)
        self._look_at_ones()

    def take(self, table: NoisyTable) -> bool:
        """Add a measured table, and say whether it moved by more than its noise."""
        noise = MEAN_ABSOLUTE_NORMAL * table.deviation * len(table.counts)
        if self.steps.fold:
            self.margins.fold(table, table.features)
            for feature in table.features:
                self._replace(feature, *self.margins.known(feature))
        return self._moved_by(self._measured(table), table.features) > noise

    def take_residual(self, table: NoisyTable) -> bool:
        """Add a measured residual, and say whether it moved by more than its noise."""
        levels = [self.pool.sizes[each] for each in table.features]
        place = self._measured_residual(table, levels)
        return self._moved_by(place, table.features) > summed_noise(table.deviation, levels)

    def sweep(self, times: int = 1, only: Sequence[int] = ()) -> None:
        """Scale the weights by tables in turn, all or some; one-way counts, known best, last."""
        count = len(self.pool.sizes)
        others = [place for place in only or range(len(self.keys)) if place >= count]
        for _ in range(times):
            if others:
                super().sweep(1, others)
            super().sweep(1, range(count))
            self._look_at_ones()

    def _look_at_ones(self) -> None:
        def work(feature: int) -> Float64:
            return self.expected(self.keys[feature], self.pool.sizes[feature])

        self.ones = self.pool.each(work, range(len(self.pool.sizes)))

    def finish(self, levels: Sequence[Int64], ordered: Sequence[bool]) -> None:
        """Come to rest, and meet the sums of products of ordered features.

        Counts cannot be negative, so what noise takes off empty cells is taken off others: tables
        show less dependence than was measured. A sum of products over a noisy table has no such
        bias.
        """
        self._add_products(standard_scores(levels, ordered, self.margins))
        self.sweep(self.steps.last_sweeps)
        # Noise below zero everywhere says nothing.
        if not self.pool.weights.sum() > _LEAST_TOTAL * self.margins.total:
            self.pool.weights = self.base.copy()

    def _add_products(self, scores: Mapping[int, Float64]) -> None:
        self.products = AddedProducts(scores)
        for place in range(len(self.pool.sizes), len(self.features)):
            features = self.features[place]
            levels = [self.pool.sizes[each] for each in features]
            variance = float(self.variances[place][0])
            if place not in self.residuals:
                self.products.add(features, levels, self.noisy[place], variance)
            elif len(features) == PAIR:
                cells = self._wanted(place, self.noisy[place])
                variance *= cells.size / free_cells(levels)
                self.products.add(features, levels, cells, variance, residual=True)
        for pair, precision in self.products.precisions.items():
            self.tilts[len(self.features)] = self.products.by_cell(pair)
            self.features.append(pair)
            self.keys.append(self._keys_of(pair))
            self.potentials.append(np.zeros(1))
            self.noisy.append(np.array([self.products.mean(pair)]))
            self.variances.append(np.array([1 / precision]))

    def _keys_of(self, features: Features) -> UInt16:
        """Return the cell of every row, which a table of the same features may have already."""
        if features in self.features[:-1]:
            return self.keys[self.features.index(features)]
        return self.pool.keys(features)

    def aims(self) -> list[tuple[UInt16, Float64]]:
        """Return the measured tables and, as far as there is room, all other pairs.

        A measured table should be what it would be after a turn of its own: where sweeps have not
        come to rest, rows get nearer to it than the weights. Of other pairs rows should meet
        what the weights add up to, which they would be off from by sampling alone.
        """
        if not self.keys:
            return []  # nothing was fitted
        sizes, rows = self.pool.sizes, self.pool.rows
        self.ones = [self._after_its_turn(feature) for feature in range(len(sizes))]
        found = list(self.ones)
        tables = [place for place in range(len(sizes), len(self.keys)) if place not in self.tilts]
        found += [self._tilted(place, self._after_its_turn(place)) for place in tables]
        room = _MOST_AIMS // rows - len(found)
        measured = {self.features[place] for place in tables}
        others = [
            pair
            for pair in combinations(range(len(sizes)), 2)
            if pair not in measured and cell_count(pair, sizes) <= MOST_CELLS
        ]
        keys = [self.keys[place] for place in (*range(len(sizes)), *tables)]
        aims = list(zip(keys, found, strict=True))
        if len(others) <= room:
            aims += [(self.pool.keys(pair), self.pool.expected(pair)) for pair in others]
        return aims

    def _tilted(self, place: int, table: Float64) -> Float64:
        """Return a small table with the sums of products that its features should have.

        Products with a feature of two levels are left to the fit, which knows them better than
        their own table does: others tell of them, too.
        """
        features = self.features[place]
        if len(features) > _MOST_TILTED:
            return table
        cells = table.reshape([self.pool.sizes[each] for each in features])
        margins: dict[Axes, Float64] = {
            (axis,): self.ones[each] for axis, each in enumerate(features)
        }
        tilts = zip(self.products.precisions, self.tilts, strict=True)
        wanted = {
            pair: self._product(each)
            for pair, each in tilts
            if all(self.pool.sizes[feature] > TWO_LEVELS for feature in pair)
        }
        return tilted(cells, features, wanted, self.products.scores, margins).ravel()

    def _after_its_turn(self, place: int) -> Float64:
        """Return what the weights would add up to in a table if it had its turn now."""
        expected = self.expected(self.keys[place], self._cells(place))
        wanted = soft_potentials(
            expected,
            self.potentials[place],
            self._wanted(place, expected),
            self.closeness * self.variances[place],
            math.inf,
        )
        table: Float64 = expected * np.exp(wanted - self.potentials[place])
        # Noise below zero everywhere says nothing.
        return table if table.sum() > _LEAST_TOTAL * expected.sum() else expected

    def _measured(self, table: NoisyTable) -> int:
        """Add a table of counts, or average it with an earlier one by precision."""
        features, counts = in_order(table, self.pool.sizes)
        # The total is known best, so what counts exceed it by is noise.
        counts = counts - (counts.sum() - self.margins.total) / len(counts)
        variance = np.full(len(counts), table.deviation**2)
        place = self.places.get((features, False))
        if place is None:
            return self._add(features, counts, variance)
        mean, variance = _average(self.noisy[place], self.variances[place], counts, variance)
        self._replace(place, mean, variance)
        return place

    def _measured_residual(self, table: NoisyTable, levels: Sequence[int]) -> int:
        """Add a residual; that of a pair is averaged with an earlier one by precision."""
        features, told = table.features, projected(table, levels)
        variance = np.full(len(told), cell_noise(table.deviation, levels) ** 2)
        spread = free_cells(levels) / len(told)
        place = self.places.get((features, True))
        if place is not None:
            told, variance = _average(self.residuals[place], self.variances[place], told, variance)
        if len(features) == PAIR:
            noisy = _with_margins(told, [self.margins.counts(feature) for feature in features])
        else:
            noisy = _with_residual(self.pool.expected(features), levels, told)
        if place is None:
            place = self._add(features, noisy, variance, spread=spread, residual=True)
        else:
            self._replace(place, noisy, variance, spread=spread)
        self.residuals[place] = told
        return place

    def _add(
        self,
        features: Features,
        noisy: Float64,
        variance: Float64,
        *,
        spread: float = 1.0,
        residual: bool = False,
    ) -> int:
        """Add what was measured of a table; return its place.

        Parameters
        ----------
        spread
            Directions that the noise has for each cell.
        residual
            Whether its residual was measured, and not the table itself.
        """
        self.places[features, residual] = len(self.features)
        self.features.append(features)
        self.keys.append(self.pool.keys(features))
        self.potentials.append(np.zeros(len(noisy)))
        for kept in (self.noisy, self.variances, self.likelihoods):
            kept.append(np.zeros(0))
        place = len(self.features) - 1
        self._replace(place, noisy, variance, spread=spread)
        return place

    def _replace(
        self, place: int, noisy: Float64, variance: Float64, *, spread: float = 1.0
    ) -> None:
        self.noisy[place], self.variances[place] = noisy, variance
        self.likelihoods[place] = (
            likely_closeness(noisy, self._unfitted(place), variance) * spread
            if len(self.features[place]) > 1
            else np.zeros(len(CLOSENESS))
        )

    def _unfitted(self, place: int) -> Float64:
        """Return what the pool expected of a table before any table had a say."""
        return kernels.weigh_cells(self.keys[place], self.base, self._cells(place))

    def _settle_closeness(self) -> None:
        """Take the closeness that all tables together make most likely."""
        together = np.sum(self.likelihoods, axis=0)
        if together.any():
            self.closeness = self._times_closer() * _highest(together)

    def _times_closer(self) -> float:
        """Return how many times the likely closeness is used.

        The pool was drawn by some of the same noisy counts, and looks closer than it is.
        """
        return self.steps.closer_than_it_is

    def _factors(self, table: int, sums: Float64) -> Float64:
        if table in self.tilts:
            return self._tilting_factors(table, sums)
        potentials = soft_potentials(
            sums,
            self.potentials[table],
            self._wanted(table, sums),
            self.closeness * self.variances[table],
            math.log(self.steps.most_factor),
        )
        factors: Float64 = np.exp(potentials - self.potentials[table])
        self.potentials[table] = potentials
        return factors

    def _tilting_factors(self, place: int, sums: Float64) -> Float64:
        """Return by how much cells are scaled so that a sum of products is met, softly."""
        before, tilt = float(self.potentials[place][0]), self._tilt(place, sums)
        self.potentials[place] = np.array([tilt])
        factors: Float64 = np.exp((tilt - before) * self.tilts[place])
        return factors

    def _tilt(self, place: int, sums: Float64) -> float:
        softness = self.closeness * float(self.variances[place][0])
        before, wanted = float(self.potentials[place][0]), float(self.noisy[place][0])
        most = math.log(self.steps.most_factor)
        return tilt_towards(sums, self.tilts[place], before, wanted, softness, most)

    def _product(self, place: int) -> float:
        """Return what the weights would add up to in a sum of products if it had its turn now.

        Under loud noise that is what they add up to already, whatever was measured.
        """
        products = self.tilts[place]
        sums = self.expected(self.keys[place], len(products))
        moved = self._tilt(place, sums) - float(self.potentials[place][0])
        return float((sums * np.exp(moved * products)) @ products)

    def _wanted(self, table: int, sums: Float64) -> Float64:
        """Return what a table should meet at its turn, which the weights add up to `sums` in."""
        if table not in self.residuals:
            return self.noisy[table]
        features, residual = self.features[table], self.residuals[table]
        if len(features) == PAIR:
            return _with_margins(residual, [self.ones[feature] for feature in features])
        return _with_residual(sums, [self.pool.sizes[each] for each in features], residual)

    def _moved_by(self, place: int, features: Features) -> float:
        """Fit a table that was added; return how far it alone moves what is expected of it."""
        self._settle_closeness()
        expected = self.expected(self.keys[place], self._cells(place))
        moved = float(np.abs(self._after_its_turn(place) - expected).sum())
        self.sweep(only=self._near(features))
        return moved

    def _near(self, features: Features) -> list[int]:
        """Return the tables to scale by after one was added: where they are many, those it moves.

        These share a feature with it. All have their turn now and then, and at the end.
        """
        count = len(self.features)
        if count <= _ALL_SWEPT or count % _ALL_ANEW == 0:
            return []
        return [place for place in range(count) if set(features) & set(self.features[place])]


def soft_potentials(
    sums: Float64, potentials: Float64, noisy: Float64, softness: Float64, most: float
) -> Float64:
    """Return the potentials that the cells of one table have at the minimum, all others given.

    With s the sum of weights in a cell without its own potential p, and softness c v,
    p + (s exp(p) - y)/(c v) = 0. Cells without any weight keep theirs.

    Parameters
    ----------
    most
        How far a potential may move.
    """
    from scipy.special import wrightomega

    some = sums > 0
    apart = np.log(np.where(some, sums, 1.0)) - potentials - np.log(softness)
    reached = apart + noisy / softness
    # Wright's omega z of x solves z + log z = x; far below 0 it is exp(x), which may be no number.
    root = np.log(np.maximum(wrightomega(np.maximum(reached, _NEXT_TO_NOTHING)), 1e-300))
    wanted = np.where(reached < _NEXT_TO_NOTHING, reached, root) - apart
    within = np.clip(wanted, potentials - most, potentials + most)
    found: Float64 = np.where(some, within, potentials)
    return found


def likely_closeness(noisy: Float64, expected: Float64, variance: Float64) -> Float64:
    """Return the log-likelihood of a table under every `CLOSENESS` of the pool.

    A cell is off by the noise and by what the pool does not know, whose variance is the
    expected number of rows over c.
    """
    squared = (noisy - expected) ** 2
    found = np.empty(len(CLOSENESS))
    for place, closeness in enumerate(CLOSENESS):
        whole = variance + expected / closeness
        found[place] = -0.5 * float((squared / whole + np.log(whole)).sum())
    return found


def _highest(likelihoods: Float64) -> float:
    """Return the closeness at the top, between two values of the grid by a parabola."""
    top = int(np.argmax(likelihoods))
    logs = np.log(CLOSENESS)
    if not 0 < top < len(likelihoods) - 1:
        return float(CLOSENESS[top])
    left, middle, right = likelihoods[top - 1 : top + 2]
    bend = left - 2 * middle + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(np.exp(logs[top] + shift * (logs[1] - logs[0])))


def _average(
    first: Float64, variance: Float64, second: Float64, other: Float64
) -> tuple[Float64, Float64]:
    """Return the mean of two measurements by precision, and its variance."""
    together = 1 / (1 / variance + 1 / other)
    mean: Float64 = together * (first / variance + second / other)
    return mean, together


def _with_margins(residual: Float64, margins: Sequence[Float64]) -> Float64:
    """Return the table of a pair that has a residual and margins of the same total."""
    rows, columns = margins
    told = rows[:, None] / len(columns) + columns / len(rows)
    told -= rows.sum() / (len(rows) * len(columns))
    table: Float64 = told.ravel() + residual
    return table


def _with_residual(table: Float64, levels: Sequence[int], residual: Float64) -> Float64:
    """Return a table with another residual."""
    return table - centred(table, levels) + residual


def in_order(table: NoisyTable, sizes: Sequence[int]) -> tuple[Features, Float64]:
    """Return a table with its features in the order of the schema."""
    order = sorted(range(len(table.features)), key=table.features.__getitem__)
    cells = table.counts.reshape([sizes[feature] for feature in table.features])
    features = tuple(table.features[place] for place in order)
    return features, cells.transpose(order).astype(np.float64).ravel()
