"""Codes of whole numbers by table: one look-up instead of a search or a text per value."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

MISS = -1
_MOST_ENTRIES = 1 << 20
_FAR = 1 << 61
"""Beyond the ends of every table, and a difference of two such numbers has 64 bits."""
_WHOLE = re.compile(r"0|-?[1-9]\d{0,15}", re.ASCII)
_FITTING = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32)


@dataclass(frozen=True)
class WholeNumbers:
    """A table of codes for the numbers from `low` on; its ends stand for all beyond them."""

    low: int
    codes: NDArray[np.int32]

    def encode(self, values: pl.Series, gap: int) -> NDArray[np.int32] | None:
        """Return the code of every number, `MISS` where the table has none, `gap` for a null.

        None means that the column is not of whole numbers.
        """
        if values.dtype not in _FITTING:
            return None
        numbers = values.cast(pl.Int64).fill_null(self.low).to_numpy()
        if len(numbers) and max(-int(numbers.min()), int(numbers.max())) > _FAR:
            numbers = np.clip(numbers, -_FAR, _FAR)
        found: NDArray[np.int32] = np.take(self.codes, numbers - self.low, mode="clip")
        if values.null_count():
            found[values.is_null().arg_true().to_numpy()] = gap
        return found


def binned_numbers(
    inner_edges: NDArray[np.float64], special: Mapping[float, int]
) -> WholeNumbers | None:
    """Return the table of a numeric feature, if it is small enough.

    Parameters
    ----------
    inner_edges
        Edges between bins; a number on an edge falls in the bin above it.
    special
        Numbers that have a code of their own.
    """
    marks = [*inner_edges.tolist(), *special]
    if not marks or not all(map(math.isfinite, marks)):
        return None
    low, high = math.floor(min(marks)) - 1, math.ceil(max(marks)) + 1
    if high - low >= _MOST_ENTRIES or max(-low, high) >= _FAR:
        return None
    numbers = np.arange(low, high + 1)
    codes = np.searchsorted(inner_edges, numbers, side="right").astype(np.int32)
    for number, code in special.items():
        codes[numbers == number] = code
    return WholeNumbers(low, codes)


def listed_numbers(exact: Mapping[str, int]) -> WholeNumbers | None:
    """Return the table of a feature some of whose categories are whole numbers."""
    known: dict[int, Any] = {int(t): code for t, code in exact.items() if _WHOLE.fullmatch(t)}
    if not known or max(known) - min(known) >= _MOST_ENTRIES - 2:
        return None
    low = min(known) - 1
    codes = np.full(max(known) - low + 2, MISS, dtype=np.int32)
    codes[np.fromiter(known, dtype=np.int64) - low] = list(known.values())
    return WholeNumbers(low, codes)
