"""At most k rows of every unit, chosen at random by the secure stream (R12).

k is public. A row's fate depends on the rows of its own unit alone, so adding or removing
a unit changes the rows of no other. Every row has a random word, and the k rows of a unit
with the smallest words are kept. Memory is bounded: when there are too many units to hold
at once, they are dealt into shares by a hash of their name and the unit column is read
again for every share. The result does not depend on the number of shares.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.arrays import Codes
from pegsynth.io.unit_names import is_blank, missing_units
from pegsynth.progress import Progress, quiet
from pegsynth.random import RandomStream
from pegsynth.schema.dtypes import unit_text

if TYPE_CHECKING:
    from pegsynth.io.reader import TableReader


MOST_HELD = 1 << 21
_MOST_SHARES = 1 << 12


@dataclass(frozen=True)
class KeptRows:
    """For every row whether it is kept, one bit each."""

    bits: NDArray[np.uint8]
    rows: int

    def mask(self, first: int, count: int) -> NDArray[np.bool_]:
        """Return for `count` rows from row `first` on whether each is kept."""
        start = first // 8
        bits = np.unpackbits(self.bits[start : (first + count + 7) // 8], bitorder="little")
        return bits[first - 8 * start :][:count].astype(bool)


def kept_rows(
    reader: TableReader,
    unit: str,
    rows_per_unit: int,
    stream: RandomStream,
    *,
    most_held: int = MOST_HELD,
    progress: Progress = quiet,
) -> KeptRows:
    """Say for every row whether it is among the at most k kept of its unit.

    Parameters
    ----------
    most_held
        About how many rows to hold in memory at once.
    """
    number = stream.substreams(1)
    share, shares = 0, 1
    kept: list[NDArray[np.int64]] = []
    rows = 0
    while share < shares:
        held = _Held(rows_per_unit, most_held, share, shares)
        words = stream.substream(number)
        rows = blank = 0
        for units in _units(reader, unit):
            blank += int(is_blank(units).sum())
            held.add(units, words.take(len(units)), rows)
            rows += len(units)
            progress(f"units {share + 1}/{held.shares}", rows, reader.expected_rows)
        if blank:
            raise missing_units(reader.source, unit, blank)
        kept.append(held.rows())
        share, shares = share + 1, held.shares
    return KeptRows(_bits(kept, rows), rows)


class KeptCodes:
    """The codes of at most k rows of every unit, chosen in one pass over a table.

    For a table whose rows may come in another order the second time: a row's unit and its
    codes are read together. What is held grows with the units, not with the rows.
    """

    def __init__(self, rows_per_unit: int, *, most_held: int = MOST_HELD) -> None:
        self._rows_per_unit = rows_per_unit
        self._most = most_held
        self._rows: list[pl.DataFrame] = []
        self._codes: list[Codes] = []
        self._size = 0

    def add(self, units: pl.Series, words: NDArray[np.uint64], codes: Codes) -> None:
        """Take in the next rows."""
        rows = np.arange(self._size, self._size + len(units))
        self._rows.append(pl.DataFrame({"unit": units, "word": words, "row": rows}))
        self._codes.append(codes)
        self._size += len(units)
        if self._size > self._most:
            kept = self._reduce()
            # Held units cannot get fewer, so look again only when there is much more.
            self._most = max(self._most, 2 * kept)

    def codes(self) -> Codes:
        """Return the codes that are kept, in the order in which their rows came."""
        self._reduce()
        return self._codes[0]

    def _reduce(self) -> int:
        least = least_words(pl.concat(self._rows), self._rows_per_unit).sort("row")
        kept = least.get_column("row").to_numpy()
        self._codes = [np.concatenate(self._codes)[kept]]
        self._rows = [least.with_columns(row=pl.int_range(pl.len(), dtype=pl.Int64))]
        self._size = least.height
        return self._size


def least_words(
    rows: pl.DataFrame, rows_per_unit: int, *, then: Sequence[str] = ()
) -> pl.DataFrame:
    """Return of every `unit` the at most k rows with the smallest `word`.

    Parameters
    ----------
    then
        Columns that decide between rows with the same word.
    """
    return rows.sort("word", *then).group_by("unit", maintain_order=True).head(rows_per_unit)


def _units(reader: TableReader, unit: str) -> Iterator[pl.Series]:
    return (unit_text(batch.to_series()) for batch in reader.batches([unit]))


class _Held:
    """Rows of one share of the units that may still be kept.

    During the first share, when nothing is final yet, their number doubles until what is
    held is small enough.
    """

    def __init__(self, rows_per_unit: int, most: int, share: int, shares: int) -> None:
        self._rows_per_unit = rows_per_unit
        self._most = most
        self._share = share
        self.shares = shares
        self._parts: list[pl.DataFrame] = []
        self._size = 0

    def add(self, units: pl.Series, words: NDArray[np.uint64], first: int) -> None:
        """Take in a batch whose first row is row `first` of the table."""
        rows = np.arange(first, first + len(units))
        part = self._of_share(pl.DataFrame({"unit": units, "word": words, "row": rows}))
        self._parts.append(part)
        self._size += part.height
        if self._size > self._most:
            self._reduce()

    def rows(self) -> NDArray[np.int64]:
        """Return the rows that are kept."""
        self._reduce()
        found: NDArray[np.int64] = self._parts[0].get_column("row").to_numpy()
        return found

    def _of_share(self, frame: pl.DataFrame) -> pl.DataFrame:
        if self.shares == 1:
            return frame
        return frame.filter(pl.col("unit").hash(seed=0) % self.shares == self._share)

    def _reduce(self) -> None:
        """Drop rows that k others of their unit have beaten, then units of other shares."""
        least = least_words(pl.concat(self._parts), self._rows_per_unit)
        while self._share == 0 and 2 * least.height > self._most and self.shares < _MOST_SHARES:
            self.shares *= 2
            least = self._of_share(least)
        self._parts, self._size = [least], least.height


def _bits(kept: list[NDArray[np.int64]], rows: int) -> NDArray[np.uint8]:
    bits = np.zeros(-(-rows // 8), dtype=np.uint8)
    for numbers in kept:
        np.bitwise_or.at(bits, numbers // 8, (1 << (numbers % 8)).astype(np.uint8))
    return bits
