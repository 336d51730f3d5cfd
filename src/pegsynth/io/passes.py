"""Whether a table gives the same rows in every pass.

Some methods read a table twice, and what the first pass measured must be true of the rows
that the second one counts. A digest of every pass is compared with that of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pegsynth.errors import DataError
from pegsynth.io.reader import Part, made

_ODD = np.uint64(0x9E3779B97F4A7C15)


class PassDigest:
    """A number that depends on every value of a pass over a table.

    Parameters
    ----------
    placed
        Whether it also depends on where the rows stand.
    """

    def __init__(self, *, placed: bool) -> None:
        self._placed = placed
        self.rows = 0
        self._sum = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Take in the next rows."""
        mixed: NDArray[np.uint64] = frame.hash_rows(seed=0).to_numpy()
        if self._placed:
            mixed = mixed ^ np.arange(self.rows, self.rows + frame.height, dtype=np.uint64) * _ODD
        mixed = mixed * _ODD
        mixed ^= mixed >> np.uint64(29)
        self.rows += frame.height
        self._sum = (self._sum + int(mixed.sum(dtype=np.uint64))) % (1 << 64)

    @property
    def value(self) -> tuple[int, int]:
        """The number of rows, and the digest."""
        return self.rows, self._sum


class SameRows:
    """A part of a table that is refused when it gives other rows in another pass.

    Its rows may come in another order: only counts are made of them.

    Parameters
    ----------
    part
        What gives the rows, such as a lazy frame.
    source, remedy
        What it is called when it is refused, and what to do then.
    """

    def __init__(self, part: Part, source: str, remedy: str) -> None:
        self._part = part
        self._source, self._remedy = source, remedy
        self._first: dict[frozenset[str], tuple[int, int]] = {}

    def __call__(
        self,
        columns: Sequence[str],
        *,
        skip: int = 0,
        hints: Mapping[str, pl.DataType] | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield the wanted columns after the first `skip` rows."""
        digest = PassDigest(placed=False)
        for piece in self._part(columns, skip=skip, hints=hints):
            frame = made(piece)
            digest.add(frame.select(sorted(columns)))
            yield frame
        if self._first.setdefault(frozenset(columns), digest.value) != digest.value:
            raise other_rows(self._source, self._remedy)


def other_rows(source: str, remedy: str) -> DataError:
    """Say that a second pass gave other rows than the first."""
    return DataError(
        f"{source}: the rows came differently the second time, and reading needs two passes; "
        f"{remedy}"
    )
