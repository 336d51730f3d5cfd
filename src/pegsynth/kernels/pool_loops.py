"""Loops over a pool of rows: keys, counts, spreading a column, raking, exchanging rows.

A pool is made of paid-for numbers only, so nothing here protects anybody: uniform numbers
come in as arrays of words, and weights are floating-point numbers.

Functions with a result allocate it and leave the loop to a kernel, which compiles in a third
of the time when it allocates nothing. What runs over cells and not over rows is NumPy's.
"""

from __future__ import annotations

import numpy as np

from pegsynth.kernels.arrays import Float64, Int64, UInt16, UInt32, UInt64
from pegsynth.kernels.compiled import kernel

_KEYS_AT_A_TIME = 4096


def cell_keys(columns: UInt16, features: Int64, sizes: Int64) -> UInt16:
    """Return the cell of every row in the table of some features, the last varying fastest."""
    keys = np.zeros(columns.shape[1], dtype=np.uint16)
    for feature, size in zip(features, sizes, strict=True):
        _extend(keys, columns[feature], size)
    return keys


@kernel
def _extend(keys: UInt16, column: UInt16, size: int) -> None:
    factor = np.uint16(size)
    for row in range(len(keys)):
        keys[row] = np.uint16(keys[row] * factor + column[row])


def count_cells(keys: UInt16, cells: int) -> Int64:
    """Count rows by cell."""
    counts = np.zeros(cells, dtype=np.int64)
    _add_cells(keys, counts)
    return counts


@kernel
def _add_cells(keys: UInt16, counts: Int64) -> None:
    for row in range(len(keys)):
        counts[keys[row]] += 1


def count_extended(keys: UInt16, column: UInt16, size: int, cells: int) -> Int64:
    """Count rows by the cells of a table that `column` extends."""
    counts = np.zeros(cells, dtype=np.int64)
    _add_extended(keys, column, size, counts)
    return counts


@kernel
def _add_extended(keys: UInt16, column: UInt16, size: int, counts: Int64) -> None:
    factor = np.uint32(size)
    for row in range(len(keys)):
        counts[keys[row] * factor + column[row]] += 1


def weigh_cells(keys: UInt16, weights: Float64, cells: int) -> Float64:
    """Add up weights by cell."""
    sums = np.zeros(cells)
    _add_weights(keys, weights, sums)
    return sums


@kernel
def _add_weights(keys: UInt16, weights: Float64, sums: Float64) -> None:
    for row in range(len(keys)):
        sums[keys[row]] += weights[row]


def weigh_table(
    columns: UInt16, features: Int64, sizes: Int64, weights: Float64, cells: int
) -> Float64:
    """Add up weights by the cells of a table whose keys are never written out."""
    sums = np.zeros(cells)
    buffer = np.empty(_KEYS_AT_A_TIME, dtype=np.uint16)
    _add_table(columns, features, sizes, weights, sums, buffer)
    return sums


@kernel
def _add_table(
    columns: UInt16,
    features: Int64,
    sizes: Int64,
    weights: Float64,
    sums: Float64,
    buffer: UInt16,
) -> None:
    for start in range(0, len(weights), len(buffer)):
        # Slices, so that the loops below need no checks and run on vectors.
        part = weights[start : start + len(buffer)]
        keys = buffer[: len(part)]
        for index in range(len(keys)):
            keys[index] = 0
        for place in range(len(features)):
            _extend(keys, columns[features[place], start : start + len(keys)], sizes[place])
        _add_weights(keys, part, sums)


def distance(counts: Int64, reference: Float64) -> int:
    """Return the sum of |count - reference|, references rounded to whole numbers.

    One row more or less changes one count by 1 and so the sum by 1: sensitivity 1 (R10).
    """
    away = np.rint(reference).astype(np.int64)
    np.subtract(counts, away, out=away)
    return int(np.abs(away, out=away).sum())


def distance_from_product(counts: Int64, heads: Float64, shares: Float64) -> int:
    """Return `distance` from the reference heads[k] * shares[j]."""
    return distance(counts, np.multiply.outer(heads, shares).ravel())


