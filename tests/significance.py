"""How randomised tests decide: one false-alarm rate, and the checks that keep it.

A test of a correct program fails with probability at most `ALPHA`, over the random words
it draws; a failure is therefore a finding and is never rerun. Every test that uses these
checks has a twin, a deliberately broken mechanism that the same check must reject.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from scipy import stats

ALPHA = 1e-6
"""False-alarm rate of one randomised test."""

SMALLEST_EXPECTED = 10
"""Cells that expect fewer observations than this are pooled before a chi-square test; a pool
that still expects fewer is judged by a binomial test of its own."""


def bonferroni(comparisons: int, alpha: float = ALPHA) -> float:
    """Rate per comparison at which `comparisons` of them keep `alpha` together."""
    return alpha / comparisons


def fit_p_value(observed: Sequence[int], probabilities: Sequence[float]) -> float:
    """P-value of counts against a fully specified distribution, by Pearson's chi-square."""
    counts = np.asarray(observed, dtype=np.float64)
    shares = np.asarray([float(p) for p in probabilities])
    if not np.isclose(shares.sum(), 1.0, rtol=0, atol=1e-12):
        raise ValueError("the expected probabilities must sum to 1")
    if counts[shares == 0].any():
        return 0.0
    expected = counts.sum() * shares
    rare = expected < SMALLEST_EXPECTED
    seen, pool = counts[rare].sum(), expected[rare].sum()
    common, wanted = counts[~rare], expected[~rare]
    if pool == 0:
        return _chi_square(common, wanted)
    if pool >= SMALLEST_EXPECTED:
        return _chi_square(np.append(common, seen), np.append(wanted, pool))
    # Chi-square would reject a pool of 1e-4 at its first observation: a binomial test judges it.
    smallest = wanted.argmin()
    common[smallest] += seen
    wanted[smallest] += pool
    excess = float(stats.binom.sf(seen - 1, counts.sum(), shares[rare].sum()))
    return min(1.0, 2 * min(excess, _chi_square(common, wanted)))


def _chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    """P-value of Pearson's chi-square; a single cell cannot differ."""
    return float(stats.chisquare(counts, expected).pvalue) if len(counts) > 1 else 1.0


def fits(observed: Sequence[int], probabilities: Sequence[float], *, alpha: float = ALPHA) -> bool:
    """Whether counts are compatible with the distribution at false-alarm rate `alpha`."""
    return fit_p_value(observed, probabilities) >= alpha


def outcomes_fit(
    outcomes: Iterable[Hashable],
    distribution: Mapping[Hashable, float],
    *,
    alpha: float = ALPHA,
) -> bool:
    """The same for outcomes of any kind; one outside the distribution never fits."""
    seen = Counter(outcomes)
    if seen.keys() - distribution.keys():
        return False
    keys = list(distribution)
    return fits([seen[k] for k in keys], [distribution[k] for k in keys], alpha=alpha)
