"""Exact discrete noise on counts, and exact choices (R10, R11, R15).

Draws that protect people come from OpenDP's vetted samplers. A seeded run, which protects
nobody, uses the same distributions on the seeded stream: the algorithms of Canonne, Kamath
and Steinke ("The Discrete Gaussian for Differential Privacy", algorithms 1 to 3), in whole
numbers throughout. Choices by the exponential mechanism use their exact Bernoulli(exp(-x))
in both cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream

Int64 = NDArray[np.int64]


class Below(Protocol):
    """A source of exact uniform integers."""

    def below(self, bound: int) -> int:
        """Return a uniform integer in [0, bound)."""
        ...


def add_noise(counts: Int64, event: NoisyCounts, stream: RandomStream) -> Int64:
    """Return counts with the noise that `event` records, on every cell, zeros included."""
    size = Fraction(event.scale_numerator, event.scale_denominator)
    gaussian = event.mechanism == "discrete-gaussian"
    if stream.seeded:
        words = stream.substream()
        draw = discrete_gaussian if gaussian else discrete_laplace
        noise = [draw(size, words) for _ in range(counts.size)]
        return counts + np.array(noise, dtype=np.int64).reshape(counts.shape)
    scale = _root(size) if gaussian else _double(size)
    noisy = _vetted(counts.ravel().tolist(), scale, gaussian=gaussian)
    return np.array(noisy, dtype=np.int64).reshape(counts.shape)


def _vetted(counts: list[int], scale: float, *, gaussian: bool) -> list[int]:
    """Add noise by OpenDP; `scale` is b, or sigma."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    # Python's int would mean 32 bits there, and noise beyond them would be clamped.
    domain = vector_domain(atom_domain(T="i64"))
    if gaussian:
        mechanism = make_gaussian(domain, l2_distance(T=float), scale=scale)
    else:
        mechanism = make_laplace(domain, l1_distance(T="i64"), scale=scale)
    noisy: list[int] = mechanism(counts)
    return noisy


def _double(scale: Fraction) -> float:
    """Return b of an event, which is a double by construction; never a smaller one."""
    nearest = float(scale)
    if Fraction(nearest) != scale:
        raise ParameterError("the scale of Laplace noise must be a double")
    return nearest


def _root(variance: Fraction) -> float:
    """Return sigma of an event, which is a double by construction."""
    sigma = float(variance) ** 0.5
    for candidate in (sigma, np.nextafter(sigma, 0), np.nextafter(sigma, np.inf)):
        if Fraction(float(candidate)) ** 2 == variance:
            return float(candidate)
    raise ParameterError("the variance of Gaussian noise must be the square of a double")


def bernoulli(probability: Fraction, source: Below) -> bool:
    """Return True with exactly this probability."""
    return source.below(probability.denominator) < probability.numerator


def bernoulli_exp(exponent: Fraction, source: Below) -> bool:
    """Return True with probability exp(-exponent), exactly (algorithm 1)."""
    while exponent > 1:
        if not bernoulli_exp(Fraction(1), source):
            return False
        exponent -= 1
    tries = 1
    while bernoulli(exponent / tries, source):
        tries += 1
    return tries % 2 == 1


def discrete_laplace(scale: Fraction, source: Below) -> int:
    """Return k with probability proportional to exp(-|k| / scale), exactly (algorithm 2)."""
    upper, lower = scale.numerator, scale.denominator
    while True:
        part = source.below(upper)
        if not bernoulli_exp(Fraction(part, upper), source):
            continue
        whole = 0
        while bernoulli_exp(Fraction(1), source):
            whole += 1
        size = (part + upper * whole) // lower
        negative = bernoulli(Fraction(1, 2), source)
        if not (negative and size == 0):
            return -size if negative else size


def discrete_gaussian(variance: Fraction, source: Below) -> int:
    """Return k with probability proportional to exp(-k^2 / (2 variance)) (algorithm 3)."""
    width = Fraction(_floor_root(variance) + 1)
    while True:
        candidate = discrete_laplace(width, source)
        distance = abs(candidate) - variance / width
        if bernoulli_exp(distance * distance / (2 * variance), source):
            return candidate


def _floor_root(value: Fraction) -> int:
    root = int(float(value) ** 0.5)
    while root * root > value:
        root -= 1
    while (root + 1) * (root + 1) <= value:
        root += 1
    return root


def choose(scores: Sequence[int], epsilon: Fraction, source: Below) -> int:
    """Choose an index by the exponential mechanism for scores of sensitivity 1 (R10).

    Index j is chosen with probability proportional to exp(epsilon * scores[j] / 2): one
    is proposed uniformly and kept with probability exp(-epsilon * (best - score) / 2).
    """
    best = max(scores)
    while True:
        index = source.below(len(scores))
        if bernoulli_exp(epsilon * (best - scores[index]) / 2, source):
            return index
