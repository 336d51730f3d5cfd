"""One estimate with its interval from several synthetic tables, or from one with replicates.

Which rule is right depends on how the tables were made (R16, R28). Tables with noise of their
own and replicate weights hold in their spread all that makes an estimate vary; other tables are
pooled by the plug-in rule; a single table has the interval that an analyst would naively take.

A weighted table as one of plain rows, for measures that count rows.

Goes in: rows and their weights (R28). Comes out: as many rows, each as often as its share of the
weights, rounded along the running sum. Nothing is drawn, so the same table gives the same rows,
and no share of any group is further off than one row at each end of every run of its rows.

How large the noise is on the best published count of a feature, read off a ledger.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np

from pegsynth.inference.combining_rules import Moments, Rule, own_noise, plug_in, replicate_weights
from pegsynth.inference.statistics import Estimate, interval
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.privacy import Ledger, NoisyCounts, NoisyResiduals
from pegsynth.schema import Schema

NAIVE = (
    "one synthetic table: its interval is the naive one, as if its rows were real; it leaves out "
    "that the table was made from a sample"
)


def pooled(
    values: Sequence[float],
    variances: Sequence[float],
    *,
    share: float,
    rule: Rule | None = None,
    replicates: Sequence[float] = (),
) -> Estimate:
    """Pool the estimates of one thing.

    Parameters
    ----------
    values, variances
        Estimate of each table, and its variance as if rows were real.
    share
        Rows of a synthetic table as a share of the original's.
    rule
        How the tables were made; None: nobody knows, and the plug-in rule is taken.
    replicates
        Estimates of the one table with each of its replicate weights, which then give the
        interval (R28).
    """
    if len(values) == 1 and not replicates:
        return interval(values[0], variances[0], np.inf)
    if replicates:
        spread = replicate_weights(np.array(replicates)[:, np.newaxis], np.array(values[:1]))
    elif rule == "own-noise":
        spread = own_noise(np.array(values)[:, np.newaxis])
    else:
        # R16, plug-in: T = (n/N) v + b/K.
        moments = Moments.of(np.array(values)[:, np.newaxis], np.array(variances)[:, np.newaxis])
        spread = plug_in(moments, share)
    variance, degrees = float(spread.variance[0]), float(spread.degrees_of_freedom[0])
    return interval(float(np.mean(values)), variance, degrees)


def how_pooled(tables: int, *, rule: Rule | None, replicates: int) -> str:
    """Say which interval an estimate of released tables has."""
    if replicates:
        return f"interval by {replicates} replicate weights, which hold sampling error and noise"
    if tables == 1:
        return NAIVE
    if rule == "own-noise":
        return (
            f"{tables} synthetic tables with noise of their own pooled by T = (1 + 1/K) b, which "
            "holds sampling error and noise"
        )
    return (
        f"{tables} synthetic tables pooled by T = (n/N) v + b/K (plug-in rule), which leaves out "
        "noise, and the pull of virtual rows, that all tables share"
    )


def repeats(weights: Float64) -> Int64:
    """Return how often each row stands in a table of as many rows.

    >>> repeats(np.array([2.0, 0.0, 0.5, 0.5, 1.0])).tolist()
    [3, 0, 0, 1, 1]
    """
    total = float(weights.sum())
    if not total > 0:
        return np.ones(len(weights), dtype=np.int64)
    ends = np.round(np.cumsum(weights) * (len(weights) / total)).astype(np.int64)
    ends[-1] = len(weights)
    return np.diff(ends, prepend=0)


def plain_rows(codes: Codes, weights: Float64 | None, every: int = 1) -> Codes:
    """Return the rows of a table, repeated by their weights where it has some.

    Parameters
    ----------
    codes
        Rows by features.
    weights
        One for each `every`-th row; None where all rows count alike.
    """
    if weights is None:
        return codes
    kept = codes[::every]
    return np.asarray(np.repeat(kept, repeats(weights), axis=0))


MOST_TOGETHER = 3


def published_noise(ledger: Ledger, schema: Schema) -> Mapping[frozenset[str], float]:
    """Return the standard deviation of the noise on counts of features, for every known set.

    A count of fewer features than a table has is a sum of its cells, with the noise of them all.
    Tables in which categories of one of the features were merged do not count these.
    """
    sizes = dict(zip(schema.names, schema.category_counts, strict=True))
    best: dict[frozenset[str], float] = {}
    for event in ledger.events:
        if not isinstance(event, NoisyCounts) or not event.levels or not event.features:
            continue
        if event.table_cells != math.prod(event.levels):
            continue
        variance = noise_variance(event)
        levels = dict(zip(event.features, event.levels, strict=True))
        whole = [name for name, level in levels.items() if level >= sizes.get(name, 0)]
        for count in range(1, min(MOST_TOGETHER, len(whole)) + 1):
            for names in combinations(whole, count):
                summed = math.prod(levels[name] for name in levels if name not in names)
                deviation = math.sqrt(float(variance) * summed)
                key = frozenset(names)
                best[key] = min(best.get(key, math.inf), deviation)
    return best


def noise_variance(event: NoisyCounts | NoisyResiduals) -> Fraction:
    """Return the variance of the noise on one cell, for Laplace noise that of the continuous law.

    The discrete laws vary a little less.
    """
    scale = Fraction(event.scale_numerator, event.scale_denominator)
    return scale if event.mechanism == "discrete-gaussian" else 2 * scale * scale
