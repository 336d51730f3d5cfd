"""The exact law of any resumable draw, by trying every word, or every integer, it may get.

The kernels take their random words as arguments and stop when these run out. They are fed every
word of a few bits at every draw, so that the probabilities are those of the compiled code itself,
rejection included, as exact fractions. `enumerate_integers` answers a draw that asks for integers
of any size.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.enumerate import Tried, try_words
from pegsynth.kernels.gibbs import WORD
from pegsynth.mechanisms.noise import Below
from pegsynth.methods.gibbs.chains import Machine, Schedule

Outcome = tuple[tuple[int, ...], ...]

MOST_BITS = 16


class Reached(NamedTuple):
    """Where a word leads.

    Parameters
    ----------
    done
        Whether the draw is finished.
    place
        How far it came; a rejected word leaves that where it was.
    outcome
        What it has drawn.
    behind
        What else the next draw depends on.
    """

    done: bool
    place: Hashable
    outcome: Any
    behind: bytes = b""


def enumerate_paths(
    try_all: Callable[[list[int]], Sequence[Reached]], start: Hashable
) -> dict[Any, Fraction]:
    """Return the probability of every outcome.

    Parameters
    ----------
    try_all
        Returns for every word where it leads after the given ones.
    start
        The place before any word.
    """
    probability: dict[Any, Fraction] = defaultdict(Fraction)
    paths: list[tuple[list[int], Hashable, Fraction]] = [([], start, Fraction(1))]
    while paths:
        prefix, before, mass = paths.pop()
        words: dict[Reached, list[int]] = defaultdict(list)
        for word, found in enumerate(try_all(prefix)):
            # A rejected word leaves everything where it was; every other word moves on.
            if found.done or found.place != before:
                words[found].append(word)
        accepted = sum(map(len, words.values()))
        for found, own in words.items():
            share = mass * Fraction(len(own), accepted)
            if found.done:
                probability[found.outcome] += share
            else:
                # Words with the same outcome lead on alike; one stands for all.
                paths.append(([*prefix, own[-1]], found.place, share))
    return dict(probability)


Run = Callable[[NDArray[np.uint64]], tuple[bool, Hashable, Hashable]]


def enumerate_words(run: Run, bits: int) -> dict[Hashable, Fraction]:
    """Return the probability of every outcome of `run`.

    `run(words)` starts afresh and returns whether it finished, how far it came (a rejected
    word leaves that where it was) and what it has drawn.
    """

    def try_all(prefix: list[int]) -> list[Reached]:
        tried = (np.array([*prefix, word], dtype=np.uint64) for word in range(1 << bits))
        return [Reached(*run(words)) for words in tried]

    _, start, _ = run(np.zeros(0, dtype=np.uint64))
    return enumerate_paths(try_all, start)


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
    size, entries, tables = 1 << bits, machine.entry_count, machine.swept(schedule)

    def try_all(prefix: list[int]) -> list[Reached]:
        tried = Tried(
            rows=np.zeros((size, rows, machine.features), dtype=np.uint32),
            states=np.zeros((size, 4), dtype=np.int64),
            visits=np.zeros((size, entries), dtype=np.uint32),
            drawn=np.zeros((size, entries, max(1, schedule.limit) if urn else 1), dtype=np.uint32),
            done=np.zeros(size, dtype=np.bool_),
        )
        words = np.array(prefix, dtype=np.uint64)
        try_words(seeds, words, np.uint64(bits), tables, tried, urn=urn)
        # The place counts visits too: an urn's draw that a rule forbids moves nothing else.
        last = tried.visits.sum(axis=1) if urn else tried.states[:, 0]
        places = np.column_stack([tried.states[:, :WORD], last])
        return [
            Reached(
                bool(tried.done[word]),
                tuple(places[word].tolist()),
                tuple(map(tuple, tried.rows[word].tolist())),
                tried.drawn[word].tobytes() if urn else b"",
            )
            for word in range(size)
        ]

    return enumerate_paths(try_all, (0, 0, 0, 0))


def enumerate_integers(run: Callable[[Below], Hashable], asked: int) -> dict[Hashable, Fraction]:
    """Return the law of what `run` draws, given that it asks for `asked` integers.

    A draw that starts over after a rejection has the same law whenever it ends, so the
    paths that ask for more say nothing new and are left out.
    """
    mass: dict[Hashable, Fraction] = defaultdict(Fraction)
    paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while paths:
        prefix, share = paths.pop()
        source = _Answers(prefix)
        try:
            mass[run(source)] += share
        except _AskedError as question:
            if len(prefix) < asked:
                each = share / question.bound
                paths += [((*prefix, value), each) for value in range(question.bound)]
    total = sum(mass.values())
    return {outcome: share / total for outcome, share in mass.items()}


class _AskedError(Exception):
    """The draw wants an integer that nobody has answered yet."""

    def __init__(self, bound: int) -> None:
        super().__init__(bound)
        self.bound = bound


class _Answers:
    """A source of exact integers whose answers are given."""

    def __init__(self, answers: tuple[int, ...]) -> None:
        self._left = list(answers)

    def below(self, bound: int) -> int:
        """Return the next answer."""
        if not self._left:
            raise _AskedError(bound)
        return self._left.pop(0)
