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

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Bools, Codes, Int64, UInt64
from pegsynth.kernels.compiled import helper, kernel
from pegsynth.kernels.sampling_arrays import (
    PUBLIC,
    EntryTables,
    KeyTables,
    PriorTables,
    RuleTables,
    SweepTables,
)
from pegsynth.kernels.uniform import REJECTED, bounded

ROW, SWEEP, DRAW, WORD = range(4)
"""Meaning of the four numbers in `state`."""

LANES = 128
"""Chains of one row that advance together."""

COUNTED = 64
"""Up to this many cells a search counts instead of halving."""


class Scratch(NamedTuple):
    """What a sweep writes down in between: places for the widest feature and for all lanes."""

    marked: NDArray[np.bool_]
    codes: NDArray[np.int64]
    cells: NDArray[np.int64]
    totals: NDArray[np.int64]
    keys: NDArray[np.int64]

    @classmethod
    def of(cls, keys: KeyTables) -> Scratch:
        """Return room for the features of these keys."""
        widest = int(np.diff(keys.category_start).max())
        codes, cells = np.zeros((2, widest), dtype=np.int64)
        totals, lane_keys = np.zeros((2, LANES), dtype=np.int64)
        return cls(np.zeros(widest, dtype=np.bool_), codes, cells, totals, lane_keys)


@helper
def copy_row(source: Codes, out: Codes) -> None:
    """Copy the codes of one row."""
    for feature in range(len(out)):
        out[feature] = source[feature]


@helper
def tails_of(rows: Codes, keys: KeyTables, totals: Int64) -> None:
    """Write the XOR of the public bits of all features of every row."""
    for lane in range(rows.shape[0]):
        total = np.int64(0)
        for feature in range(rows.shape[1]):
            total ^= keys.tail_codes[keys.category_start[feature] + rows[lane, feature]]
        totals[lane] = total


@helper
def keys_of_rows(rows: Codes, totals: Int64, keys: KeyTables, target: int, out: Int64) -> None:
    """Write the keys of several rows for one target; `totals` as in `tails_of`."""
    own = keys.category_start[target]
    for lane in range(rows.shape[0]):
        tail = totals[lane] ^ keys.tail_codes[own + rows[lane, target]]
        key = np.int64(0)
        for position in range(keys.head_start[target], keys.head_start[target + 1]):
            head = keys.heads[position]
            first = keys.category_start[head]
            code = np.int64(rows[lane, head])
            tail ^= keys.tail_codes[first + code]
            key = key * keys.digit_counts[head] + keys.digits[first + code]
        out[lane] = (key << keys.tail_bits) | (tail & keys.tail_mask[target])


@helper
def find_key(keys: Int64, low: int, high: int, key: int) -> int:
    """Return the position of `key` in sorted keys[low:high], counted from low, or -1."""
    start, end = low, high
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low - start if low < end and keys[low] == key else -1


@helper
def first_above(cumulative: Codes, start: int, count: int, value: np.unsignedinteger[Any]) -> int:
    """Return the first index j below count with cumulative[start + j] > value."""
    if count <= COUNTED:
        # Counting what is not above has no branch to mispredict and runs in vectors.
        below = np.uint32(0)
        for index in range(start, start + count):
            below = np.uint32(below + np.uint32(cumulative[index] <= value))
        return np.int64(below)
    low = np.int64(0)
    while count > 1:
        half = count >> 1
        low += half if cumulative[start + low + half - 1] <= value else 0
        count -= half
    return low


@helper
def own_codes(row: Codes, rules: RuleTables, rule: int, target: int) -> int:
    """Return where the codes start that an active rule forbids the target; -1 if inactive."""
    own = np.int64(-1)
    for item in range(rules.item_start[rule], rules.item_start[rule + 1]):
        feature = rules.item_feature[item]
        if feature == target:
            own = rules.item_member[item]
        elif not rules.member[rules.item_member[item] + row[feature]]:
            return np.int64(-1)
    return own


@helper
def active_pattern(row: Codes, rules: RuleTables, target: int) -> int:
    """Return which rules on `target` are active, as bits (saturating at bit 30)."""
    pattern = 0
    start = rules.target_start[target]
    for position in range(start, rules.target_start[target + 1]):
        if own_codes(row, rules, rules.target_rules[position], target) >= 0:
            pattern |= 1 << min(position - start, 30)
    return pattern


