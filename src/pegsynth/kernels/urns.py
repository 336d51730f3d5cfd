"""Polya urns in integers: every value drawn goes back with one more of its kind (R17).

An urn holds the counts n_j, the virtual rows alpha_j = multiplier * weight_j / scale and
the values drawn from it so far. One exact integer below scale (N + A + x) says which of
the three answers: a count, a virtual row, or one of the x earlier draws, each as likely as
any other. `draw_urn` draws from one urn; the list of earlier draws is the output itself, so
nothing else is kept.

`run_polya` is one Gibbs chain over tabulated blocks, whose every entry is an urn. After `limit`
visits an entry answers with the public distribution. Where rules forbid the value that was drawn,
it stays in the urn, counts as a visit, and the entry is asked again: only draws from the full
category set telescope.
"""

from __future__ import annotations

import numpy as np

from pegsynth.kernels.arrays import Codes, Int64, UInt64
from pegsynth.kernels.compiled import kernel
from pegsynth.kernels.gibbs import (
    DRAW,
    ROW,
    SWEEP,
    WORD,
    Scratch,
    active_rules,
    copy_row,
    first_above,
    keys_of_rows,
    list_marked,
    step_over,
    sum_of,
    tails_of,
)
from pegsynth.kernels.sampling_arrays import SweepTables
from pegsynth.kernels.uniform import REJECTED, bounded

DRAWN, _USED = range(2)
"""Meaning of the two numbers in the `state` of one urn."""


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
            state[_USED] = used
            return False
        if value < held:
            code = first_above(count_cumulative, 0, categories, value // scale)
        elif value < held + virtual:
            code = first_above(weight_cumulative, 0, categories, (value - held) // unit)
        else:
            code = np.int64(drawn[np.int64((value - held - virtual) // scale)])
        drawn[state[DRAWN]] = code
        state[DRAWN] += 1
    state[_USED] = used
    return True


def run_polya(
    seeds: Codes,
    rows: Codes,
    state: Int64,
    tables: SweepTables,
    visits: Codes,
    drawn: Codes,
    words: UInt64,
    bits: np.uint64,
) -> bool:
    """Fill `rows` with one chain that starts at seeds[0]; state and words as in `run_chains`.

    Parameters
    ----------
    visits, drawn
        Visits of every entry so far, and line by line the values drawn at them.
    """
    scratch = Scratch.of(tables.keys)
    return sweep_polya(seeds, rows, state, tables, visits, drawn, words, bits, scratch)


@kernel
def sweep_polya(
    seeds: Codes,
    rows: Codes,
    state: Int64,
    tables: SweepTables,
    visits: Codes,
    drawn: Codes,
    words: UInt64,
    bits: np.uint64,
    scratch: Scratch,
) -> bool:
    """Do what `run_polya` says; `scratch` holds nothing from call to call."""
    keys, entries, prior, targets = tables.keys, tables.entries, tables.prior, tables.targets
    limit = tables.limit
    cumulative, weights = entries.dense_cumulative, prior.weight_cumulative
    category_start = keys.category_start
    scale = prior.scale
    used = np.int64(0)
    forbidden, left_out = scratch.marked, scratch.codes
    total, key = scratch.totals[:1], scratch.keys[:1]
    while state[ROW] < rows.shape[0]:
        number = state[ROW]
        row = rows[number : number + 1]
        if state[SWEEP] == 0 and state[DRAW] == 0:
            copy_row(seeds[0] if number == 0 else rows[number - 1], row[0])
        while state[SWEEP] < tables.sweeps:
            while state[DRAW] < len(targets):
                target = targets[state[DRAW]]
                first = category_start[target]
                categories = category_start[target + 1] - first
                tails_of(row, keys, total)
                keys_of_rows(row, total, keys, target, key)
                start = entries.cell_base[target] + key[0] * categories
                entry = entries.entry_base[target] + key[0]
                spent = np.int64(visits[entry])
                for code in range(categories):
                    forbidden[code] = False
                active_rules(row[0], tables.rules, target, categories, forbidden)

                size = 0
                weight = weights[first + categories - 1]
                data = np.uint64(cumulative[start + categories - 1]) * scale
                virtual = prior.multiplier[target] * weight
                bound = data + virtual + np.uint64(spent) * scale
                if spent >= limit:
                    size = list_marked(forbidden, categories, left_out)
                    bound = weight - sum_of(weights, first, left_out[:size])
                value = REJECTED
                while value == REJECTED and used < len(words):
                    value = bounded(words[used], bound, bits)
                    used += 1
                if value == REJECTED:
                    state[WORD] = used
                    return False

                if spent >= limit:
                    value = step_over(weights, first, left_out[:size], value)
                    code = first_above(weights, first, categories, value)
                elif value < data:
                    code = first_above(cumulative, start, categories, np.uint32(value // scale))
                elif value < data + virtual:
                    value = (value - data) // prior.multiplier[target]
                    code = first_above(weights, first, categories, value)
                else:
                    code = np.int64(drawn[entry, (value - data - virtual) // scale])
                if spent < limit:
                    drawn[entry, spent] = code
                    visits[entry] = np.uint32(spent + 1)
                if not forbidden[code]:
                    row[0, target] = code
                    state[DRAW] += 1
            state[DRAW] = 0
            state[SWEEP] += 1
        state[SWEEP] = 0
        state[ROW] += 1
    state[WORD] = used
    return True
