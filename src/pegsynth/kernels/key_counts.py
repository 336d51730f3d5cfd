"""Counting kernels: keys, dense blocks and pair tables over column-major codes.

`columns` is an (M, n) matrix, one contiguous row per feature. Each call adds the rows of
one batch to counts that the caller owns, so batches of any size give the same sums.
"""

from __future__ import annotations

import numpy as np

from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.kernels.compiled import kernel
from pegsynth.kernels.sampling_arrays import KeyTables


@kernel
def tail_totals(columns: Codes, tables: KeyTables, out: Int64) -> None:
    """XOR the public bits of all features of every row into `out`."""
    for row in range(len(out)):
        out[row] = 0
    for feature in range(columns.shape[0]):
        start = tables.category_start[feature]
        for row in range(columns.shape[1]):
            out[row] ^= tables.tail_codes[start + columns[feature, row]]


@kernel
def keys_of(columns: Codes, totals: Int64, tables: KeyTables, target: int, out: Int64) -> None:
    """Write the key h_i(x_-i) of every row for one target."""
    rows = columns.shape[1]
    start = tables.category_start[target]
    for row in range(rows):
        # The target itself must not enter its own tail; XOR takes it out again.
        out[row] = totals[row] ^ tables.tail_codes[start + columns[target, row]]
    mask = tables.tail_mask[target]
    place = np.int64(1) << tables.tail_bits
    # Heads from last to first, so that the first head is the most significant digit.
    for position in range(tables.head_start[target + 1] - 1, tables.head_start[target] - 1, -1):
        head = tables.heads[position]
        first = tables.category_start[head]
        for row in range(rows):
            code = np.int64(columns[head, row])
            digit = tables.digits[first + code]
            out[row] = (out[row] ^ tables.tail_codes[first + code]) + place * digit
        place *= tables.digit_counts[head]
    if mask == 0:
        for row in range(rows):
            out[row] = (out[row] >> tables.tail_bits) << tables.tail_bits


@kernel
def add_dense(keys: Int64, codes: Codes, category_count: int, counts: Int64) -> None:
    """Count (key, code) pairs into a flat table."""
    for row in range(len(keys)):
        counts[keys[row] * category_count + codes[row]] += 1


@kernel
def add_pair(left: Codes, right: Codes, right_count: int, counts: Int64) -> None:
    """Count (left, right) code pairs into a flat table."""
    for row in range(len(left)):
        counts[np.int64(left[row]) * right_count + right[row]] += 1


@kernel
def run_lengths(cells: Int64, weights: Int64, out_cells: Int64, out_counts: Int64) -> int:
    """Sum the weights of equal neighbours in sorted `cells`; return how many remain."""
    last = -1
    for index in range(len(cells)):
        if last >= 0 and cells[index] == out_cells[last]:
            out_counts[last] += weights[index]
        else:
            last += 1
            out_cells[last] = cells[index]
            out_counts[last] = weights[index]
    return last + 1
