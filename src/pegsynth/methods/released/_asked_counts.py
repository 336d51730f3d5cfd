"""Counts of a table that was asked for, with intervals that hold the noise (R11).

Everything comes from published tables, so nothing is charged. *Raw* counts are what published
tables say of the cells, averaged by the inverse of their variances: unbiased, with the noise of
the mechanism and nothing else, so their intervals hold. *Shrunk* counts pull them towards what the
model expects without these tables, as far as the noise says (empirical Bayes): nearer on average,
but how near in a cell is not known, so they have no interval of their own.

Counts that a published model holds, as a table for people: ``pegs tables``, release folders.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._budget import Steps
from pegsynth.methods.released._draw import pool_rows, rebuild, released_total
from pegsynth.methods.released._estimates import shrunken
from pegsynth.methods.released._pairs import cell_noise, projected
from pegsynth.methods.released._pooled import PooledFit
from pegsynth.methods.released._row_pool import Features, Pool, cell_count
from pegsynth.methods.released._supported import merged_categories, variance_by_parts
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.random import RandomStream
from pegsynth.schema.rules import Rule

if TYPE_CHECKING:
    from pegsynth.methods.base import Plan
    from pegsynth.schema import Schema


MODEL_ROWS = 200_000


@dataclass(frozen=True)
class AskedCounts:
    """Counts of all cells of a table, the last feature varying fastest.

    Parameters
    ----------
    raw
        Unbiased counts.
    deviation
        Standard deviation of their noise.
    laplace
        Whether that is Laplace noise of one table.
    shrunk
        Counts pulled towards the model.
    """

    raw: Float64
    deviation: float
    laplace: bool
    shrunk: Float64

    def reach(self, level: float) -> float:
        """Return how far an interval of the raw counts reaches to either side."""
        if self.laplace:
            return -self.deviation / math.sqrt(2.0) * math.log(1 - level)
        return NormalDist().inv_cdf((1 + level) / 2) * self.deviation


def asked_counts(
    released: Released,
    features: Features,
    schema: Schema,
    stream: RandomStream,
    *,
    pure: bool,
    threads: int = 1,
) -> AskedCounts:
    """Return what published tables say of the cells of some features.

    Parameters
    ----------
    features
        The features of the table.
    pure
        Whether the noise is Laplace noise.

    Raises
    ------
    ParameterError
        If no published table holds these features, or merges their categories.
    """
    holding = _holding(released, features, schema.names)
    raw, variance = _averaged(released, holding, features)
    apart = _variance_of_parts(released, features)
    if math.isfinite(apart):
        together = 1 / (1 / variance + 1 / apart)
        raw = together * (raw / variance + _sum_of_parts(released, features) / apart)
        variance = together
    expected = _expected(released, holding, features, stream, schema.rules, threads)
    deviation = math.sqrt(variance)
    shrunk = shrunken(raw, expected, deviation)
    one_table = len(holding) == 1 and math.isinf(apart)
    return AskedCounts(raw, deviation, pure and one_table, shrunk)


def _holding(released: Released, features: Features, names: Sequence[str]) -> list[NoisyTable]:
    """Return the published tables of counts that have these features, unmerged.

    There may be none if residuals and one-way counts tell the table.
    """
    shown = " x ".join(names[feature] for feature in features)
    if len(features) == 1:
        (feature,) = features
        ones = [] if released.public[feature] else [released.one_ways[feature]]
        if merged_categories(released, feature):
            return ones
    else:
        ones = []
    tables = (*released.blocks, *released.extra)
    found = [t for t in tables if set(features) <= set(t.features)]
    told = bool(found) or math.isfinite(_variance_of_parts(released, features))
    remedy = "declare it under [[tables_wanted]] before the model is fitted"
    if not told and not ones:
        raise ParameterError(f"no published table holds {shown}; {remedy}")
    if merged := [names[f] for f in features if told and merged_categories(released, f)]:
        raise ParameterError(
            f"published tables of {shown} merge rare categories of {merged[0]}; {remedy}"
        )
    return [*ones, *found]


def _averaged(
    released: Released, tables: Sequence[NoisyTable], features: Features
) -> tuple[Float64, float]:
    """Return counts averaged over tables, and the variance of their noise; infinite without any."""
    if not tables:
        return np.zeros(cell_count(features, released.sizes)), math.inf
    total, precision = np.zeros(1), 0.0
    for table in tables:
        one_way = len(table.features) == 1
        sizes = [len(released.levels[f]) if one_way else released.sizes[f] for f in table.features]
        cells = table.counts.astype(np.float64).reshape(sizes)
        kept = [table.features.index(feature) for feature in features]
        others = tuple(axis for axis in range(cells.ndim) if axis not in kept)
        summed = cells.sum(axis=others)
        order = np.argsort(np.argsort(kept))
        counts = np.transpose(summed, order).ravel()
        weight = 1.0 / (table.deviation**2 * (len(table.counts) / len(counts)))
        total, precision = total + weight * counts, precision + weight
    return total / precision, 1.0 / precision


def _variance_of_parts(released: Released, features: Features) -> float:
    """Return the variance of counts that residuals tell; infinite where one is missing (R27)."""
    return variance_by_parts(released, features) if len(features) > 1 else math.inf


def _sum_of_parts(released: Released, features: Features) -> Float64:
    """Add up the residuals of all parts of a table, from its total to its own (R27)."""
    sizes = released.sizes
    shape = [sizes[feature] for feature in features]
    counts = np.full(shape, released.total[0] / math.prod(shape))
    for width in range(1, len(features) + 1):
        for places in combinations(range(len(features)), width):
            names = [features[place] for place in places]
            order = sorted(range(width), key=names.__getitem__)
            part = _residual(released, tuple(sorted(names)))
            part = part.transpose(np.argsort(order))
            others = tuple(place for place in range(len(features)) if place not in places)
            counts += np.expand_dims(part, others) * (part.size / math.prod(shape))
    return counts.ravel()


def _residual(released: Released, features: Features) -> Float64:
    """Return the residual of one feature or several in rows, averaged over its measurements."""
    levels = [released.sizes[feature] for feature in features]
    if len(features) == 1:
        (feature,) = features
        noisy = released.one_ways[feature].counts.astype(np.float64)
        return centred(np.bincount(released.levels[feature], noisy).astype(np.float64), levels)
    total, precision = np.zeros(math.prod(levels)), 0.0
    for table in released.residuals:
        if table.features == features:
            weight = cell_noise(table.deviation, levels) ** -2
            total, precision = total + weight * projected(table, levels), precision + weight
    mean: Float64 = (total / precision).reshape(levels)
    return mean


def _expected(
    released: Released,
    holding: Sequence[NoisyTable],
    features: Features,
    stream: RandomStream,
    rules: Sequence[Rule],
    threads: int,
) -> Float64:
    """Return what the model expects of the cells without the tables of the second round there."""
    if len(features) == 1:
        return np.full(len(released.levels[features[0]]), released_total(released)) / len(
            released.levels[features[0]]
        )
    extra = tuple(table for table in released.extra if not any(table is each for each in holding))
    steps = Steps().under_noise() if released.loud else Steps()
    rows = min(pool_rows(released, max(round(released_total(released)), 1)), MODEL_ROWS)
    pool = Pool(released.sizes, rows, stream, rules=rules, threads=threads)
    residuals = tuple(t for t in released.residuals if not set(features) <= set(t.features))
    rebuild(replace(released, extra=extra, residuals=residuals), pool, steps)
    return pool.expected(features)


FIGURES = ("count", "std_error", "low", "high", "shrunk")


def check_asked(of: Sequence[str]) -> None:
    """Refuse a table that cannot be written; only public choices are looked at."""
    if clash := [name for name in of if name in FIGURES]:
        raise ParameterError(f"a feature is called {clash[0]!r}, as a figure of the table is")


def asked_frame(
    content: object,
    schema: Schema,
    plan: Plan | None,
    of: Sequence[str],
    *,
    level: float = 0.95,
    threads: int = 1,
) -> pl.DataFrame:
    """Return a line for each cell of the table of some features.

    Parameters
    ----------
    content, plan
        A fitted model of `pegs-once`, and its plan.
    of
        Names of the features.
    """
    if isinstance(content, PooledFit):
        raise ParameterError(
            "the model pools transitions over positions, so it has no counts of the rows of the "
            'table; fit one with transitions = "folded" in [panel]'
        )
    # Those of pegs-once and of pegs-tables have them.
    released: Released | None = getattr(content, "released", None)
    if released is None or plan is None:
        raise ParameterError("only models of pegs-once publish counts")
    if not 0 < level < 1:
        raise ParameterError("--level is above 0 and below 1, such as 0.95")
    if not of or len(set(of)) < len(of):
        raise ParameterError("--of names features, each once, such as --of zip,MDC")
    check_asked(of)
    features = tuple(schema.index(name) for name in of)
    counts = asked_counts(
        released,
        features,
        schema,
        # Rows that counts are shrunk towards come from published numbers, so drawing them needs
        # no secret, and a model gives the same table at every call.
        RandomStream(0),
        pure=plan.budget.delta is None,
        threads=threads,
    )
    reach = counts.reach(level)
    cells = list(product(*(schema.features[feature].labels for feature in features)))
    columns = {name: [cell[place] for cell in cells] for place, name in enumerate(of)}
    figures = (
        np.round(counts.raw, 1),
        np.full(len(cells), round(counts.deviation, 2)),
        np.round(np.maximum(counts.raw - reach, 0.0), 1),
        np.round(np.maximum(counts.raw + reach, 0.0), 1),
        np.round(counts.shrunk, 1),
    )
    return pl.DataFrame(columns | dict(zip(FIGURES, figures, strict=True)))
