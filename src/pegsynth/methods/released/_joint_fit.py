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
from dataclasses import dataclass, field, replace
from itertools import combinations, groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._cells import (
    CLOSENESS,
    FittedTable,
    average,
    highest,
    in_order,
    likely_closeness,
    soft_potentials,
    with_margins,
)
from pegsynth.methods.released._estimates import (
    TWO_LEVELS,
    AddedProducts,
    Axes,
    Margins,
    standard_scores,
    tilt_towards,
    tilted,
)
from pegsynth.methods.released._pairs import (
    MEAN_ABSOLUTE_NORMAL,
    PAIR,
    cell_noise,
    free_cells,
    projected,
    summed_noise,
)
from pegsynth.methods.released._row_pool import MOST_CELLS, Features, Pool, UInt16, cell_count
from pegsynth.methods.released._values import NoisyTable

if TYPE_CHECKING:
    from pegsynth.methods.released._pair_pool import PairModel

_NEVER_SAID = 0.01
_LEAST_TOTAL = 1e-6
_MOST_TILTED = 3
_ALL_ANEW = 10
_ALL_SWEPT = 160
_FIRST_SWEEPS, _LAST_SWEEPS = 4, 10
_STILL = 0.1
"""Weights have come to rest when a sweep moves tables by no more than this part of their noise."""
_CLOSER_THAN_IT_IS = 0.6
MOST_FACTOR = 3.0
"""The most by which one turn of a table scales the weights of a cell."""
_MOST_AIMS = 1 << 25
"""Cells of rows, over all tables, that are looked at when rows are taken from the pool."""


