"""Samplers over blocks: chains that start anew, chains with capped visits, one chain of urns.

`prepare` makes the machine that all of them share. What the rows cost was settled by the
plan; here nothing is charged. `trace_row` draws one row, step by step: the paper's table of
sampling steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Codes as AnyCodes
from pegsynth.mechanisms import rule_tables
from pegsynth.mechanisms.marginals import prior_weights, seed_weights
from pegsynth.methods.base import Rows, Sampler
from pegsynth.methods.drawn_features import clamped_codes, diversity_levels, drawn_features
from pegsynth.methods.gibbs.block_fitting import GibbsFit
from pegsynth.methods.gibbs.chains import (
    Machine,
    Schedule,
    Visits,
    chain_limits,
    new_counters,
    new_urns,
    run_chunk,
    sample_capped,
    sample_polya,
    sample_rows,
)
from pegsynth.methods.gibbs.gibbs_plan import GibbsPlan
from pegsynth.methods.gibbs.merging import (
    MergedPool,
    Splitter,
    level_lines,
    level_prior,
    level_rules,
    level_shares,
)
from pegsynth.methods.prior import Prior, diverse, uniform_weights
from pegsynth.methods.registry import PegsCappedOptions
from pegsynth.methods.seed_rows import Codes, FilePool, InOrder, SeedPool, seed_pool
from pegsynth.privacy.assumptions import Assumption
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
    dtype
        The smallest type that holds every code.
    assumptions
        What the seed rows take for public.
    splitter
        What turns drawn levels into categories; None where categories are drawn.
    """

    machine: Machine
    pool: SeedPool
    dtype: np.dtype[Any]
    assumptions: tuple[Assumption, ...] = ()
    splitter: Splitter | None = None


def prepare(schema: Schema, fit: GibbsFit, plan: GibbsPlan) -> Prepared:
    """Set up the machine of a plan; it runs on levels where categories were merged (R25)."""
    spec, options, marginals = fit.blocks.spec, plan.options, fit.marginals
    rules, splitter = schema.rules, None
    pool, assumptions = seed_pool(
        schema, plan.seed_pool, options, marginals=marginals, rows=fit.rows
    )
    if fit.resolutions and marginals:
        shares = level_shares(marginals.shares, spec.levels)
        prior = level_prior(shares, fit.resolutions, numerator=plan.numerator, scale=plan.scale)
        tables = prior.tables
        rules, lines = level_rules(rules, spec.levels), level_lines(spec.levels)
        pool = MergedPool(pool, lines)
        splitter = Splitter(lines, seed_weights(marginals), clamped_codes(schema, options))
    else:
        paid = marginals if plan.prior != "uniform" else None
        counts = schema.category_counts
        weights = prior_weights(paid, plan.resolution) if paid else uniform_weights(counts)
        prior = Prior(weights, (plan.numerator,) * len(counts), plan.scale)
        levels = diversity_levels(schema, plan.budget, options)
        tables = diverse(fit.blocks, prior, levels, rules) if levels else prior.tables
    machine = Machine(
        spec.tables,
        fit.blocks.tables,
        tables,
        rule_tables(rules, spec.category_counts),
        np.array(drawn_features(schema, options), dtype=np.int64),
    )
    return Prepared(machine, pool, schema.code_dtype, assumptions, splitter)


class BlockSampler(Sampler):
    """A sampler with a machine, which a cluster can run and a trace can look into."""

    def __init__(self, ready: Prepared, *, sweeps: int) -> None:
        super().__init__(assumptions=ready.assumptions)
        self.machine, self.pool, self.splitter = ready.machine, ready.pool, ready.splitter
        self.dtype, self.sweeps = ready.dtype, sweeps

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

    def __init__(self, ready: Prepared, schedule: Schedule, *, threads: int) -> None:
        super().__init__(ready, sweeps=schedule.sweeps)
        self.schedule, self._threads = schedule, threads

    def table(self, rows: int, stream: RandomStream) -> Rows:
        """Return one dataset, from chains of its own."""
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

    def __init__(self, ready: Prepared, schedule: Schedule, rows: AnyCodes) -> None:
        super().__init__(ready, sweeps=schedule.sweeps)
        self.own_rows = len(rows)
        self._schedule, self._start = schedule, InOrder(rows.astype(np.uint32))

    def table(self, rows: int, stream: RandomStream) -> Rows:
        """Return a copy of the table with other features."""
        words, count = stream.substream().take, len(self._start.rows)
        drawn = run_chunk(self.machine, self._start, self._schedule, count, words)
        return iter([drawn.astype(self.dtype)])


