"""Statistical audit: the shipped code itself, with fresh 64-bit randomness.

Many releases are drawn from a worst-case pair of neighbouring tables. A threshold of a statistic
is chosen on one half of the releases and tested on the other. A Clopper-Pearson interval at
99.9 % then gives a lower bound on epsilon that a true claim exceeds with a false alarm rate of
0.1 %.

For a Gibbs sampler the statistic is the number of drawn values that the extra row holds. For
released blocks it is what the noise alone says of the row: the sum, over all tables that were
released, of the log-ratio of the noisy count in the row's cell. Choices are not looked at, so the
bound is not sharp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.auditing.cases import tiny_schema
from pegsynth.mechanisms import rule_tables
from pegsynth.mechanisms.privacy_filter import PrivacyFilter
from pegsynth.methods import get
from pegsynth.methods.gibbs.blocks import disintegrate
from pegsynth.methods.gibbs.chains import Machine, Schedule, sample_rows
from pegsynth.methods.gibbs.order import public_heads
from pegsynth.methods.gibbs.spec import HashSpec
from pegsynth.methods.prior import Prior, uniform_weights
from pegsynth.methods.released import NoisyTable, ReleasedPlan, Work, fit_released
from pegsynth.methods.seed_rows import WeightedPool
from pegsynth.privacy import BlockDraws, Budget, CappedDraws, Draws, Ledger, PegsDraws
from pegsynth.random import RandomStream
from pegsynth.schema import Schema

CONFIDENCE = 0.999
COUNTS = (6, 6)
ROW = (0, 0)


class Drawn(Protocol):
    """A kind of release that is made many times."""

    @property
    def claim(self) -> float:
        """The pure epsilon that the ledger states for one release."""
        ...

    def statistics(self, rows: int, releases: int, *, threads: int) -> NDArray[np.int64]:
        """Release a table of no row or of one so often; say how much each looks like the latter."""
        ...


def lower_bound(each: Drawn, releases: int, *, threads: int = 1) -> float:
    """Return the epsilon that releases prove, at the stated confidence."""
    without, with_row = (each.statistics(rows, releases, threads=threads) for rows in (0, 1))
    return proved(without, with_row)


@dataclass(frozen=True)
class Trial:
    """One kind of release of a Gibbs sampler.

    Parameters
    ----------
    method, rows, limit
        Rows of one release, and the visits an entry answers in it (0: all).
    claim
        The pure epsilon that the ledger states for one release.
    numerator, scale
        The alpha that is drawn with.
    """

    method: str
    rows: int
    limit: int
    claim: float
    numerator: int
    scale: int

    def statistics(self, rows: int, releases: int, *, threads: int) -> NDArray[np.int64]:
        """Return, for every release, how many drawn values equal the extra row's."""
        schema = tiny_schema(COUNTS)
        spec = HashSpec(schema.names, COUNTS, public_heads(schema, 0), 0)
        codes = np.array([ROW] * rows, dtype=np.uint8).reshape(-1, len(COUNTS))
        prior = Prior(uniform_weights(COUNTS), (self.numerator,) * len(COUNTS), self.scale)
        rules = rule_tables((), COUNTS)
        targets = np.arange(len(COUNTS), dtype=np.int64)
        blocks = disintegrate([codes], spec)
        machine = Machine(spec.tables, blocks.tables, prior.tables, rules, targets)
        pool = WeightedPool(spec.tables.category_start, prior.tables.weight_cumulative, rules)
        schedule = Schedule(self.rows, 1, self.limit)
        chunks = sample_rows(
            machine, pool, schedule, releases * self.rows, RandomStream(), threads=threads
        )
        drawn = np.concatenate(list(chunks)).reshape(releases, self.rows * len(COUNTS))
        matches: NDArray[np.int64] = (drawn == np.tile(np.array(ROW), self.rows)).sum(axis=1)
        return matches


def trial(
    method: str, *, rows: int = 3, visits: int = 2, numerator: int = 1, scale: int = 4
) -> Trial:
    """Return a release of a method with the claim of its own ledger."""
    # What bounds an entry's answers in each schedule, and how many answers that leaves (0: all).
    size = {"features": len(COUNTS), "rows": rows}
    kinds: dict[str, tuple[Draws, int]] = {
        "pegs": (PegsDraws.shape(**size), 0),
        "pegs-rs": (BlockDraws.shape(**size, block_size=rows), 1),
        "pegs-capped": (CappedDraws.shape(**size, visits=visits), visits),
    }
    draws, limit = kinds[method]
    claim = Ledger((draws.at(numerator, scale),)).guarantee.epsilon or math.inf
    return Trial(method, rows, limit, claim, numerator, scale)


def proved(without: NDArray[np.int64], with_row: NDArray[np.int64]) -> float:
    """Return the epsilon that a statistic proves, drawn as often with a row as without it."""
    half = len(without) // 2
    threshold = _best_threshold(without[:half], with_row[:half])
    hits_without = int((without[half:] >= threshold).sum())
    hits_with = int((with_row[half:] >= threshold).sum())
    low = clopper_pearson(hits_with, len(with_row) - half)[0]
    high = clopper_pearson(hits_without, len(without) - half)[1]
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def clopper_pearson(hits: int, trials: int) -> tuple[float, float]:
    """Return the exact two-sided interval of a share; each side errs with (1 - 0.999) / 2."""
    from scipy.stats import beta

    tail = (1 - CONFIDENCE) / 2
    low = 0.0 if hits == 0 else float(beta.ppf(tail, hits, trials - hits + 1))
    high = 1.0 if hits == trials else float(beta.ppf(1 - tail, hits + 1, trials - hits))
    return low, high


def _best_threshold(without: NDArray[np.int64], with_row: NDArray[np.int64]) -> int:
    best, chosen = 0.0, int(with_row.max())
    for threshold in np.unique(with_row).tolist():
        low = clopper_pearson(int((with_row >= threshold).sum()), len(with_row))[0]
        high = clopper_pearson(int((without >= threshold).sum()), len(without))[1]
        if low / high > best:
            best, chosen = low / high, threshold
    return chosen


BLOCK_COUNTS = (2, 2)
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

    def statistics(self, rows: int, releases: int, *, threads: int) -> NDArray[np.int64]:
        """Return, for every release, what the noise says of the row."""
        return np.array([self.statistic(rows) for _ in range(releases)], dtype=np.int64)

    def statistic(self, rows: int) -> int:
        """Release a table of no row or of one, and say how much it looks like the latter."""
        codes = np.array([ROW] * rows, dtype=np.uint8).reshape(-1, len(BLOCK_COUNTS))
        fit, _ = fit_released(
            codes, self.schema, self.plan, Work(RandomStream(), filter_of=self.budget_filter)
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
    schema = tiny_schema(BLOCK_COUNTS)
    budget = Budget(epsilon=epsilon)
    method = get("pegs-once")
    return BlocksTrial(schema, method.settle(schema, budget, method.options(rows=2)))
