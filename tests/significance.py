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
"""Cells that expect fewer observations than this are pooled before a chi-square test."""


def bonferroni(comparisons: int, alpha: float = ALPHA) -> float:
    """Rate per comparison at which `comparisons` of them keep `alpha` together."""
    return alpha / comparisons


def fit_p_value(observed: Sequence[int], probabilities: Sequence[float]) -> float:
    """P-value of Pearson's chi-square for counts against a fully specified distribution."""
    counts = np.asarray(observed, dtype=np.float64)
    shares = np.asarray([float(p) for p in probabilities])
    if not np.isclose(shares.sum(), 1.0, rtol=0, atol=1e-12):
        raise ValueError("the expected probabilities must sum to 1")
    if counts[shares == 0].any():
        return 0.0
    expected = counts.sum() * shares
    rare = expected < SMALLEST_EXPECTED
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    kept = expected > 0
    return float(stats.chisquare(counts[kept], expected[kept]).pvalue)


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
