"""Samplers over blocks: chains that start anew, chains with capped visits, one chain of urns.

`prepare` makes the machine that all of them share. What the rows cost was settled by the
plan; here nothing is charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.mechanisms import rule_tables
from pegsynth.mechanisms.marginals import Marginals, prior_weights, seed_weights
from pegsynth.methods.base import Sampler
from pegsynth.methods.drawn_features import clamped_codes, diversity_levels, drawn_features
from pegsynth.methods.gibbs.block_fitting import GibbsFit
from pegsynth.methods.gibbs.chains import (
    Machine,
    Schedule,
    chain_limits,
    new_counters,
    new_urns,
    run_chunk,
    sample_capped,
    sample_polya,
    sample_rows,
)
from pegsynth.methods.gibbs.merging import level_lines, level_prior, level_rules, level_shares
from pegsynth.methods.gibbs.seeds import InOrder, MergedPool, SeedPool, Splitter
from pegsynth.methods.prior import Prior, diverse, uniform_weights
from pegsynth.methods.seed_rows import seed_pool, whole_rows
from pegsynth.privacy.assumptions import Assumption

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes, Rows
    from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
    from pegsynth.random import RandomStream
    from pegsynth.schema import Schema

SHUFFLED_BYTES = 1 << 30


@dataclass(frozen=True)
class Prepared:
    """What every sampler over blocks needs.

    Parameters
    ----------
    machine
        Keys, counts, virtual rows and rules as the kernels want them.
    pool
        Where chains start.
    assumptions
        What the seed rows take for public.
    splitter
        What turns drawn levels into categories; None where categories are drawn.
    """

    machine: Machine
    pool: SeedPool
    assumptions: tuple[Assumption, ...] = ()
    splitter: Splitter | None = None


def prepare(schema: Schema, fit: GibbsFit, plan: GibbsPlan) -> Prepared:
    """Set up the machine of a plan."""
    if fit.resolutions and fit.marginals:
        return _in_levels(schema, fit, fit.marginals, plan)
    blocks, counts = fit.blocks, schema.category_counts
    weights = (
        prior_weights(fit.marginals, plan.resolution)
        if plan.prior != "uniform" and fit.marginals
        else uniform_weights(counts)
    )
    prior = Prior(weights, (plan.numerator,) * len(counts), plan.scale)
    levels: Mapping[int, float] = diversity_levels(schema, plan.budget, plan.options)
    machine = Machine(
        blocks.spec.tables,
        blocks.tables,
        diverse(blocks, prior, levels, schema.rules) if levels else prior.tables,
        rule_tables(schema.rules, counts),
        np.array(drawn_features(schema, plan.options), dtype=np.int64),
    )
    pool, assumptions = seed_pool(
        schema, plan.seed_pool, plan.options, marginals=fit.marginals, rows=fit.rows
    )
    return Prepared(machine, pool, assumptions)


def _in_levels(schema: Schema, fit: GibbsFit, marginals: Marginals, plan: GibbsPlan) -> Prepared:
    """Set up a machine that runs on levels (R25)."""
    spec, options = fit.blocks.spec, plan.options
    levels = spec.levels
    shares = level_shares(marginals.shares, levels)
    prior = level_prior(shares, fit.resolutions, numerator=plan.numerator, scale=plan.scale)
    machine = Machine(
        spec.tables,
        fit.blocks.tables,
        prior.tables,
        rule_tables(level_rules(schema.rules, levels), spec.category_counts),
        np.array(drawn_features(schema, options), dtype=np.int64),
    )
    pool, assumptions = seed_pool(
        schema, plan.seed_pool, options, marginals=marginals, rows=fit.rows
    )
    lines = level_lines(levels)
    splitter = Splitter(lines, seed_weights(marginals), clamped_codes(schema, options))
    return Prepared(machine, MergedPool(pool, lines), assumptions, splitter)


class BlockSampler(Sampler):
    """A sampler with a machine, which a cluster can run and a trace can look into."""

    def __init__(self, ready: Prepared, dtype: np.dtype[Any], *, sweeps: int) -> None:
        super().__init__(assumptions=ready.assumptions)
        self.machine, self.pool = ready.machine, ready.pool
        self.splitter = ready.splitter
        self.dtype, self.sweeps = dtype, sweeps

    def in_categories(self, chunks: Rows, stream: RandomStream) -> Rows:
        """Return drawn rows as categories; the words for it are reserved at once."""
        if self.splitter is None:
            return chunks
        return self.splitter.stream(chunks, stream.substream(stream.substreams(1)).take)

    def first_chain(self) -> tuple[NDArray[np.uint32] | None, int]:
        """Return the counters of the first chain and the visits it owns, for a trace."""
        return None, 0


class RestartedSampler(BlockSampler):
    """Chains that start anew after every block of rows (R3, R4)."""

    def __init__(
        self, ready: Prepared, dtype: np.dtype[Any], schedule: Schedule, *, threads: int
    ) -> None:
        super().__init__(ready, dtype, sweeps=schedule.sweeps)
        self.schedule, self._threads = schedule, threads

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K datasets, each from chains of its own."""
        return [self._table(rows, stream) for _ in range(datasets)]

    def _table(self, rows: int, stream: RandomStream) -> Rows:
        drawn = sample_rows(
            self.machine, self.pool, self.schedule, rows, stream, threads=self._threads
        )
        return self.in_categories(narrow(drawn, self.dtype), stream)

    def first_chain(self) -> tuple[NDArray[np.uint32] | None, int]:
        """Return counters of a block of its own, whose second sweep may not ask an entry again."""
        if not self.schedule.limit:
            return None, 0
        return new_counters(self.machine, 1)[0], self.schedule.limit


