"""Replicates of a published model: weights, or tables with noise of their own (R28).

Both come from the published model alone and cost nothing. `replicate_weights` gives rows
with K + 1 weights: those of a fit without shrinkage to the published counts, and to each
of their K replicates. `own_noise_tables` draws K tables, each from a replicate of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64
from pegsynth.errors import DataError, ParameterError
from pegsynth.kernels.pool_loops import uniforms
from pegsynth.options import MOST_REPLICATES
from pegsynth.privacy import Event
from pegsynth.random import RandomStream
from pegsynth.released.dependences import tell
from pegsynth.released.diverse_shares import Diverse
from pegsynth.released.draw import (
    MOST_POOLS_FOR_GIVEN,
    draw_rows,
    fine_shares,
    lot_rows,
    plain_margins,
    pool_rows,
    rebuild,
    released_total,
    told_of,
)
from pegsynth.released.levels import split_again
from pegsynth.released.perturbed import AddedUp, Laws, perturbed
from pegsynth.released.plain import plain_targets
from pegsynth.released.pool_fit import PoolFit
from pegsynth.released.published import Released
from pegsynth.released.row_pool import Pool
from pegsynth.released.rows import choose_rows, exchange_rows
from pegsynth.released.steps import Steps
from pegsynth.schema.rules import Rule

Codes = NDArray[np.uint32]

LEAST_REPLICATES = 2
MODEL_ROWS = 200_000
"""Rows of the pool that stands for the population when rows are drawn anew."""

_SMALLEST_GIVEN = 1 << 14
_FEW_ROWS = 1 << 17
_MORE_SWEEPS = 3


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
    diverse
        The l that some features must reach.
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
    diverse: Diverse | None = None
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
        size = min(pool_rows(self.released, total, steps), MODEL_ROWS)
        pool = Pool(self.released.sizes, size, stream, rules=self._rules(), threads=threads)
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

    def _rules(self) -> Sequence[Rule]:
        return self.diverse.rules if self.diverse and self.diverse.levels else self.rules


@dataclass(frozen=True)
class WeightedRows:
    """Rows with weights.

    Parameters
    ----------
    codes
        The rows.
    weights
        A line of weights for the published counts, and one for each replicate. The lines
        of all lots together add up to the estimated number of original rows.
    versions
        The published counts, and each replicate of them.
    """

    codes: Codes
    weights: Float64
    versions: tuple[Released, ...] = ()


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
            diverse=source.diverse,
            given=source.given,
            threads=threads,
        )
        yield released, lots


def replicate_weights(
    source: Source, rows: int, stream: RandomStream, *, count: int, threads: int = 1
) -> Iterator[WeightedRows]:
    """Yield rows with weights in lots, `rows` rows in all.

    Raises
    ------
    ParameterError
        If some features must be l-diverse: weights would undo it (R7).
    DataError
        If the model holds almost no rows with the given values.
    """
    if source.diverse and source.diverse.levels:
        raise ParameterError(
            "replicate weights would undo the l that --l promises, because they tell more than "
            "the rows do; draw tables with noise of their own instead (--datasets)"
        )
    replicates = source.replicates(count, stream, threads=threads)
    have = 0
    for number in range(MOST_POOLS_FOR_GIVEN):
        if have >= rows and (have or not rows):
            return
        most = lot_rows(source.released)
        wanted = min(most, rows - have)
        size = min(max(wanted << number, _SMALLEST_GIVEN), most) if source.given else wanted
        lot = _lot(source, replicates, size, wanted, stream, threads)
        have += len(lot.codes)
        if len(lot.codes):
            yield replace(lot, weights=lot.weights * (len(lot.codes) / rows))
    raise DataError(
        f"the released blocks hold almost no rows with the values of --where: {have} of {rows} "
        "were found; ask for fewer rows, or give fewer values"
    )


def _lot(
    source: Source,
    replicates: Sequence[Released],
    size: int,
    most: int,
    stream: RandomStream,
    threads: int,
) -> WeightedRows:
    """Return at most `most` of `size` new rows: those with the given values."""
    released, plain = source.released, source.steps.plain()
    pool = _usual_rows(source, size, stream, threads)
    kept = np.arange(size)
    for feature, code in source.given.items():
        kept = kept[pool.columns[feature, kept] == released.levels[feature][code]]
    matching = len(kept)
    kept = kept[:most]
    versions = (released, *replicates)
    shares = [fine_shares(counts, plain) for counts in versions]
    # Split by the mean of all, so that a category has rows wherever a replicate needs some.
    base = [np.mean(lines, axis=0) for lines in zip(*shares, strict=True)]
    codes = _split(source, pool, kept, base, stream)
    refit = Refit(PoolFit(pool, plain_margins(released, plain), plain))
    scale = matching / max(len(kept), 1)
    lines = [
        refit.weights(counts)[kept] * _correction(codes, source, own, base) * scale
        for counts, own in zip(versions, shares, strict=True)
    ]
    return WeightedRows(codes, np.stack(lines), versions)


def _usual_rows(source: Source, size: int, stream: RandomStream, threads: int) -> Pool:
    """Return the rows that are usually drawn, in random order, as a pool of their own.

    Rows that fit the published tables already need weights that differ little.
    """
    steps, released = source.usual_steps(), source.released
    rows = pool_rows(released, size, steps)
    pool = Pool(released.sizes, rows, stream, rules=source.rules, threads=threads)
    fit = rebuild(released, pool, steps)
    chosen = exchange_rows(fit, choose_rows(fit, size), steps.exchange)
    return pool.part(chosen[pool.permutation(size)])


@dataclass(frozen=True)
class Refit:
    """A pool whose weights can be fitted to any counts of the published tables."""

    fit: PoolFit

    def weights(self, counts: Released) -> Float64:
        """Return the weights of a fit without shrinkage; the same counts give the same."""
        steps = self.fit.steps
        self.fit.margins = plain_margins(counts, steps)
        # Tables that disagree a little take long to settle; few rows are raked quickly.
        targets = plain_targets(counts, self.fit.margins)
        visits = self.fit.pool.rows * max(len(targets) / steps.most_pairs, 1.0)
        times = _MORE_SWEEPS if visits <= _FEW_ROWS else 1
        self.fit.meet(targets, times * steps.last_sweeps)
        return self.fit.pool.weights


def _split(
    source: Source,
    pool: Pool,
    kept: NDArray[np.int64],
    shares: Sequence[Float64],
    stream: RandomStream,
) -> Codes:
    """Return categories for rows on merged levels."""
    words = stream.substream()
    codes = np.empty((len(kept), len(source.released.levels)), dtype=np.uint32)
    for feature, levels in enumerate(source.released.levels):
        if feature in source.given:
            codes[:, feature] = source.given[feature]
            continue
        enough = words.take(len(kept) + int(levels.max()) + 1)
        column = pool.columns[feature, kept]
        codes[:, feature] = split_again(column, levels, shares[feature], enough)
    told = told_of(source.released)
    tell(codes, told, shares, lambda count: uniforms(words.take(count)), source.given)
    return codes


def _correction(
    codes: Codes, source: Source, shares: Sequence[Float64], base: Sequence[Float64]
) -> Float64:
    """Return the new over the old share of every row's categories within their levels.

    A given category was not drawn: its rows get its whole share of the level.
    """
    factors = np.ones(len(codes))
    told = {each.feature for each in told_of(source.released)}
    for feature, levels in enumerate(source.released.levels):
        # What is told follows from the category that tells it, which has a factor of its own.
        if int(levels.max()) + 1 == len(levels) or feature in told:
            continue
        new = _within(shares[feature], levels)
        if feature in source.given:
            factors *= new[source.given[feature]]
        else:
            factors *= (new / _within(base[feature], levels))[codes[:, feature]]
    return factors


def _within(shares: Float64, levels: NDArray[np.int64]) -> Float64:
    """Return the share of every category within its level."""
    within: Float64 = shares / np.bincount(levels, shares)[levels]
    return within
