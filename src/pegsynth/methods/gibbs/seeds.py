"""Seed rows: where chains start. Never rows of the data under a guarantee (R10).

A pool is public, or was paid for: independent features drawn from public weights
(`WeightedPool`, uniform by default), or the rows of a public file (`FilePool`). Rows that
break a rule are never handed out, so every chain starts from a valid row (R18).

Levels and categories: seed rows into the levels that chains run on, drawn levels back out.

Merging is a map of single categories, fixed before anything is drawn. Splitting draws a
category of a level by paid shares, with words of its own: it looks at drawn rows and at paid
numbers, so it is post-processing and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError, SchemaError
from pegsynth.kernels.arrays import Int64
from pegsynth.kernels.gibbs import SWEEP, draw_seeds
from pegsynth.kernels.sampling_arrays import RuleTables
from pegsynth.kernels.uniform import REJECTED, bounded_array

Codes = NDArray[np.uint32]
WordSource = Callable[[int], NDArray[np.uint64]]

WORD_BITS = np.uint64(64)
_SLACK = 64
_MOST_SLACK = 1 << 16
_MOST_ATTEMPTS = 100_000


class SeedPool(Protocol):
    """A source of seed rows."""

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return `count` rows as codes."""
        ...


@dataclass(frozen=True)
class WeightedPool:
    """Independent features with public (or paid-for) integer weights."""

    category_start: NDArray[np.int64]
    weight_cumulative: NDArray[np.uint64]
    rules: RuleTables

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return rows drawn feature by feature; rows that break a rule are drawn again."""
        features = len(self.category_start) - 1
        rows = np.zeros((count, features), dtype=np.uint32)
        state = np.zeros(4, dtype=np.int64)
        slack = _SLACK
        while not draw_seeds(
            rows,
            state,
            self.category_start,
            self.weight_cumulative,
            self.rules,
            words((count - int(state[0])) * features + slack),
            WORD_BITS,
        ):
            # A row that needs more words than it got would need them again, for ever.
            slack = min(2 * slack, _MOST_SLACK)
            if state[SWEEP] > _MOST_ATTEMPTS:
                raise SchemaError(
                    "hardly any row of independent features obeys the schema's rules, so no "
                    "chain can start; give valid public rows with --seed-pool FILE"
                )
        return rows


@dataclass(frozen=True)
class FilePool:
    """The rows of a file, each as likely as any other."""

    rows: Codes

    def __post_init__(self) -> None:
        if not len(self.rows):
            raise ParameterError("the seed pool holds no row that obeys the schema's rules")

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return rows drawn with replacement."""
        chosen = np.empty(0, dtype=np.uint64)
        while len(chosen) < count:
            drawn = bounded_array(words(count + _SLACK), np.uint64(len(self.rows)), WORD_BITS)
            chosen = np.concatenate([chosen, drawn[drawn != REJECTED]])
        return self.rows[chosen[:count].astype(np.int64)]


@dataclass(frozen=True)
class InOrder:
    """Given rows, each once and in order; for chains that start from rows to be kept."""

    rows: Codes

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return the first `count` rows."""
        return self.rows[:count]


_HALF = np.uint64(32)


@dataclass(frozen=True)
class MergedPool:
    """Seed rows of another pool, in levels."""

    pool: SeedPool
    levels: tuple[Int64, ...]

    def draw(self, count: int, words: WordSource) -> Codes:
        """Return `count` rows as levels."""
        rows = self.pool.draw(count, words)
        return np.column_stack([line[rows[:, i]] for i, line in enumerate(self.levels)]).astype(
            np.uint32
        )


@dataclass(frozen=True)
class _Line:
    """One feature that has fewer levels than categories, its categories in order of level."""

    members: Int64
    first: Int64
    cumulative: NDArray[np.uint64]

    @classmethod
    def of(cls, levels: Int64, weights: NDArray[np.uint64]) -> _Line:
        members = np.argsort(levels, kind="stable")
        first = np.searchsorted(levels[members], np.arange(int(levels.max()) + 2))
        sums = np.concatenate([[0], np.cumsum(weights[members], dtype=np.uint64)])
        return cls(members, first, sums.astype(np.uint64))

    def split(self, column: NDArray[Any], words: NDArray[np.uint64]) -> Int64:
        """Draw a category for every level of a column."""
        start = self.cumulative[self.first[column]]
        width = self.cumulative[self.first[column.astype(np.int64) + 1]] - start
        # Weights of a feature add up to less than 2**32, so the product fits in 64 bits.
        value = start + (((words >> _HALF) * width) >> _HALF)
        found: Int64 = self.members[np.searchsorted(self.cumulative, value, side="right") - 1]
        return found


class Splitter:
    """Turns rows of levels into rows of categories.

    Parameters
    ----------
    levels
        The level of every category of every feature.
    weights
        Whole weights of the categories, from paid shares; less than 2**32 in all.
    given
        Codes of features that every row holds as they are.
    """

    def __init__(
        self,
        levels: Sequence[Int64],
        weights: Sequence[NDArray[np.uint64]],
        given: Mapping[int, int],
    ) -> None:
        self._lines = {
            feature: _Line.of(line, weights[feature])
            for feature, line in enumerate(levels)
            if not np.array_equal(line, np.arange(len(line)))
        }
        self._given = dict(given)

    def words_needed(self, rows: int) -> int:
        """Return how many random words so many rows take."""
        return rows * len(self._lines)

    def split(self, rows: NDArray[Any], words: NDArray[np.uint64]) -> NDArray[Any]:
        """Return the rows as categories, one row of words for each."""
        out = rows.copy()
        table = words.reshape(len(rows), len(self._lines))
        for place, (feature, line) in enumerate(self._lines.items()):
            out[:, feature] = line.split(rows[:, feature], table[:, place])
        for feature, code in self._given.items():
            out[:, feature] = code
        return out

    def stream(self, chunks: Iterator[NDArray[Any]], words: WordSource) -> Iterator[NDArray[Any]]:
        """Split chunks as they come, with words that follow the rows."""
        for chunk in chunks:
            yield self.split(chunk, words(self.words_needed(len(chunk))))

    def alike(self, rows: NDArray[Any], words: WordSource) -> NDArray[Any]:
        """Split rows so that equal levels become equal categories, for steps of one row."""
        out = rows.copy()
        for feature, line in self._lines.items():
            every = np.arange(len(line.first) - 1)
            out[:, feature] = line.split(every, words(len(every)))[rows[:, feature]]
        for feature, code in self._given.items():
            out[:, feature] = code
        return out
