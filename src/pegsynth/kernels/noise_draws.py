"""Exact integer noise from random words, by bins (R11, R15).

Bin 0 is the value 0; bin b > 0 holds the sizes start .. start + width - 1 with start =
(b - 1) * width + 1, of either sign. One word gives sign and bin, by its place among the
cumulated shares of the bins. Where a bin is wider than 1, a second word proposes a size
in it, each as likely as any other, and accepts it with probability exp(-x); if it is not
accepted, two new words begin anew.

Shares and exp(-x) are known by integers on either side of them. A word that falls between
the two is undecided: the kernel stops, the caller decides with more bits, and goes on.
The word width is an argument: production uses 64, and tests enumerate all words of a few
bits through the very same code.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Int64, UInt64
from pegsynth.kernels.compiled import helper, kernel
from pegsynth.kernels.uniform import split_product

CELL, WORD = range(2)
"""Meaning of the two numbers in `state`."""

DONE, MORE_WORDS, UNDECIDED = range(3)
"""What `draw_noise` returns."""

_ACCEPTED, _REJECTED, _OPEN = range(3)

_TERMS = 17
_ERROR = np.uint64(8)
_POINT = np.uint64(63)
_ONE = np.uint64(1) << _POINT


class NoiseTables(NamedTuple):
    """The bins of one noise distribution.

    `cumulated` are integers c_b with c_b <= 2**(bits - 1) F(b) < c_b + 2, the last at
    least 2**(bits - 1) - 2. `guide` gives for the first bits of a word, what is left after
    a shift by `guide_shift`, the first bin that may hold it. A proposal at the share z of
    its bin has x = z (slope_b + z bend), at most 1/2; both are rounded down to 63 bits
    after the point.
    """

    cumulated: NDArray[np.uint64]
    guide: NDArray[np.int32]
    guide_shift: np.uint64
    slope: NDArray[np.uint64]
    bend: np.uint64
    width_bits: np.uint64


@kernel
def draw_noise(
    noise: Int64, state: Int64, tables: NoiseTables, words: UInt64, bits: np.uint64
) -> int:
    """Fill `noise` with independent draws.

    Parameters
    ----------
    noise
        Values, int64; the first state[CELL] of them are drawn already.
    state
        Two int64 numbers, zero at the start: values drawn, words used of `words`.
    tables
        `NoiseTables`.
    words, bits
        Random words and how many random bits each holds.

    Returns
    -------
    int
        `DONE`, or `MORE_WORDS`, or `UNDECIDED`: the one or two words from state[WORD] on
        leave value state[CELL] open.
    """
    one = np.uint64(1)
    wide = tables.width_bits > np.uint64(0)
    each = np.int64(2) if wide else np.int64(1)
    width = one << tables.width_bits
    coin_bits = bits - tables.width_bits
    coin_mask = (one << (coin_bits if wide else np.uint64(0))) - one
    last = len(tables.cumulated)
    cell, used = state[CELL], state[WORD]
    outcome = DONE
    while cell < len(noise):
        if used + each > len(words):
            outcome = MORE_WORDS
            break
        place = words[used] >> one
        index = np.int64(tables.guide[place >> tables.guide_shift])
        while index < last and tables.cumulated[index] <= place:
            index += 1
        if index == last or (index > 0 and place - tables.cumulated[index - 1] < np.uint64(2)):
            outcome = UNDECIDED
            break
        size = np.uint64(0)
        if index > 0:
            size = np.uint64(index - 1) * width + one
            if wide:
                offset = words[used + 1] >> coin_bits
                coin = words[used + 1] & coin_mask
                answer = _accept(offset, coin, coin_bits, index, tables)
                if answer == _OPEN:
                    outcome = UNDECIDED
                    break
                if answer == _REJECTED:
                    used += each
                    continue
                size += offset
        noise[cell] = -np.int64(size) if words[used] & one else np.int64(size)
        cell += 1
        used += each
    state[CELL], state[WORD] = cell, used
    return outcome


@helper
def _accept(
    offset: np.uint64, coin: np.uint64, coin_bits: np.uint64, index: np.int64, tables: NoiseTables
) -> int:
    """Compare a uniform number, known by its first bits, with exp(-x) of a proposal.

    In units of 2**-63 the exponent found is less than 4 below x: slope and bend are less
    than 1 below theirs, and two products are rounded down.
    """
    bend, _ = split_product(offset, tables.bend, tables.width_bits)
    exponent, _ = split_product(offset, tables.slope[index] + bend, tables.width_bits)
    shift = _POINT - coin_bits
    low = coin << shift
    high = low + (np.uint64(1) << shift)
    # exp(-x) >= 1 - x settles nearly all.
    if high + exponent + _ERROR <= _ONE:
        return _ACCEPTED
    middle = exp_fixed(exponent)
    if high + _ERROR <= middle:
        return _ACCEPTED
    if low >= middle + _ERROR:
        return _REJECTED
    return _OPEN


@helper
def exp_fixed(exponent: np.uint64) -> np.uint64:
    """Return 2**63 exp(-x) to within 2 for x = exponent / 2**63 of at most 1/2.

    Seventeen terms of the series, 1 - x/1 (1 - x/2 (1 - ..)). What is left out is below
    x^18/18!, 2^-7 units. Every step rounds by less than 1 and passes on x/n of the error
    before it, in all less than exp(x).
    """
    total = _ONE
    for term in range(_TERMS, 0, -1):
        product, _ = split_product(exponent, total, _POINT)
        total = _ONE - product // np.uint64(term)
    return total
