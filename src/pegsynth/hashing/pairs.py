"""Pair counts and the mutual information they give.

One pass over the codes fills a table of counts for every pair of features. The tables
are computed from the data: a caller must pay for them (noise) or record that it did not (R10).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Int64
from pegsynth.errors import ParameterError
from pegsynth.hashing.cells import CellCounter, absorb_cells, cell_arrays
from pegsynth.hashing.columns import column_major
from pegsynth.kernels.key_counts import add_pair

Pair = tuple[int, int]

DENSE_PAIR_CELLS = 1 << 24


@dataclass(frozen=True)
class PairCounts:
    """Counts of every pair i < j: a C_i x C_j table, or its cells when that is too large."""

    category_counts: tuple[int, ...]
    tables: dict[Pair, Int64]
    cells: dict[Pair, tuple[Int64, Int64, Int64]]

    def one_way_counts(self) -> list[Int64]:
        """Return the one-way counts of every feature, summed from one of its pairs."""
        features = len(self.category_counts)
        return [
            self._one_way(i, (i, i + 1) if i + 1 < features else (0, i)) for i in range(features)
        ]

    def _one_way(self, feature: int, pair: Pair) -> Int64:
        if pair in self.tables:
            counts: Int64 = self.tables[pair].sum(axis=0 if pair[1] == feature else 1)
            return counts
        left, right, held = self.cells[pair]
        codes = right if pair[1] == feature else left
        summed = np.bincount(codes, weights=held, minlength=self.category_counts[feature])
        return summed.astype(np.int64)

    def mutual_information(self) -> NDArray[np.float64]:
        """Return the symmetric matrix of mutual information in nats, diagonal 0."""
        features = len(self.category_counts)
        scores = np.zeros((features, features))
        for (left, right), table in self.tables.items():
            scores[left, right] = scores[right, left] = mutual_information(table)
        for (left, right), cells in self.cells.items():
            scores[left, right] = scores[right, left] = _mutual_information_of_cells(*cells)
        return scores


def mutual_information(table: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Return the mutual information of a two-way table of counts, in nats."""
    left, right = np.nonzero(table > 0)
    return _mutual_information_of_cells(left, right, table[left, right])


def _mutual_information_of_cells(
    left: Int64, right: Int64, counts: NDArray[np.int64] | NDArray[np.float64]
) -> float:
    total = float(counts.sum())
    if total <= 0:
        return 0.0
    joint = counts / total
    share_left, share_right = np.bincount(left, joint), np.bincount(right, joint)
    ratio = joint / (share_left[left] * share_right[right])
    return max(float(np.sum(joint * np.log(ratio))), 0.0)


class PairCounter:
    """Counts of every pair, batch by batch.

    Parameters
    ----------
    every
        Count one row in so many of every batch.

    Notes
    -----
    What was counted apart can be added: `arrays` gives it as plain arrays, `absorb` takes
    them in.
    """

    def __init__(
        self, category_counts: tuple[int, ...], *, threads: int = 1, every: int = 1
    ) -> None:
        self._category_counts = category_counts
        self._every = every
        sizes = {
            (i, j): category_counts[i] * category_counts[j]
            for i, j in combinations(range(len(category_counts)), 2)
        }
        self._pairs = list(sizes)
        small = {pair: size for pair, size in sizes.items() if size <= DENSE_PAIR_CELLS}
        self._tables = np.zeros(sum(small.values()), dtype=np.int64)
        parts = np.split(self._tables, np.cumsum(list(small.values()))[:-1]) if small else []
        self._flat = dict(zip(small, parts, strict=True))
        self._wide = {
            (i, j): CellCounter(category_counts[i], category_counts[j])
            for (i, j) in sizes
            if (i, j) not in small
        }
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads)

    def add(self, batch: NDArray[np.unsignedinteger]) -> None:
        """Count one batch of code rows."""
        columns = column_major(batch[:: self._every])
        shares = [self._pairs[start :: self._threads] for start in range(self._threads)]
        for future in [self._pool.submit(self._add_share, columns, share) for share in shares]:
            future.result()

    def _add_share(self, columns: NDArray[np.unsignedinteger], share: list[Pair]) -> None:
        for left, right in share:
            if (left, right) in self._flat:
                categories = self._category_counts[right]
                add_pair(columns[left], columns[right], categories, self._flat[left, right])
            else:
                self._wide[left, right].add(columns[left].astype(np.int64), columns[right])

    def arrays(self) -> dict[str, Int64]:
        """Return the counts so far; they change with the next batch."""
        return {"tables": self._tables, **cell_arrays(list(self._wide.values()))}

    def absorb(self, arrays: Mapping[str, Int64]) -> None:
        """Add counts of other rows."""
        tables = arrays["tables"]
        if tables.shape != self._tables.shape or (len(tables) and tables.min() < 0):
            raise ParameterError("these counts belong to other features")
        absorb_cells(list(self._wide.values()), arrays)
        self._tables += tables

    def counts(self) -> PairCounts:
        """Return the counts of all rows so far."""
        counts = self._category_counts
        tables = {
            (i, j): table.reshape(counts[i], counts[j]) for (i, j), table in self._flat.items()
        }
        return PairCounts(counts, tables, {pair: c.cells() for pair, c in self._wide.items()})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()


def count_pairs(
    batches: Iterable[NDArray[np.unsignedinteger]],
    category_counts: tuple[int, ...],
    *,
    threads: int = 1,
) -> PairCounts:
    """Count all pairs over batches of code rows."""
    with PairCounter(category_counts, threads=threads) as counter:
        for batch in batches:
            counter.add(batch)
        return counter.counts()
