"""The exact output distribution of the shipped sampling kernel, by enumeration.

The kernel takes its random words as arguments and stops when they run out. `enumerate_rows`
feeds it every word of a few bits at every draw, so the probabilities it returns are
those of the compiled code itself, rejection included, as exact fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.enumerate import try_words
from pegsynth.kernels.gibbs import WORD
from pegsynth.sampling.chains import Machine, Schedule

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
) -> dict[Outcome, Fraction]:
    """Return the exact probability of every possible table of `rows` rows.

    Parameters
    ----------
    seeds
        The seed row of every chain.
    bits
        Width of the enumerated words; every total must be at most 2**bits.
    """
    if bits > MOST_BITS:
        raise ParameterError(f"enumeration takes words of {MOST_BITS} bits at most; lower scale")
    probability: dict[Outcome, Fraction] = defaultdict(Fraction)
    start = np.zeros(WORD, dtype=np.int64)
    open_paths: list[tuple[list[int], NDArray[np.int64], Fraction]] = [([], start, Fraction(1))]
    while open_paths:
        prefix, before, mass = open_paths.pop()
        tables, states, done = _try(machine, seeds, schedule, rows, prefix, bits)
        # A rejected word leaves the state where it was; every other word moves it on.
        moved = done | (states[:, :WORD] != before).any(axis=1)
        reached: Counter[tuple[bool, Outcome]] = Counter()
        word_for: dict[tuple[bool, Outcome], int] = {}
        for word in np.flatnonzero(moved):
            table: Outcome = tuple(map(tuple, tables[word].tolist()))
            key = (bool(done[word]), table)
            reached[key] += 1
            # Words with the same outcome lead on alike; one stands for all.
            word_for[key] = int(word)
        accepted = int(moved.sum())
        for (finished, table), count in reached.items():
            share = mass * Fraction(count, accepted)
            if finished:
                probability[table] += share
            else:
                chosen = word_for[finished, table]
                open_paths.append(([*prefix, chosen], states[chosen, :WORD], share))
    return dict(probability)


def _try(
    machine: Machine,
    seeds: NDArray[np.uint32],
    schedule: Schedule,
    rows: int,
    prefix: list[int],
    bits: int,
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.bool_]]:
    size = 1 << bits
    tables = np.zeros((size, rows, machine.features), dtype=np.uint32)
    states = np.zeros((size, 4), dtype=np.int64)
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
        np.zeros(machine.entry_count, dtype=np.uint32),
        tables,
        states,
        done,
    )
    return tables, states, done
