"""Paid-for marginals: noisy one-way counts, what they say, and the prior they give.

`noisy_marginals` crosses the privacy boundary: exact one-way counts and the event that
pays for the noise go in. Everything after it is post-processing of paid numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms import answers
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream

Shares = NDArray[np.float64]


@dataclass(frozen=True)
class Marginals:
    """Noisy shares of every category of every feature, and the noisy number of rows."""

    shares: tuple[Shares, ...]
    total: float


def noisy_marginals(counts: Sequence[Int64], event: NoisyCounts, stream: RandomStream) -> Marginals:
    """Put the event's noise on all one-way counts (R11: one row changes M cells)."""
    flat = answers.noisy(np.concatenate(counts), event, stream)
    cuts = np.cumsum([len(count) for count in counts])[:-1]
    return marginals_from_noisy(np.split(flat, cuts))


def stored_marginals(
    shares: Sequence[Sequence[float]], total: float, category_counts: Sequence[int]
) -> Marginals | None:
    """Return marginals as a file holds them, checked; None where it holds none."""
    if not shares:
        return None
    lines = tuple(np.array(line, dtype=np.float64) for line in shares)
    if tuple(map(len, lines)) != tuple(category_counts) or any(
        not len(line) or line.min() < 0 or not np.isclose(line.sum(), 1.0) for line in lines
    ):
        raise ModelError("its marginals do not fit its schema")
    return Marginals(lines, total)


def marginals_from_noisy(noisy: Sequence[Int64]) -> Marginals:
    """Return shares that fit the noisy counts best, and their common total.

    The sums of the features estimate one number of rows, a feature of C categories with
    variance proportional to C; each feature is then projected on the simplex.
    """
    precision = np.array([1 / len(count) for count in noisy])
    sums = np.array([float(count.sum()) for count in noisy])
    total = max(float(np.sum(precision * sums) / np.sum(precision)), 1.0)
    return Marginals(tuple(_project(count.astype(np.float64), total) for count in noisy), total)


def _project(counts: Shares, total: float) -> Shares:
    """Project on the simplex of sum `total` (least squares), as shares."""
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    shift = excess[np.flatnonzero(ordered > excess)[-1]]
    kept = np.maximum(counts - shift, 0.0)
    shares: Shares = kept / kept.sum()
    return shares


CAP_RESOLUTION = 16
URN_RESOLUTION = 6
"""Prior weights of a feature sum to about this many times its categories. Urns need fewer
virtual rows, so the shape of the prior matters less and its size more."""

SEED_RESOLUTION = 1 << 20


def integer_weights(shares: Shares, resolution: int) -> NDArray[np.uint64]:
    """Return integer weights of about `resolution` in sum, each at least 1 (R14)."""
    return np.maximum(np.rint(shares * resolution), 1.0).astype(np.uint64)


def prior_weights(marginals: Marginals, resolution: int) -> tuple[NDArray[np.uint64], ...]:
    """Return prior weights in proportion to the marginals, with a floor of 1 (R14).

    The smallest alpha fixes the price, so a finer resolution follows the marginals more
    closely and adds more virtual rows in all.
    """
    return tuple(integer_weights(shares, resolution * len(shares)) for shares in marginals.shares)


def most_prior_weight(categories: int, resolution: int) -> int:
    """Return a bound on the sum of a feature's prior weights, whatever its marginals are."""
    # Each weight is at most a half above its share, or 1; the rest is for rounding of shares.
    return (resolution + 2) * categories


def seed_weights(marginals: Marginals) -> tuple[NDArray[np.uint64], ...]:
    """Return weights for seed rows, as close to the marginals as integers come."""
    return tuple(integer_weights(shares, SEED_RESOLUTION) for shares in marginals.shares)