def shuffled(words: UInt64) -> Int64:
    """Return a permutation that these words decide."""
    order = np.arange(len(words))
    _shuffle(words, order)
    return order


@kernel
def _shuffle(words: UInt64, order: Int64) -> None:
    for last in range(len(words) - 1, 0, -1):
        # The high half of a 32 by 32 bit product; its bias is below 2^-11 for any pool.
        other = np.int64(((words[last] >> np.uint64(32)) * np.uint64(last + 1)) >> np.uint64(32))
        order[last], order[other] = order[other], order[last]


def grouped(keys: UInt16, order: Int64, groups: int) -> tuple[Int64, Int64]:
    """Sort rows by key, keeping `order` inside a key; return rows and where keys start."""
    starts = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(count_cells(keys, groups), out=starts[1:])
    rows = np.empty(len(keys), dtype=np.int64)
    _sort_by_key(keys, order, starts[:-1].copy(), rows)
    return rows, starts


@kernel
def _sort_by_key(keys: UInt16, order: Int64, place: Int64, rows: Int64) -> None:
    for index in range(len(order)):
        row = order[index]
        rows[place[keys[row]]] = row
        place[keys[row]] += 1


def spread(rows: Int64, starts: Int64, shares: Float64, offsets: Float64) -> UInt32:
    """Give the rows of every group equally spaced quantiles of its distribution.

    Inside a group the number of rows with a category differs from its expectation by less
    than 1.
    """
    drawn = np.zeros(len(rows), dtype=np.uint32)
    _spread(rows, starts, shares, offsets, drawn)
    return drawn


@kernel
def _spread(rows: Int64, starts: Int64, shares: Float64, offsets: Float64, drawn: UInt32) -> None:
    last = shares.shape[1] - 1
    for group in range(len(starts) - 1):
        size = starts[group + 1] - starts[group]
        code = 0
        reached = shares[group, 0] * size
        for index in range(size):
            while index + offsets[group] >= reached and code < last:
                code += 1
                reached += shares[group, code] * size
            drawn[rows[starts[group] + index]] = code


def draw_lines(keys: UInt16, reached: Float64, uniforms: Float64) -> UInt32:
    """Draw every row by its own number from the cumulated shares of its key."""
    drawn = np.zeros(len(keys), dtype=np.uint32)
    _draw_lines(keys, reached, uniforms, drawn)
    return drawn


@kernel
def _draw_lines(keys: UInt16, reached: Float64, uniforms: Float64, drawn: UInt32) -> None:
    last = reached.shape[1] - 1
    for row in range(len(keys)):
        line = reached[keys[row]]
        point = uniforms[row] * line[last]
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            if line[middle] > point:
                high = middle
            else:
                low = middle + 1
        # Rounding may carry a point to the very end, behind which shares are 0.
        while low > 0 and line[low] == line[low - 1]:
            low -= 1
        drawn[row] = low


def spread_within(
    rows: Int64,
    starts: Int64,
    members: Int64,
    first: Int64,
    shares: Float64,
    offsets: Float64,
) -> UInt32:
    """Give the rows of every level equally spaced quantiles of its members' shares.

    Members of level k are members[first[k]:first[k + 1]], each with its share.
    """
    drawn = np.zeros(len(rows), dtype=np.uint32)
    _spread_within(rows, starts, members, first, shares, offsets, drawn)
    return drawn


@kernel
def _spread_within(
    rows: Int64,
    starts: Int64,
    members: Int64,
    first: Int64,
    shares: Float64,
    offsets: Float64,
    drawn: UInt32,
) -> None:
    for level in range(len(first) - 1):
        size = starts[level + 1] - starts[level]
        whole = 0.0
        for member in range(first[level], first[level + 1]):
            whole += shares[members[member]]
        member = first[level]
        reached = shares[members[member]] / whole * size
        for index in range(size):
            while index + offsets[level] >= reached and member < first[level + 1] - 1:
                member += 1
                reached += shares[members[member]] / whole * size
            drawn[rows[starts[level] + index]] = members[member]


