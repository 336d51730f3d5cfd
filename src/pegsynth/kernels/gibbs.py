"""Gibbs sweeps over perturbed blocks: one kernel for PeGS, PeGS.rs and visit caps.

A chain starts from a seed row; each of its rows is one or more sweeps over the targets,
starting from the row before. An entry answers with its perturbed counts (R1) for the
first `limit` visits of a chain and with the public distribution afterwards:

* PeGS: chains of one row, no limit (R2, R3);
* PeGS.rs: chains of B rows, limit 1, the reset acting at the visit (R4);
* visit cap: one long chain, limit T (R5).

Integers are drawn from `words` by rejection (R15). When the words run out the kernel
stops, remembers where in `state`, and goes on from there when called with more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from pegsynth.kernels.tables import PUBLIC, EntryTables, KeyTables, PriorTables, RuleTables
from pegsynth.kernels.uniform import REJECTED, bounded

ROW, SWEEP, POSITION, WORD = range(4)
"""Meaning of the four numbers in `state`."""

COUNTED = 64
"""Up to this many cells a search counts instead of halving."""


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def key_of(row: Any, total: int, tables: KeyTables, target: int) -> int:
    """Return the key of one row for one target; `total` is the XOR over all features."""
    tail = total ^ tables.tail_codes[tables.category_start[target] + row[target]]
    key = np.int64(0)
    for position in range(tables.head_start[target], tables.head_start[target + 1]):
        head = tables.heads[position]
        first = tables.category_start[head]
        code = np.int64(row[head])
        tail ^= tables.tail_codes[first + code]
        key = key * (tables.category_start[head + 1] - first) + code
    return (key << tables.tail_bits) | tail


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def find_key(keys: Any, low: int, high: int, key: int) -> int:
    """Return the position of `key` in sorted keys[low:high], counted from low, or -1."""
    start, end = low, high
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low - start if low < end and keys[low] == key else -1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def first_above(cumulative: Any, start: int, count: int, value: Any) -> int:
    """Return the first index j below count with cumulative[start + j] > value."""
    low = np.int64(0)
    if count <= COUNTED:
        # Counting what is not above has no branch to mispredict and runs in vectors.
        for index in range(start, start + count):
            low += cumulative[index] <= value
        return low
    while count > 1:
        half = count >> 1
        low += half if cumulative[start + low + half - 1] <= value else 0
        count -= half
    return low


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def active_rules(
    row: Any, rules: RuleTables, target: int, categories: int, forbidden: Any
) -> int:
    """Mark the categories of `target` that the rest of the row forbids.

    Returns the pattern of active rules as bits (saturating at bit 30), 0 when none is.
    """
    pattern = 0
    start = rules.target_start[target]
    for position in range(start, rules.target_start[target + 1]):
        rule = rules.target_rules[position]
        own = np.int64(-1)
        active = True
        for item in range(rules.item_start[rule], rules.item_start[rule + 1]):
            feature = rules.item_feature[item]
            if feature == target:
                own = rules.item_member[item]
            elif not rules.member[rules.item_member[item] + row[feature]]:
                active = False
                break
        if active:
            if pattern == 0:
                forbidden[:categories] = False
            pattern |= 1 << min(position - start, 30)
            for code in range(categories):
                forbidden[code] |= rules.member[own + code]
    return pattern


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def allowed_rows(
    entries: EntryTables, target: int, start: int, count: int, forbidden: Any
) -> np.uint64:
    """Return the count of an entry over the categories that are not forbidden."""
    total = np.uint64(0)
    before = np.uint64(0)
    for cell in range(start, start + count):
        if entries.dense[target]:
            code = cell - start
            upto = np.uint64(entries.dense_cumulative[cell])
        else:
            code = np.int64(entries.cell_category[cell])
            upto = np.uint64(entries.cell_cumulative[cell])
        if not forbidden[code]:
            total += upto - before
        before = upto
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def allowed_weight(prior: PriorTables, first: int, categories: int, forbidden: Any) -> np.uint64:
    """Return the sum of the weights of the categories that are not forbidden."""
    total = np.uint64(0)
    before = np.uint64(0)
    for code in range(categories):
        upto = prior.weight_cumulative[first + code]
        if not forbidden[code]:
            total += upto - before
        before = upto
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def pick_allowed(
    entries: EntryTables,
    prior: PriorTables,
    target: int,
    first: int,
    categories: int,
    start: int,
    count: int,
    data: np.uint64,
    alpha: np.uint64,
    value: np.uint64,
    forbidden: Any,
) -> int:
    """Return the category of `value` when forbidden categories have weight 0 (R18)."""
    before = np.uint64(0)
    if value < data:
        for cell in range(start, start + count):
            if entries.dense[target]:
                code = cell - start
                upto = np.uint64(entries.dense_cumulative[cell])
            else:
                code = np.int64(entries.cell_category[cell])
                upto = np.uint64(entries.cell_cumulative[cell])
            if not forbidden[code]:
                weight = (upto - before) * prior.scale
                if value < weight:
                    return code
                value -= weight
            before = upto
    if data > np.uint64(0):
        value = (value - data) // alpha
    before = np.uint64(0)
    for code in range(categories):
        upto = prior.weight_cumulative[first + code]
        if not forbidden[code]:
            if value < upto - before:
                return code
            value -= upto - before
        before = upto
    return -1


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def run_chains(
    seeds: Any,
    rows: Any,
    state: Any,
    keys: KeyTables,
    entries: EntryTables,
    prior: PriorTables,
    rules: RuleTables,
    targets: Any,
    sweeps: int,
    chain_rows: int,
    limit: int,
    visits: Any,
    epoch: int,
    words: Any,
    bits: np.uint64,
) -> bool:
    """Fill `rows` with chains of `chain_rows` rows each; chain c starts at seeds[c].

    Parameters
    ----------
    seeds, rows
        Codes, one row per chain and one row per synthetic row.
    state
        Four int64 numbers, zero at the start: row, sweep, target position, words used.
    targets
        Features to draw, in sweep order.
    limit
        Visits an entry answers with its counts in one chain; 0 for no limit.
    visits, epoch
        Counters of all entries; chain c counts from epoch + c * limit on, so that no
        counter needs clearing between chains.
    words, bits
        Random words and how many random bits each holds.

    Returns
    -------
    bool
        True when all rows are complete, False when more words are needed.
    """
    category_start, tail_codes = keys.category_start, keys.tail_codes
    dense_cumulative, cell_cumulative = entries.dense_cumulative, entries.cell_cumulative
    weight_cumulative = prior.weight_cumulative
    scale = prior.scale
    features = rows.shape[1]
    used = np.int64(0)
    forbidden = np.zeros(np.max(np.diff(category_start)), dtype=np.bool_)
    while state[ROW] < rows.shape[0]:
        number = state[ROW]
        row = rows[number]
        chain = number // chain_rows
        if state[SWEEP] == 0 and state[POSITION] == 0:
            row[:] = seeds[chain] if number % chain_rows == 0 else rows[number - 1]
        total = np.int64(0)
        for feature in range(features):
            total ^= tail_codes[category_start[feature] + row[feature]]
        while state[SWEEP] < sweeps:
            for position in range(state[POSITION], len(targets)):
                target = targets[position]
                first = category_start[target]
                categories = category_start[target + 1] - first
                dense = entries.dense[target]
                key = key_of(row, total, keys, target)

                # Which cells answer, and how many rows they hold.
                entry = key
                held = np.uint64(0)
                start, count = np.int64(0), np.int64(0)
                if dense:
                    start, count = entries.cell_base[target] + key * categories, categories
                    held = np.uint64(dense_cumulative[start + count - 1])
                else:
                    base = entries.key_base[target]
                    entry = find_key(entries.keys, base, entries.key_base[target + 1], key)
                    if entry >= 0:
                        start = entries.cell_start[base + entry]
                        count = entries.cell_start[base + entry + 1] - start
                        held = np.uint64(cell_cumulative[start + count - 1])
                visited = entries.entry_base[target] + entry
                spent = np.int64(0)
                if limit > 0 and entry >= 0:
                    spent = max(np.int64(visits[visited]) - epoch - chain * limit, 0)
                    if spent >= limit:
                        held = np.uint64(0)

                # Virtual rows, and what the rules forbid.
                pattern = 0
                if rules.target_start[target + 1] > rules.target_start[target]:
                    pattern = active_rules(row, rules, target, categories, forbidden)
                alpha = prior.multiplier[target]
                own = prior.multiplier_start[target]
                if own >= 0 and entry >= 0:
                    line = prior.pattern_row[prior.pattern_start[target] + pattern]
                    alpha = prior.entry_multiplier[
                        own + line * prior.multiplier_stride[target] + entry
                    ]
                if alpha == PUBLIC:
                    held = np.uint64(0)
                weight = weight_cumulative[first + categories - 1]
                if pattern > 0:
                    weight = allowed_weight(prior, first, categories, forbidden)
                    if held > np.uint64(0):
                        held = allowed_rows(entries, target, start, count, forbidden)

                # One exact integer below the total: counts first, then virtual rows (R1).
                data = held * scale
                bound = data + alpha * weight if data > np.uint64(0) else weight
                value = REJECTED
                while value == REJECTED and used < len(words):
                    value = bounded(words[used], bound, bits)
                    used += 1
                if value == REJECTED:
                    state[POSITION] = position
                    state[WORD] = used
                    return False
                if limit > 0 and entry >= 0 and spent < limit:
                    visits[visited] = np.uint32(epoch + chain * limit + spent + 1)
                if pattern > 0:
                    code = pick_allowed(
                        entries, prior, target, first, categories, start, count,
                        data, alpha, value, forbidden,
                    )
                elif value < data:
                    rows_before = np.uint32(value // scale)
                    if dense:
                        code = first_above(dense_cumulative, start, count, rows_before)
                    else:
                        cell = first_above(cell_cumulative, start, count, rows_before)
                        code = np.int64(entries.cell_category[start + cell])
                else:
                    if data > np.uint64(0):
                        value = (value - data) // alpha
                    code = np.int64(value)
                    if weight != np.uint64(categories):
                        code = first_above(weight_cumulative, first, categories, value)
                total ^= tail_codes[first + row[target]] ^ tail_codes[first + code]
                row[target] = code
            state[POSITION] = 0
            state[SWEEP] += 1
        state[SWEEP] = 0
        state[ROW] += 1
    state[WORD] = used
    return True


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def breaks_rule(row: Any, rules: RuleTables) -> bool:
    """Say whether a row breaks any rule."""
    for rule in range(len(rules.item_start) - 1):
        broken = True
        for item in range(rules.item_start[rule], rules.item_start[rule + 1]):
            if not rules.member[rules.item_member[item] + row[rules.item_feature[item]]]:
                broken = False
                break
        if broken:
            return True
    return False


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def draw_seeds(
    rows: Any,
    state: Any,
    category_start: Any,
    weight_cumulative: Any,
    rules: RuleTables,
    words: Any,
    bits: np.uint64,
) -> bool:
    """Fill `rows` with independent draws of every feature from public weights.

    A row that breaks a rule is drawn again as a whole. When the words run out within a
    row, that row starts afresh at the next call; whether they do is independent of the
    values drawn. `state[SWEEP]` counts the rejected rows in a run, for the caller to
    give up on rules that hardly any row obeys.
    """
    word_count = len(words)
    used = np.int64(0)
    while state[ROW] < rows.shape[0]:
        row = rows[state[ROW]]
        for feature in range(rows.shape[1]):
            first = category_start[feature]
            categories = category_start[feature + 1] - first
            weight = weight_cumulative[first + categories - 1]
            value = REJECTED
            while value == REJECTED and used < word_count:
                value = bounded(words[used], weight, bits)
                used += 1
            if value == REJECTED:
                state[WORD] = used
                return False
            # Equal weights sum to the number of categories: the integer is the category.
            row[feature] = (
                np.int64(value)
                if weight == np.uint64(categories)
                else first_above(weight_cumulative, first, categories, value)
            )
        if breaks_rule(row, rules):
            state[SWEEP] += 1
        else:
            state[SWEEP] = 0
            state[ROW] += 1
    state[WORD] = used
    return True