class RunningSampler(BlockSampler, ABC):
    """Chains that run on over all draws, so that what they answered counts for all of them."""

    @abstractmethod
    def chains_of(self, rows: int, stream: RandomStream) -> Iterator[Codes]:
        """Run the chains on for so many rows."""

    def tables(self, rows: int, datasets: int, stream: RandomStream) -> list[Rows]:
        """Draw all rows, then deal them to the datasets by a public permutation (R13).

        Other draws are kept away meanwhile.
        """
        chunks = narrow(self.chains_of(rows * datasets, stream), self.dtype)
        size = rows * datasets * self.machine.features * self.dtype.itemsize
        if datasets == 1 and size > SHUFFLED_BYTES:
            return [self.in_categories(self._holding(chunks), stream)]
        with self.lock:
            everything = np.concatenate(list(chunks))
        order = np.argsort(stream.substream().take(len(everything)), kind="stable")
        parts = [iter([everything[part]]) for part in np.split(order, datasets)]
        return [self.in_categories(part, stream) for part in parts]

    def _holding(self, chunks: Rows) -> Rows:
        """Keep other draws away from the counters until the last chunk is out."""
        with self.lock:
            yield from chunks


class CappedSampler(RunningSampler):
    """Chains that run on over all draws, each entry answering its share of the visits (R5)."""

    def __init__(self, ready: Prepared, options: PegsCappedOptions, *, threads: int) -> None:
        super().__init__(ready, sweeps=options.sweeps)
        self.visits, self.chains = options.visits or 1, options.chains or 1
        self._threads = threads
        self.counters = tuple(new_counters(self.machine, self.chains))

    def chains_of(self, rows: int, stream: RandomStream) -> Iterator[Codes]:
        """Run the chains on for so many rows."""
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


class UrnSampler(RunningSampler):
    """One chain whose drawn values go back into their entry (R17)."""

    def __init__(self, ready: Prepared, options: PegsCappedOptions) -> None:
        super().__init__(ready, sweeps=options.sweeps)
        self._urns = new_urns(self.machine, options.visits or 1)

    def chains_of(self, rows: int, stream: RandomStream) -> Iterator[Codes]:
        """Run the chain on for so many rows."""
        return sample_polya(self.machine, self.pool, rows, self._urns, stream, sweeps=self.sweeps)


def narrow(chunks: Iterator[Codes], dtype: np.dtype[Any]) -> Rows:
    """Yield chunks in the smallest type that holds every code."""
    return (chunk.astype(dtype) for chunk in chunks)


@dataclass(frozen=True)
class TraceStep:
    """The row after one feature was drawn."""

    feature: int
    row: tuple[int, ...]


def trace_row(
    machine: Machine,
    seeds: SeedPool,
    sweeps: int,
    stream: RandomStream,
    *,
    counters: NDArray[np.uint32] | None = None,
    limit: int = 0,
) -> tuple[tuple[int, ...], list[TraceStep]]:
    """Draw one row and return its seed row and the row after every draw.

    A sweep draws every target once, so the rows in between follow from the rows before
    and after it. A capped model's visits are counted in `counters`, in place.
    """
    visits = None if counters is None else Visits.running(counters)
    machine, words = machine.drawn(stream, 1), stream.substream()
    row = seeds.draw(1, words.take)
    seed = tuple(row[0].tolist())
    steps: list[TraceStep] = []
    for _ in range(sweeps):
        after = run_chunk(machine, FilePool(row), Schedule(limit=limit), 1, words.take, visits)
        row = row.copy()
        for target in machine.targets.tolist():
            row[0, target] = after[0, target]
            steps.append(TraceStep(target, tuple(row[0].tolist())))
    return seed, steps


def in_categories(
    splitter: Splitter, seed: tuple[int, ...], steps: list[TraceStep], stream: RandomStream
) -> tuple[tuple[int, ...], list[TraceStep]]:
    """Return a trace of levels as one of categories, a level being the same one throughout."""
    rows = np.array([seed, *(step.row for step in steps)], dtype=np.uint32)
    first, *rest = splitter.alike(rows, stream.substream().take).tolist()
    return tuple(first), [
        TraceStep(step.feature, tuple(row)) for step, row in zip(steps, rest, strict=True)
    ]
