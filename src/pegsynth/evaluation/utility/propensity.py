"""Propensity scores: how well a regression tells synthetic rows from original ones.

All rows are put together and a logistic regression on the main effects of all features
predicts which are synthetic. With c the share of synthetic rows among all N and p_i the
fitted chance of row i::

    pMSE = (1/N) sum_i (p_i - c)^2

A bootstrap of the original has an expectation of (k - 1)(1 - c)^2 c / N, k being the number
of coefficients with the intercept. The ratio of the two is about 1 for a table that this
regression cannot tell from such a bootstrap.

Notes
-----
Snoke, Raab, Nowok, Dibben and Slavkovic (2018), General and specific utility measures for
synthetic data, Journal of the Royal Statistical Society: Series A 181(3), 663-688,
doi:10.1111/rssa.12358.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.tabulation import one_way
from pegsynth.evaluation.records import Record, measured, not_computed
from pegsynth.inference.newton import Rows, maximise, rank_of, starts_of
from pegsynth.inference.statistics import Estimate, spread
from pegsynth.kernels.arrays import Codes
from pegsynth.kernels.binomial import squared_deviation

MOST_COEFFICIENTS = 1000
MOST_ADDITIONS = 1 << 31
_NORMAL = 1.959963984540054
_NOTE = (
    "mean squared difference between the chance of being synthetic, fitted by a logistic "
    "regression on the main effects of all features ({coefficients} coefficients), and the share c "
    "of synthetic rows; main effects see the marginal distributions, not how features go together"
)
_EXPECTED = "a bootstrap of the original, (k-1)(1-c)^2 c/N (Snoke et al. 2018)"
_SEVERAL = "mean over the synthetic tables; low and high: smallest and largest"
_ONE = "low and high: 95 % interval by a noncentral chi-squared approximation"


@dataclass(frozen=True)
class Propensity:
    """The propensity score of one synthetic table.

    Parameters
    ----------
    value, expected
        pMSE and its expectation for a bootstrap.
    coefficients
        Coefficients that the rows determine, with the intercept (k).
    rows
        Rows of both tables that were used.
    """

    value: float
    expected: float
    coefficients: int
    rows: int

    @property
    def ratio(self) -> float:
        """The pMSE as a multiple of its expectation; NaN when nothing can differ."""
        return self.value / self.expected if self.expected > 0 else math.nan

    @property
    def ratio_error(self) -> float:
        """Standard error of the ratio: d times it is noncentral chi-squared, d = k - 1."""
        freedom = self.coefficients - 1
        beyond = max(self.ratio - 1, 0.0) * freedom
        return math.sqrt(2 * freedom + 4 * beyond) / freedom


def groups_of(sizes: Sequence[int], most: int = MOST_COEFFICIENTS) -> tuple[int, ...]:
    """Return with how many groups of categories each feature enters.

    All categories where that takes no more than `most` coefficients. Otherwise the largest
    limit that does: a feature with more categories has them merged, in the order of the
    schema, into that many runs of about equal number. Of more than `most` features the
    first ones enter.
    """
    limit, beyond = 2, max(2, *sizes) + 1
    while beyond - limit > 1:
        middle = (limit + beyond) // 2
        fits = 1 + sum(min(size, middle) - 1 for size in sizes) <= most
        limit, beyond = (middle, beyond) if fits else (limit, middle)
    groups, left = [], most - 1
    for size in sizes:
        wanted = min(size, limit)
        groups.append(wanted if wanted - 1 <= left else 1)
        left -= groups[-1] - 1
    return tuple(groups)


def propensity(
    original: Codes, synthetic: Codes, sizes: Sequence[int], *, threads: int = 1
) -> Propensity | None:
    """Return the propensity score of a synthetic table; None when the fit came to no end.

    Parameters
    ----------
    original, synthetic
        Codes, one feature a line.
    sizes
        Number of categories of each feature.
    threads
        Parts of the rows worked on at a time.
    """
    groups = groups_of(sizes)
    tables = [_grouped(_thinned(table), sizes, groups) for table in (original, synthetic)]
    rows = sum(table.shape[1] for table in tables)
    share = tables[1].shape[1] / rows
    telling = _telling(tables, groups)
    unclear = [table[:, ~_has(table, telling)] for table in tables]
    clear = [table.shape[1] - part.shape[1] for table, part in zip(tables, unclear, strict=True)]
    if not all(part.shape[1] for part in unclear):
        clear, unclear = [table.shape[1] for table in tables], []
    squares = clear[0] * share**2 + clear[1] * (1 - share) ** 2
    coefficients = 0
    if unclear:
        found = maximise(_rows(unclear), groups, threads=threads)
        if not found.settled:
            return None
        coefficients = found.rank
        starts, scores = starts_of(groups), found.scores
        for part in unclear:
            squares += squared_deviation(part, starts, scores[:-1], float(scores[-1]), share)
    if any(clear):
        coefficients = rank_of(_rows(tables), groups)
    expected = (coefficients - 1) * (1 - share) ** 2 * share / rows
    return Propensity(float(squares / rows), expected, coefficients, rows)


def propensity_records(
    original: Codes, synthetic: Sequence[Codes], sizes: Sequence[int], *, threads: int = 1
) -> list[Record]:
    """Return ``pmse`` and ``pmse_ratio`` of one or more synthetic tables."""
    found = [propensity(original, table, sizes, threads=threads) for table in synthetic]
    if any(each is None for each in found):
        return _not_computed("the logistic regression did not converge")
    scores = [each for each in found if each is not None]
    if any(math.isnan(score.ratio) for score in scores):
        return _not_computed("every feature has a single value, so nothing can differ")
    note = "; ".join([_NOTE.format(coefficients=scores[0].coefficients), *_remarks(sizes, scores)])
    n = min(score.rows for score in scores)
    expected = float(np.mean([score.expected for score in scores]))
    ratios = [score.ratio for score in scores]
    if len(scores) == 1:
        half, how = _NORMAL * scores[0].ratio_error, _ONE
        ratio = Estimate(ratios[0], max(ratios[0] - half, 0.0), ratios[0] + half, n)
        pmse = Estimate(scores[0].value, ratio.low * expected, ratio.high * expected, n)
    else:
        how, ratio = _SEVERAL, spread(ratios, n=n)
        pmse = spread([score.value for score in scores], n=n)
    note = f"{note}; {how}; baseline: {_EXPECTED}; n: rows of both tables"
    other = f"pmse over what is expected of {_EXPECTED}; {how}; baseline: 1, such a bootstrap"
    return [
        measured("pmse", "", pmse, baseline=expected, note=note),
        measured("pmse_ratio", "", ratio, baseline=1.0, note=other),
    ]


def _not_computed(reason: str) -> list[Record]:
    return [not_computed(name, "", reason) for name in ("pmse", "pmse_ratio")]


def _remarks(sizes: Sequence[int], scores: Sequence[Propensity]) -> list[str]:
    groups = groups_of(sizes)
    remarks = []
    if any(1 < group < size for group, size in zip(groups, sizes, strict=True)):
        remarks.append(
            f"features of more than {max(groups)} categories have these merged, in the order of "
            f"the schema, into {max(groups)} runs of equal number"
        )
    if left_out := sum(group == 1 < size for group, size in zip(groups, sizes, strict=True)):
        remarks.append(f"the last {left_out} features are left out")
    most = _most_rows(len(sizes))
    if any(score.rows >= most for score in scores):
        remarks.append(f"of a table with more than {most} rows that many, evenly spaced, are used")
    return remarks


def _most_rows(features: int) -> int:
    """Return the most rows of a table that are used; 13 features allow 11 million."""
    return max(MOST_ADDITIONS // (features * (features + 1)), 1)


def _thinned(table: Codes) -> Codes:
    most, rows = _most_rows(len(table)), table.shape[1]
    return table if rows <= most else table[:, np.arange(most) * rows // most]


def _grouped(table: Codes, sizes: Sequence[int], groups: Sequence[int]) -> Codes:
    if tuple(sizes) == tuple(groups):
        return table
    pairs = zip(table, sizes, groups, strict=True)
    dtype = np.min_scalar_type(max(groups))
    return np.stack([(c.astype(np.int64) * g // s).astype(dtype) for c, s, g in pairs])


def _telling(tables: Sequence[Codes], groups: Sequence[int]) -> list[NDArray[np.bool_]]:
    """Mark the categories that occur in one table only: their rows are told apart for certain.

    Their coefficients are infinite and their rows say nothing about the others.
    """
    seen = [[one_way(t[i], g) > 0 for i, g in enumerate(groups)] for t in tables]
    return [first != second for first, second in zip(*seen, strict=True)]


def _has(table: Codes, marked: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    hit = np.zeros(table.shape[1], dtype=np.bool_)
    for column, marks in zip(table, marked, strict=True):
        if marks.any():
            hit |= marks[column]
    return hit


def _rows(tables: Sequence[Codes]) -> list[Rows]:
    """Return both tables with what is to be predicted: 0 original, 1 synthetic."""
    return [
        Rows(table, np.ones(table.shape[1]), np.full(table.shape[1], float(number)))
        for number, table in enumerate(tables)
    ]
