"""Statistical building blocks: the counts of one target given its key.

A `DenseBlock` tabulates every key of a small key space; a `SparseBlock` lists the cells
that occur, sorted. Both hold the same counts, add up, and answer alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegsynth.arrays import Int64


@dataclass(frozen=True)
class DenseBlock:
    """Counts n_kj as a table with one line per key."""

    counts: Int64

    @property
    def entry_count(self) -> int:
        """Number of entries that have a number, here all keys."""
        return len(self.counts)

    def cells(self) -> tuple[Int64, Int64, Int64]:
        """Return keys, categories and counts of the cells that are not zero, sorted."""
        keys, codes = np.nonzero(self.counts)
        return keys, codes, self.counts[keys, codes]

    def entry_start(self) -> Int64:
        """Return where the cells of each entry start in `cells`, and the end."""
        sizes = np.count_nonzero(self.counts, axis=1)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    def entry(self, key: int) -> Int64:
        """Return the counts of one key."""
        counts: Int64 = self.counts[key]
        return counts


@dataclass(frozen=True)
class SparseBlock:
    """Counts of the cells that occur: entry e has cells start[e] .. start[e + 1]."""

    categories: int
    keys: Int64
    start: Int64
    codes: Int64
    counts: Int64

    @classmethod
    def from_cells(cls, categories: int, keys: Int64, codes: Int64, counts: Int64) -> SparseBlock:
        """Build a block from cells sorted by key, then category."""
        first = np.ones(len(keys), dtype=bool)
        first[1:] = keys[1:] != keys[:-1]
        starts = np.flatnonzero(first).astype(np.int64)
        return cls(categories, keys[starts], np.append(starts, len(keys)), codes, counts)

    @property
    def entry_count(self) -> int:
        """Number of entries that have a number, here the keys that occur."""
        return len(self.keys)

    def cells(self) -> tuple[Int64, Int64, Int64]:
        """Return keys, categories and counts of the cells that are not zero, sorted."""
        return np.repeat(self.keys, np.diff(self.start)), self.codes, self.counts

    def entry_start(self) -> Int64:
        """Return where the cells of each entry start in `cells`, and the end."""
        return self.start

    def entry(self, key: int) -> Int64:
        """Return the counts of one key."""
        counts = np.zeros(self.categories, dtype=np.int64)
        position = int(np.searchsorted(self.keys, key))
        if position < len(self.keys) and self.keys[position] == key:
            part = slice(self.start[position], self.start[position + 1])
            counts[self.codes[part]] = self.counts[part]
        return counts


Block = DenseBlock | SparseBlock
