"""How often every value of a column occurs: exact, confidential, and in bounded memory.

In go the rows of a table, batch by batch and as often as asked; out come the values that
occur with their counts, in parts. When they are too many to be held at once, they are dealt into
shares by a hash and the table is read again for every share, as for units (`tables/units.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from pegsynth.arrays import Int64
from pegsynth.schema.feature import Feature
from pegsynth.schema.private_categories import candidates

MOST_BYTES = 1 << 26
"""About how much memory the values of all features take together before they are dealt into
shares; putting counts together takes a few times as much for a moment."""

_MOST_SHARES = 1 << 12
_VALUE, _COUNT = "value", "count"

Rows = Callable[[], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class Part:
    """Some of the values of one feature, in text order, and how often each occurs."""

    name: str
    texts: pl.Series
    counts: Int64


class CandidateCounts:
    """Counts of the values of some features.

    Parameters
    ----------
    rows
        Yields the rows to count, units bounded, as often as called.
    features
        Features whose categories are private.
    most_bytes
        See `MOST_BYTES`.
    """

    def __init__(
        self, rows: Rows, features: Sequence[Feature], *, most_bytes: int = MOST_BYTES
    ) -> None:
        self._rows = rows
        self._features = tuple(features)
        self._most = max(1, most_bytes // max(1, len(self._features)))

    def parts(self) -> Iterator[Part]:
        """Yield the values of all features, part by part; every value is in one part."""
        shares = {feature.name: 1 for feature in self._features}
        share = 0
        while share < max(shares.values()):
            held = [
                _Held(feature, self._most, share, shares[feature.name])
                for feature in self._features
                if share < shares[feature.name]
            ]
            for frame in self._rows():
                for each in held:
                    each.add(frame.get_column(each.feature.name))
            for each in held:
                part = each.part()
                shares[each.feature.name] = each.shares
                yield part
            share += 1


class _Held:
    """The values of one share of one feature; during the first the number of shares may grow."""

    def __init__(self, feature: Feature, most: int, share: int, shares: int) -> None:
        self.feature = feature
        self.shares = shares
        self._most = most
        self._share = share
        self._parts: list[pl.DataFrame] = []
        self._size = 0

    def add(self, values: pl.Series) -> None:
        """Count one batch."""
        text = candidates(values, self.feature).rename(_VALUE)
        part = self._of_share(text.drop_nulls().value_counts(name=_COUNT))
        self._parts.append(part.with_columns(pl.col(_COUNT).cast(pl.Int64)))
        self._size += int(part.estimated_size())
        if self._size > self._most:
            self._reduce()

    def part(self) -> Part:
        """Return all values of the share."""
        self._reduce()
        counted = self._parts[0].sort(_VALUE) if self._parts else _none()
        return Part(
            self.feature.name, counted.get_column(_VALUE), counted.get_column(_COUNT).to_numpy()
        )

    def _of_share(self, counted: pl.DataFrame) -> pl.DataFrame:
        if self.shares == 1:
            return counted
        return counted.filter(pl.col(_VALUE).hash(seed=0) % self.shares == self._share)

    def _reduce(self) -> None:
        if not self._parts:
            return
        counted = pl.concat(self._parts).group_by(_VALUE).agg(pl.col(_COUNT).sum())
        # No table is refused for its values: one that is beyond all shares takes more memory.
        while (
            self._share == 0
            and 2 * counted.estimated_size() > self._most
            and self.shares < _MOST_SHARES
        ):
            self.shares *= 2
            counted = self._of_share(counted)
        self._parts, self._size = [counted], int(counted.estimated_size())


def _none() -> pl.DataFrame:
    return pl.DataFrame(schema={_VALUE: pl.String, _COUNT: pl.Int64})