def settle(
    drawn: UInt32, keys: UInt16, shares: Float64, wanted: Int64, order: Int64, uniforms: Float64
) -> int:
    """Change a few rows so that the column's margin is the wanted one; return the rest.

    A row of a category that has too many rows moves to one that has too few, with odds
    given by its own distribution; `wanted` sums to the number of rows.
    """
    excess = np.bincount(drawn, minlength=shares.shape[1]) - wanted
    missing = int(np.maximum(excess, 0).sum())
    return _settle(drawn, keys, shares, excess, missing, order, uniforms)


@kernel
def _settle(
    drawn: UInt32,
    keys: UInt16,
    shares: Float64,
    excess: Int64,
    missing: int,
    order: Int64,
    uniforms: Float64,
) -> int:
    size = shares.shape[1]
    for index in range(len(order)):
        if missing == 0:
            break
        row = order[index]
        if excess[drawn[row]] <= 0:
            continue
        open_share = 0.0
        for code in range(size):
            if excess[code] < 0:
                open_share += shares[keys[row], code]
        if open_share <= 0.0:
            continue
        point, chosen = uniforms[index] * open_share, -1
        for code in range(size):
            if excess[code] < 0 and shares[keys[row], code] > 0:
                chosen = code
                point -= shares[keys[row], code]
                if point <= 0.0:
                    break
        excess[drawn[row]] -= 1
        excess[chosen] += 1
        drawn[row] = chosen
        missing -= 1
    return missing


def rake_and_weigh(
    keys: UInt16, weights: Float64, factors: Float64, following: UInt16, cells: int
) -> Float64:
    """Scale weights by the factor of their cell; add them up by the cells of another table."""
    sums = np.zeros(cells)
    _rake(keys, weights, factors, following, sums)
    return sums


@kernel
def _rake(
    keys: UInt16, weights: Float64, factors: Float64, following: UInt16, sums: Float64
) -> None:
    for row in range(len(keys)):
        weights[row] *= factors[keys[row]]
        sums[following[row]] += weights[row]


def rake_factors(sums: Float64, target: Float64, most: float) -> Float64:
    """Return what brings sums to their target, at most `most` and at least its inverse."""
    factors = np.ones(len(target))
    # A sum that is next to nothing makes an infinite factor, which is cut off.
    with np.errstate(over="ignore"):
        np.divide(target, sums, out=factors, where=sums > 0)
    within: Float64 = np.minimum(np.maximum(factors, 1.0 / most), most)
    return within


def line_up(keys: UInt16, table: int, lines: UInt16) -> None:
    """Write the cells of one table into the lines of all tables."""
    lines[:, table] = keys


@kernel
def count_lines(chosen: Int64, lines: UInt16, starts: Int64, excess: Float64) -> None:
    """Add the cells of the chosen rows, in all tables."""
    for index in range(len(chosen)):
        for table in range(lines.shape[1]):
            excess[starts[table] + lines[chosen[index], table]] += 1.0


@kernel
def exchange(
    chosen: Int64, lines: UInt16, starts: Int64, excess: Float64, proposed: Int64, order: Int64
) -> int:
    """Replace output rows by proposed pool rows where the tables then fit better.

    `lines` has a line for every pool row: its cell in each table. `excess` is what each
    cell has beyond its target, tables one after the other from `starts`. A proposal is
    taken when the sum of squared excesses falls. Returns how many were.
    """
    tables = lines.shape[1]
    taken = 0
    for index in range(len(order)):
        old, new = lines[chosen[order[index]]], lines[proposed[index]]
        change = 0.0
        for table in range(tables):
            if old[table] != new[table]:
                cells = starts[table]
                change += excess[cells + new[table]] - excess[cells + old[table]] + 1.0
        if change < 0.0:
            taken += 1
            for table in range(tables):
                excess[starts[table] + old[table]] -= 1.0
                excess[starts[table] + new[table]] += 1.0
            chosen[order[index]] = proposed[index]
    return taken


def uniforms(words: UInt64) -> Float64:
    """Turn words into floating-point numbers in [0, 1)."""
    return np.asarray((words >> np.uint64(11)) * 2.0**-53)
