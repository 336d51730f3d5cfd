"""The distances between two tables of counts, and what chance alone would give.

Goes in: counts of the same cells in the original and in the synthetic table. Comes out:
the paper's squared distances, total variation, and for each its *floor*: the value
expected when the synthetic table is a bootstrap of the original, n rows drawn with
replacement. A distance at its floor cannot be told from sampling error.

Which three-way tables are compared: a fixed public choice, the same for any data.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import combinations, count
from typing import TypeAlias

import numpy as np

from pegsynth.codec.tabulation import CELL_LIMIT
from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Float64, Int64

Counts: TypeAlias = Int64 | Float64

_LARGE_MEAN = 500.0


def shares(counts: Counts) -> Float64:
    """Return counts as shares of their sum."""
    total = counts.sum()
    if not total > 0:
        raise ParameterError("a table of counts is empty, so it has no shares")
    return np.asarray(counts / total, dtype=np.float64)


def total_variation(p_counts: Counts, q_counts: Counts) -> float:
    """Total variation distance of two tables: half the sum of absolute differences of shares.

    Parameters
    ----------
    p_counts, q_counts
        Int64 of the same cells in both tables; the totals may differ.

    Returns
    -------
    float
        Between 0 and 1: the share of rows that must change cell to make the tables equal.
    """
    if p_counts.shape != q_counts.shape:
        raise ParameterError("the two tables of counts have different cells; align them first")
    # Sums of shares are rounded, and may come to a little more than all.
    return min(float(np.abs(shares(p_counts) - shares(q_counts)).sum() / 2), 1.0)


def total_variation_floor(counts: Counts, rows: int) -> float:
    """Total variation expected of `rows` rows drawn from these counts.

    Exact: half the sum over cells of E|X/n - p| for X ~ Binomial(n, p), by de Moivre's
    formula E|X - np| = 2 v (1-p) P(X = v) with v = floor(np) + 1. (For large np it is the
    familiar sqrt(2np(1-p)/pi).)
    """
    from scipy.special import gammaln, xlogy

    p = shares(counts[counts > 0])
    p = p[p < 1]
    v = np.minimum(np.floor(rows * p) + 1, rows)
    log_probability = (
        gammaln(rows + 1.0)
        - gammaln(v + 1)
        - gammaln(rows - v + 1)
        + xlogy(v, p)
        + (rows - v) * np.log1p(-p)
    )
    return float(np.sum(v * (1 - p) * np.exp(log_probability)) / rows)


def marginal_distance(original: Counts, synthetic: Counts) -> float:
    """Return the paper's marginal distance: sum over x of (p_synth(x) - p_orig(x))^2."""
    return float(np.square(shares(synthetic) - shares(original)).sum())


def marginal_floor(counts: Counts, rows: int) -> float:
    """Marginal distance expected of a bootstrap: (1 - sum p^2)/n, exact."""
    return float((1 - np.square(shares(counts)).sum()) / rows)


def conditional_distance(given: Int64, original: Int64, synthetic: Int64) -> float:
    """Return the paper's conditional distance of x_i given x_j, every x_j with weight one.

    The sum over x_j and x_i of (p_synth(x_i|x_j) - p_orig(x_i|x_j))^2. Where a value x_j
    occurs in one table only, the other's conditional counts as all zeros, so that x_j adds
    the sum of squares of the one that exists; where it occurs in neither it adds nothing.

    Parameters
    ----------
    given
        Code of x_j in every cell.
    original, synthetic
        Int64 of the cells.
    """
    difference = _conditional(given, synthetic) - _conditional(given, original)
    return float(np.square(difference).sum())


def conditional_floor(given: Int64, counts: Int64, rows: int) -> float:
    """Conditional distance expected of a bootstrap.

    A value x_j of share p_j is drawn about Poisson(n p_j) times. Drawn k > 0 times it adds
    (1 - s_j)/k on average, s_j the sum of p(x_i|x_j)^2; not drawn at all it adds s_j. The
    Poisson law in place of the binomial is the only approximation.
    """
    squares = np.bincount(given, np.square(_conditional(given, counts)))
    totals = np.bincount(given, counts)
    seen = totals > 0
    mean = rows * totals[seen] / totals.sum()
    one_over, squares = _mean_of_reciprocal(mean), squares[seen]
    return float(np.sum((1 - squares) * one_over + np.exp(-mean) * squares))


def _conditional(given: Int64, counts: Int64) -> Float64:
    totals = np.bincount(given, counts)
    return np.asarray(counts / np.maximum(totals, 1)[given], dtype=np.float64)


def _mean_of_reciprocal(mean: Float64) -> Float64:
    """E[1/X; X > 0] for X ~ Poisson(mean): exp(-mean) (Ei(mean) - gamma - log mean)."""
    from scipy.special import expi

    small = np.minimum(mean, _LARGE_MEAN)
    exact = np.exp(-small) * (expi(small) - np.euler_gamma - np.log(small))
    # Beyond that exp and Ei leave the range of doubles; the asymptotic series is exact there.
    series = (1 + (1 + (2 + 6 / mean) / mean) / mean) / mean
    return np.asarray(np.where(mean < _LARGE_MEAN, exact, series), dtype=np.float64)


Triple = tuple[int, int, int]

MOST_TRIPLES = 100
RULE = (
    f"all triples of features, or {MOST_TRIPLES} of them drawn by a fixed public rule: draw d = 0, "
    '1, .. is the SHA-256 of "pegsynth triple d", whose first three 8-byte numbers modulo the '
    "number of features name a triple; draws with a repeated feature or an earlier triple are "
    "passed over, and so are triples of 2^63 cells or more"
)
_WORD = 8
# Only triples that are too large to number can exhaust the draws; then fewer are compared.
_MOST_DRAWS = 10_000


def triples(category_counts: Sequence[int]) -> list[Triple]:
    """Choose the triples of features whose tables are compared, by `RULE`."""
    features = len(category_counts)
    source = (
        iter(combinations(range(features), 3))
        if math.comb(features, 3) <= MOST_TRIPLES
        else _drawn(features)
    )
    chosen: dict[Triple, None] = {}
    for triple in source:
        if math.prod(category_counts[i] for i in triple) < CELL_LIMIT:
            chosen[triple] = None
        if len(chosen) == MOST_TRIPLES:
            break
    return sorted(chosen)


def _drawn(features: int) -> Iterator[Triple]:
    for draw in count():
        if draw == _MOST_DRAWS:
            return
        digest = hashlib.sha256(f"pegsynth triple {draw}".encode()).digest()
        words = (digest[start : start + _WORD] for start in range(0, 3 * _WORD, _WORD))
        first, second, third = sorted(int.from_bytes(word, "big") % features for word in words)
        if first < second < third:
            yield first, second, third
