"""Intervals of replicates against the t distribution that R28 proves, beside broken twins.

A table of four categories is sampled, measured with exact noise and replicated, each time
anew; where the share of a category lies among the quantiles of its interval is uniform if
the rule is right. Coverage of intervals of every level is watched that way.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from checks.watch.laws import Check
from pegsynth.inference import combine
from pegsynth.inference.combining_rules import PART
from pegsynth.mechanisms.noise import add_noise
from pegsynth.methods.released._draw import draw_rows
from pegsynth.methods.released._replicates import Source
from pegsynth.methods.released._row_replicates import Replicates, Signs
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream

Float64 = NDArray[np.float64]
Pivot = Callable[[Float64], float]

ROWS = 2_000
SHARES = np.array([0.4, 0.3, 0.2, 0.1])
REPLICATES = 10
BINS = 8
LOUD, BETWEEN, QUIET = 80.0, 20.0, 3.0
"""Noise above and below the sampling error: no single scale finds all twins out."""


def weighted_shares(deviation: float, words: np.random.Generator) -> Float64:
    """Return the shares of a fresh release, with its weights and with every replicate."""
    stream = RandomStream()
    events = tuple(
        NoisyCounts.gaussian(each, cells=1, purpose=purpose)
        for each, purpose in ((0.5, "total"), (deviation, "marginals"))
    )
    counts = words.multinomial(ROWS, SHARES).astype(np.int64)
    noisy = NoisyTable((0,), add_noise(counts, events[1], stream), deviation)
    released = Released(
        (ROWS, 0.5), (noisy,), (False,), (False,), False, (np.arange(4),), (0,), (), ()
    )
    (codes,) = draw_rows(released, ROWS, stream)
    source = Source(released, events)
    found = Replicates.fitted(source, codes, stream, count=REPLICATES, rows=ROWS)
    weights = found.weights(codes, Signs(stream.substream(), REPLICATES).take(ROWS))
    lines = np.vstack([np.ones((1, ROWS)), weights])
    cells = np.array([np.bincount(codes[:, 0], line, 4) for line in lines])
    shares: Float64 = cells[:, 0] / cells.sum(axis=1)
    return shares


def by_the_rule(shares: Float64) -> float:
    """Return the pivot of the rule for replicate weights."""
    found = combine(shares[1:], rule="replicate-weights", main=float(shares[0]))
    return float((found.estimate - SHARES[0]) / found.std_error)


def plug_in(shares: Float64) -> float:
    """Leave the noise out: the sampling error alone."""
    share = float(shares[0])
    return (share - SHARES[0]) / math.sqrt(share * (1 - share) / ROWS)


def part_forgotten(shares: Float64) -> float:
    """Take replicates for ones that have all of the perturbation."""
    found = combine(shares[1:], main=float(shares[0]), part=1.0)
    return float((found.estimate - SHARES[0]) / found.std_error)


def v_subtracted(shares: Float64) -> float:
    """Take the sampling error off the spread, as the paper's T_s does."""
    share = float(shares[0])
    spread = (1 + 1 / REPLICATES) * float(shares[1:].var(ddof=1)) / PART**2
    return (share - SHARES[0]) / math.sqrt(max(spread - share * (1 - share) / ROWS, 1e-12))


def places(pivot: Pivot, deviation: float, count: int) -> NDArray[np.int64]:
    """Return in which eighth of the t distribution the pivots of fresh releases lie."""
    from scipy import stats

    words = np.random.default_rng()
    pivots = [pivot(weighted_shares(deviation, words)) for _ in range(count)]
    below = stats.t.cdf(pivots, REPLICATES)
    return np.minimum((below * BINS).astype(np.int64), BINS - 1)


def pivot_checks(count: int = 150) -> tuple[Check, ...]:
    """Return checks for loud and quiet noise and one between, each with the twin it finds out.

    With 150 releases a pivot that is three times too large lies in an outer eighth two times
    in three: a noncentral chi-square of 190, which escapes a check at 1e-6 with less than 1e-11.
    """
    law = dict.fromkeys(range(BINS), 1 / BINS)
    twins = (
        (LOUD, plug_in, "the noise left out"),
        (QUIET, v_subtracted, "v taken off the spread"),
        (BETWEEN, part_forgotten, "the factor 1/f^2 forgotten"),
    )
    return tuple(
        Check(
            f"intervals of replicates, noise of {deviation:g}",
            law,
            lambda deviation=deviation: places(by_the_rule, deviation, count),
            lambda deviation=deviation, twin=twin: places(twin, deviation, count),
            mistake,
        )
        for deviation, twin, mistake in twins
    )
