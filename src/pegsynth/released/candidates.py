"""How many tables the second round looks at, and how often: what processor and memory allow.

Everything here follows from public figures and the noisy number of rows. A candidate costs one
pass over the pool whenever its distance is taken, and the memory of its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.released.row_pool import Features, Pool, cell_count

MOST_POOL = 1 << 20
"""The most rows of a pool; fewer where it has to meet very many tables."""
_MOST_VISITS = 2_000_000_000
"""Rows of the pool that are visited when the distances of all pairs are taken: seconds."""
_MOST_CELLS = 1 << 24
_LEAST_CANDIDATES = 800
_MOST_NUMBERED = 1 << 28
"""Cells that the rows of a pool are in, over all tables: half a gigabyte."""
_FEW_TABLES = 700
_LEAST_ROWS = 1 << 14
_CHEAP_VISITS = 320_000_000
_ROUNDS_PER_FEATURE = 2


@dataclass(frozen=True)
class Room:
    """How many more candidates there may be.

    Parameters
    ----------
    tables, cells
        The most of both.
    """

    tables: int
    cells: int

    @classmethod
    def of(cls, pairs: int, pool_rows: int) -> Room:
        """Return what a pool leaves room for: all pairs if that may be, and as many triples."""
        bearable = _MOST_VISITS // max(pool_rows, 1)
        return cls(max(2 * min(pairs, bearable), _LEAST_CANDIDATES), _MOST_CELLS)

    def half(self) -> Room:
        """Return the half that pairs may take."""
        return Room(self.tables // 2, self.cells // 2)

    def left(self, taken: Iterable[Features], sizes: Sequence[int]) -> Room:
        """Return what is left when some are taken."""
        counts = [cell_count(table, sizes) for table in taken]
        return Room(max(self.tables - len(counts), 0), max(self.cells - sum(counts), 0))

    def part(self, tables: Sequence[Features], sizes: Sequence[int]) -> list[Features]:
        """Return the first ones that fit."""
        reached = np.cumsum([cell_count(table, sizes) for table in tables])
        fitting = int(np.searchsorted(reached, self.cells, side="right"))
        return list(tables[: min(fitting, self.tables)])


def pairs_at_once(rows: int, least: int) -> int:
    """Return the most pairs that may all be measured, each of which numbers the pool's rows."""
    return max(least, _MOST_NUMBERED // max(rows, 1))


def rows_at_once(tables: int, most: int) -> int:
    """Return the most rows of a pool, at most so many, if it has to meet so many tables."""
    if tables <= _FEW_TABLES:
        return most
    return min(most, max(_MOST_NUMBERED // tables, _LEAST_ROWS))


def cheap_to_score(candidates: int, pool_rows: int) -> bool:
    """Say whether all distances may be taken anew after every table."""
    return candidates * pool_rows <= _CHEAP_VISITS


def rounds_for(features: int, least: int) -> int:
    """Return the most tables of the second round: more where there are many features."""
    return max(least, _ROUNDS_PER_FEATURE * features)


def spread_out(tables: Sequence[Features], pool: Pool) -> list[Features]:
    """Return tables in a random order, chosen without looking at anything."""
    order = np.argsort(pool.uniforms(len(tables)), kind="stable")
    return [tables[index] for index in order]