@dataclass
class JointFit:
    """A pool whose weights meet noisy tables by their precisions.

    Parameters
    ----------
    tables
        What the weights should meet; the one-way counts of all features stand first.
    closeness
        The c in use.
    times_closer
        How many times the likely closeness is used. The pool was drawn by some of the same noisy
        counts, and looks closer than it is.
    base
        The weights to stay close to.
    ones
        One-way counts of the weighted pool when they had their last turn.
    products
        Sums of products of ordered features, which noise does not bend.
    raked
        Whether tables are met as they are, without a look at noise.
    followed
        Tables whose potentials led to `base`: what a latent class model says of all pairs.
    pairs
        What pools are drawn by, where all pairs were measured.
    """

    pool: Pool
    margins: Margins
    steps: Steps
    tables: list[FittedTable] = field(default_factory=list)
    closeness: float = _NEVER_SAID
    times_closer: float = _CLOSER_THAN_IT_IS
    base: Float64 = field(default_factory=lambda: np.zeros(0))
    ones: dict[int, Float64] = field(default_factory=dict)
    products: AddedProducts = field(default_factory=lambda: AddedProducts({}))
    raked: bool = False
    followed: Sequence[FittedTable] = ()
    pairs: PairModel | None = None

    def start(
        self, blocks: Sequence[NoisyTable] = (), residuals: Sequence[NoisyTable] = ()
    ) -> None:
        """Meet one-way counts, blocks and residuals, staying close to the weights as they are."""
        self.base = self.pool.weights.copy()
        for feature in range(len(self.pool.sizes)):
            self._add((feature,), *self.margins.known(feature))
        self.sweep()
        for residual in residuals:
            self._measured_residual(residual)
        for block in blocks:
            self._measured(block)
        self._settle_closeness()
        # What is left over after residuals should be what they do not tell.
        self.sweep(_FIRST_SWEEPS if residuals else 1, still=_STILL)

    def take(self, table: NoisyTable) -> bool:
        """Add a measured table, and say whether it moved by more than its noise."""
        noise = MEAN_ABSOLUTE_NORMAL * table.deviation * len(table.counts)
        self.margins.fold(table, table.features)
        for feature in table.features:
            self._replace(self.tables[feature], *self.margins.known(feature))
        return self._moved_by(self._measured(table)) > noise

    def take_residual(self, table: NoisyTable) -> bool:
        """Add a measured residual, and say whether it moved by more than its noise."""
        fitted = self._measured_residual(table)
        return self._moved_by(fitted) > summed_noise(table.deviation, self._levels(table.features))

    def meet(self, targets: Sequence[tuple[Features, Float64]], sweeps: int) -> None:
        """Weigh all rows alike, then rake them to these tables as they are (R28)."""
        self.pool.weigh(self.margins.total)
        self.raked, nothing = True, np.zeros(0)
        self.tables = [
            FittedTable(
                features, self.pool.keys(features), counts, nothing, np.zeros(len(counts)), nothing
            )
            for features, counts in targets
        ]
        self._scale_by(self.tables * sweeps)

    def on(self, pool: Pool, sweeps: int) -> JointFit:
        """Weigh another pool, drawn by the same numbers, as this one is weighed.

        Weights are w_0 exp(sum of potentials), and potentials belong to tables, not to rows. What
        a few rows led to by chance is undone by some sweeps over all.
        """
        pool.weigh(self.margins.total)
        numbered: dict[Features, UInt16] = {}
        _scaled(pool, self.followed, numbered)
        base = pool.weights.copy()
        tables = _scaled(pool, self.tables, numbered)
        other = replace(self, pool=pool, base=base, tables=tables, ones=dict(self.ones))
        other.sweep(sweeps, still=0.0 if self.raked else _STILL)
        other._keep_some_weight()
        return other

    def sweep(
        self, times: int = 1, only: Sequence[FittedTable] = (), *, still: float = 0.0
    ) -> None:
        """Scale the weights by all tables or some; one-way counts, known best, come last.

        Parameters
        ----------
        still
            Sweeps end before so many when one moves tables by less than this part of their noise.
        """
        count = 0 if self.raked else len(self.pool.sizes)
        turns = [*(only or self.tables[count:]), *self.tables[:count]]
        noise = [
            MEAN_ABSOLUTE_NORMAL * float(np.sqrt(table.variance).sum())
            for table in turns
            if table.products is None
        ]
        for _ in range(times):
            moved = self._scale_by(turns)
            # Noise of more rows than there are says nothing of how far a table is to move.
            if still and moved < still * sum(np.minimum(noise, self.ones[0].sum())):
                break

    def finish(self, levels: Sequence[Int64], ordered: Sequence[bool]) -> None:
        """Come to rest, and meet the sums of products of ordered features.

        Counts cannot be negative, so what noise takes off empty cells is taken off others: tables
        show less dependence than was measured. A sum of products over a noisy table has no such
        bias.
        """
        self._add_products(standard_scores(levels, ordered, self.margins))
        self.sweep(_LAST_SWEEPS, still=_STILL)
        self._keep_some_weight()

    def aims(self) -> list[tuple[UInt16, Float64]]:
        """Return tables that rows should meet which are taken from the pool.

        Each has the cell of every row of the pool, and what to add up to in all cells. These are
        the measured tables and, as far as there is room, all other pairs. A measured table should
        be what it would be after a turn of its own: where sweeps have not come to rest, rows get
        nearer to it than the weights. Of other pairs rows should meet what the weights add up to,
        which they would be off from by sampling alone.
        """
        if self.raked:
            return [(table.keys, table.noisy) for table in self.tables]
        if not self.tables:
            return []  # nothing was fitted
        sizes = self.pool.sizes
        ones = self.tables[: len(sizes)]
        measured = [each for each in self.tables[len(sizes) :] if each.products is None]
        self.ones = {each.features[0]: self._after_its_turn(each) for each in ones}
        found = [(each.keys, self.ones[each.features[0]]) for each in ones]
        products = self._products()
        found += [
            (each.keys, self._tilted(each.features, self._after_its_turn(each), products))
            for each in measured
        ]
        known = {each.features for each in measured}
        others = [
            pair
            for pair in combinations(range(len(sizes)), 2)
            if pair not in known and cell_count(pair, sizes) <= MOST_CELLS
        ]
        if len(others) <= _MOST_AIMS // self.pool.rows - len(found):
            found += [(self.pool.keys(pair), self.pool.expected(pair)) for pair in others]
        return found

    def _keep_some_weight(self) -> None:
        """Go back to where weights started if nothing is left: noise below zero says nothing."""
        if not self.pool.weights.sum() > _LEAST_TOTAL * self.margins.total:
            self.pool.weights = self.base.copy()

    def _scale_by(self, turns: Sequence[FittedTable]) -> float:
        """Scale the weights by the cells of one table after the other; return how far all moved.

        A table with the same cells as the one before it has its turn in the same pass over rows.
        """
        moved = 0.0
        passes = [list(group) for _, group in groupby(turns, key=lambda each: id(each.keys))]
        sums = self._expected(turns[0])
        for tables, (following, *_) in pairwise([*passes, passes[0]]):
            before, factors = sums, np.ones(len(sums))
            for table in tables:
                own = self._factors(table, sums)
                sums, factors = sums * own, factors * own
                if len(table.features) == 1:
                    self.ones[table.features[0]] = sums
            moved += float(np.abs(sums - before).sum())
            cells = self.pool.cells(following.features)
            sums = self.pool.scale(tables[0].keys, factors, following.keys, cells)
        return moved

    def _expected(self, table: FittedTable) -> Float64:
        """Return what the weighted pool expects in the cells of a table."""
        return kernels.weigh_cells(table.keys, self.pool.weights, self.pool.cells(table.features))

    def _factors(self, table: FittedTable, sums: Float64) -> Float64:
        """Return by how much the weights in every cell of a table are scaled at its turn."""
        if self.raked:
            raked = kernels.rake_factors(sums, table.noisy, MOST_FACTOR)
            table.potentials = table.potentials + np.log(raked)
            return raked
        before, table.potentials = table.potentials, self._potentials(table, sums, MOST_FACTOR)
        factors: Float64 = np.exp(table.by_cell(table.potentials - before))
        return factors

    def _potentials(self, table: FittedTable, sums: Float64, most_factor: float) -> Float64:
        """Return the potentials of a table after a turn, given what weights add up to in it."""
        softness, most = self.closeness * table.variance, math.log(most_factor)
        before, wanted = table.potentials, self._wanted(table, sums)
        if table.products is None:
            return soft_potentials(sums, before, wanted, softness, most)
        tilt = tilt_towards(
            sums, table.products, float(before[0]), float(wanted[0]), float(softness[0]), most
        )
        return np.array([tilt])

    def _after_its_turn(self, table: FittedTable) -> Float64:
        """Return what the weights would add up to in a table if it had its turn now."""
        expected = self._expected(table)
        moved = self._potentials(table, expected, math.inf) - table.potentials
        found: Float64 = expected * np.exp(moved)
        # Noise below zero everywhere says nothing.
        return found if found.sum() > _LEAST_TOTAL * expected.sum() else expected

    def _wanted(self, table: FittedTable, sums: Float64) -> Float64:
        """Return what a table should meet at its turn, which the weights add up to `sums` in."""
        if table.residual is None:
            return table.noisy
        if len(table.features) == PAIR:
            return with_margins(table.residual, [self.ones[each] for each in table.features])
        return sums - centred(sums, self._levels(table.features)) + table.residual

    def _measured(self, table: NoisyTable) -> FittedTable:
        """Add a table of counts, or average it with an earlier one by precision."""
        features, counts = in_order(table, self.pool.sizes)
        # The total is known best, so what counts exceed it by is noise.
        counts = counts - (counts.sum() - self.margins.total) / len(counts)
        variance = np.full(len(counts), table.deviation**2)
        known = self._known(features, residual=False)
        if known is None:
            return self._add(features, counts, variance)
        return self._replace(known, *average(known.noisy, known.variance, counts, variance))

    def _measured_residual(self, table: NoisyTable) -> FittedTable:
        """Add a residual; that of a pair is averaged with an earlier one by precision."""
        features, levels = table.features, self._levels(table.features)
        told = projected(table, levels)
        variance = np.full(len(told), cell_noise(table.deviation, levels) ** 2)
        known = self._known(features, residual=True)
        if known is not None and known.residual is not None:
            told, variance = average(known.residual, known.variance, told, variance)
        if len(features) == PAIR:
            noisy = with_margins(told, [self.margins.counts(feature) for feature in features])
        else:
            expected = self.pool.expected(features)
            noisy = expected - centred(expected, levels) + told
        return (
            self._add(features, noisy, variance, told)
            if known is None
            else self._replace(known, noisy, variance, told)
        )

    def _known(self, features: Features, *, residual: bool) -> FittedTable | None:
        """Return the table of these features that was measured before, or its residual."""
        for each in self.tables[len(self.pool.sizes) :]:
            if each.features == features and (each.residual is not None) == residual:
                return each
        return None

    def _add(
        self, features: Features, noisy: Float64, variance: Float64, residual: Float64 | None = None
    ) -> FittedTable:
        """Add what was measured of a table, or of its residual."""
        keys, nothing = self.pool.keys(features), np.zeros(len(noisy))
        table = FittedTable(features, keys, noisy, variance, nothing, np.zeros(len(CLOSENESS)))
        self.tables.append(table)
        return self._replace(table, noisy, variance, residual)

    def _replace(
        self,
        table: FittedTable,
        noisy: Float64,
        variance: Float64,
        residual: Float64 | None = None,
    ) -> FittedTable:
        table.noisy, table.variance, table.residual = noisy, variance, residual
        if len(table.features) > 1:
            levels = self._levels(table.features)
            # The noise of a residual has fewer directions than there are cells.
            spread = 1.0 if residual is None else free_cells(levels) / math.prod(levels)
            # What the pool expected before any table had a say.
            unfitted = kernels.weigh_cells(table.keys, self.base, len(noisy))
            table.likelihoods = likely_closeness(noisy, unfitted, variance) * spread
        return table

    def _settle_closeness(self) -> None:
        """Take the closeness that all tables together make most likely."""
        together = np.sum([each.likelihoods for each in self.tables], axis=0)
        if together.any():
            self.closeness = self.times_closer * highest(together)

    def _moved_by(self, table: FittedTable) -> float:
        """Fit a table that was added; return how far it alone moves what is expected of it."""
        self._settle_closeness()
        moved = float(np.abs(self._after_its_turn(table) - self._expected(table)).sum())
        self.sweep(only=self._near(table.features))
        return moved

    def _near(self, features: Features) -> list[FittedTable]:
        """Return the tables to scale by after one was added: where they are many, those it moves.

        These share a feature with it. All have their turn now and then, and at the end.
        """
        count, wanted = len(self.tables), set(features)
        if count <= _ALL_SWEPT or count % _ALL_ANEW == 0:
            return []
        return [each for each in self.tables[len(self.pool.sizes) :] if wanted & set(each.features)]

    def _add_products(self, scores: Mapping[int, Float64]) -> None:
        """Let the sums of products of ordered features be met, each like a table."""
        self.products = AddedProducts(scores)
        for table in self.tables[len(self.pool.sizes) :]:
            levels, variance = self._levels(table.features), float(table.variance[0])
            if table.residual is None:
                self.products.add(table.features, levels, table.noisy, variance)
            elif len(levels) == PAIR:
                cells = self._wanted(table, table.noisy)
                variance *= cells.size / free_cells(levels)
                self.products.add(table.features, levels, cells, variance, residual=True)
        places = {each.features: place for place, each in enumerate(self.tables)}
        found = []
        for pair, precision in self.products.precisions.items():
            place = places.get(pair, len(self.tables))
            keys = self.tables[place].keys if pair in places else self.pool.keys(pair)
            measured, spread = np.array([self.products.mean(pair)]), np.array([1 / precision])
            added = self.products.by_cell(pair)
            start, nothing = np.zeros(1), np.zeros(len(CLOSENESS))
            table = FittedTable(pair, keys, measured, spread, start, nothing, products=added)
            found.append((place, table))
        # Each stands behind the table of the same cells, so that both have their turn in one pass.
        ordered = [*((place, each) for place, each in enumerate(self.tables)), *found]
        self.tables = [table for _, table in sorted(ordered, key=itemgetter(0))]

    def _products(self) -> dict[tuple[int, int], float]:
        """Return the sums of products that tables should have.

        Products with a feature of two levels are left to the fit, which knows them better than
        their own table does: others tell of them, too.
        """
        return {
            (each.features[0], each.features[1]): self._product(each)
            for each in self.tables
            if each.products is not None and min(self._levels(each.features)) > TWO_LEVELS
        }

    def _tilted(
        self, features: Features, table: Float64, products: Mapping[tuple[int, int], float]
    ) -> Float64:
        """Return a small table with the sums of products that its features should have."""
        if len(features) > _MOST_TILTED:
            return table
        cells = table.reshape(self._levels(features))
        margins: dict[Axes, Float64] = {
            (axis,): self.ones[each] for axis, each in enumerate(features)
        }
        return tilted(cells, features, products, self.products.scores, margins).ravel()

    def _product(self, table: FittedTable) -> float:
        """Return what the weights would add up to in a sum of products if it had its turn now.

        Under loud noise that is what they add up to already, whatever was measured.
        """
        sums = self._expected(table)
        moved = self._potentials(table, sums, MOST_FACTOR) - table.potentials
        whole = sums * np.exp(table.by_cell(moved))
        return float(whole @ table.by_cell(np.ones(1)))

    def _levels(self, features: Features) -> list[int]:
        return [self.pool.sizes[each] for each in features]


def _scaled(
    pool: Pool, tables: Sequence[FittedTable], numbered: dict[Features, UInt16]
) -> list[FittedTable]:
    """Scale the weights of a pool by tables that another pool was fitted to; return its own.

    Tables of the same features share the cells of rows, which are kept in `numbered`.
    """
    found = []
    for table in tables:
        if table.features not in numbered:
            numbered[table.features] = pool.keys(table.features)
        found.append(replace(table, keys=numbered[table.features]))
        pool.weights *= np.exp(table.by_cell(table.potentials))[found[-1].keys]
    return found
