"""Exact draws from fitted probabilities, perturbed by virtual rows (R8).

Row by row the fitted vector g becomes integer weights floor(s g_j) + p, what the rules
forbid gets weight 0 (R18), and one exact integer below their sum chooses (R15).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pegsynth.kernels.arrays import Codes, Float64, Int64, UInt64
from pegsynth.kernels.gibbs import active_rules
from pegsynth.kernels.sampling_arrays import RuleTables
from pegsynth.kernels.uniform import REJECTED, bounded

LANE, STUCK, WORD = range(3)
"""Meaning of the three numbers in `state`."""


@njit(cache=True, nogil=True)
def floor_weights(probabilities: Float64, scale: np.uint64, weights: UInt64) -> None:
    """Write floor(s g_j), with a sum of at most s (R8).

    Floating probabilities may sum to a little above 1, and their product with s may round
    up to a whole number. The claim rests on the sum alone, so what is too much is taken
    off the largest weight.
    """
    total = np.uint64(0)
    for code in range(len(weights)):
        weights[code] = np.uint64(np.floor(np.float64(scale) * probabilities[code]))
        total += weights[code]
    while total > scale:
        largest = np.argmax(weights)
        cut = min(total - scale, weights[largest])
        weights[largest] -= cut
        total -= cut


@njit(cache=True, nogil=True)
def draw_categories(
    rows: Codes,
    target: int,
    probabilities: Float64,
    state: Int64,
    scale: np.uint64,
    numerator: np.uint64,
    rules: RuleTables,
    words: UInt64,
    bits: np.uint64,
) -> bool:
    """Draw one feature of every row, in place, given fitted probabilities.

    Parameters
    ----------
    rows
        Codes; column `target` is drawn, the others say which rules are active.
    probabilities
        One line per row, one column per category of the target.
    state
        Three int64 numbers, zero at the start: rows done, whether the rules left a row no
        category, words used by this call.
    scale, numerator
        s and p; alpha = p/s, and p = 0 draws from the floored fit.
    words, bits
        Random words and how many random bits each holds.

    Returns
    -------
    bool
        True when all rows are drawn; False when more words are needed or a row is stuck.
    """
    categories = probabilities.shape[1]
    weights = np.zeros(categories, dtype=np.uint64)
    marked = np.zeros(categories, dtype=np.bool_)
    used = np.int64(0)
    while state[LANE] < rows.shape[0]:
        row = rows[state[LANE]]
        marked[:] = False
        active_rules(row, rules, target, categories, marked)
        floor_weights(probabilities[state[LANE]], scale, weights)
        total, allowed = np.uint64(0), np.uint64(0)
        for code in range(categories):
            if marked[code]:
                weights[code] = np.uint64(0)
            else:
                weights[code] += numerator
                allowed += np.uint64(1)
            total += weights[code]
        if allowed == np.uint64(0):
            state[STUCK] = 1
            return False
        if total == np.uint64(0):
            # Unperturbed, and the fit gives nothing to what is allowed: equally likely.
            for code in range(categories):
                weights[code] = np.uint64(0) if marked[code] else np.uint64(1)
            total = allowed
        value = REJECTED
        while value == REJECTED and used < len(words):
            value = bounded(words[used], total, bits)
            used += 1
        if value == REJECTED:
            state[WORD] = used
            return False
        code = 0
        while value >= weights[code]:
            value -= weights[code]
            code += 1
        row[target] = code
        state[LANE] += 1
    state[WORD] = used
    return True
