"""Exact discrete noise on counts, and exact choices (R10, R11, R15).

Noise comes from bins with certified shares (`bins`, `kernels/noise_draws.py`), and choices by
the exponential mechanism from levels: candidates whose exponents have the same whole part.
Both are decided by as many random bits as it takes (`exact`). Seeded and unseeded streams
go the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.arrays import Int64
from pegsynth.kernels.noise_draws import CELL, DONE, UNDECIDED, WORD, draw_noise
from pegsynth.mechanisms.bins import Noise
from pegsynth.mechanisms.exact import (
    WORD_BITS,
    Below,
    Bounds,
    coin_exp,
    cumulative,
    exp_bounds,
    invert,
    shift_up,
)
from pegsynth.privacy.noise_events import Noisy
from pegsynth.random import RandomStream

__all__ = ["Below", "Levels", "add_noise", "choose", "fill", "noise_of"]

Scores = Sequence[int] | Sequence[Fraction] | Int64

CHUNK_CELLS = 1 << 16
_SLACK = 16
_MOST_GAP = (1 << 63) - 1


class WordsAndIntegers(Below, Protocol):
    """A source of random words, and of exact uniform integers."""

    def take(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` words."""
        ...


def add_noise(counts: Int64, event: Noisy, stream: RandomStream, *, threads: int = 1) -> Int64:
    """Return counts with the noise that `event` records, on every cell, zeros included.

    Chunks of cells draw from keystreams of their own, so the noise of a seeded stream is
    the same for any number of threads.
    """
    noise = noise_of(event)
    drawn = np.empty(counts.size, dtype=np.int64)
    chunks = range(0, counts.size, CHUNK_CELLS)
    first = stream.substreams(len(chunks))
    # Built here once, and not by every thread.
    noise.tables()

    def work(chunk: int) -> None:
        start = chunk * CHUNK_CELLS
        fill(drawn[start : start + CHUNK_CELLS], noise, stream.substream(first + chunk))

    if threads == 1 or len(chunks) < 2:
        for chunk in range(len(chunks)):
            work(chunk)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(len(chunks))))
    return counts + drawn.reshape(counts.shape)


def noise_of(event: Noisy) -> Noise:
    """Return the noise that an event records.

    b, or sigma, must be a double, as it is in every event that a method writes, so that a
    reader of the ledger can compute the same noise with another library.
    """
    size = Fraction(event.scale_numerator, event.scale_denominator)
    if event.mechanism == "discrete-gaussian":
        noise = Noise.gaussian(size)
        if not _is_square_of_double(size):
            raise ParameterError("the variance of Gaussian noise must be the square of a double")
    else:
        noise = Noise.laplace(size)
        if Fraction(float(size)) != size:
            raise ParameterError("the scale of Laplace noise must be a double")
    return noise


def _is_square_of_double(variance: Fraction) -> bool:
    sigma = float(variance) ** 0.5
    near = (sigma, np.nextafter(sigma, 0), np.nextafter(sigma, np.inf))
    return any(Fraction(float(each)) ** 2 == variance for each in near)


def fill(drawn: Int64, noise: Noise, words: WordsAndIntegers, *, bits: int = WORD_BITS) -> None:
    """Fill an array with noise, from one source of words of `bits` bits."""
    tables = noise.tables(bits)
    each = 2 if noise.width_bits else 1
    state = np.zeros(2, dtype=np.int64)
    batch = words.take(each * (len(drawn) + _SLACK))
    while (outcome := draw_noise(drawn, state, tables, batch, np.uint64(bits))) != DONE:
        if outcome == UNDECIDED:
            start = int(state[WORD])
            value = noise.finish(batch[start : start + each].tolist(), words, bits)
            state[WORD] += each
            if value is not None:
                drawn[state[CELL]] = value
                state[CELL] += 1
        else:
            batch = words.take(each * (len(drawn) - int(state[CELL]) + _SLACK))
            state[WORD] = 0


