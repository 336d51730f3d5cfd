"""Rows of a table in bounded memory: reduced as they come, and dealt into shares by a hash.

Whoever needs all rows of a unit, or all counts of a value, together holds them here. When they are
too many at once, they are dealt into shares by a hash of their key, and the table is read again for
every share. What comes out does not depend on the number of shares.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

_MOST_SHARES = 1 << 12


class HeldRows:
    """Rows of one share of the keys.

    During the first share, when nothing is final yet, their number doubles until what is held is
    small enough.

    Parameters
    ----------
    reduced
        Puts rows together, and drops those that are not wanted any more.
    most
        About how much to hold, as `size` tells it.
    key
        The column whose hash deals rows into shares; None: they are not dealt.
    share, shares
        Which share this is, of how many.
    """

    def __init__(
        self,
        reduced: Callable[[pl.DataFrame], pl.DataFrame],
        most: int,
        *,
        key: str | None = None,
        share: int = 0,
        shares: int = 1,
        size: Callable[[pl.DataFrame], float] = len,
    ) -> None:
        self._reduced, self._size = reduced, size
        self._key, self._share, self.shares = key, share, shares
        self._most = self._limit = float(most)
        self._parts: list[pl.DataFrame] = []
        self._held = 0.0

    def add(self, rows: pl.DataFrame) -> None:
        """Take in the next rows."""
        part = self.of_share(rows)
        self._parts.append(part)
        self._held += self._size(part)
        if self._held > self._limit:
            self.frame()

    def frame(self) -> pl.DataFrame:
        """Return all rows of the share, put together; there was one."""
        rows = self._reduced(pl.concat(self._parts))
        while self._may_deal and 2 * self._size(rows) > self._most:
            self.shares *= 2
            rows = self.of_share(rows)
        self._parts, self._held = [rows], self._size(rows)
        # What is left may not get fewer, so look again only when there is much more.
        self._limit = max(self._most, 2 * self._held)
        return rows

    def of_share(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that belong to the share."""
        if self.shares == 1 or self._key is None:
            return rows
        return rows.filter(pl.col(self._key).hash(seed=0) % self.shares == self._share)

    @property
    def _may_deal(self) -> bool:
        return self._key is not None and self._share == 0 and self.shares < _MOST_SHARES
