"""Statistical audit of released blocks: the whole of `fit_released`, with real randomness.

An empty table and one of a single row are released many times. The statistic is what the
noise alone says of the row: the sum, over all tables that were released, of the log-ratio
of the noisy count in the row's cell. Choices are not looked at, so the bound is not sharp.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pegsynth.auditing.cases import tiny_schema
from pegsynth.auditing.statistical import proved
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods import get
from pegsynth.methods.released.published import NoisyTable
from pegsynth.methods.released.released_blocks import ReleasedPlan, fit_released
from pegsynth.privacy import Budget
from pegsynth.random import RandomStream
from pegsynth.schema import Schema

COUNTS = (2, 2)
ROW = (0, 0)
_UNITS = 10


@dataclass(frozen=True)
class BlocksTrial:
    """One release of blocks, to be made many times; `budget_filter` is what it is paid from."""

    schema: Schema
    plan: ReleasedPlan
    budget_filter: type[PrivacyFilter] = PrivacyFilter

    @property
    def claim(self) -> float:
        """The pure epsilon of one release."""
        return self.plan.budget.epsilon or 0.0

    def statistic(self, rows: int) -> int:
        """Release a table of no row or of one, and say how much it looks like the latter."""
        codes = np.array([ROW] * rows, dtype=np.uint8).reshape(-1, len(COUNTS))
        fit, _ = fit_released(
            codes, self.schema, self.plan, RandomStream(), filter_of=self.budget_filter
        )
        released = fit.released
        total = NoisyTable((), np.array([released.total[0]]), released.total[1])
        tables = (total, *released.one_ways, *released.blocks, *released.extra)
        # ROW is the first cell of every table, and b is the deviation over the root of 2.
        return round(
            _UNITS * sum(_log_ratio(int(t.counts[0]), t.deviation / 2**0.5) for t in tables)
        )


def _log_ratio(noisy: int, scale: float) -> float:
    """Return the log-ratio of Laplace noise for a true count of 1 against 0."""
    return (abs(noisy) - abs(noisy - 1)) / scale


def blocks_trial(epsilon: float = 3.0) -> BlocksTrial:
    """Settle a pure release of two binary features."""
    schema = tiny_schema(COUNTS)
    budget = Budget(epsilon=epsilon)
    method = get("pegs-once")
    return BlocksTrial(schema, method.settle(schema, budget, method.options(rows=2)))


def blocks_lower_bound(trial: BlocksTrial, releases: int) -> float:
    """Return the epsilon that the releases prove, at the confidence of `statistical`."""
    without, with_row = (
        np.array([trial.statistic(rows) for _ in range(releases)], dtype=np.int64)
        for rows in (0, 1)
    )
    return proved(without, with_row)