@helper
def active_rules(
    row: Codes, rules: RuleTables, target: int, categories: int, forbidden: Bools
) -> int:
    """Mark the categories of `target` that the rest of the row forbids.

    Returns the pattern of active rules; nothing is marked when it is 0.
    """
    pattern = active_pattern(row, rules, target)
    if pattern > 0:
        for code in range(categories):
            forbidden[code] = False
        for position in range(rules.target_start[target], rules.target_start[target + 1]):
            own = own_codes(row, rules, rules.target_rules[position], target)
            if own >= 0:
                for code in range(categories):
                    forbidden[code] |= rules.member[own + code]
    return pattern


@helper
def list_marked(marked: Bools, count: int, out: Int64) -> int:
    """Write the marked positions below `count`, ascending; return how many there are."""
    size = 0
    for position in range(count):
        if marked[position]:
            out[size] = position
            size += 1
    return size


@helper
def list_cells(categories: Codes, start: int, count: int, codes: Int64, out: Int64) -> int:
    """Write which of the cells of an entry hold one of `codes`, both ascending."""
    size, cell = 0, 0
    for code in codes:
        while cell < count and categories[start + cell] < code:
            cell += 1
        if cell < count and categories[start + cell] == code:
            out[size] = cell
            size += 1
    return size


@helper
def sum_of(cumulative: Codes, start: int, positions: Int64) -> np.uint64:
    """Return the sum over some positions of a run of cumulated numbers."""
    total = np.uint64(0)
    for position in positions:
        total += np.uint64(cumulative[start + position])
        if position > 0:
            total -= np.uint64(cumulative[start + position - 1])
    return total


@helper
def step_over(cumulative: Codes, start: int, positions: Int64, value: np.uint64) -> np.uint64:
    """Turn a value below the sum without `positions` into one below the whole sum (R18).

    Values of the positions left in stay in order, and none falls on a position left out.
    """
    for position in positions:
        before = np.uint64(cumulative[start + position - 1]) if position > 0 else np.uint64(0)
        if value < before:
            break
        value += np.uint64(cumulative[start + position]) - before
    return value


