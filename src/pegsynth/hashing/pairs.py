"""Pair counts and the mutual information they give.

One pass over the codes fills a table of counts for every pair of features. The tables
are computed from the data: whoever uses them must pay (noise) or say so (R10).
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pegsynth.hashing.cells import CellCounter
from pegsynth.kernels.counting import add_pair

Pair = tuple[int, int]
Int64 = NDArray[np.int64]

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


def count_pairs(
    batches: Iterable[NDArray[np.unsignedinteger]],
    category_counts: tuple[int, ...],
    *,
    threads: int = 1,
) -> PairCounts:
    """Count all pairs over batches of code rows."""
    sizes = {
        (i, j): category_counts[i] * category_counts[j]
        for i, j in combinations(range(len(category_counts)), 2)
    }
    flat = {p: np.zeros(n, dtype=np.int64) for p, n in sizes.items() if n <= DENSE_PAIR_CELLS}
    wide = {
        (i, j): CellCounter(category_counts[i], category_counts[j])
        for (i, j), n in sizes.items()
        if n > DENSE_PAIR_CELLS
    }

    def add(columns: NDArray[np.unsignedinteger], share: list[Pair]) -> None:
        for left, right in share:
            if (left, right) in flat:
                add_pair(columns[left], columns[right], category_counts[right], flat[left, right])
            else:
                wide[left, right].add(columns[left].astype(np.int64), columns[right])

    pairs = list(sizes)
    with ThreadPoolExecutor(threads) as pool:
        for batch in batches:
            columns = np.ascontiguousarray(batch.T)
            shares = [pairs[start::threads] for start in range(threads)]
            for future in [pool.submit(add, columns, share) for share in shares]:
                future.result()
    tables = {
        (i, j): table.reshape(category_counts[i], category_counts[j])
        for (i, j), table in flat.items()
    }
    return PairCounts(category_counts, tables, {p: c.cells() for p, c in wide.items()})
