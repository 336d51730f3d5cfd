"""The laws of the shipped noise and choices, for the exact audit (R10, R11, R15).

Noise: the words that the shipped kernel turns into a value are a run, found from the
table it reads; the kernel itself answers for the first and the last of them. Choices: the
shares that the shipped levels have, times the chance that a candidate is kept. Both are
known to far more digits than a double holds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, takewhile

import numpy as np

from pegsynth.errors import ParameterError
from pegsynth.kernels.noise_draws import DONE, draw_noise
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.exact import WORD_BITS, exp_bounds
from pegsynth.mechanisms.noise import Levels

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
