"""Correlations of released numbers, pair by pair, beside the original's.

Pearson's of the numbers themselves, and Spearman's of their ranks: the share of rows below a
number and half of those that have it. A pair is measured on the rows that have both numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pegsynth.evaluation.faults.fault_kinds import bernstein, rows_judged
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.evaluation.utility.empirical import Empirical, Sides
from pegsynth.inference.combining_rules import Rule, how_pooled, pooled_estimate
from pegsynth.inference.statistics import Estimate
from pegsynth.inference.value_columns import TableValues
from pegsynth.kernels.arrays import Float64

NAMES = ("pearson_correlation", "spearman_correlation")
_NO_SPREAD = 1e-12
HEADLINES = ("pearson_distance", "spearman_distance")
_MEANT = {
    "pearson_correlation": "Pearson's correlation of released numbers",
    "spearman_correlation": "Spearman's correlation of released numbers: that of their ranks, ties "
    "at their mean rank, ranks among all rows that have the number",
}


@dataclass(frozen=True)
class Correlation:
    """A correlation in one table.

    Parameters
    ----------
    value, variance
        The coefficient, and its variance over n rows, by its influence on each row.
    largest
        Largest influence of a row.
    n
        Rows of equal weight that say as much, for variances.
    rows
        Rows behind it, weighted or not.
    """

    value: float
    variance: float
    largest: float
    n: float
    rows: int

    def allowance(self, n: float, alpha: float) -> float:
        """Return how far n rows drawn from this table may be off, for large n.

        Bernstein's inequality for the mean of the rows' influences, which the coefficient is
        up to terms of the order 1/n.
        """
        return bernstein(self.variance * self.n, self.largest, n, alpha)


@dataclass(frozen=True)
class PairSides:
    """One correlation of one pair, in the original and in the synthetic tables."""

    name: str
    pair: tuple[str, str]
    original: Correlation
    synthetic: tuple[Correlation, ...]
    replicates: tuple[float, ...] = ()
    rule: Rule | None = None

    @property
    def value(self) -> float:
        """Mean over the synthetic tables."""
        return sum(each.value for each in self.synthetic) / len(self.synthetic)

    @property
    def rows(self) -> float:
        """Rows to judge by."""
        return rows_judged(self.original.rows, min(each.rows for each in self.synthetic))


def correlation(first: Float64, second: Float64, weights: Float64 | None) -> Correlation | None:
    """Return the correlation of two columns; None where one of them does not vary.

    Notes
    -----
    Influence of a row with standardised numbers u, v: u v - r (u^2 + v^2)/2 (Devlin,
    Gnanadesikan and Kettenring 1975, Robust estimation and outlier detection with correlation
    coefficients, Biometrika 62(3), 531-545, doi:10.1093/biomet/62.3.531). Its mean square over
    n is the variance, whatever the law of the numbers.
    """
    known = np.isfinite(first + second)
    if not known.all():
        first, second = first[known], second[known]
        weights = None if weights is None else weights[known]
    if len(first) < 3:
        return None
    shares = None if weights is None else weights / weights.sum()
    u, v = _standardised(first, shares), _standardised(second, shares)
    if u is None or v is None:
        return None
    influence = u * v
    value = min(max(_mean(influence, shares), -1.0), 1.0)
    np.multiply(u, u, out=u)
    np.multiply(v, v, out=v)
    u += v
    u *= value / 2
    influence -= u
    n = float(len(first)) if shares is None else 1 / float(shares @ shares)
    variance = _mean_square(influence, shares) / n
    if not (math.isfinite(value) and math.isfinite(variance)):
        return None
    return Correlation(value, variance, float(np.abs(influence).max()), n, len(first))


def pair_sides(
    sides: Sequence[Sides], original: TableValues, synthetic: Sequence[TableValues]
) -> list[PairSides]:
    """Correlate all pairs of features in all tables; pairs that do not vary are left out."""
    tables = [original, *synthetic]
    names, rule = [each.name for each in sides], sides[0].rule if sides else None
    numbers = [{each: table.columns[each] for each in names} for table in tables]
    ranks = [
        {
            each.name: _ranks((each.original, *each.synthetic)[place], table.columns[each.name])
            for each in sides
        }
        for place, table in enumerate(tables)
    ]
    found = []
    for name, columns in ((NAMES[0], numbers), (NAMES[1], ranks)):
        for first, second in combinations(names, 2):
            each_table = [
                correlation(ours[first], ours[second], table.weights)
                for ours, table in zip(columns, tables, strict=True)
            ]
            known = [each for each in each_table if each is not None]
            if len(known) < len(each_table):
                continue
            again = _replicates(columns[1][first], columns[1][second], synthetic)
            found.append(PairSides(name, (first, second), known[0], tuple(known[1:]), again, rule))
    return found


def correlation_records(pairs: Sequence[PairSides]) -> list[Record]:
    """Return all correlations as records: the mean distances first."""
    if not pairs:
        reason = "there are no two numeric features that vary"
        return [not_computed(name, "", reason) for name in HEADLINES]
    heads = zip(HEADLINES, NAMES, strict=True)
    return [
        *(_headline(name, [each for each in pairs if each.name == of]) for name, of in heads),
        *map(_record, pairs),
    ]


def _standardised(values: Float64, shares: Float64 | None) -> Float64 | None:
    # Divided first: squares of large numbers overflow.
    scale = float(max(values.max(), -values.min()))
    if scale == 0:
        return None
    centred = values / scale
    centred -= _mean(centred, shares)
    deviation = math.sqrt(_mean_square(centred, shares))
    if not deviation > _NO_SPREAD:
        return None
    centred /= deviation
    return centred


def _mean(values: Float64, shares: Float64 | None) -> float:
    return float(values.mean() if shares is None else shares @ values)


def _mean_square(values: Float64, shares: Float64 | None) -> float:
    if shares is None:
        return float(values @ values) / len(values)
    return float(shares @ (values * values))


def _ranks(law: Empirical, values: Float64) -> Float64:
    """Return the share of rows below each number, and half of those that have it."""
    grades = np.append(law.cumulative - law.shares / 2, np.nan)
    places = np.searchsorted(law.support, values)
    return np.asarray(grades[np.where(np.isnan(values), len(law.support), places)])


def _replicates(
    first: Float64, second: Float64, synthetic: Sequence[TableValues]
) -> tuple[float, ...]:
    """Return the correlation under every replicate weight of a single table.

    Ranks stay those of the published counts: a replicate moves them by less than it moves
    the correlation.
    """
    if len(synthetic) != 1 or synthetic[0].replicates is None:
        return ()
    found = [correlation(first, second, weights) for weights in synthetic[0].replicates]
    return tuple(each.value for each in found if each is not None)


def _record(pair: PairSides) -> Record:
    values = [each.value for each in pair.synthetic]
    found = pooled_estimate(
        values,
        [each.variance for each in pair.synthetic],
        share=float(np.mean([each.n for each in pair.synthetic])) / pair.original.n,
        rule=pair.rule,
        replicates=pair.replicates,
    )
    inside = Estimate(found.value, max(found.low, -1.0), min(found.high, 1.0))
    how = how_pooled(len(values), rule=pair.rule, replicates=len(pair.replicates))
    return measured(
        pair.name,
        ", ".join(pair.pair),
        inside,
        baseline=pair.original.value,
        n=min(each.rows for each in pair.synthetic),
        note=f"{_MEANT[pair.name]}; variance by the influence of each row (Devlin et al. 1975, "
        f"doi:10.1093/biomet/62.3.531); {how}; baseline: the original's",
    )


def _headline(name: str, pairs: Sequence[PairSides]) -> Record:
    apart = [abs(each.value - each.original.value) for each in pairs]
    # The variance of a bootstrap of n rows is that of n original rows.
    chance = [
        math.sqrt(2 / math.pi * each.original.variance * each.original.n / side.rows)
        for each in pairs
        for side in each.synthetic
    ]
    note = (
        f"mean over the pairs of numeric features of |r_synth - r_orig|; {_MEANT[pairs[0].name]}; "
        "baseline: expected of a bootstrap of the original with as many rows, sqrt(2/pi) se"
    )
    n = min(side.rows for each in pairs for side in each.synthetic)
    return measured(
        name, "", Estimate(float(np.mean(apart)), n=n), baseline=float(np.mean(chance)), note=note
    )
