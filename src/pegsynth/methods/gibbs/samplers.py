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

from pegsynth.mechanisms import Prior, diverse, rule_tables, uniform_weights
from pegsynth.mechanisms.marginals import prior_weights
from pegsynth.methods.base import Sampler
from pegsynth.methods.drawn_features import diversity_levels, drawn_features
from pegsynth.methods.gibbs.block_fitting import GibbsFit
from pegsynth.methods.seed_rows import seed_pool, whole_rows
from pegsynth.privacy.assumptions import Assumption
from pegsynth.sampling import Machine, Schedule, SeedPool, sample_rows
from pegsynth.sampling.capped import chain_limits, new_counters, sample_capped
from pegsynth.sampling.chains import run_chunk
from pegsynth.sampling.polya_chain import new_urns, sample_polya
from pegsynth.sampling.seeds import InOrder

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
    """

    machine: Machine
    pool: SeedPool
    assumptions: tuple[Assumption, ...] = ()


def prepare(schema: Schema, fit: GibbsFit, plan: GibbsPlan) -> Prepared:
    """Set up the machine of a plan."""
    blocks, counts = fit.blocks, schema.category_counts
    weights = (
        prior_weights(fit.marginals, plan.resolution)
        if plan.prior == "marginal" and fit.marginals
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


class BlockSampler(Sampler):
    """A sampler with a machine, which a cluster can run and a trace can look into."""

    def __init__(self, ready: Prepared, dtype: np.dtype[Any], *, sweeps: int) -> None:
        super().__init__(assumptions=ready.assumptions)
        self.machine, self.pool = ready.machine, ready.pool
        self.dtype, self.sweeps = dtype, sweeps

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
        return [
            narrow(
                sample_rows(
                    self.machine, self.pool, self.schedule, rows, stream, threads=self._threads
                ),
                self.dtype,
            )
            for _ in range(datasets)
        ]

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
        return [_holding(sampler, chunks)]
    with sampler.lock:
        everything = np.concatenate(list(chunks))
    order = np.argsort(stream.substream().take(len(everything)), kind="stable")
    return [iter([everything[part]]) for part in np.split(order, datasets)]


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
