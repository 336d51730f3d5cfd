"""Chains that run on, under a visit cap for the whole release (R5).

G chains share T visits of every entry by a public rule: chain g owns floor(T/G) visits,
and one more when g < T mod G. Which visit answers from the counts therefore depends on
the chain's own past alone, never on the timing of threads. The counters belong to the
data: whoever samples again hands them in again.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.random import RandomStream, Words
from pegsynth.sampling.chains import CHUNK_ROWS, Machine, Schedule, Visits, run_chunk
from pegsynth.sampling.seeds import Codes, FilePool, SeedPool


def chain_limits(visits: int, chains: int) -> tuple[int, ...]:
    """Return how many visits of every entry each chain owns; they sum to T."""
    if not 1 <= chains <= visits:
        raise ParameterError(
            f"--chains {chains}: there must be at least 1 chain and at most one per visit "
            f"({visits})"
        )
    return tuple(visits // chains + (chain < visits % chains) for chain in range(chains))


def new_counters(machine: Machine, chains: int) -> list[NDArray[np.uint32]]:
    """Return untouched visit counters, one array per chain."""
    return [np.zeros(machine.entry_count, dtype=np.uint32) for _ in range(chains)]


@dataclass
class Chain:
    """A chain in progress: its last row, its words and its counters."""

    limit: int
    rows_left: int
    words: Words
    visits: Visits
    row: Codes | None = None

    @classmethod
    def of(
        cls,
        number: int,
        limits: tuple[int, ...],
        rows: int,
        words: Words,
        counters: NDArray[np.uint32],
    ) -> Chain:
        """Return one of the chains that share `rows` rows, at its start."""
        share = rows // len(limits) + (number < rows % len(limits))
        return cls(limits[number], share, words, Visits.running(counters))

    def step(self, machine: Machine, pool: SeedPool, sweeps: int) -> Codes:
        """Return the next chunk of rows."""
        count = min(CHUNK_ROWS, self.rows_left)
        start = pool if self.row is None else FilePool(self.row)
        # One chain per call; the counters carry over because its epoch stays at 0.
        rows = run_chunk(
            machine,
            start,
            Schedule(CHUNK_ROWS, sweeps, self.limit),
            count,
            self.words.take,
            self.visits,
        )
        self.row = rows[-1:]
        self.rows_left -= count
        return rows


def sample_capped(
    machine: Machine,
    pool: SeedPool,
    rows: int,
    counters: list[NDArray[np.uint32]],
    visits: int,
    stream: RandomStream,
    *,
    sweeps: int = 1,
    threads: int = 1,
) -> Iterator[Codes]:
    """Yield `rows` rows as chunks; the chains take turns, chunk by chunk.

    Parameters
    ----------
    counters
        One array of visit counters per chain, changed in place.
    visits
        T, over all chains.
    """
    machine, chains = machine.drawn(stream, rows), len(counters)
    first = stream.substreams(chains)
    limits = chain_limits(visits, chains)
    running = [
        Chain.of(number, limits, rows, stream.substream(first + number), counters[number])
        for number in range(chains)
    ]
    with ThreadPoolExecutor(threads) as workers:
        while active := [chain for chain in running if chain.rows_left]:
            yield from workers.map(lambda chain: chain.step(machine, pool, sweeps), active)
