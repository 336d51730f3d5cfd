"""How often intervals from completed tables hold the truth (R23).

A binary x is always known; y is normal given x, and lost more often where x is 1, so that
complete cases are off. Thousands of originals are sampled, synthesized with missing as a
category, completed r times by proper draws, and analysed at once: groups of rows are
summarised by counts, means and variances. The intervals are those of `pegsynth.combine`.

Imputers
    synthetic: fitted to the synthetic rows of the table, as `pegsynth.impute` is;
    original: fitted to the original rows, which no guarantee covers;
    improper: fitted to the synthetic rows, its parameters taken for known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pegsynth.inference import combine
from pegsynth.inference.combining_rules import Moments

Array: TypeAlias = NDArray[np.float64]
Imputer: TypeAlias = Literal["synthetic", "original", "improper"]
Random: TypeAlias = np.random.Generator

ORIGINAL_ROWS = 2000
ONES = 0.5
LOST = np.array([0.1, 0.6])
"""Share of y that is lost where x is 0, and where x is 1."""
CENTRES = np.array([0.0, 1.0])
SPREADS = np.array([1.0, 1.5])
TRUTH = float((1 - ONES) * CENTRES[0] + ONES * CENTRES[1])
_SHARES = np.array(
    [(1 - ONES) * (1 - LOST[0]), (1 - ONES) * LOST[0], ONES * (1 - LOST[1]), ONES * LOST[1]]
)


@dataclass(frozen=True)
class Groups:
    """Rows by x, in the last axis: how many are seen and lost, mean and variance of those seen."""

    seen: Array
    lost: Array
    mean: Array
    variance: Array


@dataclass(frozen=True)
class Completed:
    """Estimates of the mean of y and their variances, K x r x replications."""

    estimates: Array
    variances: Array


def _sampled(words: Random, counts: NDArray[np.int64], centre: Array, variance: Array) -> Groups:
    """Draw what normal groups of rows are summarised by."""
    seen, lost = counts[..., 0::2].astype(float), counts[..., 1::2].astype(float)
    mean = centre + words.normal(size=seen.shape) * np.sqrt(variance / seen)
    spread = variance * words.chisquare(seen - 1) / (seen - 1)
    return Groups(seen, lost, mean, spread)


def _imputed(words: Random, table: Groups, source: Groups, imputer: Imputer, r: int) -> Completed:
    """Complete tables r times, and estimate the mean of y in every one."""
    size = (r, *table.lost.shape)
    centre = np.broadcast_to(source.mean, size)
    variance = np.broadcast_to(source.variance, size)
    if imputer != "improper":
        degrees = source.seen - 1
        variance = variance * degrees / words.chisquare(np.broadcast_to(degrees, size))
        centre = centre + words.normal(size=size) * np.sqrt(variance / source.seen)
    lost, seen = table.lost, table.seen
    mean = centre + words.normal(size=size) * np.sqrt(variance / lost)
    squares = variance * words.chisquare(np.broadcast_to(lost - 1, size))
    total = (seen + lost).sum(axis=-1)
    estimate = (seen * table.mean + lost * mean).sum(axis=-1) / total
    about = (seen - 1) * table.variance + squares
    about = about + seen * (table.mean - estimate[..., None]) ** 2
    about = about + lost * (mean - estimate[..., None]) ** 2
    return Completed(estimate, about.sum(axis=-1) / (total - 1) / total)


def completed_means(
    words: Random, rows: int, datasets: int, imputations: int, count: int, imputer: Imputer
) -> Completed:
    """Sample, synthesize (plug-in), complete and analyse `count` tables."""
    counts = words.multinomial(ORIGINAL_ROWS, _SHARES, size=count)
    original = _sampled(words, counts, CENTRES, SPREADS**2)
    shares = np.broadcast_to(counts / ORIGINAL_ROWS, (datasets, count, 4))
    drawn = words.multinomial(rows, shares)
    tables = _sampled(words, drawn, original.mean, original.variance)
    source = original if imputer == "original" else tables
    found = _imputed(words, tables, source, imputer, imputations)
    return Completed(*(np.moveaxis(x, 0, 1) for x in (found.estimates, found.variances)))


def nested(found: Completed, rows: int) -> float:
    """Return the coverage of `pegsynth.combine` (R23)."""
    _, imputations, count = found.estimates.shape
    result = combine(
        found.estimates.reshape(-1, count),
        found.variances.reshape(-1, count),
        imputations=imputations,
        rows=rows,
        rows_in=ORIGINAL_ROWS,
    )
    low, high = result.interval()
    return float(((low <= TRUTH) & (high >= TRUTH)).mean())


def without_imputing(found: Completed, rows: int) -> float:
    """Return the coverage of the plug-in rule on the means of every table: w is left out."""
    result = combine(
        found.estimates.mean(axis=1),
        found.variances.mean(axis=1),
        rows=rows,
        rows_in=ORIGINAL_ROWS,
    )
    low, high = result.interval()
    return float(((low <= TRUTH) & (high >= TRUTH)).mean())


def partial_of_imputed(found: Completed) -> float:
    """Return the coverage of Reiter's rule of 2004, for partial synthesis of imputed data.

    T = (1 + 1/K) b - w/r + v, with b over the means of the K tables, and the t distribution
    of its degrees of freedom; one that is not positive counts as a miss.
    """
    datasets, imputations, _ = found.estimates.shape
    moments = Moments.of(found.estimates.mean(axis=1), found.variances.mean(axis=1))
    between = (1 + 1 / datasets) * moments.between
    imputing = found.estimates.var(axis=1, ddof=1).mean(axis=0) / imputations
    variance = between - imputing + moments.within
    with np.errstate(invalid="ignore", divide="ignore"):
        degrees = 1 / (
            (between / variance) ** 2 / (datasets - 1)
            + (imputing / variance) ** 2 / (datasets * (imputations - 1))
        )
        half = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
        return float((np.abs(moments.estimate - TRUTH) <= half).mean())
