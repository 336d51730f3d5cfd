"""Units are dealt to parts, each by a draw of its own (R32)."""

from __future__ import annotations

import numpy as np

from pegsynth.arrays import Int64
from pegsynth.mechanisms.noise import Below


def dealt(units: Int64 | None, rows: int, parts: int, words: Below) -> Int64:
    """Return the part of every row.

    Every unit gets an exact uniform integer of its own and takes all its rows along. Parts
    of equal size would not do: one unit more would move others to another part.

    Parameters
    ----------
    units
        For every row the number of its unit, from 0; None: every row is a unit.
    words
        A source of exact uniform integers.
    """
    count = rows if units is None else (int(units.max()) + 1 if len(units) else 0)
    drawn = np.array([words.below(parts) for _ in range(count)], dtype=np.int64)
    found: Int64 = drawn if units is None else drawn[units]
    return found
