"""Replicate weights of rows that count alike: what other rows and other noise would show (R28).

Published rows count alike. For every replicate their weights move, from 1 on, until the rows show
what another sample, measured with other noise, could have shown. Each row is perturbed as drawing
the original's rows again would perturb it, each published table by fresh noise of its own
distribution. With b the perturbed rows, the weights that are sought minimise

    sum over tables of |A_t w - (A_t b + f e_t)|^2 / (2 v_t)  +  c KL(w || b),

where A_t w are the sums of weights by the cells of table t, e_t is the noise and v_t its variance.
Sums of products of ordered features are met like tables, as in the fit of the rows themselves. All
perturbations are a part f of what they are estimated to be, so that weights stay near 1 and first
order holds (`pegsynth.inference.combining_rules`).

The solution is w = b exp(sum of potentials of a row's cells). Potentials belong to tables and not
to rows: some of the rows are enough to find them, and rows that are drawn later have weights, too.
Nothing is read but published numbers and synthetic rows, so nothing is charged (R11).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pegsynth.inference.combining_rules import PART
from pegsynth.kernels.arrays import Float64
from pegsynth.kernels.pool_loops import rake_and_weigh, weigh_cells
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._cells import soft_potentials
from pegsynth.methods.released._draw import released_total, start_margins
from pegsynth.methods.released._estimates import AddedProducts, standard_scores, tilt_towards
from pegsynth.methods.released._pairs import PAIR, cell_noise, free_cells, projected
from pegsynth.methods.released._replicates import Law, Laws, Source, fresh_noise
from pegsynth.methods.released._row_pool import MOST_CELLS, cell_keys
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.random import RandomStream, Words

UInt16 = NDArray[np.uint16]
Rows = NDArray[np.unsignedinteger]
Cells = Callable[[Rows], UInt16]

FITTED_ROWS = 200_000
"""Rows that potentials are found by."""
MOST_WEIGHT = 4.0
LEAST_WEIGHT = 0.02
"""No row counts more or less than so many times the mean."""
MOST_SPREAD = 0.6
"""Rows are perturbed by at most this part of their weight. Where drawing rows again would do more,
because a table has many more rows than the original, the potentials hold all of it."""
OF_TABLES, OF_ONE_WAYS = 2.0, 0.3
"""c is so many times f over the usual deviation of the noise. An almost empty cell of a table then
moves by a factor of about 1.6 for one deviation; one-way counts, known best, follow closely."""
_SWEEPS, _LAST_SWEEPS = 6, 6
"""Through all tables; and through one-way counts after them, which tables that disagree with each
other would otherwise leave far from their own noise."""
_MOST_FACTOR = 3.0
_NEVER_MOVED = 0.01
"""Deviation of public counts, in usual deviations."""
_BITS = 64


@dataclass(frozen=True, eq=False)
class Measurement:
    """What was published of a table, as rows see it.

    Parameters
    ----------
    keys
        Returns the cell of every row.
    cells
        Number of cells.
    deviation
        Deviation of the noise on a cell, or on each of them, or on the sum of products, in rows.
    noise
        Fresh noise, a line for every replicate.
    levels
        The shape of the table where its residual was measured, whose margins say nothing (R27);
        else empty.
    products
        For a sum of products of two features: what a row of each cell adds.
    closeness
        How closely the rows are kept to what they are, beside that of other tables.
    """

    keys: Cells
    cells: int
    deviation: float | Float64
    noise: Float64
    levels: tuple[int, ...] = ()
    products: Float64 | None = None
    closeness: float = OF_TABLES

    def seen(self, sums: Float64) -> Float64:
        """Return what was measured of these sums by cell."""
        if self.products is not None:
            return np.array([sums @ self.products])
        return centred(sums, self.levels) if self.levels else sums

    def potentials(self, sums: Float64, before: Float64, wanted: Float64, c: float) -> Float64:
        """Return potentials after a turn; a residual leaves the margins as they are."""
        softness, most = c * self.closeness * self.deviation**2, math.log(_MOST_FACTOR)
        if self.products is not None:
            spread = float(softness)
            tilt = tilt_towards(sums, self.products, before[0], wanted[0], spread, most)
            return np.array([tilt])
        if self.levels:
            wanted = wanted + sums - centred(sums, self.levels)
        return soft_potentials(sums, before, wanted, np.full(self.cells, softness), most)

    def by_cell(self, potentials: Float64) -> Float64:
        """Return the potentials of all cells, those of a tilt multiplied out."""
        return potentials if self.products is None else potentials * self.products


def published_measurements(
    released: Released, laws: Laws, stream: RandomStream, count: int
) -> list[Measurement]:
    """Return every noisy table of a model with fresh noise, one-way counts last."""
    margins = start_margins(released)
    products = AddedProducts(standard_scores(released.levels, released.ordered, margins))
    found = []
    folded = Folded(released, count)
    for table, law in zip(
        (*released.blocks, *released.extra), (*laws.blocks, *laws.extra), strict=True
    ):
        levels = _levels(released, table.features)
        noise = _on_counts(len(table.counts), law, stream, count)
        found.append(
            Measurement(
                _cells_of(released, table.features), math.prod(levels), table.deviation, noise
            )
        )
        products.add(table.features, levels, noise, table.deviation**2)
        folded.add(table, noise)
    found += [
        _residual(released, table, law, stream, count, products)
        for table, law in zip(released.residuals, laws.residuals, strict=True)
    ]
    found += [
        Measurement(
            _cells_of(released, pair),
            math.prod(_levels(released, pair)),
            products.precisions[pair] ** -0.5,
            np.asarray(products.mean(pair))[:, None],
            products=products.by_cell(pair),
        )
        for pair in products.sums
    ]
    return found + _one_ways(released, laws, stream, count, found, folded)


def _residual(
    released: Released,
    table: NoisyTable,
    law: Law,
    stream: RandomStream,
    count: int,
    products: AddedProducts,
) -> Measurement:
    levels = _levels(released, table.features)
    drawn = fresh_noise(len(table.counts), law, stream, count)
    noise = np.stack([projected(replace(table, counts=line), levels) for line in drawn])
    deviation = cell_noise(table.deviation, levels)
    if len(levels) == PAIR:
        variance = deviation**2 * math.prod(levels) / free_cells(levels)
        products.add(table.features, levels, noise, variance, residual=True)
    keys = _cells_of(released, table.features)
    return Measurement(keys, math.prod(levels), deviation, noise, levels)


def _one_ways(
    released: Released,
    laws: Laws,
    stream: RandomStream,
    count: int,
    others: Sequence[Measurement],
    folded: Folded,
) -> list[Measurement]:
    """Return one-way counts on all categories; public ones have no noise and stay."""
    usual = float(np.median([float(np.median(each.deviation)) for each in others] or [1.0]))
    found = []
    for feature, law in enumerate(laws.one_ways):
        table, line = released.one_ways[feature], released.levels[feature]
        cells, deviation = len(table.counts), table.deviation
        noise = np.zeros((count, cells))
        if law is None:
            deviation = _NEVER_MOVED * usual
        else:
            noise = folded.together(feature, _on_counts(cells, law, stream, count), deviation)
        keys = _code_of(feature)
        if cells > MOST_CELLS:
            # Cells are numbered by 16 bits, and levels are fewer than that.
            keys, members = _cells_of(released, (feature,)), np.bincount(line)
            noise = np.stack([np.bincount(line, each) for each in noise])
            cells, deviation = len(members), deviation * math.sqrt(float(members.mean()))
        found.append(Measurement(keys, cells, deviation, noise, closeness=OF_ONE_WAYS))
    return found


class Folded:
    """Noise on the margins of tables, which improve one-way counts (`Margins.fold`).

    Parameters
    ----------
    count
        Number of replicates.
    """

    def __init__(self, released: Released, count: int) -> None:
        self.levels, sizes = released.levels, released.sizes
        self.sums = [np.zeros((count, size)) for size in sizes]
        self.precisions = [0.0] * len(sizes)

    def add(self, table: NoisyTable, noise: Float64) -> None:
        """Add the margins of a table, a line of noise for every replicate."""
        shape = [self.sums[feature].shape[1] for feature in table.features]
        cells = noise.reshape(-1, *shape)
        for axis, feature in enumerate(table.features):
            others = tuple(1 + other for other in range(len(shape)) if other != axis)
            precision = shape[axis] / (table.deviation**2 * math.prod(shape))
            self.sums[feature] += cells.sum(axis=others) * precision
            self.precisions[feature] += precision

    def together(self, feature: int, noise: Float64, deviation: float) -> Float64:
        """Return noise on all categories once tables have improved the counts of levels."""
        line = self.levels[feature]
        members = np.bincount(line)
        own = np.stack([np.bincount(line, each, len(members)) for each in noise])
        precision = 1 / (deviation**2 * members)
        mean = (own * precision + self.sums[feature]) / (precision + self.precisions[feature])
        moved: Float64 = ((mean - own) / members)[:, line]
        return noise + moved


def _on_counts(cells: int, law: Law, stream: RandomStream, count: int) -> Float64:
    """Return noise on the cells of a table whose total is known, which rows are fitted to."""
    noise = fresh_noise(cells, law, stream, count).astype(np.float64)
    found: Float64 = noise - noise.mean(axis=1, keepdims=True)
    return found


def _levels(released: Released, features: Sequence[int]) -> tuple[int, ...]:
    sizes = released.sizes
    return tuple(sizes[feature] for feature in features)


def _code_of(feature: int) -> Cells:
    return lambda codes: codes[:, feature].astype(np.uint16)


def _cells_of(released: Released, features: tuple[int, ...]) -> Cells:
    """Return how to find the cell of rows in a table on merged levels."""
    lines = [released.levels[feature].astype(np.uint16) for feature in features]
    sizes = _levels(released, features)

    def keys(codes: Rows) -> UInt16:
        columns = [line[codes[:, each]] for line, each in zip(lines, features, strict=True)]
        return cell_keys(np.stack(columns), tuple(range(len(features))), sizes)

    return keys


@dataclass(frozen=True, eq=False)
class Replicates:
    """Potentials of all published tables, K times, and how rows are perturbed.

    Parameters
    ----------
    measurements
        The published tables.
    potentials
        For each of them the potentials of its cells, a line for every replicate.
    total
        The number of original rows that all rows stand for.
    moved
        What drawing the original's rows again adds to the weight of a row or takes off it.
    sums
        Fresh noise on the sums of every declared analysis (R26), a line for every replicate.
    public
        Features whose one-way counts are public, so that no replicate moves them.
    closeness
        How closely rows are kept to what they are (c).
    """

    measurements: Sequence[Measurement]
    potentials: Sequence[Float64]
    total: float
    moved: float
    sums: tuple[Float64, ...] = ()
    public: tuple[int, ...] = ()
    closeness: float = PART

    @classmethod
    def fitted(
        cls,
        source: Source,
        codes: Rows,
        stream: RandomStream,
        *,
        count: int,
        rows: int,
        threads: int = 1,
    ) -> Replicates:
        """Find the potentials of every replicate by some rows of the model.

        Parameters
        ----------
        codes
            Rows without given values, at best `FITTED_ROWS` of them.
        count
            Number of replicates (K).
        rows
            Number of all rows that will have weights.
        """
        released = source.released
        laws = Laws.of(released, source.events)
        measurements = published_measurements(released, laws, stream, count)
        found = cls.of(
            measurements,
            codes,
            stream,
            total=max(released_total(released), 1.0),
            design_effect=source.design_effect,
            count=count,
            rows=rows,
            threads=threads,
        )
        return replace(
            found,
            sums=tuple(
                fresh_noise(len(each.sums), law, stream, count).astype(np.float64)
                for each, law in zip(released.sums, laws.sums, strict=True)
            ),
            public=tuple(place for place, law in enumerate(laws.one_ways) if law is None),
        )

    @classmethod
    def of(
        cls,
        measurements: Sequence[Measurement],
        codes: Rows,
        stream: RandomStream,
        *,
        total: float,
        design_effect: float,
        count: int,
        rows: int,
        threads: int = 1,
    ) -> Replicates:
        """Find the potentials of every replicate of any measurements, whoever made them.

        Parameters
        ----------
        total
            The number of original rows.
        design_effect
            How many times the sampling variance is that of independent rows; 0 for none.
        """
        moved = PART * math.sqrt(design_effect * rows / total)
        keys = [each.keys(codes) for each in measurements]
        start = np.full(len(codes), total / max(len(codes), 1))
        # Sums of products are in other units than counts of rows.
        counts = [each for each in measurements if each.products is None]
        usual = float(np.median([np.median(each.deviation) for each in counts]))
        closeness = PART / max(usual, 1e-9)
        here = PART * math.sqrt(design_effect * len(codes) / total)
        own = moved <= MOST_SPREAD
        signs = np.zeros((count, 1)) if own else Signs(stream.substream(), count).take(len(codes))

        def work(number: int) -> list[Float64]:
            changed = start * (1 + here * signs[number])
            noise = [PART * each.noise[number] for each in measurements]
            return _potentials(measurements, keys, start, changed, noise, closeness)

        with ThreadPoolExecutor(threads) as workers:
            found = list(workers.map(work, range(count)))
        return cls(
            measurements,
            [np.stack(lines) for lines in zip(*found, strict=True)],
            total,
            moved,
            closeness=closeness,
        )

    @property
    def drawn_by_rows(self) -> bool:
        """Whether drawing again is in the rows themselves, values inside bins included."""
        return self.moved <= MOST_SPREAD

    def perturbed(self, codes: Rows, signs: Float64) -> Float64:
        """Return what drawing rows again alone makes of their weights, before any noise.

        Parameters
        ----------
        signs
            Plus or minus 1 for every row, a line for every replicate (`Signs`).
        """
        found = 1 + (self.moved if self.drawn_by_rows else 0.0) * signs
        for feature in self.public:
            column = codes[:, feature].astype(np.int64)
            for place, line in enumerate(found):
                sums = np.bincount(column, line)
                found[place] = line * (np.bincount(column) / np.maximum(sums, 1e-9))[column]
        return found

    def weights(self, codes: Rows, signs: Float64) -> Float64:
        """Return a line of weights for every replicate, whose mean is about 1.

        Parameters
        ----------
        signs
            As for `perturbed`.
        """
        return bounded(self.moved_by(self.potentials, codes, self.perturbed(codes, signs)))

    def moved_by(self, potentials: Sequence[Float64], codes: Rows, weights: Float64) -> Float64:
        """Return weights multiplied by what potentials make of the cells of their rows."""
        exponents = np.zeros_like(weights)
        for each, lines in zip(self.measurements, potentials, strict=True):
            exponents += lines[:, each.keys(codes)]
        return weights * np.exp(exponents)

    def back(self, codes: Rows, before: Float64, after: Float64) -> list[Float64]:
        """Return potentials that lead weights back to what published tables had before.

        Shapes inside bins are about one feature each. Noise on a few rows of theirs must not
        become noise on all that these rows happen to have in common.

        Parameters
        ----------
        before, after
            A line of weights for every replicate.
        """
        keys = [each.keys(codes) for each in self.measurements]
        scale = self.total / max(len(codes), 1)
        still = [np.zeros(each.noise.shape[1]) for each in self.measurements]
        found = [
            _potentials(self.measurements, keys, scale * moved, scale * line, still, self.closeness)
            for line, moved in zip(before, after, strict=True)
        ]
        return [np.stack(lines) for lines in zip(*found, strict=True)]


def bounded(weights: Float64) -> Float64:
    """Return weights of mean 1 within bounds."""
    return np.clip(weights, LEAST_WEIGHT, MOST_WEIGHT)


@dataclass(frozen=True, eq=False)
class Signs:
    """Plus or minus 1 for every row and replicate, independent of each other."""

    words: Words
    count: int

    def take(self, rows: int) -> Float64:
        """Return a line of signs for every replicate."""
        found = np.empty((self.count, rows))
        for first in range(0, self.count, _BITS):
            drawn = self.words.take(rows).astype(np.uint64)
            for place in range(first, min(first + _BITS, self.count)):
                found[place] = (drawn >> np.uint64(place - first)) & np.uint64(1)
        return 2.0 * found - 1.0


def _potentials(
    measurements: Sequence[Measurement],
    keys: Sequence[UInt16],
    start: Float64,
    changed: Float64,
    noise: Sequence[Float64],
    closeness: float,
) -> list[Float64]:
    """Return the potentials of all tables, by cell, that lead from rows to a replicate."""
    weights = start.copy()
    targets = [
        each.seen(weigh_cells(line, changed, each.cells)) + moved
        for each, line, moved in zip(measurements, keys, noise, strict=True)
    ]
    potentials = [np.zeros(len(target)) for target in targets]
    sums = weigh_cells(keys[0], weights, measurements[0].cells)
    every = range(len(measurements))
    one_ways = [place for place in every if measurements[place].closeness == OF_ONE_WAYS]
    turns = [*every] * _SWEEPS + one_ways * _LAST_SWEEPS
    for place, following in pairwise([*turns, 0]):
        each, before = measurements[place], potentials[place]
        potentials[place] = each.potentials(sums, before, targets[place], closeness)
        sums = rake_and_weigh(
            keys[place],
            weights,
            np.exp(each.by_cell(potentials[place] - before)),
            keys[following],
            measurements[following].cells,
        )
    return [each.by_cell(line) for each, line in zip(measurements, potentials, strict=True)]
