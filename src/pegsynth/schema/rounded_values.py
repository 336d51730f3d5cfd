"""Numbers inside bins as multiples of a step, for features whose values were rounded (R31)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64
from pegsynth.schema.recoding import exact


def multiples_inside(
    values: NDArray[Any], bins: NDArray[np.integer[Any]], edges: Sequence[float], step: float
) -> NDArray[Any]:
    """Return for every value a multiple of `step` in the same bin.

    It is the nearest one that the bin holds. A bin without any, which no rounded value falls
    in, gives the first multiple above its lower edge.
    """
    size = exact(step)
    first, last = _first_and_last(edges, size)
    wanted = np.floor(values.astype(np.float64) / step + 0.5)
    steps = np.clip(wanted, first[bins], np.maximum(first, last)[bins]).astype(np.int64)
    return times_step(steps, size).astype(values.dtype)


def nearest_multiples(values: Float64, step: float) -> Float64:
    """Return the nearest multiples, the upper of two as near."""
    return times_step(np.floor(values / step + 0.5), exact(step))


def times_step(steps: NDArray[Any], size: Fraction) -> Float64:
    """Return so many steps, divided once: three steps of 0.1 are 0.3."""
    made: Float64 = steps * float(size.numerator) / float(size.denominator)
    return made


def _first_and_last(
    edges: Sequence[float], size: Fraction
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last multiple of every bin, counted in steps."""
    exact_edges = [exact(edge) / size for edge in edges]
    first = [_ceil(edge) for edge in exact_edges[:-1]]
    last = [_ceil(edge) - 1 for edge in exact_edges[1:]]
    last[-1] = exact_edges[-1].numerator // exact_edges[-1].denominator
    return np.array(first, dtype=np.int64), np.array(last, dtype=np.int64)


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