def choose(scores: Scores, epsilon: Fraction, source: Below, *, bits: int = WORD_BITS) -> int:
    """Choose an index by the exponential mechanism for scores of sensitivity 1 (R10).

    Index j is chosen with probability proportional to exp(-x_j), x_j = epsilon * (best -
    scores[j]) / 2. First a level, the whole part of x_j, in proportion to its candidates
    times exp(-level); then one of its candidates, kept with probability exp(level - x_j),
    or else all begins anew.

    Parameters
    ----------
    scores
        Whole numbers or fractions.
    source, bits
        Random integers, and how many bits of a number are asked for at a time.
    """
    levels = Levels.of(scores, epsilon)
    while True:
        level = invert(levels.cumulated, source.below(1 << bits), bits, source, bits)
        members = levels.members(level)
        chosen = int(members[source.below(len(members))])
        rest = levels.rate * int(levels.gaps[chosen]) - level
        if coin_exp(rest, 0, 0, source, bits):
            return chosen


@dataclass(frozen=True)
class Levels:
    """Candidates by the whole part of their exponents: level h weighs size * exp(-h).

    Parameters
    ----------
    gaps
        How far each candidate is behind the best.
    rate
        Exponent of a gap of 1.
    """

    gaps: Int64
    rate: Fraction

    @classmethod
    def of(cls, scores: Scores, epsilon: Fraction) -> Levels:
        """Return the levels of scores of sensitivity 1."""
        if epsilon <= 0:
            raise ParameterError("a choice's epsilon must be above 0")
        gaps, unit = _gaps(scores)
        return cls(gaps, epsilon / (2 * unit))

    def members(self, level: int) -> Int64:
        """Return the candidates of a level."""
        start, end = self._starts(level, level + 2)
        return np.flatnonzero((self.gaps >= start) & (self.gaps < end))

    def weights(self, bits: int, scale: int) -> Bounds:
        """Bound the weights of the levels, for `cumulative`.

        Levels beyond `scale` weigh less than a unit for each candidate.
        """
        last = min(scale, int(self.rate * int(self.gaps.max())))
        level = np.searchsorted(self._starts(0, last + 2), self.gaps, side="right") - 1
        *sizes, far = np.bincount(level, minlength=last + 2).tolist()
        powers = [*zip(sizes, _powers(scale), strict=False)]
        return [n * low for n, (low, _) in powers], [n * high for n, (_, high) in powers], far

    def cumulated(self, bits: int) -> list[int]:
        """Return the cumulated shares of the levels as integers (see `cumulative`)."""
        return cumulative(self.weights, bits)

    def _starts(self, first: int, end: int) -> list[int]:
        """Return the smallest gap of each level from `first` up to `end`."""
        upper, lower = self.rate.numerator, self.rate.denominator
        return [min(-(-level * lower // upper), _MOST_GAP) for level in range(first, end)]


def _gaps(scores: Scores) -> tuple[Int64, int]:
    """Return how far scores are behind the best, over the denominator that they share."""
    array = np.asarray(scores)
    if array.dtype.kind == "i":
        array = array.astype(np.int64)
        _check_range(int(array.max()), int(array.min()))
        return array.max() - array, 1
    given = scores.tolist() if isinstance(scores, np.ndarray) else scores
    unit = math.lcm(*{int(score.denominator) for score in given})
    whole = [int(Fraction(score) * unit) for score in given]
    best = max(whole)
    _check_range(best, min(whole))
    return np.array([best - score for score in whole], dtype=np.int64), unit


def _check_range(best: int, worst: int) -> None:
    if best - worst >= _MOST_GAP:
        raise ParameterError("scores of a private choice are too far apart for 64 bits")


@lru_cache(maxsize=8)
def _powers(scale: int) -> list[tuple[int, int]]:
    """Return integers on either side of 2**scale exp(-h), for h = 0 .. scale."""
    least, most = exp_bounds(Fraction(1), scale)
    powers = [(1 << scale, 1 << scale)]
    for _ in range(scale):
        low, high = powers[-1]
        powers.append((low * least >> scale, shift_up(high * most, scale)))
    return powers
