"""Exact decisions by as many random bits as it takes (R15).

A uniform real number is known by its first bits only; a probability by two integers, one
below it and one above. As long as both are apart the decision is certain, and it is what
it would be with infinitely many bits. If they are not, more bits of both are asked for.
So realised probabilities are exactly those of the formula, and no number is ever rounded
that a draw depends on.

All arithmetic is on whole numbers, of any size.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Protocol

WORD_BITS = 64

Bounds = tuple[Sequence[int], Sequence[int], int]
"""Weights of 0, 1, .. from below and from above, and a bound of the sum of all others."""


class Below(Protocol):
    """A source of exact uniform integers."""

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound)."""
        ...


def exp_bounds(exponent: Fraction, bits: int) -> tuple[int, int]:
    """Return integers on either side of 2**bits * exp(-exponent), at most 2 apart.

    The exponent is halved until it is below 1/8, the alternating series summed with every
    term rounded down, and the result squared back, rounded down and up.
    """
    if exponent == 0:
        return 1 << bits, 1 << bits
    if exponent > bits:
        return 0, 1
    halvings = (exponent.numerator // exponent.denominator).bit_length() + 3
    scale = bits + halvings + 16
    small = (exponent.numerator << (scale - halvings)) // exponent.denominator
    term = total = 1 << scale
    terms = 0
    while term:
        terms += 1
        term = (term * small >> scale) // terms
        total += term if terms % 2 == 0 else -term
    # Each term is less than 2 too small, and what follows the last is below 2.
    low, high = total - 2 * terms - 2, total + 2 * terms + 2
    for _ in range(halvings):
        low, high = low * low >> scale, shift_up(high * high, scale)
    return low >> (scale - bits), min(shift_up(high, scale - bits), 1 << bits)


def shift_up(value: int, bits: int) -> int:
    """Return value / 2**bits, rounded up."""
    return -(-value >> bits)


def cumulative(weights: Callable[[int, int], Bounds], bits: int) -> list[int]:
    """Return integers c_0, c_1, .. with c_k <= 2**bits F(k) < c_k + 2, F cumulated shares.

    The last is at least 2**bits - 2: a word that no c_k is above is undecided.

    Parameters
    ----------
    weights
        `weights(bits, scale)` bounds the weights in units of 2**-scale, as many of them as
        leave less than the share 2**-(bits + 3).
    """
    scale = bits + 64
    while True:
        low, high, rest = weights(bits, scale)
        least, most = sum(low), sum(high) + rest
        # With gap = most - least, no share is wider than 2 gap / least.
        if (most - least) << (bits + 1) <= least:
            break
        scale += 64
    found = [(total << bits) // most for total in accumulate(low)]
    return found[: bisect_right(found, (1 << bits) - 3) + 1]


def certain(cumulated: Sequence[int], prefix: int) -> int | None:
    """Return which share holds all numbers that begin with `prefix`, or None."""
    index = bisect_right(cumulated, prefix)
    if index == len(cumulated) or (index and prefix < cumulated[index - 1] + 2):
        return None
    return index


def invert(
    cumulated: Callable[[int], Sequence[int]],
    prefix: int,
    known: int,
    source: Below,
    bits: int = WORD_BITS,
) -> int:
    """Return the share that a uniform number falls into.

    Parameters
    ----------
    cumulated
        The integers of `cumulative` for any number of bits.
    prefix, known
        The bits of the number that are known, and how many they are.
    source, bits
        Where more of them come from, and how many at a time.
    """
    while (index := certain(cumulated(known), prefix)) is None:
        prefix = prefix << bits | source.below(1 << bits)
        known += bits
    return index


def coin_exp(
    exponent: Fraction, prefix: int, known: int, source: Below, bits: int = WORD_BITS
) -> bool:
    """Return whether a uniform number, known by its first bits, is below exp(-exponent)."""
    while True:
        low, high = exp_bounds(exponent, known)
        if prefix < low:
            return True
        if prefix >= high:
            return False
        prefix = prefix << bits | source.below(1 << bits)
        known += bits