class ReplacingSampler(BlockSampler):
    """Draws the chosen features of the original rows anew, in their order."""

    def __init__(
        self, ready: Prepared, dtype: np.dtype[Any], schedule: Schedule, rows: Codes
    ) -> None:
        super().__init__(ready, dtype, sweeps=schedule.sweeps)
        self.own_rows = len(rows)
        self._schedule, self._start = schedule, rows.astype(np.uint32)

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Return K copies of the table, other features in each."""
        words = [stream.substream() for _ in range(datasets)]
        start = self._start
        return [
            iter(
                [
                    run_chunk(
                        self.machine, InOrder(start), self._schedule, len(start), each.take
                    ).astype(self.dtype)
                ]
            )
            for each in words
        ]


class CappedSampler(BlockSampler):
    """Chains that run on over all draws, each entry answering its share of the visits (R5)."""

    def __init__(
        self,
        ready: Prepared,
        dtype: np.dtype[Any],
        *,
        sweeps: int,
        visits: int,
        chains: int,
        threads: int,
    ) -> None:
        super().__init__(ready, dtype, sweeps=sweeps)
        self.visits, self.chains, self._threads = visits, chains, threads
        self.counters = tuple(new_counters(self.machine, chains))

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Draw all rows, then deal them to the datasets by a public permutation (R13)."""
        return dealt(self, self._chains(rows * datasets, stream), rows, datasets, stream)

    def _chains(self, rows: int, stream: RandomStream) -> Iterator[NDArray[np.uint32]]:
        return sample_capped(
            self.machine,
            self.pool,
            rows,
            list(self.counters),
            self.visits,
            stream,
            sweeps=self.sweeps,
            threads=self._threads,
        )

    def first_chain(self) -> tuple[NDArray[np.uint32] | None, int]:
        """Return the counters of the first chain and the visits it owns."""
        return self.counters[0], chain_limits(self.visits, self.chains)[0]


class UrnSampler(BlockSampler):
    """One chain whose drawn values go back into their entry (R17)."""

    def __init__(self, ready: Prepared, dtype: np.dtype[Any], *, sweeps: int, visits: int) -> None:
        super().__init__(ready, dtype, sweeps=sweeps)
        self._urns = new_urns(self.machine, visits)

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Draw all rows, then deal them to the datasets by a public permutation (R13)."""
        drawn = sample_polya(
            self.machine, self.pool, rows * datasets, self._urns, stream, sweeps=self.sweeps
        )
        return dealt(self, drawn, rows, datasets, stream)


def dealt(
    sampler: BlockSampler,
    drawn: Iterator[NDArray[np.uint32]],
    rows: int,
    datasets: int,
    stream: RandomStream,
) -> list[Rows]:
    """Deal rows to datasets by a public permutation, other draws kept away meanwhile (R13)."""
    chunks = narrow(drawn, sampler.dtype)
    features = len(sampler.machine.keys.category_start) - 1
    size = rows * datasets * features * sampler.dtype.itemsize
    if datasets == 1 and size > SHUFFLED_BYTES:
        return [sampler.in_categories(_holding(sampler, chunks), stream)]
    with sampler.lock:
        everything = np.concatenate(list(chunks))
    order = np.argsort(stream.substream().take(len(everything)), kind="stable")
    parts = [iter([everything[part]]) for part in np.split(order, datasets)]
    return [sampler.in_categories(part, stream) for part in parts]


def _holding(sampler: BlockSampler, chunks: Rows) -> Rows:
    """Keep other draws away from the counters until the last chunk is out."""
    with sampler.lock:
        yield from chunks


def narrow(chunks: Iterator[NDArray[np.uint32]], dtype: np.dtype[Any]) -> Rows:
    """Yield chunks in the smallest type that holds every code."""
    for chunk in chunks:
        yield chunk.astype(dtype)


def replacing(
    ready: Prepared, schema: Schema, fit: GibbsFit, schedule: Schedule
) -> ReplacingSampler:
    """Return what replaces features of the original rows."""
    return ReplacingSampler(ready, schema.code_dtype, schedule, whole_rows(schema, fit.rows))
