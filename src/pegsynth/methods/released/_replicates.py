"""Tables with noise of their own, each drawn from a replicate of a published model (R28).

They come from the published model alone and cost nothing. Replicate weights of the rows of one
table are made by `row_replicates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.noise import add_noise
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._details import MAP_PURPOSES
from pegsynth.methods.released._draw import (
    draw_rows,
    fine_shares,
    pool_rows,
    rebuild,
    released_total,
)
from pegsynth.methods.released._joint_fit import JointFit
from pegsynth.methods.released._row_pool import Pool
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.options import MOST_REPLICATES
from pegsynth.privacy import Event, NoisyCounts, NoisyResiduals, NoisySums
from pegsynth.random import RandomStream, Words
from pegsynth.schema.rules import Rule

Codes = NDArray[np.uint32]

LEAST_REPLICATES = 2
MODEL_ROWS = 200_000
"""Rows of the pool that stands for the population when rows are drawn anew."""


@dataclass(frozen=True)
class Source:
    """A published model, and how its rows are drawn.

    Parameters
    ----------
    released
        The published counts.
    events
        The events of the model's ledger, which record the noise.
    steps
        The steps that rows are usually drawn by.
    rules
        The schema's rules.
    given
        Features and the code that each has in every row.
    design_effect
        How many times the sampling variance is that of independent rows.
    added
        Says what the rows of a pool add to the sums of declared analyses (R26).
    """

    released: Released
    events: Sequence[Event]
    steps: Steps = field(default_factory=Steps)
    rules: Sequence[Rule] = ()
    given: Mapping[int, int] = field(default_factory=dict)
    design_effect: float = 1.0
    added: Callable[[Pool, RandomStream], AddedUp] | None = None

    def replicates(self, count: int, stream: RandomStream, *, threads: int = 1) -> list[Released]:
        """Return the published counts with fresh sampling and noise, `count` times."""
        if not LEAST_REPLICATES <= count <= MOST_REPLICATES:
            raise ParameterError(
                f"replicates must be {LEAST_REPLICATES} to {MOST_REPLICATES}; 20 serve well"
            )
        laws = Laws.of(self.released, self.events)
        total = max(round(released_total(self.released)), 1)
        steps = self.usual_steps()
        size = min(pool_rows(self.released, total), MODEL_ROWS)
        pool = Pool(self.released.sizes, size, stream, rules=self.rules, threads=threads)
        fit = rebuild(self.released, pool, steps)
        return perturbed(
            self.released,
            laws,
            fit,
            stream,
            count=count,
            design_effect=self.design_effect,
            added=self.added(pool, stream.aside("added")) if self.added else None,
            threads=threads,
        )

    def usual_steps(self) -> Steps:
        """Return the steps that rows are drawn by, given how loud the noise is."""
        return self.steps.under_noise() if self.released.loud else self.steps


def own_noise_tables(
    source: Source, rows: int, stream: RandomStream, *, count: int, threads: int = 1
) -> Iterator[Iterator[Codes]]:
    """Yield tables in lots, each table from counts with noise of its own."""
    for _, lots in own_noise_versions(source, rows, stream, count=count, threads=threads):
        yield lots


def own_noise_versions(
    source: Source, rows: int, stream: RandomStream, *, count: int, threads: int = 1
) -> Iterator[tuple[Released, Iterator[Codes]]]:
    """Yield counts with noise of their own, and the table that is drawn from them, in lots."""
    for released in source.replicates(count, stream, threads=threads):
        lots = draw_rows(
            released,
            rows,
            stream.child(),
            steps=source.steps.plain(),
            rules=source.rules,
            given=source.given,
            threads=threads,
        )
        yield released, lots


Law = NoisyCounts | NoisySums | NoisyResiduals

MOST_DRAWN = 1 << 18
"""The most rows of one resample; larger tables have its deviations scaled up."""


@dataclass(frozen=True)
class Laws:
    """The noise of every published table, as the ledger records it.

    Parameters
    ----------
    total
        Noise on the number of rows.
    one_ways
        Noise on the one-way counts; None where they are public.
    blocks, extra
        Noise on the other tables.
    sums
        Noise on the sums of declared analyses (R26).
    residuals
        Noise on residuals (R27).
    """

    total: NoisyCounts
    one_ways: tuple[NoisyCounts | None, ...]
    blocks: tuple[NoisyCounts, ...]
    extra: tuple[NoisyCounts, ...]
    sums: tuple[NoisySums, ...] = ()
    residuals: tuple[NoisyResiduals, ...] = ()

    @classmethod
    def of(cls, released: Released, events: Sequence[Event]) -> Laws:
        """Find the events that paid for a release; they stand in the order of its tables."""
        noisy = [
            event
            for event in events
            if isinstance(event, NoisyCounts) and event.purpose not in MAP_PURPOSES
        ]
        tables = [table for table, public in _one_ways(released) if not public]
        tables += [*released.blocks, *released.extra]
        deviations = [released.total[1], *(table.deviation for table in tables)]
        added = tuple(event for event in events if isinstance(event, NoisySums))
        apart = tuple(event for event in events if isinstance(event, NoisyResiduals))
        recorded: list[Law] = [*noisy, *added, *apart]
        deviations += [each.deviation for each in released.sums]
        deviations += [table.deviation for table in released.residuals]
        if len(recorded) != len(deviations) or not all(map(_matches, recorded, deviations)):
            raise ParameterError(
                "the ledger does not record the noise of these released blocks; replicates need "
                "the events of the model that the blocks belong to"
            )
        left = iter(noisy)
        return cls(
            next(left),
            tuple(None if public else next(left) for public in released.public),
            tuple(next(left) for _ in released.blocks),
            tuple(next(left) for _ in released.extra),
            added,
            apart,
        )


class AddedUp(Protocol):
    """What the rows of a pool add to the sums of declared analyses."""

    def deviations(self, times: Float64) -> list[Float64]:
        """Return the sums of rows that count so many times."""
        ...


def _one_ways(released: Released) -> Iterator[tuple[NoisyTable, bool]]:
    return zip(released.one_ways, released.public, strict=True)


def _matches(event: Law, deviation: float) -> bool:
    size = event.scale_numerator / event.scale_denominator
    variance = size if event.mechanism == "discrete-gaussian" else 2 * size**2
    return math.isclose(variance, deviation**2, rel_tol=1e-9)


def perturbed(
    released: Released,
    laws: Laws,
    fit: JointFit,
    stream: RandomStream,
    *,
    count: int,
    design_effect: float = 1.0,
    added: AddedUp | None = None,
    threads: int = 1,
) -> list[Released]:
    """Return replicates of published counts: y + [C(D_k) - C(m)] + e_k.

    Parameters
    ----------
    laws
        The noise e_k.
    fit
        Rows weighed to the published tables (m), from which the D_k are drawn.
    design_effect
        How many times the sampling variance of a sum is that of independent rows. With at
        most k rows of a unit it is at most k.
    added
        What those rows add to the sums of declared analyses.
    """
    tables = (*released.blocks, *released.extra)
    ends = np.cumsum([len(one.counts) for one in released.one_ways])[:-1]
    resample = Resample.of(released, fit, stream.substream(), design_effect)
    noise = _Noises(count, stream, threads)
    totals = noise.on(1, laws.total)
    ones = [
        noise.on(len(one.counts), law)
        for one, law in zip(released.one_ways, laws.one_ways, strict=True)
    ]
    others = [
        noise.on(len(table.counts), law)
        for table, law in zip(tables, (*laws.blocks, *laws.extra), strict=True)
    ]
    apart = [
        noise.on(len(table.counts), law)
        for table, law in zip(released.residuals, laws.residuals, strict=True)
    ]
    sums = [
        noise.on(len(each.sums), law) for each, law in zip(released.sums, laws.sums, strict=True)
    ]
    found = []
    for k in range(count):
        times = resample.draw()
        fine = np.split(resample.one_ways(times), ends)
        fresh = [
            one if law is None else replace(one, counts=one.counts + moved + noisy[k])
            for one, law, moved, noisy in zip(
                released.one_ways, laws.one_ways, fine, ones, strict=True
            )
        ]
        moved_tables = fit.pool.each(partial(resample.table, times), tables)
        changed = [
            replace(table, counts=table.counts + moved + noisy[k])
            for table, moved, noisy in zip(tables, moved_tables, others, strict=True)
        ]
        moved_parts = fit.pool.each(partial(resample.residual, times), released.residuals)
        parts = [
            replace(table, counts=table.counts + moved + noisy[k])
            for table, moved, noisy in zip(released.residuals, moved_parts, apart, strict=True)
        ]
        blocks = len(released.blocks)
        found.append(
            replace(
                released,
                total=(released.total[0] + int(totals[k, 0]), released.total[1]),
                one_ways=tuple(fresh),
                blocks=tuple(changed[:blocks]),
                extra=tuple(changed[blocks:]),
                residuals=tuple(parts),
                sums=tuple(
                    replace(each, sums=each.sums + moved + noisy[k])
                    for each, moved, noisy in zip(
                        released.sums, resample.sums(times, added), sums, strict=True
                    )
                ),
            )
        )
    return found


@dataclass
class _Noises:
    """Fresh noise for all replicates of a table at once."""

    count: int
    stream: RandomStream
    threads: int

    def on(self, cells: int, law: Law | None) -> Int64:
        return fresh_noise(cells, law, self.stream, self.count, threads=self.threads)


def fresh_noise(
    cells: int, law: Law | None, stream: RandomStream, count: int, *, threads: int = 1
) -> Int64:
    """Return noise of a published distribution, a line for every replicate; none of no law."""
    nothing = np.zeros((count, cells), dtype=np.int64)
    return nothing if law is None else add_noise(nothing, law, stream, threads=threads)


@dataclass
class Resample:
    """Draws rows anew, and says how far their counts are from what was expected.

    Parameters
    ----------
    drawn
        Rows of a resample.
    scale
        What its deviations are multiplied by.
    shares
        Shares of all categories of every feature, one after the other.
    levels
        The level of each of these categories, numbered through.
    sizes
        Levels of every feature.
    """

    pool: Pool
    words: Words
    weights: Float64
    reached: Float64
    drawn: int
    scale: float
    levels: Int64
    shares: Float64
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, released: Released, fit: JointFit, words: Words, design_effect: float) -> Resample:
        """Prepare to draw as many rows as were counted, if these are not too many."""
        total = released_total(released)
        drawn = min(max(round(total), 1), MOST_DRAWN)
        weights = fit.pool.weights * (drawn / fit.pool.weights.sum())
        starts = np.cumsum([0, *released.sizes[:-1]])
        lines = [start + line for start, line in zip(starts, released.levels, strict=True)]
        return cls(
            fit.pool,
            words,
            weights,
            np.cumsum(weights),
            drawn,
            math.sqrt(design_effect * total / drawn),
            np.concatenate(lines),
            np.concatenate(fine_shares(released)),
            released.sizes,
        )

    def draw(self) -> Float64:
        """Return how often each row of the pool is drawn, less what was expected."""
        # Spacings of sorted uniform numbers are exponential, so that nothing is sorted.
        gaps = -np.log1p(-kernels.uniforms(self.words.take(self.drawn + 1)))
        points = np.cumsum(gaps)
        points *= self.reached[-1] / points[-1]
        places = np.searchsorted(self.reached, points[:-1], side="right")
        last = int(np.searchsorted(self.reached, self.reached[-1]))
        times: Float64 = np.bincount(np.minimum(places, last), minlength=self.pool.rows).astype(
            np.float64
        )
        return times

    def table(self, times: Float64, table: NoisyTable) -> Float64:
        """Return how far a table on merged levels is off in a resample."""
        return self._counts(table.features, times - self.weights) * self.scale

    def residual(self, times: Float64, table: NoisyTable) -> Float64:
        """Return the same for the residual of a table (R27)."""
        levels = [self.sizes[feature] for feature in table.features]
        return centred(self.table(times, table), levels) * math.prod(levels)

    def one_ways(self, times: Float64) -> Float64:
        """Return the same for all one-way tables, on all categories."""
        features = [(feature,) for feature in range(len(self.sizes))]
        got = np.concatenate([self._counts(each, times) for each in features])
        expected = np.concatenate([self._counts(each, self.weights) for each in features])
        given = self.shares / np.bincount(self.levels, self.shares)[self.levels]
        fine = split_counts(np.rint(got).astype(np.int64), self.levels, self.shares, self.words)
        return (fine - expected[self.levels] * given) * self.scale

    def sums(self, times: Float64, added: AddedUp | None) -> list[Float64]:
        """Return how far the sums of declared analyses are off in a resample."""
        if added is None:
            return []
        return [each * self.scale for each in added.deviations(times - self.weights)]

    def _counts(self, features: tuple[int, ...], weights: Float64) -> Float64:
        return kernels.weigh_table(
            self.pool.columns,
            np.array(features, dtype=np.int64),
            np.array([self.sizes[feature] for feature in features], dtype=np.int64),
            weights,
            self.pool.cells(features),
        )


def split_counts(counts: Int64, levels: Int64, shares: Float64, words: Words) -> Int64:
    """Split the rows of every level among its categories, each row by itself.

    Levels are halved again and again, all at once: the left half of a run of categories
    gets a binomial part of the run's rows.
    """
    from scipy import stats

    members = np.argsort(levels, kind="stable")
    reached = np.concatenate(([0.0], np.cumsum(shares[members])))
    first = np.searchsorted(levels[members], np.arange(len(counts) + 1))
    found = np.zeros(len(levels), dtype=np.int64)
    start, end, rows = first[:-1], first[1:], counts
    while len(start):
        single = end - start == 1
        found[members[start[single]]] = rows[single]
        open_ = ~single & (rows > 0)
        start, end, rows = start[open_], end[open_], rows[open_]
        if not len(start):
            break
        middle = (start + end) // 2
        whole = reached[end] - reached[start]
        part = np.clip((reached[middle] - reached[start]) / whole, 0.0, 1.0)
        points = kernels.uniforms(words.take(len(start)))
        left = np.clip(stats.binom.ppf(points, rows, part), 0, rows).astype(np.int64)
        start, end, rows = (
            np.concatenate((start, middle)),
            np.concatenate((middle, end)),
            np.concatenate((left, rows - left)),
        )
    return found
