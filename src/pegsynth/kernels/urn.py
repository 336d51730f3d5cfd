"""Polya urns in integers: every value drawn goes back with one more of its kind (R17).

An urn holds the counts n_j, the virtual rows alpha_j = multiplier * weight_j / scale and
the values drawn from it so far. One exact integer below scale (N + A + x) says which of
the three answers: a count, a virtual row, or one of the x earlier draws, each as likely as
any other. The list of earlier draws is the output itself, so nothing else is kept.
"""

from __future__ import annotations

import numpy as np

from pegsynth.kernels.arrays import Codes, Int64, UInt64
from pegsynth.kernels.compiled import kernel
from pegsynth.kernels.gibbs import first_above
from pegsynth.kernels.uniform import REJECTED, bounded

DRAWN, WORD = range(2)
"""Meaning of the two numbers in `state`."""


@kernel
def draw_urn(
    drawn: Codes,
    state: Int64,
    count_cumulative: UInt64,
    weight_cumulative: UInt64,
    scale: np.uint64,
    multiplier: np.uint64,
    add_back: bool,
    words: UInt64,
    bits: np.uint64,
) -> bool:
    """Draw from one urn until `drawn` is full.

    Parameters
    ----------
    drawn
        Codes; the first state[DRAWN] of them are what the urn has given so far.
    state
        Two int64 numbers, zero at the start: values drawn, words used by this call.
    count_cumulative, weight_cumulative
        Cumulated counts and prior weights of the categories, uint64.
    scale, multiplier
        alpha_j = multiplier * weight_j / scale.
    add_back
        False leaves the urn as it is: independent draws from the perturbed counts (R1).
    words, bits
        Random words and how many random bits each holds.

    Returns
    -------
    bool
        True when all values are drawn, False when more words are needed.
    """
    categories = len(count_cumulative)
    weight = np.uint64(weight_cumulative[categories - 1])
    held = np.uint64(count_cumulative[categories - 1]) * scale
    virtual = multiplier * weight
    # No rows and no virtual rows: the public distribution answers, and nothing is added.
    empty = held + virtual == np.uint64(0)
    unit = multiplier
    if empty:
        virtual, unit = weight, np.uint64(1)
    used = np.int64(0)
    while state[DRAWN] < len(drawn):
        bound = held + virtual
        if add_back and not empty:
            bound += scale * np.uint64(state[DRAWN])
        value = REJECTED
        while value == REJECTED and used < len(words):
            value = bounded(words[used], bound, bits)
            used += 1
        if value == REJECTED:
            state[WORD] = used
            return False
        if value < held:
            code = first_above(count_cumulative, 0, categories, value // scale)
        elif value < held + virtual:
            code = first_above(weight_cumulative, 0, categories, (value - held) // unit)
        else:
            code = np.int64(drawn[np.int64((value - held - virtual) // scale)])
        drawn[state[DRAWN]] = code
        state[DRAWN] += 1
    state[WORD] = used
    return True
