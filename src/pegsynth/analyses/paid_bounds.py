"""Where numbers are clipped: at quantiles of what was paid for before (R26).

Noisy one-way counts say how many rows a bin has, a measured shape how they lie in it. Neither
looks at the table again, so bounds cost nothing, and one row moves none of them by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pegsynth.analyses.row_scores import SCORED
from pegsynth.analyses.sum_design import Bounds
from pegsynth.analyses.terms import Design
from pegsynth.arrays import Float64, Int64
from pegsynth.numbers.bin_shape import Shape
from pegsynth.released.published import Released
from pegsynth.schema import Feature, Schema

LEAST_TAIL, MOST_TAIL = 0.0005, 0.06
"""Part of the rows that is clipped at either end, as the paid counts have it."""
TAIL_OF_NOISE = 4.0
"""How many times the noise on a mean that part is: the wider the bounds, the louder the noise."""
RESIDUAL_TAIL = 0.5
"""So many times as many residuals of a linear regression are clipped by themselves."""
LENGTH_TAIL = 2.0
"""So many times as many rows of a scored regression are clipped by the length of their score."""


def tail_for(noise: float) -> float:
    """Return the part of the rows to clip at either end, from public figures and paid output.

    Parameters
    ----------
    noise
        Deviation of the noise on a mean of products of numbers in [-1, 1].
    """
    return min(max(TAIL_OF_NOISE * noise, LEAST_TAIL), MOST_TAIL)


def residual_tail(tail: float) -> float:
    """Return the part of the residuals to clip where the noise asks for a tail."""
    return RESIDUAL_TAIL * tail


def length_tail(tail: float) -> float:
    """Return the part of the rows to clip by the length of their score."""
    return LENGTH_TAIL * tail


def paid_bounds(
    design: Design, schema: Schema, released: Released, shapes: Mapping[str, Shape], *, tail: float
) -> Bounds:
    """Return the bounds of all binned numbers of an analysis, from published counts alone.

    Rows that are scored are clipped by their residual and their length, and numbers themselves
    no more than need be.
    """
    names = {part.feature for part in design.parts if part.kind == "number"}
    part = LEAST_TAIL if design.analysis.family in SCORED else tail
    return {
        name: _quantiles(
            schema[name],
            released.one_ways[schema.index(name)].counts,
            shapes.get(name),
            part,
        )
        for name in names
        if schema[name].binned
    }


def _quantiles(
    feature: Feature, counts: Int64 | Float64, shape: Shape | None, tail: float
) -> tuple[float, float]:
    masses = np.maximum(counts[: feature.bin_count].astype(np.float64), 0.0)
    edges = np.asarray(feature.edges, dtype=np.float64)
    if not masses.any():
        return float(edges[0]), float(edges[-1])
    low, high, parts = edges[:-1], edges[1:], masses
    if shape is not None:
        low, high, parts = shape.low, shape.high, shape.parts * masses[shape.bins]
    reached = np.cumsum(parts) / parts.sum()
    bounds = []
    for share in (tail, 1 - tail):
        piece = min(int(np.searchsorted(reached, share)), len(parts) - 1)
        start = reached[piece - 1] if piece else 0.0
        width = max(float(reached[piece] - start), 1e-300)
        place = min(max((share - start) / width, 0.0), 1.0)
        bounds.append(float(low[piece] + place * (high[piece] - low[piece])))
    if bounds[0] < bounds[1]:
        return bounds[0], bounds[1]
    return float(edges[0]), float(edges[-1])
