"""Candidate rows whose weights meet published tables, each cell as far as its error tells (R36).

The weights w minimise the same sum as those of released blocks (`methods/released/_joint_fit.py`):
how far each table is from what the rows add up to, by the error of its cells, and c KL(w || w0).
A cell between two bounds has no normal error. It is met as the measurement that its bounds amount
to, given what all other tables lead to expect (`cell_errors.as_measured`), worked out again at each
turn. Cells that are zero for certain lose their rows; exact cells are met as they are.

All of it is post-processing of published tables (R36).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np

from pegsynth.errors import DataError
from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.evidence.cell_errors import (
    as_measured,
    best_margin,
    expected_cells,
    log_likelihood,
)
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._cells import CLOSENESS, soft_potentials
from pegsynth.methods.released._estimates import Margins, with_floor
from pegsynth.methods.released._pair_pool import PairNetwork
from pegsynth.methods.released._row_pool import MOST_CELLS, Features, Pool, UInt16, cell_count
from pegsynth.random import RandomStream
from pegsynth.schema.rules import Rule
from pegsynth.tables.published_tables import PublishedTable

_MOST_FACTOR = 4.0
_MOST_SWEEPS = 100
_STILL = 0.1
"""Rows: what no cell moves by when sweeps have come to rest."""
_VAGUE = 8.0
"""How many times its number of rows an expectation from fewer features varies."""
_MORE_ROWS = 4
_TRIED = 2_000
_MOST_AIMS = 1 << 25
_SWEEPS_APART = 10
"""Bounds are looked at again every so many sweeps, so that what they stand for comes to rest."""
_LEAST_SOFTNESS = 1e-9
_NO_CELLS = np.zeros(0)


@dataclass(eq=False)
class MetTable:
    """A published table, and how the candidate rows meet it.

    Parameters
    ----------
    keys
        The cell of every row.
    potentials
        Logarithms of the factors by which it scales the weights of its cells.
    measured
        The measurement that stands for every cell, and the variance of its error.
    """

    table: PublishedTable
    keys: UInt16
    potentials: Float64
    measured: tuple[Float64, Float64] = (_NO_CELLS, _NO_CELLS)


@dataclass(eq=False)
class TableFit:
    """Weighted candidate rows.

    Parameters
    ----------
    total
        The number of rows that the tables are about.
    closeness
        How closely the weights are kept to the rows as they were drawn (c).
    """

    pool: Pool
    total: float
    met: list[MetTable] = field(default_factory=list)
    closeness: float = 1.0

    @classmethod
    def of(
        cls,
        tables: Sequence[PublishedTable],
        sizes: tuple[int, ...],
        rows: int,
        stream: RandomStream,
        *,
        rules: Sequence[Rule] = (),
        threads: int = 1,
    ) -> TableFit:
        """Draw candidate rows by pairs of features, and weigh them to all tables.

        Parameters
        ----------
        tables
            One for every set of features.
        """
        margins = margins_of_tables(tables, sizes)
        pool = Pool(sizes, rows, stream, rules=rules, threads=threads)
        _draw(pool, tables, margins)
        _add_rows(pool, tables, rules)
        fit = cls(pool, margins.total)
        pool.weigh(margins.total)
        for table in tables:
            keys = pool.keys(table.features)
            empty = (table.high <= 0) & (table.variance == 0)
            pool.weights[empty[keys]] = 0.0
            fit.met.append(MetTable(table, keys, np.zeros(len(table.low))))
        if not pool.weights.any():
            raise DataError(
                "no row fits the published tables and the rules of the schema together; check the "
                "cells that are zero, and the rules"
            )
        fit._settle_closeness()
        fit._sweep()
        return fit

    def aims(self) -> list[tuple[UInt16, Float64]]:
        """Return the tables that rows should meet: published ones, then other pairs."""
        found = [(each.keys, self._within(each)) for each in self.met if each.table.features]
        known = {each.table.features for each in self.met}
        others = [
            pair
            for pair in combinations(range(len(self.pool.sizes)), 2)
            if pair not in known and cell_count(pair, self.pool.sizes) <= MOST_CELLS
        ]
        if len(others) <= _MOST_AIMS // self.pool.rows - len(found):
            found += [(self.pool.keys(pair), self.pool.expected(pair)) for pair in others]
        return found

    def misfits(self) -> list[tuple[PublishedTable, float]]:
        """Return tables that the rows cannot meet, and by how many rows the worst cell is off."""
        found = []
        for each in self.met:
            table, reached = each.table, self._expected(each)
            off = np.maximum(table.low - reached, reached - table.high)
            off -= 6 * np.sqrt(table.variance) + 0.5 + 1e-3 * table.low
            if off.max(initial=0.0) > 0:
                found.append((table, float(off.max())))
        return sorted(found, key=lambda each: -each[1])

    def _within(self, each: MetTable) -> Float64:
        """Return what rows should add up to: what is expected, between the bounds."""
        reached, table = self._expected(each), each.table
        bounded = np.clip(reached, table.low, table.high)
        aim: Float64 = np.where(table.variance > 0, reached, bounded)
        return aim

    def _expected(self, each: MetTable) -> Float64:
        return kernels.weigh_cells(each.keys, self.pool.weights, len(each.potentials))

    def _settle_closeness(self) -> None:
        """Take the closeness that the tables of several features make most likely."""
        pool = self.pool
        several = [
            (each.table, kernels.weigh_cells(each.keys, pool.weights, len(each.potentials)))
            for each in self.met
            if len(each.table.features) > 1
        ]
        if not several:
            return
        found = [
            sum(
                log_likelihood(table, expected, np.maximum(expected / c, 1e-3))
                for table, expected in several
            )
            for c in CLOSENESS
        ]
        self.closeness = float(CLOSENESS[int(np.argmax(found))])

    def _sweep(self) -> None:
        """Let tables have their turns until none moves; exact ones, met as they are, come last."""
        turns = sorted(self.met, key=lambda each: (each.table.exact, -len(each.table.features)))
        for sweep in range(_MOST_SWEEPS):
            again, moved = sweep % _SWEEPS_APART == 0, 0.0
            if again:
                self._measure()
            sums = self._expected(turns[0])
            for each, following in pairwise([*turns, turns[0]]):
                change = self._potentials(each, sums) - each.potentials
                each.potentials = each.potentials + change
                moved = max(moved, float((np.abs(change) * sums).max(initial=0.0)))
                cells = len(following.potentials)
                sums = self.pool.scale(each.keys, np.exp(change), following.keys, cells)
            if moved < _STILL and not again:
                break

    def _potentials(self, each: MetTable, sums: Float64) -> Float64:
        """Return the potentials of a table after its turn."""
        noisy, variance = each.measured
        softness = np.maximum(self.closeness * variance, _LEAST_SOFTNESS)
        return soft_potentials(sums, each.potentials, noisy, softness, math.log(_MOST_FACTOR))

    def _measure(self) -> None:
        """Look at all bounds again, given what the other tables now lead to expect.

        Sums over a table have the errors of all of its cells. Where several tables hold a feature,
        or the number of rows, they are averaged first, and every table is led to the average.
        """
        for each in self.met:
            alone = self._expected(each) * np.exp(-each.potentials)
            each.measured = as_measured(each.table, alone, alone / self.closeness)
        shared: list[Features] = [
            *((one,) for one in sorted({one for each in self.met for one in each.table.features})),
            (),
        ]
        together = {features: self._together(features) for features in shared}
        for each in self.met:
            if each.table.exact:
                continue
            noisy, variance = each.measured
            for features in [one for one in shared if set(one) <= set(each.table.features)]:
                noisy = noisy + self._led(each, noisy, variance, features, together[features])
            each.measured = np.maximum(noisy, 0.0), variance

    def _together(self, features: Features) -> Float64:
        """Return what all tables say of a margin, averaged by precision."""
        sums, precisions = np.zeros(1), np.zeros(1)
        for each in self.met:
            if set(features) <= set(each.table.features):
                lines = [self._margin(each, line, features).ravel() for line in each.measured]
                sums, precisions = sums + lines[0] / lines[1], precisions + 1 / lines[1]
        return sums / precisions

    def _led(
        self, each: MetTable, noisy: Float64, variance: Float64, features: Features, wanted: Float64
    ) -> Float64:
        """Return what leads a table to a margin, most where its cells are known least."""
        counts = self._margin(each, noisy, features)
        short = (wanted.reshape(counts.shape) - counts) / self._margin(each, variance, features)
        shape = [self.pool.sizes[one] for one in each.table.features]
        return (variance.reshape(shape) * short).ravel()

    def _margin(self, each: MetTable, cells: Float64, features: Features) -> Float64:
        """Add up cells of a table over all but some features, keeping its axes."""
        shape = [self.pool.sizes[one] for one in each.table.features]
        gone = tuple(axis for axis, one in enumerate(each.table.features) if one not in features)
        return np.asarray(cells.reshape(shape).sum(axis=gone, keepdims=True))


def margins_of_tables(tables: Sequence[PublishedTable], sizes: tuple[int, ...]) -> Margins:
    """Return the one-way shares and the number of rows, by the tables that know them best."""
    whole = best_margin(tables, (), sizes)
    total = max(float(whole.middle[0]), 1.0) if whole is not None else 1.0
    shares = []
    for feature, size in enumerate(sizes):
        table = best_margin(tables, (feature,), sizes)
        counts = np.ones(size) if table is None else _one_way(table, total)
        shares.append(with_floor(counts))
    return Margins(sizes, total, [], [], shares)


def _one_way(table: PublishedTable, total: float) -> Float64:
    even = np.full(len(table.low), total / len(table.low))
    counts = expected_cells(table, even, np.maximum(even, 1.0) ** 2)
    return counts if counts.sum() > 0 else even


def _draw(pool: Pool, tables: Sequence[PublishedTable], margins: Margins) -> None:
    """Draw every feature given the features that it depends on most, by their pair tables."""
    pairs: dict[Features, Float64] = {}
    for pair in combinations(range(len(pool.sizes)), 2):
        table = best_margin(tables, pair, pool.sizes)
        if table is None:
            continue
        alone = np.outer(margins.counts(pair[0]), margins.shares[pair[1]]).ravel()
        cells = expected_cells(table, alone, _VAGUE * alone + 1.0)
        if cells.sum() > 0:
            pairs[pair] = cells.reshape([pool.sizes[each] for each in pair])
    steps = Steps()
    network = PairNetwork.of(pairs, pool.sizes, steps)
    for feature in network.order(range(len(pool.sizes))):
        heads = network.heads_of(feature, pool.placed)
        own = margins.shares[feature][None, :]
        shares = network.shares(feature, heads, pool, margins) if heads else own
        pool.draw(feature, heads, shares)


def _add_rows(pool: Pool, tables: Sequence[PublishedTable], rules: Sequence[Rule]) -> None:
    """Add rows to cells that are not empty and have none, each like another row of the pool."""
    added: list[np.ndarray] = []
    for table in tables:
        wanted = (table.low > 0) & (pool.counts(table.features) == 0)
        shape = [pool.sizes[each] for each in table.features]
        for cell in np.flatnonzero(wanted):
            codes = np.unravel_index(cell, shape)
            rows = _like(pool, table.features, [int(code) for code in codes])
            for feature, code in zip(table.features, codes, strict=True):
                rows[feature] = code
            added.append(rows)
    if not added:
        return
    columns = np.concatenate(added, axis=1)
    broken = np.zeros(columns.shape[1], dtype=bool)
    for rule in rules:
        broken |= rule.broken_by(columns.T)
    columns = columns[:, ~broken]
    pool.columns = np.ascontiguousarray(np.concatenate([pool.columns, columns], axis=1))
    pool.rows = pool.columns.shape[1]
    pool.alive = np.concatenate([pool.alive, np.ones(columns.shape[1], dtype=bool)])


def _like(pool: Pool, features: Features, codes: Sequence[int]) -> UInt16:
    """Return some rows of the pool that have as many of these codes as any that were looked at."""
    places = (pool.uniforms(_TRIED) * pool.rows).astype(np.int64)
    looked = pool.columns[:, places]
    same: Int64 = sum(
        (looked[feature] == code).astype(np.int64)
        for feature, code in zip(features, codes, strict=True)
    )
    best = np.argsort(-same, kind="stable")[:_MORE_ROWS]
    return looked[:, best].copy()
