"""Synthesize: run chains over perturbed blocks, chunk by chunk.

Rows come out in order, in chunks of bounded size. Every chunk draws from its own numbered
keystream, so the rows are the same for any number of threads.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.gibbs import ROW, run_chains
from pegsynth.kernels.sampling_arrays import EntryTables, KeyTables, PriorTables, RuleTables
from pegsynth.mechanisms.answers import drawn_from
from pegsynth.random import RandomStream
from pegsynth.sampling.seeds import WORD_BITS, Codes, SeedPool, WordSource

CHUNK_ROWS = 1 << 13
PART_CELLS = 1 << 20
AHEAD_CELLS = 1 << 22
MOST_WORDS = 1 << 20
_SLACK = 64
_MOST_EPOCH = (1 << 32) - 1


@dataclass(frozen=True)
class Machine:
    """Everything a sweep reads: keys, counts, virtual rows, rules, and what to draw.

    `targets` are the features drawn, in sweep order; the others keep their value.
    """

    keys: KeyTables
    entries: EntryTables
    prior: PriorTables
    rules: RuleTables
    targets: NDArray[np.int64]

    @property
    def features(self) -> int:
        """Number of features."""
        return len(self.keys.category_start) - 1

    @property
    def entry_count(self) -> int:
        """Number of numbered entries of all blocks."""
        return int(self.entries.entry_base[-1])

    def drawn(self, stream: RandomStream, rows: int) -> Machine:
        """Return what draws of so many rows read; audits get a machine without counts."""
        return drawn_from(self, self._without_counts, stream, rows=rows)

    def _without_counts(self) -> Machine:
        entries = self.entries
        return replace(
            self,
            entries=entries._replace(
                dense_cumulative=np.zeros_like(entries.dense_cumulative),
                cell_cumulative=np.zeros_like(entries.cell_cumulative),
            ),
        )


@dataclass(frozen=True)
class Schedule:
    """How rows hang together: chains, sweeps per row, and answers per entry.

    Parameters
    ----------
    chain_rows
        Rows from one seed row to the next: 1 for PeGS, B for PeGS.rs.
    sweeps
        Sweeps per row; only the state after the last one is shown.
    limit
        Visits that an entry answers from its counts in one chain, 0 for all (R4, R5).
    """

    chain_rows: int = 1
    sweeps: int = 1
    limit: int = 0

    def __post_init__(self) -> None:
        if self.chain_rows < 1 or self.sweeps < 1 or self.limit < 0:
            raise ParameterError("block size and sweeps must be at least 1")

    @property
    def chunk_rows(self) -> int:
        """Rows per chunk: whole chains, about `CHUNK_ROWS`."""
        return self.chain_rows * max(1, CHUNK_ROWS // self.chain_rows)


def sample_rows(
    machine: Machine,
    seeds: SeedPool,
    schedule: Schedule,
    rows: int,
    stream: RandomStream,
    *,
    threads: int = 1,
) -> Iterator[Codes]:
    """Return `rows` synthetic rows as a stream of parts of codes, in order.

    The keystreams are reserved at once, so the rows do not depend on when they are read.
    """
    machine = machine.drawn(stream, rows)
    first = stream.substreams(-(-rows // schedule.chunk_rows))
    return grouped(_chunks(machine, seeds, schedule, rows, stream, first, threads))


def grouped(chunks: Iterable[Codes], *, cells: int = PART_CELLS) -> Iterator[Codes]:
    """Put small chunks together into parts of about `cells` codes: less to do per part."""
    pending: list[Codes] = []
    size = 0
    for chunk in chunks:
        pending.append(chunk)
        size += chunk.size
        if size >= cells:
            yield pending[0] if len(pending) == 1 else np.concatenate(pending)
            pending, size = [], 0
    if pending:
        yield np.concatenate(pending)


def _chunks(
    machine: Machine,
    seeds: SeedPool,
    schedule: Schedule,
    rows: int,
    stream: RandomStream,
    first: int,
    threads: int,
) -> Iterator[Codes]:
    size = schedule.chunk_rows
    chunks = -(-rows // size)
    # Enough for the threads to go on while the caller writes a whole row group.
    ahead = 2 * threads + AHEAD_CELLS // (size * machine.features)
    counters: queue.SimpleQueue[Visits] = queue.SimpleQueue()
    for _ in range(threads):
        counters.put(Visits(machine.entry_count if schedule.limit else 0))

    def work(chunk: int) -> Codes:
        words = stream.substream(first + chunk)
        count = min(size, rows - chunk * size)
        visits = counters.get()
        try:
            return run_chunk(machine, seeds, schedule, count, words.take, visits)
        finally:
            counters.put(visits)

    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[Codes]] = deque()
        for chunk in range(chunks):
            waiting.append(pool.submit(work, chunk))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class Visits:
    """Visit counters of one thread; an epoch per chain saves clearing them."""

    def __init__(self, entries: int) -> None:
        self.counts = np.zeros(entries, dtype=np.uint32)
        self._epoch = 0
        self._running = False

    @classmethod
    def running(cls, counts: NDArray[np.uint32]) -> Visits:
        """Return counters of one chain that runs on from call to call."""
        visits = cls(0)
        visits.counts, visits._running = counts, True
        return visits

    def open(self, chains: int, limit: int) -> int:
        """Reserve epochs for `chains` chains and return the first."""
        if self._running:
            return 0
        if self._epoch + chains * limit > _MOST_EPOCH:
            self.counts[:] = 0
            self._epoch = 0
        first = self._epoch
        self._epoch += chains * limit
        return first


def run_chunk(
    machine: Machine,
    seeds: SeedPool,
    schedule: Schedule,
    count: int,
    words: WordSource,
    visits: Visits | None = None,
) -> Codes:
    """Draw `count` rows, whole chains from the first on, with words from one source."""
    visits = visits or Visits(machine.entry_count if schedule.limit else 0)
    chains = -(-count // schedule.chain_rows)
    start = seeds.draw(chains, words)
    rows = np.empty((count, machine.features), dtype=np.uint32)
    state = np.zeros(4, dtype=np.int64)
    epoch = visits.open(chains, schedule.limit)
    draws = schedule.sweeps * len(machine.targets)
    while not run_chains(
        start,
        rows,
        state,
        machine.keys,
        machine.entries,
        machine.prior,
        machine.rules,
        machine.targets,
        schedule.sweeps,
        schedule.chain_rows,
        schedule.limit,
        visits.counts,
        epoch,
        words(min((count - int(state[ROW])) * draws, MOST_WORDS) + _SLACK),
        WORD_BITS,
    ):
        pass
    return rows
