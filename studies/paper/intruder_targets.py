"""An original as the targets of an attack, counted once for the many releases of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.codec.tabulation import CELL_LIMIT, Crossing
from pegsynth.evaluation.risk.intruder import Attack, Reach, cells_of, guess
from pegsynth.kernels.arrays import Codes, Int64
from pegsynth.schema.schema import Schema

_MIXER = 0x9E3779B97F4A7C15

MOST_CELLS = 1 << 22


@dataclass(frozen=True)
class Targets:
    """The rows of an original that an attack is made on, counted once for many releases.

    Parameters
    ----------
    attack
        What is known and inferred.
    original
        Its codes, one feature a row.
    known, infer
        Positions of the features.
    sizes
        Number of categories of all features.
    keys, crossing, counts
        Combinations of the known features that occur, in order; their cells, with one more
        combination for all others; the targets in each. None where these are more than
        `MOST_CELLS` cells, which are then counted anew for every release.
    """

    attack: Attack
    original: Codes
    known: tuple[int, ...]
    infer: int
    sizes: tuple[int, ...]
    keys: Int64
    crossing: Crossing | None
    counts: Int64

    @classmethod
    def of(cls, attack: Attack, original: Codes, schema: Schema) -> Targets:
        """Count an original, one feature a row."""
        known, infer = tuple(map(schema.index, attack.known)), schema.index(attack.infer)
        sizes = schema.category_counts
        keys, rows = np.unique(_keys(original, known, sizes), return_inverse=True)
        size = sizes[infer]
        cells = np.arange((len(keys) + 1) * size, dtype=np.int64)
        crossing = Crossing((), cells // size, cells % size) if len(cells) <= MOST_CELLS else None
        counts = np.bincount(rows * size + original[infer], minlength=len(cells))
        return cls(attack, original, known, infer, sizes, keys, crossing, counts.astype(np.int64))

    def reach(self, released: Codes) -> Reach:
        """Attack every row of the original with released rows, one feature a row."""
        if self.crossing is None:
            both = cells_of([self.original, released], self.known, self.infer, self.sizes)
            targets, counts = map(both.counts, both.cells)
            found = guess(both, counts, self.attack.values)
            return found.reach(targets, amounts=self.attack.amounts)
        keys = _keys(released, self.known, self.sizes)
        place = np.searchsorted(self.keys, keys)
        met = self.keys[np.minimum(place, len(self.keys) - 1)] == keys
        # Rows that match no target still count for the guess that needs no match.
        groups = np.where(met, place, len(self.keys))
        cells = groups * self.sizes[self.infer] + released[self.infer]
        counts = np.bincount(cells, minlength=len(self.counts)).astype(np.int64)
        found = guess(self.crossing, counts, self.attack.values)
        return found.reach(self.counts, amounts=self.attack.amounts)


def _keys(columns: Codes, features: Sequence[int], sizes: Sequence[int]) -> Int64:
    return row_keys(columns[list(features)], [sizes[place] for place in features])


def row_keys(columns: Codes, sizes: Sequence[int]) -> Int64:
    """Return a number for every row and all its features; beyond 63 bits it is a hash."""
    keys = np.zeros(columns.shape[1], dtype=np.uint64)
    wide = math.prod(sizes) >= CELL_LIMIT
    for column, size in zip(columns, sizes, strict=True):
        keys = keys * np.uint64(_MIXER if wide else size) + column.astype(np.uint64)
        if wide:
            keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)
