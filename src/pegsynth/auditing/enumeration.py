"""The exact output distribution of the shipped sampling kernel, by enumeration.

The kernel takes its random words as arguments and stops when they run out. `enumerate_rows`
feeds it every word of a few bits at every draw, so the probabilities it returns are
those of the compiled code itself, rejection included, as exact fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.enumerate import try_words
from pegsynth.kernels.gibbs import WORD
from pegsynth.methods.gibbs.chains import Machine, Schedule

Outcome = tuple[tuple[int, ...], ...]

MOST_BITS = 16


def word_bits(machine: Machine, most_rows: int) -> int:
    """Return enough bits for every total when no entry holds more than `most_rows` rows."""
    weights = int(machine.prior.weight_cumulative.max())
    multiplier = max(
        [int(m) for m in machine.prior.multiplier]
        + [int(m) for m in machine.prior.entry_multiplier if int(m) < 1 << 62],
    )
    most = int(machine.prior.scale) * most_rows + max(multiplier, 1) * weights
    return max(1, most.bit_length())


def enumerate_rows(
    machine: Machine,
    seeds: NDArray[np.uint32],
    schedule: Schedule,
    rows: int,
    bits: int,
    *,
    urn: bool = False,
) -> dict[Outcome, Fraction]:
    """Return the exact probability of every possible table of `rows` rows.

    Parameters
    ----------
    seeds
        The seed row of every chain.
    bits
        Width of the enumerated words; every total must be at most 2**bits.
    urn
        Enumerate Polya visits under the schedule's limit instead (R17).
    """
    if bits > MOST_BITS:
        raise ParameterError(f"enumeration takes words of {MOST_BITS} bits at most; lower scale")
    probability: dict[Outcome, Fraction] = defaultdict(Fraction)
    start = (0, 0, 0, 0)
    open_paths: list[tuple[list[int], _Place, Fraction]] = [([], start, Fraction(1))]
    while open_paths:
        prefix, before, mass = open_paths.pop()
        reached: Counter[_Reached] = Counter()
        word_for: dict[_Reached, int] = {}
        for word, found in enumerate(_try(machine, seeds, schedule, rows, prefix, bits, urn)):
            # A rejected word leaves everything where it was; every other word moves on.
            if found.done or found.place != before:
                reached[found] += 1
                # Words with the same outcome lead on alike; one stands for all.
                word_for[found] = word
        accepted = sum(reached.values())
        for found, count in reached.items():
            share = mass * Fraction(count, accepted)
            if found.done:
                probability[found.table] += share
            else:
                open_paths.append(([*prefix, word_for[found]], found.place, share))
    return dict(probability)


_Place = tuple[int, int, int, int]


class _Reached(NamedTuple):
    """Where one word leads: finished or not, rows so far, place, and the urns behind it."""

    done: bool
    table: Outcome
    place: _Place
    urns: bytes


def _try(
    machine: Machine,
    seeds: NDArray[np.uint32],
    schedule: Schedule,
    rows: int,
    prefix: list[int],
    bits: int,
    urn: bool,
) -> list[_Reached]:
    size, entries = 1 << bits, machine.entry_count
    tables = np.zeros((size, rows, machine.features), dtype=np.uint32)
    states = np.zeros((size, 4), dtype=np.int64)
    visits = np.zeros((size, entries), dtype=np.uint32)
    drawn = np.zeros((size, entries, max(1, schedule.limit) if urn else 1), dtype=np.uint32)
    done = np.zeros(size, dtype=np.bool_)
    try_words(
        seeds,
        np.array(prefix, dtype=np.uint64),
        np.uint64(bits),
        machine.keys,
        machine.entries,
        machine.prior,
        machine.rules,
        machine.targets,
        schedule.sweeps,
        schedule.chain_rows,
        schedule.limit,
        urn,
        visits,
        drawn,
        tables,
        states,
        done,
    )
    # The place counts visits too: an urn's draw that a rule forbids moves nothing else.
    places = np.column_stack([states[:, :WORD], visits.sum(axis=1) if urn else states[:, 0]])
    return [
        _Reached(
            bool(done[word]),
            tuple(map(tuple, tables[word].tolist())),
            tuple(places[word].tolist()),
            drawn[word].tobytes() if urn else b"",
        )
        for word in range(size)
    ]
