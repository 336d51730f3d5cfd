"""A chain of Polya visits under a visit cap (R17): drawn values go back into their entry.

The urns belong to the data like visit counters do: `Urns` holds them, one draw after the
other changes them, and a second copy would be a second release. Every key of the key
space needs an urn, seen or not, so all blocks must be tabulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.gibbs import ROW
from pegsynth.kernels.polya_sweeps import run_polya
from pegsynth.random import RandomStream
from pegsynth.sampling.chains import CHUNK_ROWS, Machine
from pegsynth.sampling.seeds import WORD_BITS, Codes, SeedPool, WordSource

MOST_URN_BYTES = 1 << 30
_SLACK = 64


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
    machine, words = machine.drawn(stream, rows), stream.substream()
    start = pool.draw(1, words.take)
    done = 0
    while done < rows:
        chunk = np.empty((min(CHUNK_ROWS, rows - done), machine.features), dtype=np.uint32)
        _run(machine, start, chunk, urns, words.take, sweeps)
        start = chunk[-1:]
        done += len(chunk)
        yield chunk


def _run(
    machine: Machine, start: Codes, chunk: Codes, urns: Urns, words: WordSource, sweeps: int
) -> None:
    state = np.zeros(4, dtype=np.int64)
    draws = sweeps * len(machine.targets)
    while not run_polya(
        start,
        chunk,
        state,
        machine.keys,
        machine.entries,
        machine.prior,
        machine.rules,
        machine.targets,
        sweeps,
        urns.drawn.shape[1],
        urns.visits,
        urns.drawn,
        words((len(chunk) - int(state[ROW])) * draws + _SLACK),
        WORD_BITS,
    ):
        pass
