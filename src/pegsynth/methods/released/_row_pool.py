"""A pool of rows on merged levels, drawn column by column, and its weights.

Every column is drawn with little variance: the rows that share the values of its heads get
equally spaced quantiles of its distribution, in random order, and a few rows are moved so
that the margin is the model's own. Rules are kept as rows are drawn (R18): a row that would
break one draws again among what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import SchemaError
from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.random import RandomStream
from pegsynth.schema.rules import Rule

UInt16 = NDArray[np.uint16]
UInt32 = NDArray[np.uint32]
Features = tuple[int, ...]
T = TypeVar("T")
S = TypeVar("S")


MOST_POOL = 1 << 20
"""The most rows of a pool; fewer where it has to meet very many tables."""
_MOST_NUMBERED = 1 << 28
"""Cells that the rows of a pool are in, over all tables: half a gigabyte."""
_FEW_TABLES = 700
_LEAST_ROWS = 1 << 14
MOST_CELLS = 1 << 16
_REDRAWN = 1 << 14
_PART = 1 << 16
_MOST_PARTS = 8
_REVIVED = 64
_SEARCHED = 1 << 14


class Pool:
    """Rows that are drawn from paid-for numbers, column by column.

    Parameters
    ----------
    sizes
        Levels of every feature.
    rows
        Rows of the pool.
    rules
        Rules of the schema; their features have one level for every category.
    """

    def __init__(
        self,
        sizes: tuple[int, ...],
        rows: int,
        stream: RandomStream,
        *,
        rules: Sequence[Rule] = (),
        threads: int = 1,
    ) -> None:
        self.sizes = sizes
        self.rows = rows
        self.columns = np.zeros((len(sizes), rows), dtype=np.uint16)
        self.placed: list[int] = []
        self.alive = np.ones(rows, dtype=bool)
        self.weights: Float64 = np.ones(rows)
        self.rules = rules
        self.threads = threads
        self._words = stream.substream()
        self._workers: ThreadPoolExecutor | None = None

    def begin_again(self) -> None:
        """Forget all columns that were drawn, and what rules made of their rows."""
        self.placed = []
        self.alive[:] = True

    def keys(self, features: Features) -> UInt16:
        """Return the cell of every row in the table of these features."""
        return cell_keys(self.columns, features, self.sizes)

    def cells(self, features: Features) -> int:
        """Return the cells of that table."""
        return cell_count(features, self.sizes)

    def uniforms(self, count: int) -> Float64:
        """Return uniform numbers in [0, 1)."""
        drawn: Float64 = kernels.uniforms(self._words.take(count))
        return drawn

    def permutation(self, rows: int | None = None) -> Int64:
        """Return rows, all of the pool's by default, in random order."""
        return kernels.shuffled(self._words.take(self.rows if rows is None else rows))

    def counts(self, features: Features) -> Int64:
        """Count the rows by cell."""
        return kernels.count_cells(self.keys(features), self.cells(features))

    def expected(self, features: Features) -> Float64:
        """Add up the weights by the cells of a table."""
        sizes = np.array([self.sizes[feature] for feature in features], dtype=np.int64)
        return kernels.weigh_table(
            self.columns,
            np.array(features, dtype=np.int64),
            sizes,
            self.weights,
            self.cells(features),
        )

    def draw(self, feature: int, heads: Features, shares: Float64) -> None:
        """Draw a column given its heads; `shares` has a line for every key."""
        self.draw_by(feature, self.keys(heads), shares)

    def deal(self, shares: Float64) -> UInt16:
        """Return a class for every row, as many rows of each as its share says."""
        counts = whole_numbers(shares * self.rows, self.rows)
        classes: UInt16 = np.repeat(np.arange(len(shares), dtype=np.uint16), counts)
        return classes[self.permutation()]

    def draw_by(self, feature: int, keys: UInt16, shares: Float64) -> None:
        """Draw a column given a key for every row; `shares` has a line for every key."""
        groups = len(shares)
        shares = np.ascontiguousarray(shares)
        rows, starts = kernels.grouped(keys, self.permutation(), groups)
        drawn = kernels.spread(rows, starts, shares, self.uniforms(groups))
        expected = np.diff(starts) @ shares
        kernels.settle(
            drawn,
            keys,
            shares,
            whole_numbers(expected, self.rows),
            self.permutation(),
            self.uniforms(self.rows),
        )
        self._place(feature, drawn, keys, shares)

    def _place(self, feature: int, drawn: UInt32, keys: UInt16, shares: Float64) -> None:
        self.columns[feature] = drawn
        self.placed.append(feature)
        self._obey(feature, keys, shares)

    def _obey(self, feature: int, keys: UInt16, shares: Float64) -> None:
        """Draw again where a rule forbids what was drawn; rows without a way out die."""
        complete = [
            rule
            for rule in self.rules
            if feature in dict(rule.forbidden) and set(dict(rule.forbidden)) <= set(self.placed)
        ]
        broken = np.zeros(self.rows, dtype=bool)
        for rule in complete:
            broken |= rule.broken_by(self.columns.T)
        rows = np.flatnonzero(broken)
        for start in range(0, len(rows), _REDRAWN):
            self._redraw(feature, rows[start : start + _REDRAWN], complete, keys, shares)

    def _redraw(
        self, feature: int, rows: Int64, rules: list[Rule], keys: UInt16, shares: Float64
    ) -> None:
        allowed = np.ones((len(rows), self.sizes[feature]), dtype=bool)
        for rule in rules:
            codes = dict(rule.forbidden)
            others = np.ones(len(rows), dtype=bool)
            for other in set(codes) - {feature}:
                others &= np.isin(self.columns[other, rows], sorted(codes[other]))
            allowed[np.ix_(others, np.array(sorted(codes[feature])))] = False
        odds = np.where(allowed, shares[keys[rows]], 0.0)
        # Where noise left nothing to what is allowed, everything allowed is as likely.
        odds = np.where(odds.any(axis=1, keepdims=True), odds, allowed)
        reached = np.cumsum(odds, axis=1)
        # Rounding must not carry a point to the very end, behind which nothing is allowed.
        ends = np.nextafter(reached[:, -1], 0)
        points = np.minimum(self.uniforms(len(rows)) * reached[:, -1], ends)
        drawn = np.minimum((reached <= points[:, None]).sum(axis=1), self.sizes[feature] - 1)
        self.columns[feature, rows] = drawn
        self.alive[rows[reached[:, -1] <= 0]] = False

    def ruled(self, feature: int) -> Ruled | None:
        """Return what rules leave of a feature in every row so far; None where none speaks of it.

        Placed features settle which of its levels a row may have, whatever heads it gets.
        """
        placed = set(self.placed) - {feature}
        rules = [dict(rule.forbidden) for rule in self.rules]
        complete = [
            codes for codes in rules if feature in codes and set(codes) - {feature} <= placed
        ]
        if not complete:
            return None
        patterns, classes = np.zeros((1, 0), dtype=bool), np.zeros(self.rows, dtype=np.int64)
        for codes in complete:
            hit = np.ones(self.rows, dtype=bool)
            for other in set(codes) - {feature}:
                among = np.zeros(self.sizes[other], dtype=bool)
                among[sorted(codes[other])] = True
                hit &= among[self.columns[other]]
            classes = 2 * classes + hit
            found = np.flatnonzero(np.bincount(classes, minlength=2 * len(patterns)))
            numbers = np.zeros(2 * len(patterns), dtype=np.int64)
            numbers[found] = np.arange(len(found))
            classes = numbers[classes]
            patterns = np.column_stack([patterns[found // 2], found % 2 == 1])
        allowed = np.ones((len(patterns), self.sizes[feature]), dtype=bool)
        for number, codes in enumerate(complete):
            allowed[np.ix_(patterns[:, number], np.array(sorted(codes[feature])))] = False
        return Ruled(classes, allowed)

    def same_rules(self, feature: int) -> bool:
        """Say whether the feature that was placed last changes nothing for this one."""
        newest = self.placed[-1]
        named = (set(dict(rule.forbidden)) for rule in self.rules)
        return not any({feature, newest} <= names for names in named)

    def weigh(self, total: float) -> None:
        """Give every living row the same weight."""
        if not self.alive.any():
            self._revive()
        living = int(np.count_nonzero(self.alive))
        if not living:
            raise SchemaError(
                "hardly any row of the released blocks obeys the schema's rules; check that the "
                "rules leave every feature a category"
            )
        self.weights = np.where(self.alive, total / living, 0.0)

    def _revive(self) -> None:
        """Put allowed values into rows that all died.

        Noise alone may leave no row that obeys the rules; what was paid for must still be drawn.
        """
        rules = [dict(rule.forbidden) for rule in self.rules]
        found = []
        for _ in range(min(self.rows, _REVIVED)):
            row = self._allowed_row(rules)
            if row is None:
                return
            found.append(row)
        for feature in found[0]:
            values = np.array([row[feature] for row in found], dtype=np.uint16)
            self.columns[feature] = np.resize(values, self.rows)
        self.alive[:] = True

    def _allowed_row(self, rules: Sequence[Mapping[int, Collection[int]]]) -> dict[int, int] | None:
        """Search depth first, levels in random order, for values that break no rule."""
        features = sorted({feature for rule in rules for feature in rule})
        orders = [np.argsort(self.uniforms(self.sizes[feature])) for feature in features]
        row: dict[int, int] = {}
        tried = [0]
        for _ in range(_SEARCHED):
            if len(row) == len(features):
                return row
            depth = len(row)
            feature = features[depth]
            if tried[depth] == self.sizes[feature]:
                if not row:
                    return None
                tried.pop()
                del row[features[depth - 1]]
                continue
            row[feature] = int(orders[depth][tried[depth]])
            tried[depth] += 1
            broken = any(
                feature in rule and all(row.get(each) in codes for each, codes in rule.items())
                for rule in rules
            )
            if broken:
                del row[feature]
            else:
                tried.append(0)
        return None

    def scale(self, keys: UInt16, factors: Float64, following: UInt16, cells: int) -> Float64:
        """Scale the weights by cell; return their sums by the cells of another table."""

        def work(part: slice) -> Float64:
            return kernels.rake_and_weigh(
                keys[part], self.weights[part], factors, following[part], cells
            )

        # The parts do not depend on the threads, so neither do the rounded sums.
        step = -(-self.rows // min(max(self.rows // _PART, 1), _MOST_PARTS))
        parts = [slice(start, start + step) for start in range(0, self.rows, step)]
        sums: Float64 = np.sum(self.each(work, parts), axis=0)
        return sums

    def each(self, work: Callable[[S], T], todo: Iterable[S]) -> list[T]:
        """Do independent work on several threads."""
        todo = list(todo)
        if self.threads == 1 or len(todo) == 1:
            return [work(item) for item in todo]
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self.threads)
        return list(self._workers.map(work, todo))


@dataclass(frozen=True, eq=False)
class Ruled:
    """What rules leave of a feature: the class of every row, and what each class allows."""

    classes: Int64
    allowed: NDArray[np.bool_]

    def counts(self, keys: UInt16, cells: int, shares: Float64) -> Float64:
        """Return how many rows of every key have each level, if shares alone decide the rest."""
        kinds = len(self.allowed)
        together = np.bincount(
            keys.astype(np.int64) * kinds + self.classes, minlength=cells * kinds
        ).reshape(cells, kinds)
        odds = np.where(self.allowed, shares, 0.0)
        odds = np.where(odds.any(axis=1, keepdims=True), odds, self.allowed)
        sums = odds.sum(axis=1, keepdims=True)
        counted: Float64 = together @ (odds / np.where(sums > 0, sums, 1.0))
        return counted


def pairs_at_once(rows: int, least: int) -> int:
    """Return the most pairs that may all be measured, each of which numbers the pool's rows."""
    return max(least, _MOST_NUMBERED // max(rows, 1))


def rows_at_once(tables: int, most: int) -> int:
    """Return the most rows of a pool, at most so many, if it has to meet so many tables."""
    if tables <= _FEW_TABLES:
        return most
    return min(most, max(_MOST_NUMBERED // tables, _LEAST_ROWS))


def cell_keys(columns: UInt16, features: Features, sizes: Sequence[int]) -> UInt16:
    """Return the cell of every row in a table of at most `MOST_CELLS` cells."""
    if cell_count(features, sizes) > MOST_CELLS:
        raise ValueError("cells are numbered by 16 bits")
    return kernels.cell_keys(
        columns,
        np.array(features, dtype=np.int64),
        np.array([sizes[feature] for feature in features], dtype=np.int64),
    )


def cell_count(features: Features, sizes: Sequence[int]) -> int:
    """Return the number of cells of a table; 1 for no feature."""
    cells = 1
    for feature in features:
        cells *= sizes[feature]
    return cells


def whole_numbers(expected: Float64, total: int) -> Int64:
    """Round expectations to whole numbers of this sum, each by less than 1."""
    floors = np.floor(expected)
    short = max(round(float(total - floors.sum())), 0)
    order = np.argsort(floors - expected, kind="stable")
    floors[order[:short]] += 1
    return floors.astype(np.int64)
