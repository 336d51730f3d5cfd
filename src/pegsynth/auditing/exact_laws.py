"""The exact laws of the shipped draws, noise and choices, for the exact audit (R10, R11, R15).

Draws: the kernels take their random words as arguments and stop when these run out. They are fed
every word of a few bits at every draw, so that the probabilities are those of the compiled code
itself, rejection included, as exact fractions. `enumerate_integers` answers a draw that asks for
integers of any size.

Noise: the words that the shipped kernel turns into a value are a run, found from the
table it reads; the kernel itself answers for the first and the last of them. Choices: the
shares that the shipped levels have, times the chance that a candidate is kept. Both are
known to far more digits than a double holds.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.enumerate import Tried, try_words
from pegsynth.kernels.gibbs import WORD
from pegsynth.kernels.noise_draws import DONE, draw_noise
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.exact import WORD_BITS, exp_bounds
from pegsynth.mechanisms.noise import Below, Levels
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


CHOICE_BITS = 256
"""Levels of a choice are told apart to this many bits."""

NOISE_BITS = 512
"""Sizes of noise are told apart to this many bits.

At order 8 a divergence is decided by values about 8 variances out: with a variance of .23 these
have a chance of 2**-254, whose rounding to 256 bits would look like a loss beyond the claim.
"""

LIKELY = Fraction(1, 1 << 9)
"""Values of noise at least as likely as this are compared with the compiled sampler."""

_TOLD = Fraction(1, 1 << (NOISE_BITS - 40))
"""Rarer sizes are left out: what is left of them after rounding has too few digits."""

_CERTAIN = 1 << 52
_ROUNDING = 1e-9


@lru_cache(maxsize=1 << 10)
def noise_probability(noise: Noise, value: int) -> Fraction:
    """Return the probability of a value, from the words that the kernel gives it.

    Words left open on either side of the run must be too few to matter; values so far out
    that they are not, and scales whose bins hold several values, are refused.
    """
    table, size = noise.cumulated(WORD_BITS - 1), abs(value)
    first = table[size - 1] + 2 if 0 < size < len(table) else 0
    last = table[size] - 1 if size < len(table) else 0
    if noise.width_bits or last - first < _CERTAIN:
        raise ParameterError("the exact audit takes noise of a small scale, and its likely values")
    for place in (first, last):
        if kernel_answer(noise, place << 1 | (value < 0)) != value:
            # The kernel does not do what its table says: no claim holds.
            return Fraction(0)
    return Fraction((last - first + 1) * (1 if size else 2), 1 << WORD_BITS)


def kernel_answer(noise: Noise, word: int) -> int | None:
    """Return what the kernel makes of one word, None if it leaves that open."""
    out, state = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
    words = np.array([word], dtype=np.uint64)
    answer = draw_noise(out, state, noise.tables(), words, np.uint64(WORD_BITS))
    return int(out[0]) if answer == DONE else None


def choice_law(scores: Sequence[int], epsilon: Fraction) -> tuple[Fraction, ...]:
    """Return the probability of every candidate of a private choice."""
    return _choice_law(tuple(scores), epsilon)


@lru_cache(maxsize=1 << 10)
def _choice_law(scores: tuple[int, ...], epsilon: Fraction) -> tuple[Fraction, ...]:
    levels = Levels.of(scores, epsilon)
    weights = [Fraction(0)] * len(scores)
    for level, (before, after) in enumerate(pairwise([0, *levels.cumulated(CHOICE_BITS)])):
        members = levels.members(level).tolist()
        for index in members:
            rest = levels.rate * int(levels.gaps[index]) - level
            kept, _ = exp_bounds(rest, CHOICE_BITS)
            weights[index] = Fraction((after - before) * kept, len(members))
    total = sum(weights)
    return tuple(weight / total for weight in weights)


@lru_cache(maxsize=1 << 10)
def noise_law(noise: Noise) -> dict[int, Fraction]:
    """Return the probability of every size of noise, one sign, up to 2**-470 or so.

    The compiled sampler must give the likely ones as many of its words; it gives all
    others as many as the same table says, or more bits decide.
    """
    if noise.width_bits:
        raise ParameterError("the exact audit takes noise of a small scale")
    cumulated = [0, *noise.cumulated(NOISE_BITS)]
    both = {k: Fraction(b - a, 1 << NOISE_BITS) for k, (a, b) in enumerate(pairwise(cumulated))}
    law = {
        size: share / (2 if size else 1)
        for size, share in takewhile(lambda each: each[1] >= _TOLD, both.items())
    }
    for value in (0, 1, -1, 2, -2):
        share = law[abs(value)]
        if share > LIKELY and abs(noise_probability(noise, value) / share - 1) > _ROUNDING:
            return {}
    return law


@lru_cache(maxsize=1 << 12)
def shifted(noise: Noise, shift: int, order: float) -> float:
    """Return the Renyi divergence of noise and shifted noise, divided by its order.

    The sum runs over the values that either holds with a chance of about 2**-470.
    """
    law = {k: float(share) for k, share in noise_law(noise).items()}
    if not law:
        return math.inf
    reach = max(law)
    exponents = [
        order * math.log(law[abs(k)]) + (1 - order) * math.log(law[abs(k - shift)])
        for k in range(shift - reach, reach + 1)
    ]
    # Ratios of rare values are beyond a double, their logarithms are not.
    largest = max(exponents)
    terms = math.fsum(math.exp(each - largest) for each in exponents)
    return (largest + math.log(terms)) / ((order - 1) * order)