@helper
def draw_tabulated(
    group: Codes,
    totals: Int64,
    lane_keys: Int64,
    lane: int,
    target: int,
    keys: KeyTables,
    entries: EntryTables,
    prior: PriorTables,
    words: UInt64,
    used: int,
    bits: np.uint64,
) -> tuple[int, int]:
    """Draw one target for all lanes from `lane` on, in the plainest case.

    The block is tabulated, and there are no rules, visit limits or multipliers of single
    entries: what `run_chains` does in general, without asking for each row.

    Returns
    -------
    tuple
        The lane that found no word, or the number of lanes; and the words used so far.
    """
    first = keys.category_start[target]
    categories = keys.category_start[target + 1] - first
    tail_codes, cumulative = keys.tail_codes, entries.dense_cumulative
    weight = prior.weight_cumulative[first + categories - 1]
    equal_weights = weight == np.uint64(categories)
    scale, alpha = prior.scale, prior.multiplier[target]
    base = entries.cell_base[target]
    word_count = len(words)
    while lane < group.shape[0]:
        start = base + lane_keys[lane] * categories
        data = np.uint64(cumulative[start + categories - 1]) * scale
        bound = data + alpha * weight if data > np.uint64(0) else weight
        value = REJECTED
        while value == REJECTED and used < word_count:
            value = bounded(words[used], bound, bits)
            used += 1
        if value == REJECTED:
            break
        if value < data:
            code = first_above(cumulative, start, categories, np.uint32(value // scale))
        else:
            if data > np.uint64(0):
                value = (value - data) // alpha
            code = np.int64(value)
            if not equal_weights:
                code = first_above(prior.weight_cumulative, first, categories, value)
        totals[lane] ^= tail_codes[first + group[lane, target]] ^ tail_codes[first + code]
        group[lane, target] = code
        lane += 1
    return lane, used


@kernel
def sweep_chains(
    seeds: Codes,
    rows: Codes,
    state: Int64,
    tables: SweepTables,
    rules: RuleTables | None,
    visits: Codes | None,
    epoch: int,
    words: UInt64,
    bits: np.uint64,
    scratch: Scratch,
) -> bool:
    """Do what `run_chains` says; `scratch` holds nothing from call to call.

    Code that asks for `rules` or `visits` is left out where they are None: the compiler
    knows that from their types. `needed_tables` says when they may be.
    """
    keys, entries, prior, targets = tables.keys, tables.entries, tables.prior, tables.targets
    chain_rows, limit = tables.chain_rows, tables.limit
    category_start, tail_codes = keys.category_start, keys.tail_codes
    weight_cumulative = prior.weight_cumulative
    scale = prior.scale
    word_count = len(words)
    used = np.int64(0)
    # Visit counters serve one chain at a time, and the rows of a chain follow each other.
    most_lanes = LANES if chain_rows == 1 and limit == 0 else 1
    totals, lane_keys = scratch.totals, scratch.keys
    codes_left_out, cells_left_out = scratch.codes, scratch.cells
    while state[ROW] < rows.shape[0]:
        number = state[ROW]
        chain = number // chain_rows
        lanes = min(most_lanes, rows.shape[0] - number)
        group = rows[number : number + lanes]
        if state[SWEEP] == 0 and state[DRAW] == 0:
            if number % chain_rows == 0:
                for lane in range(lanes):
                    copy_row(seeds[chain + lane], group[lane])
            else:
                copy_row(rows[number - 1], group[0])
        tails_of(group, keys, totals)
        while state[SWEEP] < tables.sweeps:
            for position in range(state[DRAW] // lanes, len(targets)):
                target = targets[position]
                first = category_start[target]
                categories = category_start[target + 1] - first
                dense = entries.dense[target]
                public_weight = weight_cumulative[first + categories - 1]
                equal_weights = public_weight == np.uint64(categories)
                ruled = False
                if rules is not None:
                    ruled = rules.target_start[target + 1] > rules.target_start[target]
                feature_alpha = prior.multiplier[target]
                own = prior.multiplier_start[target]
                cumulative = entries.dense_cumulative if dense else entries.cell_cumulative
                keys_of_rows(group, totals, keys, target, lane_keys)
                begin = state[DRAW] - position * lanes
                if dense and limit == 0 and own < 0 and not ruled:
                    begin, used = draw_tabulated(
                        group,
                        totals,
                        lane_keys,
                        begin,
                        target,
                        keys,
                        entries,
                        prior,
                        words,
                        used,
                        bits,
                    )
                    if begin < lanes:
                        state[DRAW] = position * lanes + begin
                        state[WORD] = used
                        return False
                if visits is not None:
                    for lane in range(begin, lanes):
                        key = lane_keys[lane]

                        # Which cells answer, and how many rows they hold.
                        entry = key
                        held = np.uint64(0)
                        start, count = np.int64(0), np.int64(0)
                        if dense:
                            start, count = entries.cell_base[target] + key * categories, categories
                            held = np.uint64(cumulative[start + count - 1])
                        else:
                            base = entries.key_base[target]
                            entry = find_key(entries.keys, base, entries.key_base[target + 1], key)
                            if entry >= 0:
                                start = entries.cell_start[base + entry]
                                count = entries.cell_start[base + entry + 1] - start
                                held = np.uint64(cumulative[start + count - 1])
                        visited = entries.entry_base[target] + entry
                        spent = np.int64(0)
                        if limit > 0 and entry >= 0:
                            spent = max(np.int64(visits[visited]) - epoch - chain * limit, 0)
                            if spent >= limit:
                                held = np.uint64(0)

                        # Virtual rows, and what the rules leave out.
                        pattern = 0
                        if rules is not None and ruled:
                            pattern = active_pattern(group[lane], rules, target)
                        alpha = feature_alpha
                        if own >= 0 and entry >= 0:
                            line = prior.pattern_row[prior.pattern_start[target] + pattern]
                            alpha = prior.entry_multiplier[
                                own + line * prior.multiplier_stride[target] + entry
                            ]
                        if alpha == PUBLIC:
                            held = np.uint64(0)
                        weight = public_weight
                        if rules is not None and pattern > 0:
                            listed = rules.pattern_start[target]
                            if listed >= 0:
                                where = rules.forbidden_start[listed + pattern]
                                size = rules.forbidden_start[listed + pattern + 1] - where
                                codes_out = rules.forbidden[where : where + size]
                            else:
                                active_rules(group[lane], rules, target, categories, scratch.marked)
                                size = list_marked(scratch.marked, categories, codes_left_out)
                                codes_out = codes_left_out[:size]
                            cells_out = codes_out
                            weight -= sum_of(weight_cumulative, first, codes_out)
                            if held > np.uint64(0):
                                if not dense:
                                    size = list_cells(
                                        entries.cell_category,
                                        start,
                                        count,
                                        codes_out,
                                        cells_left_out,
                                    )
                                    cells_out = cells_left_out[:size]
                                held -= sum_of(cumulative, start, cells_out)

                        # One exact integer below the total: counts first, then virtual rows (R1).
                        data = held * scale
                        bound = data + alpha * weight if data > np.uint64(0) else weight
                        value = REJECTED
                        while value == REJECTED and used < word_count:
                            value = bounded(words[used], bound, bits)
                            used += 1
                        if value == REJECTED:
                            state[DRAW] = position * lanes + lane
                            state[WORD] = used
                            return False
                        if limit > 0 and entry >= 0 and spent < limit:
                            visits[visited] = np.uint32(epoch + chain * limit + spent + 1)
                        if value < data:
                            value //= scale
                            if rules is not None and pattern > 0:
                                value = step_over(cumulative, start, cells_out, value)
                            code = first_above(cumulative, start, count, np.uint32(value))
                            if not dense:
                                code = np.int64(entries.cell_category[start + code])
                        else:
                            if data > np.uint64(0):
                                value = (value - data) // alpha
                            if rules is not None and pattern > 0:
                                value = step_over(weight_cumulative, first, codes_out, value)
                            code = np.int64(value)
                            if not equal_weights:
                                code = first_above(weight_cumulative, first, categories, value)
                        totals[lane] ^= (
                            tail_codes[first + group[lane, target]] ^ tail_codes[first + code]
                        )
                        group[lane, target] = code
                state[DRAW] = (position + 1) * lanes
            state[DRAW] = 0
            state[SWEEP] += 1
        state[SWEEP] = 0
        state[ROW] += lanes
    state[WORD] = used
    return True


def run_chains(
    seeds: Codes,
    rows: Codes,
    state: Int64,
    tables: SweepTables,
    visits: Codes,
    epoch: int,
    words: UInt64,
    bits: np.uint64,
) -> bool:
    """Fill `rows` with chains of `chain_rows` rows each; chain c starts at seeds[c].

    Chains of one row advance together, up to `LANES` of them: one target is drawn for
    all of them before the next, so that its counts stay in the processor's cache.

    Parameters
    ----------
    seeds, rows
        Codes, one row per chain and one row per synthetic row.
    state
        Four int64 numbers, zero at the start: first row of the chains that advance
        together, sweep, draws of the sweep that are made, words used.
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
    needed, scratch = needed_tables(tables, visits), Scratch.of(tables.keys)
    return sweep_chains(seeds, rows, state, tables, *needed, epoch, words, bits, scratch)


class Needed(NamedTuple):
    """What a sweep may ask for: rules if any acts on a target, counters if any entry counts."""

    rules: RuleTables | None
    visits: Any | None


def needed_tables(tables: SweepTables, visits: Codes) -> Needed:
    """Return rules and counters, None where `sweep_chains` does without.

    It does without rules where none acts on a target, and without counters where every
    target is drawn in the plainest way, by `draw_tabulated`.
    """
    rules, targets, own = tables.rules, tables.targets, tables.prior.multiplier_start
    ruled = np.any(rules.target_start[targets + 1] > rules.target_start[targets])
    tabulated = np.all(tables.entries.dense[targets]) and np.all(own[targets] < 0)
    plain = tabulated and tables.limit == 0 and not ruled
    return Needed(rules if ruled else None, None if plain else visits)


@helper
def breaks_rule(row: Codes, rules: RuleTables) -> bool:
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


@kernel
def draw_seeds(
    rows: Codes,
    state: Int64,
    category_start: Int64,
    weight_cumulative: UInt64,
    rules: RuleTables,
    words: UInt64,
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
