"""Seed rows: where chains start. Never rows of the data under a guarantee (R10).

A pool is public, or was paid for: independent features drawn from public weights
(`WeightedPool`, uniform by default), or the rows of a public file (`FilePool`). Rows that
break a rule are never handed out, so every chain starts from a valid row (R18).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError, SchemaError
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
