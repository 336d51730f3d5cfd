"""Discrete Laplace and Gaussian noise as bins with certified shares (R11, R15).

Both have weights exp(-(square k^2 + linear |k|)). A bin is a run of sizes |k| of the same
length, a power of two; its weight is that of its smallest size times twice the length.
Noise of small scale has bins of length 1, and a draw is one look into the table. Larger
noise has longer bins, so that about two thousand always do, and a proposal within a bin
is accepted with the ratio of its weight to that of the smallest size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ParameterError
from pegsynth.kernels.noise_draws import NoiseTables
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

MOST_BINS = 1 << 11
"""About how many bins there are at most."""

MOST_WIDTH_BITS = 48
"""The longest bins: with them the noise stays within 64 bits, and 16 bits accept or not."""

GUIDE_BITS = 12

_TAIL = 44
"""Beyond this exponent a word of 64 bits hardly reaches."""

_POINT = 63

_CACHED = 64


@dataclass(frozen=True)
class Noise:
    """Integer noise of weights exp(-(square k^2 + linear |k|)), in bins.

    Parameters
    ----------
    square, linear
        1/(2 variance) and 0 for discrete Gaussian noise, 0 and 1/scale for Laplace.
    width_bits
        Bins are 2**width_bits sizes long.
    """

    square: Fraction
    linear: Fraction
    width_bits: int

    @classmethod
    def gaussian(cls, variance: Fraction) -> Noise:
        """Return discrete Gaussian noise."""
        return cls._fitting(1 / (2 * variance), Fraction(0))

    @classmethod
    def laplace(cls, scale: Fraction) -> Noise:
        """Return discrete Laplace noise."""
        return cls._fitting(Fraction(0), 1 / scale)

    @classmethod
    def _fitting(cls, square: Fraction, linear: Fraction) -> Noise:
        for width_bits in range(MOST_WIDTH_BITS + 1):
            noise = cls(square, linear, width_bits)
            if noise.exponent(MOST_BINS << width_bits) >= _TAIL:
                return noise
        raise ParameterError(
            "noise of this scale would not fit into 64 bits; a budget this small leaves nothing"
        )

    def exponent(self, size: int) -> Fraction:
        """Return minus the logarithm of the weight of k and -k, for size = |k|."""
        return size * (size * self.square + self.linear)

    def start(self, index: int) -> int:
        """Return the smallest size in a bin."""
        return ((index - 1) << self.width_bits) + 1 if index else 0

    def weights(self, bits: int, scale: int) -> Bounds:
        """Bound the weights of the bins, for `cumulative`.

        The ratio of one weight to the next falls by the same factor from bin to bin, so
        that three exponentials give all of them; and what follows a bin is less than a
        geometric series.
        """
        one, factor = 1 << scale, self.width_bits + 1
        first, second, third = (self.exponent(self.start(index)) for index in (1, 2, 3))
        low, high = exp_bounds(first, scale)
        low_ratio, high_ratio = exp_bounds(second - first, scale)
        low_fall, high_fall = exp_bounds(third - 2 * second + first, scale)
        lows, highs, total = [one], [one], one
        while (high << (factor + scale)) > (total >> (bits + 4)) * (one - high_ratio):
            lows.append(low << factor)
            highs.append(high << factor)
            total += lows[-1]
            low, high = low * low_ratio >> scale, shift_up(high * high_ratio, scale)
            low_ratio = low_ratio * low_fall >> scale
            high_ratio = shift_up(high_ratio * high_fall, scale)
        return lows, highs, total >> (bits + 4)

    def cumulated(self, bits: int) -> Sequence[int]:
        """Return the cumulated shares of the bins as integers (see `cumulative`)."""
        return _cumulated(self, bits)

    def tables(self, bits: int = WORD_BITS) -> NoiseTables:
        """Return the arrays that the kernel reads, for words of `bits` bits."""
        return _tables(self, bits)

    def finish(self, attempt: Sequence[int], source: Below, bits: int = WORD_BITS) -> int | None:
        """Return what one or two words mean, with more bits where they leave it open.

        None if the proposal is rejected. This is the kernel's draw, for any words.
        """
        index = invert(self.cumulated, attempt[0] >> 1, bits - 1, source, bits)
        size = self.start(index)
        if index and self.width_bits:
            coin_bits = bits - self.width_bits
            offset, coin = divmod(attempt[1], 1 << coin_bits)
            exponent = self.exponent(size + offset) - self.exponent(size)
            if not coin_exp(exponent, coin, coin_bits, source, bits):
                return None
            size += offset
        return -size if attempt[0] & 1 else size


@lru_cache(maxsize=_CACHED)
def _cumulated(noise: Noise, bits: int) -> tuple[int, ...]:
    return tuple(cumulative(noise.weights, bits))


@lru_cache(maxsize=_CACHED)
def _tables(noise: Noise, bits: int) -> NoiseTables:
    cumulated = np.array(noise.cumulated(bits - 1), dtype=np.uint64)
    guide_bits = min(GUIDE_BITS, bits - 1)
    shift = bits - 1 - guide_bits
    beginnings = np.arange(1 << guide_bits, dtype=np.uint64) << np.uint64(shift)
    slope, bend = _slopes(noise, len(cumulated))
    return NoiseTables(
        cumulated,
        np.searchsorted(cumulated, beginnings, side="right").astype(np.int32),
        np.uint64(shift),
        slope,
        np.uint64(bend),
        np.uint64(noise.width_bits),
    )


def _slopes(noise: Noise, bins: int) -> tuple[NDArray[np.uint64], int]:
    """Return slope of every bin and bend, rounded down, of the exponent within a bin."""
    if noise.width_bits == 0:
        return np.zeros(bins, dtype=np.uint64), 0
    width = 1 << noise.width_bits
    bend = noise.square * width * width
    first = width * (2 * noise.square + noise.linear)
    unit = bend.denominator * first.denominator
    begin, step = (int(rise * unit) << _POINT for rise in (first, 2 * bend))
    slope = [(begin + index * step) // unit for index in range(bins - 1)]
    if Fraction(max(slope, default=0) + 2, 1 << _POINT) + bend > Fraction(1, 2):
        raise ParameterError("bins of noise are too wide for its scale")
    return np.array([0, *slope], dtype=np.uint64), int(bend * (1 << _POINT))
