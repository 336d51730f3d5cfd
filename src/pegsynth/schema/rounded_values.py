"""Numbers inside bins as multiples of a step, for features whose values were rounded (R31)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64
from pegsynth.schema.binning import as_float
from pegsynth.schema.recoding import exact


def multiples_inside(
    values: NDArray[Any], bins: NDArray[np.integer[Any]], edges: Sequence[float], step: float
) -> Float64:
    """Return for every value a multiple of `step` in the same bin.

    It is the nearest one that the bin holds. A bin without any, which no rounded value falls
    in, gives the first multiple above its lower edge, or the last before the last edge. Nothing
    lies beyond the outer edges.
    """
    size = exact(step)
    first, last = _first_and_last(edges, size)
    wanted = _steps(values.astype(np.float64), step)
    steps = np.clip(wanted, first[bins], np.maximum(first, last)[bins])
    made = times_step(np.minimum(steps, last[-1]), size)
    held: Float64 = np.clip(made, edges[0], edges[-1])
    return held


def nearest_multiples(values: Float64, step: float) -> Float64:
    """Return the nearest multiples, the upper of two as near."""
    steps = _steps(values, step)
    # Numbers with so many steps in them have no other multiple near them.
    return np.where(np.isfinite(steps), times_step(steps, exact(step)), values)


def _steps(values: Float64, step: float) -> Float64:
    with np.errstate(over="ignore"):
        steps: Float64 = np.floor(values / step + 0.5)
    return steps


def times_step(steps: Float64, size: Fraction) -> Float64:
    """Return so many steps, divided once: three steps of 0.1 are 0.3."""
    with np.errstate(over="ignore"):
        made: Float64 = steps * float(size.numerator) / float(size.denominator)
    return made


def _first_and_last(edges: Sequence[float], size: Fraction) -> tuple[Float64, Float64]:
    """Return the first and the last multiple of every bin, counted in steps."""
    exact_edges = [exact(edge) / size for edge in edges]
    first = [math.ceil(edge) for edge in exact_edges[:-1]]
    last = [math.ceil(edge) - 1 for edge in exact_edges[1:]]
    last[-1] = math.floor(exact_edges[-1])
    return np.array(list(map(as_float, first))), np.array(list(map(as_float, last)))
