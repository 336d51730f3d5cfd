"""The arrays that the sampling kernels read, as named tuples.

`category_start` cuts every flat per-category array by feature: the categories of feature
i live at category_start[i] .. category_start[i + 1].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PUBLIC = np.uint64(0xFFFFFFFFFFFFFFFF)
"""A multiplier that stands for "answer with the public distribution"."""


class KeyTables(NamedTuple):
    """How the key of a target is computed from a row: heads in clear, then tail bits.

    `digits` are the codes themselves, or coarser levels of them; `digit_counts` says how many a
    feature has. `tail_mask` is all ones for a target whose key has a tail, and 0 for one without.
    """

    category_start: NDArray[np.int64]
    head_start: NDArray[np.int64]
    heads: NDArray[np.int64]
    digits: NDArray[np.int64]
    digit_counts: NDArray[np.int64]
    tail_codes: NDArray[np.int64]
    tail_mask: NDArray[np.int64]
    tail_bits: int


class EntryTables(NamedTuple):
    """Cumulative counts of every entry; dense features by key, sparse ones by search.

    The counts of an entry are cumulated in category order. `entry_base` numbers the
    entries of all features consecutively, for visit counters.
    """

    dense: NDArray[np.bool_]
    entry_base: NDArray[np.int64]
    cell_base: NDArray[np.int64]
    dense_cumulative: NDArray[np.uint32]
    key_base: NDArray[np.int64]
    keys: NDArray[np.int64]
    cell_start: NDArray[np.int64]
    cell_category: NDArray[np.uint32]
    cell_cumulative: NDArray[np.uint32]


class PriorTables(NamedTuple):
    """Virtual rows as integers: alpha_j = multiplier * weight_j / scale (R15).

    `weight_cumulative` cumulates the weights of each feature; the public distribution is
    weight_j / sum of weights. `multiplier_start[i] >= 0` points at the multipliers of
    feature i that differ by entry (R7), one run of entries per pattern of active rules.
    """

    scale: np.uint64
    weight_cumulative: NDArray[np.uint64]
    multiplier: NDArray[np.uint64]
    multiplier_start: NDArray[np.int64]
    multiplier_stride: NDArray[np.int64]
    entry_multiplier: NDArray[np.uint64]
    pattern_start: NDArray[np.int64]
    pattern_row: NDArray[np.int64]


class RuleTables(NamedTuple):
    """Forbidden combinations (R18), indexed by the feature to be drawn.

    Rules of target i are target_rules[target_start[i] .. target_start[i + 1]]. Rule r is
    the conjunction of items item_start[r] .. item_start[r + 1]; item x says that feature
    item_feature[x] holds a code c with member[item_member[x] + c].

    What the pattern p of active rules forbids target i is listed, ascending, from
    forbidden_start[pattern_start[i] + p] on; a target with too many rules for such lists
    has pattern_start -1.
    """

    target_start: NDArray[np.int64]
    target_rules: NDArray[np.int64]
    item_start: NDArray[np.int64]
    item_feature: NDArray[np.int64]
    item_member: NDArray[np.int64]
    member: NDArray[np.bool_]
    pattern_start: NDArray[np.int64]
    forbidden_start: NDArray[np.int64]
    forbidden: NDArray[np.int64]


class SweepTables(NamedTuple):
    """What a sweep reads, and how rows hang together.

    `targets` are the features to draw, in sweep order; `sweeps` a row's sweeps; `chain_rows` the
    rows from one seed row to the next; `limit` the visits an entry answers with its counts in one
    chain, 0 for no limit.
    """

    keys: KeyTables
    entries: EntryTables
    prior: PriorTables
    rules: RuleTables
    targets: Any
    sweeps: int
    chain_rows: int
    limit: int
