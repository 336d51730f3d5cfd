"""The targets of an attack, tabulated once for many released tables.

The guesses and errors are those of `pegsynth.evaluation.intruder`; what is saved is counting
the original again for each of thousands of small tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.evaluation.cells import CELL_LIMIT
from pegsynth.evaluation.groups import Crossing
from pegsynth.evaluation.intruder import guess as guess_cells
from pegsynth.evaluation.numeric import numeric_values
from pegsynth.schema import Schema
from pegsynth.study.setting import Guess

Codes = NDArray[np.unsignedinteger[Any]]
Counts = NDArray[np.int64]

MOST_CELLS = 1 << 22
_LEVEL = 0.95
_MIXER = 0x9E3779B97F4A7C15


@dataclass(frozen=True)
class Targets:
    """The original's rows as cells of what is known and what is to be inferred.

    Parameters
    ----------
    guess
        The attack.
    known, infer
        Positions of the features.
    sizes
        Number of categories of all features.
    keys
        Combinations of the known features that occur in the original, in order.
    crossing, counts
        Cells of these combinations, with one more for all others, and targets in each.
    values
        One number per code where the guess is a mean.
    """

    guess: Guess
    known: tuple[int, ...]
    infer: int
    sizes: tuple[int, ...]
    keys: Counts
    crossing: Crossing
    counts: Counts
    values: NDArray[np.float64] | None

    @classmethod
    def of(cls, guess: Guess, original: Codes, schema: Schema) -> Targets | None:
        """Tabulate an original, one feature a row; None where it has too many cells."""
        known, infer = tuple(map(schema.index, guess.known)), schema.index(guess.infer)
        sizes = schema.category_counts
        keys, rows = np.unique(_keys_of(original, known, sizes), return_inverse=True)
        size = sizes[infer]
        cells = np.arange((len(keys) + 1) * size, dtype=np.int64)
        if len(cells) > MOST_CELLS:
            return None
        counts = np.bincount(rows * size + original[infer], minlength=len(cells))
        values = numeric_values(schema.features[infer]) if guess.amounts else None
        crossing = Crossing((), cells // size, cells % size)
        return cls(guess, known, infer, sizes, keys, crossing, counts.astype(np.int64), values)

    def attacked(self, released: Codes) -> tuple[float, float]:
        """Return the error of the attack with released rows, and the share of matched targets."""
        keys = _keys_of(released, self.known, self.sizes)
        found = np.searchsorted(self.keys, keys)
        met = self.keys[np.minimum(found, len(self.keys) - 1)] == keys
        # Rows that match no target still count for the guess that needs no match.
        groups = np.where(met, found, len(self.keys))
        cells = groups * self.sizes[self.infer] + released[self.infer]
        counts = np.bincount(cells, minlength=len(self.counts)).astype(np.int64)
        errors = guess_cells(self.crossing, counts, self.values)
        estimate = errors.estimate(self.counts, amounts=self.guess.amounts, level=_LEVEL)
        share = errors.matched_share(self.counts)
        return (estimate.value if estimate.n else math.nan), share


def row_keys(columns: Codes, sizes: Sequence[int]) -> Counts:
    """Return a number for every row and all its features; beyond 63 bits it is a hash."""
    keys = np.zeros(columns.shape[1], dtype=np.uint64)
    wide = math.prod(sizes) >= CELL_LIMIT
    for column, size in zip(columns, sizes, strict=True):
        keys = keys * np.uint64(_MIXER if wide else size) + column.astype(np.uint64)
        if wide:
            keys ^= keys >> np.uint64(29)
    return keys.view(np.int64)


def _keys_of(columns: Codes, features: Sequence[int], sizes: Sequence[int]) -> Counts:
    return row_keys(columns[list(features)], [sizes[place] for place in features])
