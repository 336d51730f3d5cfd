"""Estimates from noisy counts: projection on the simplex, smoothing, shrinkage.

All of it is post-processing of paid-for numbers whose noise has a known deviation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pegsynth.kernels.arrays import Float64

# The last two leave alone what no noise could have made.
_SPREADS = np.concatenate(([0.0], np.geomspace(0.25, 64.0, 17), [1e3, 1e6]))
_RATIO_SPREADS = np.concatenate(([0.0], np.geomspace(0.02, 8.0, 19)))
_ITERATIONS = 30
_FAITH_IN_NOTHING = 1.0
_FAITH_IN_OTHERS = 20.0
_BISECTIONS = 100
_HARDLY = 0.05
_PAIR = 2
_NEXT_TO_NOTHING = 1e-290
"""Sums below it count as none: what is wanted over them may be no number."""


def on_simplex(noisy: Float64, variance: Float64 | float, total: float) -> Float64:
    """Return the closest non-negative counts of this total, each pulled by its variance."""
    variances = np.broadcast_to(np.asarray(variance, dtype=np.float64), noisy.shape)
    low = float((noisy / variances).min() - total / variances.min() - 1.0)
    high = float((noisy / variances).max() + 1.0)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if np.maximum(noisy - middle * variances, 0.0).sum() > total:
            low = middle
        else:
            high = middle
    kept = np.maximum(noisy - high * variances, 0.0)
    whole = kept.sum()
    return kept * (total / whole) if whole > 0 else np.full(len(noisy), total / len(noisy))


def smoothed(noisy: Float64, deviation: float) -> Float64:
    """Smooth counts of ordered categories by shrinking their Haar coefficients.

    Differences of neighbours at every scale and shift are replaced by their posterior
    means under a mixture of normals around 0, fitted to the coefficients of that scale
    (empirical Bayes); the shifts are averaged. A feature whose order means nothing has no
    small coefficients, and stays as it is.
    """
    size = len(noisy)
    average = np.concatenate((noisy, noisy[::-1])).astype(np.float64)
    details: list[Float64] = []
    shift = 1
    while 2 * shift <= size:
        following = np.roll(average, -shift)
        spread = deviation / np.sqrt(2.0) ** (len(details) + 1)
        details.append(_shrunken((average - following) / 2, spread))
        average = (average + following) / 2
        shift *= 2
    for detail in reversed(details):
        shift //= 2
        average = (average + detail + np.roll(average - detail, shift)) / 2
    return (average[:size] + average[size:][::-1]) / 2


def _shrunken(coefficients: Float64, deviation: float) -> Float64:
    """Return posterior means of coefficients that are mostly nothing but noise."""
    spreads = _SPREADS * deviation
    variance = deviation**2 + spreads**2
    posterior = _mixture(coefficients, variance[:, None], faith=_FAITH_IN_NOTHING)
    means: Float64 = coefficients * np.einsum("kc,k->c", posterior, spreads**2 / variance)
    return means


def shrunken(
    noisy: Float64, expected: Float64, deviation: float, weights: Float64 | None = None
) -> Float64:
    """Pull noisy counts towards what was expected of them, as far as the noise says.

    The ratio of a count to its expectation has a mixture of normals around 1 as prior,
    fitted to the cells of the table (empirical Bayes). Cells of which hardly anything is
    expected, compared with the noise, stay as expected.

    Parameters
    ----------
    weights
        Those of the prior that many tables tell together (`ratio_weights`), which count as much
        as some cells of this table do.
    """
    result = expected.copy()
    seen = expected > _HARDLY * deviation
    if not seen.any():
        return result
    mean = expected[seen]
    excess = noisy[seen] - mean
    prior = (_RATIO_SPREADS[:, None] * mean) ** 2
    variance = deviation**2 + prior
    likelihood = _likelihood(excess, variance)
    faith = np.zeros(len(likelihood)) if weights is None else _FAITH_IN_OTHERS * weights
    found = _weights(likelihood, faith)
    gain = (_odds(likelihood, found) * (prior / variance)).sum(axis=0)
    result[seen] = np.maximum(mean + gain * excess, 0.0)
    return result


def ratio_weights(noisy: Float64, expected: Float64, deviation: Float64) -> Float64:
    """Return the weights of the prior of `shrunken` that cells of many tables tell together."""
    seen = expected > _HARDLY * deviation
    mean = expected[seen]
    variance = deviation[seen] ** 2 + (_RATIO_SPREADS[:, None] * mean) ** 2
    return _weights(_likelihood(noisy[seen] - mean, variance), np.zeros(len(variance)))


def _mixture(values: Float64, variance: Float64, *, faith: float) -> Float64:
    """Return the odds of every component for every value, with faith in the first one."""
    likelihood = _likelihood(values, variance)
    sure = np.zeros(len(likelihood))
    sure[0] = faith
    return _odds(likelihood, _weights(likelihood, sure))


def _likelihood(values: Float64, variance: Float64) -> Float64:
    logs = -0.5 * values**2 / variance - 0.5 * np.log(variance)
    likelihood: Float64 = np.exp(logs - logs.max(axis=0)) if values.size else logs
    return likelihood


def _weights(likelihood: Float64, faith: Float64) -> Float64:
    """Return the weights of a mixture's components by EM; faith counts like sure values."""
    components = len(likelihood)
    weights = np.full(components, 0.5 / (components - 1))
    weights[0] = 0.5
    for _ in range(_ITERATIONS if likelihood.size else 0):
        weights = _odds(likelihood, weights).sum(axis=1)
        weights += faith
        weights /= weights.sum()
    return weights


def _odds(likelihood: Float64, weights: Float64) -> Float64:
    odds = likelihood * weights[:, None]
    fitted: Float64 = odds / odds.sum(axis=0)
    return fitted


Axes = tuple[int, ...]


def fitted_to(table: Float64, margins: Mapping[Axes, Float64], *, passes: int = 20) -> Float64:
    """Scale a table until its margins over some axes are the given ones."""
    if table.ndim == _PAIR and margins.keys() == {(0,), (1,)}:
        return _fitted_to_both(table, *margins.items(), passes=passes)
    for _ in range(passes):
        for axes, margin in margins.items():
            others = tuple(axis for axis in range(table.ndim) if axis not in axes)
            sums = table.sum(axis=others)
            table = table * np.expand_dims(_quotient(margin, sums), others)
    return table


def says_something(fitted: Float64) -> bool:
    """Say whether margins left anything of a table that was fitted to them.

    Loud noise may put all rows of a margin where the table has none.
    """
    return float(fitted.sum()) > _NEXT_TO_NOTHING


def _fitted_to_both(
    table: Float64,
    first: tuple[Axes, Float64],
    second: tuple[Axes, Float64],
    *,
    passes: int,
) -> Float64:
    """Scale rows and columns in turn: the factors of all passes are two lines."""
    turned = table if first[0] == (0,) else table.T
    back, ahead = np.ones(turned.shape[1]), np.ones(turned.shape[0])
    for _ in range(passes):
        ahead = _quotient(first[1], turned @ back)
        back = _quotient(second[1], ahead @ turned)
    scaled = ahead[:, None] * turned * back
    return scaled if turned is table else scaled.T


def _quotient(wanted: Float64, sums: Float64) -> Float64:
    """Return what brings sums to what is wanted; 0 where there is next to nothing to scale."""
    some = sums > _NEXT_TO_NOTHING
    factor: Float64 = np.divide(wanted, sums, out=np.zeros_like(sums), where=some)
    return factor
