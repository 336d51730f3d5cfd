"""Code rows as columns, which is how the kernels count them.

Exact counts of (key, category) cells that are too many to tabulate.

`CellCounter` adds batches and keeps what it has seen as sorted distinct cells with
counts, in memory proportional to the distinct cells. The result does not depend on how
the rows were cut into batches.

Pair counts and the mutual information they give.

One pass over the codes fills a table of counts for every pair of features. The tables
are computed from the data: a caller must pay for them (noise) or record that it did not (R10).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Int64
from pegsynth.kernels.key_counts import add_pair, run_lengths

Columns = NDArray[np.unsignedinteger[Any]]

_BLOCK_CELLS = 1 << 16


def column_major(batch: Columns) -> Columns:
    """Return a matrix of rows as one contiguous line per feature.

    Blocks that fit in the processor's cache are turned one by one, so that the cost of a
    cell does not grow with the number of features.
    """
    if batch.T.flags.c_contiguous:
        return batch.T
    rows, features = batch.shape
    turned = np.empty((features, rows), dtype=batch.dtype)
    step = max(1, _BLOCK_CELLS // max(features, 1))
    for start in range(0, rows, step):
        turned[:, start : start + step] = batch[start : start + step].T
    return turned


_PENDING = 1 << 20


class CellCounter:
    """Counts of cells (key, category), keys below `key_space`, categories below `categories`."""

    def __init__(self, key_space: int, categories: int) -> None:
        self._key_space = key_space
        self._categories = categories
        # One sorted number per cell is fastest; two columns where it would not fit.
        self._one_number = key_space * categories < 1 << 63
        self._pending: list[tuple[Int64, Int64, Int64]] = []
        self._pending_size = 0
        self._keys = self._codes = self._counts = np.empty(0, dtype=np.int64)

    def add(self, keys: Int64, codes: NDArray[np.unsignedinteger]) -> None:
        """Count one batch of rows."""
        self._append(*self._reduce(keys, codes.astype(np.int64), np.ones(len(keys), np.int64)))

    def add_counts(self, keys: Int64, codes: Int64, counts: Int64) -> None:
        """Add cells that were counted elsewhere."""
        self._append(*self._reduce(keys, codes, counts))

    def holds(self, keys: Int64, codes: Int64, counts: Int64) -> bool:
        """Say whether cells from elsewhere are possible here."""
        if not len(keys):
            return True
        small = keys.min() >= 0 and codes.min() >= 0 and counts.min() >= 1
        return bool(small and keys.max() < self._key_space and codes.max() < self._categories)

    def cells(self) -> tuple[Int64, Int64, Int64]:
        """Return keys, categories and counts, sorted by key, then category."""
        self._merge()
        return self._keys, self._codes, self._counts

    def _append(self, keys: Int64, codes: Int64, counts: Int64) -> None:
        self._pending.append((keys, codes, counts))
        self._pending_size += len(keys)
        if self._pending_size > max(_PENDING, len(self._keys)):
            self._merge()

    def _merge(self) -> None:
        if not self._pending:
            return
        parts = [(self._keys, self._codes, self._counts), *self._pending]
        keys, codes, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
        self._keys, self._codes, self._counts = self._reduce(keys, codes, counts)
        self._pending, self._pending_size = [], 0

    def _reduce(self, keys: Int64, codes: Int64, counts: Int64) -> tuple[Int64, Int64, Int64]:
        if self._one_number:
            cells, counts = _sum_equal(keys * self._categories + codes, counts)
            return cells // self._categories, cells % self._categories, counts
        order = np.lexsort((codes, keys))
        keys, codes, counts = keys[order], codes[order], counts[order]
        first = np.ones(len(keys), dtype=bool)
        first[1:] = (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1])
        starts = np.flatnonzero(first)
        return keys[starts], codes[starts], np.add.reduceat(counts, starts)


def _sum_equal(cells: Int64, counts: Int64) -> tuple[Int64, Int64]:
    if len(counts) and counts.min() == counts.max() == 1:
        cells = np.sort(cells)
    else:
        order = np.argsort(cells, kind="stable")
        cells, counts = cells[order], counts[order]
    out_cells, out_counts = np.empty_like(cells), np.empty_like(counts)
    size = run_lengths(cells, counts, out_cells, out_counts)
    return out_cells[:size].copy(), out_counts[:size].copy()


Key = TypeVar("Key")


class TableCounter(Generic[Key]):
    """Counts of several tables of (key, category) cells, made by several threads.

    What was counted apart can be added: `arrays` gives it as plain arrays, `absorb` takes
    them in.

    Parameters
    ----------
    spaces
        For each table how many keys it has, and how many categories.
    most_dense
        Cells up to which a table is held as an array; others are held as the cells that occur.
    """

    def __init__(
        self, spaces: Mapping[Key, tuple[int, int]], *, most_dense: int, threads: int
    ) -> None:
        sizes = {key: math.prod(space) for key, space in spaces.items()}
        small = {key: size for key, size in sizes.items() if size <= most_dense}
        self._tables = np.zeros(sum(small.values()), dtype=np.int64)
        parts = np.split(self._tables, np.cumsum(list(small.values()))[:-1]) if small else []
        self._flat = dict(zip(small, parts, strict=True))
        self._wide = {key: CellCounter(*space) for key, space in spaces.items() if key not in small}
        self._shares = [list(spaces)[start::threads] for start in range(threads)]
        self._pool = ThreadPoolExecutor(threads)

    def _each_share(self, work: Callable[[Sequence[Key]], None]) -> None:
        """Count the tables, some on every thread."""
        for future in [self._pool.submit(work, share) for share in self._shares]:
            future.result()

    def arrays(self) -> dict[str, Int64]:
        """Return the counts so far; they change with the next batch."""
        parts = [counter.cells() for counter in self._wide.values()]
        columns = zip(*parts, strict=True) if parts else ([np.empty(0, dtype=np.int64)],) * 3
        keys, codes, counts = (np.concatenate(column) for column in columns)
        sizes = np.array([len(part[0]) for part in parts], dtype=np.int64)
        return {
            "tables": self._tables,
            "sizes": sizes,
            "keys": keys,
            "codes": codes,
            "counts": counts,
        }

    def absorb(self, arrays: Mapping[str, Int64]) -> None:
        """Add counts of other rows; refuse what cannot have been counted here."""
        tables, sizes = arrays["tables"], arrays["sizes"]
        columns = [arrays[name] for name in ("keys", "codes", "counts")]
        counters = list(self._wide.values())
        if (
            tables.shape != self._tables.shape
            or (len(tables) and tables.min() < 0)
            or len(sizes) != len(counters)
            or {len(each) for each in columns} != {int(sizes.sum())}
        ):
            raise ParameterError("these counts belong to other features")
        ends = np.cumsum(sizes)[:-1]
        split = [np.split(column, ends) for column in columns] if len(sizes) else [[], [], []]
        for counter, *cells in zip(counters, *split, strict=True):
            if not counter.holds(*cells):
                raise ParameterError("these counts belong to other features")
            counter.add_counts(*cells)
        self._tables += tables

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()


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


class PairCounter(TableCounter[Pair]):
    """Counts of every pair, batch by batch.

    Parameters
    ----------
    every
        Count one row in so many of every batch.
    """

    def __init__(
        self, category_counts: tuple[int, ...], *, threads: int = 1, every: int = 1
    ) -> None:
        self._category_counts = category_counts
        self._every = every
        spaces = {
            (i, j): (category_counts[i], category_counts[j])
            for i, j in combinations(range(len(category_counts)), 2)
        }
        super().__init__(spaces, most_dense=DENSE_PAIR_CELLS, threads=threads)

    def add(self, batch: NDArray[np.unsignedinteger]) -> None:
        """Count one batch of code rows."""
        columns = column_major(batch[:: self._every])

        def count(share: Sequence[Pair]) -> None:
            for left, right in share:
                if (left, right) in self._flat:
                    categories = self._category_counts[right]
                    add_pair(columns[left], columns[right], categories, self._flat[left, right])
                else:
                    self._wide[left, right].add(columns[left].astype(np.int64), columns[right])

        self._each_share(count)

    def counts(self) -> PairCounts:
        """Return the counts of all rows so far."""
        counts = self._category_counts
        tables = {
            (i, j): table.reshape(counts[i], counts[j]) for (i, j), table in self._flat.items()
        }
        return PairCounts(counts, tables, {pair: c.cells() for pair, c in self._wide.items()})


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
