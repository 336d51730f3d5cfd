"""Synthesize: run chains over perturbed blocks, chunk by chunk.

Rows come out in order, in chunks of bounded size. Every chunk draws from its own numbered
keystream, so the rows are the same for any number of threads.

Chains that run on, under a visit cap for the whole release (R5).

G chains share T visits of every entry by a public rule: chain g owns floor(T/G) visits,
and one more when g < T mod G. Which visit answers from the counts therefore depends on
the chain's own past alone, never on the timing of threads. The counters belong to the
data: whoever samples again hands them in again.

A chain of Polya visits under a visit cap (R17): drawn values go back into their entry.

The urns belong to the data like visit counters do: `Urns` holds them, one draw after the
other changes them, and a second copy would be a second release. Every key of the key
space needs an urn, seen or not, so all blocks must be tabulated.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.gibbs import ROW, run_chains
from pegsynth.kernels.sampling_arrays import (
    EntryTables,
    KeyTables,
    PriorTables,
    RuleTables,
    SweepTables,
)
from pegsynth.kernels.urns import run_polya
from pegsynth.mechanisms.answers import drawn_from
from pegsynth.methods.seed_rows import WORD_BITS, Codes, InOrder, SeedPool, WordSource
from pegsynth.random import RandomStream, Words

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

    def swept(self, schedule: Schedule) -> SweepTables:
        """Return what the kernels read to draw rows by a schedule."""
        parts = self.keys, self.entries, self.prior, self.rules, self.targets
        return SweepTables(*parts, schedule.sweeps, schedule.chain_rows, schedule.limit)

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
    machine, size = machine.drawn(stream, rows), schedule.chunk_rows
    chunks = -(-rows // size)
    first = stream.substreams(chunks)
    # Enough for the threads to go on while the caller writes a whole row group.
    ahead = 2 * threads + AHEAD_CELLS // (size * machine.features)
    counters: queue.SimpleQueue[Visits] = queue.SimpleQueue()
    for _ in range(threads):
        counters.put(Visits(machine.entry_count if schedule.limit else 0))

    def work(chunk: int) -> Codes:
        words = stream.substream(first + chunk)
        visits = counters.get()
        try:
            count = min(size, rows - chunk * size)
            return run_chunk(machine, seeds, schedule, count, words.take, visits)
        finally:
            counters.put(visits)

    def drawn() -> Iterator[Codes]:
        with ThreadPoolExecutor(threads) as pool:
            waiting: deque[Future[Codes]] = deque()
            for chunk in range(chunks):
                waiting.append(pool.submit(work, chunk))
                if len(waiting) > ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    return grouped(drawn())


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


MOST_URN_BYTES = 1 << 30


@dataclass(frozen=True)
class Urns:
    """Visits of every entry, and the values drawn at them."""

    visits: NDArray[np.uint32]
    drawn: NDArray[np.uint32]


def urn_bytes(entries: int, visits: int) -> int:
    """Return the memory that urns of so many entries and visits take."""
    return 4 * entries * (visits + 1)


def new_urns(machine: Machine, visits: int) -> Urns:
    """Return untouched urns for all entries of a machine."""
    if not machine.entries.dense.all():
        raise ParameterError("urn visits need tabulated blocks; use fewer heads, or --no-urn")
    if urn_bytes(machine.entry_count, visits) > MOST_URN_BYTES:
        raise ParameterError("the urns do not fit in memory; use fewer visits, or --no-urn")
    entries = machine.entry_count
    return Urns(np.zeros(entries, np.uint32), np.zeros((entries, visits), np.uint32))


def run_chunk(
    machine: Machine,
    seeds: SeedPool,
    schedule: Schedule,
    count: int,
    words: WordSource,
    visits: Visits | Urns | None = None,
) -> Codes:
    """Draw `count` rows, whole chains from the first on, with words from one source.

    Of urns there is a single chain, whose drawn values go back into their entry (R17).
    """
    visits = visits or Visits(machine.entry_count if schedule.limit else 0)
    chains = -(-count // schedule.chain_rows)
    start = seeds.draw(chains, words)
    rows = np.empty((count, machine.features), dtype=np.uint32)
    state = np.zeros(4, dtype=np.int64)
    draws, tables = schedule.sweeps * len(machine.targets), machine.swept(schedule)
    if isinstance(visits, Urns):
        sweep = partial(run_polya, start, rows, state, tables, visits.visits, visits.drawn)
    else:
        epoch = visits.open(chains, schedule.limit)
        sweep = partial(run_chains, start, rows, state, tables, visits.counts, epoch)
    while not sweep(words(min((count - int(state[ROW])) * draws, MOST_WORDS) + _SLACK), WORD_BITS):
        pass
    return rows


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
    visits: Visits | Urns
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
        start = pool if self.row is None else InOrder(self.row)
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
    yield from _run_on(running, machine, pool, sweeps, threads)


def sample_polya(
    machine: Machine,
    pool: SeedPool,
    rows: int,
    urns: Urns,
    stream: RandomStream,
    *,
    sweeps: int = 1,
) -> Iterator[Codes]:
    """Yield `rows` rows of one chain as chunks; `urns` change in place."""
    machine = machine.drawn(stream, rows)
    chain = Chain(urns.drawn.shape[1], rows, stream.substream(), urns)
    yield from _run_on([chain], machine, pool, sweeps, 1)


def _run_on(
    chains: Sequence[Chain], machine: Machine, pool: SeedPool, sweeps: int, threads: int
) -> Iterator[Codes]:
    """Let chains take turns, chunk by chunk, until each has all of its rows."""
    with ThreadPoolExecutor(threads) as workers:
        while active := [chain for chain in chains if chain.rows_left]:
            yield from workers.map(lambda chain: chain.step(machine, pool, sweeps), active)
