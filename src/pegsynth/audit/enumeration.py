"""The exact output distribution of the shipped sampling kernel, by enumeration.

The kernel takes its random words as arguments and stops when they run out. `enumerate_rows`
feeds it every word of a few bits at every draw, so the probabilities it returns are
those of the compiled code itself, rejection included, as exact fractions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.gibbs import run_chains
from pegsynth.sampling.chains import Machine, Schedule

Outcome = tuple[tuple[int, ...], ...]


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
    if bits > 16:
        raise ParameterError("enumeration needs totals below 2**16; use a smaller scale")
    probability: dict[Outcome, Fraction] = defaultdict(Fraction)
    words = np.arange(1 << bits, dtype=np.uint64)
    # Paths that reach the same state by different words are followed once.
    open_paths: dict[tuple[object, ...], tuple[list[int], Fraction]] = {(): ([], Fraction(1))}
    while open_paths:
        _, (prefix, mass) = open_paths.popitem()
        outcomes: dict[tuple[object, ...], tuple[int, int, bool]] = {}
        accepted = 0
        before = _run(machine, seeds, schedule, rows, prefix, bits)[1]
        for word in words:
            done, state, table = _run(machine, seeds, schedule, rows, [*prefix, int(word)], bits)
            if not done and state == before:
                continue
            accepted += 1
            count = outcomes.get((state, table), (0, 0, False))[0]
            outcomes[state, table] = (count + 1, int(word), done)
        for (_, table), (count, word, done) in outcomes.items():
            share = mass * Fraction(count, accepted)
            if done:
                probability[table] += share  # type: ignore[index]
            else:
                path = [*prefix, word]
                open_paths[tuple(path)] = (path, share)
    return dict(probability)


def _run(
    machine: Machine,
    seeds: NDArray[np.uint32],
    schedule: Schedule,
    rows: int,
    words: Sequence[int],
    bits: int,
) -> tuple[bool, tuple[int, ...], Outcome]:
    table = np.zeros((rows, machine.features), dtype=np.uint32)
    state = np.zeros(4, dtype=np.int64)
    done = run_chains(
        seeds,
        table,
        state,
        machine.keys,
        machine.entries,
        machine.prior,
        machine.rules,
        machine.targets,
        schedule.sweeps,
        schedule.chain_rows,
        schedule.limit,
        np.zeros(machine.entry_count, dtype=np.uint32),
        0,
        np.array(words, dtype=np.uint64),
        np.uint64(bits),
    )
    reached = tuple(int(number) for number in state[:3])
    return bool(done), reached, tuple(tuple(int(code) for code in row) for row in table)
