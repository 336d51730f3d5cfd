"""One clipped sum for each column of numbers, and shapes that agree with it (R21).

Noisy counts say little about a mean that hangs on a few large numbers. The sum of how far all
numbers are from a centre, clipped at a bound, is one figure with noise of its own; centre and bound
follow from the noisy tree. It is counted on the same grid, in whole steps, so a row adds at most a
public number of them. Values inside bins are then tilted until the mean of all rows agrees with it,
as far as both are uncertain: that is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.estimate import cell_masses
from pegsynth.codec.number_grid import LEVELS, Grid, grid_of
from pegsynth.codec.tree import PURPOSE, Filter, Level, NumberTree, measured_again
from pegsynth.kernels.arrays import Codes, Float64, Int64
from pegsynth.schema.feature import Feature
from pegsynth.schema.schema import Schema

STEPS = 1 << 20
"""Steps between the centre and the bound."""
SUM_PART = 0.4
"""The part of a feature's amount that its sum takes, usually."""
_UNSURE = 0.5
"""How far the mean of a bin is from that of its shape, in deviations of the shape."""
_TINIEST = float(np.finfo(np.float64).tiny)
_MOST_TILT, _HALVINGS = 50.0, 50


def with_sum(
    tree: NumberTree,
    counts: Int64,
    feature: Feature,
    budget_filter: Filter,
    share: float,
    *,
    index: int,
    rows: float | None,
    steps: int,
) -> NumberTree:
    """Return a tree with the clipped sum of its numbers, paid by a part of the budget.

    Where the tree shows no number but one, there is nothing to clip at: octaves are measured once
    more instead, if none was divided, so that a small table may yet show its numbers.

    Parameters
    ----------
    counts
        Exact counts of the cells of the feature's grid, then of its special categories.
    rows
        Number of rows, public or paid for; None: what the tree says.
    steps
        The most that a row adds.
    """
    grid = grid_of(feature)
    masses, special = cell_masses(tree, grid)
    if np.count_nonzero(masses) < 2:
        return measured_again(tree, counts, grid, budget_filter, share, index=index)
    centre, bound = _centre_and_bound(grid, masses, budget_filter.deviation(share))
    total = steps_of(grid, centre, bound, steps) @ counts[: grid.cells]
    noisy, deviation = budget_filter.measure_sums(
        np.array([total]),
        share,
        largest_sum=steps,
        largest_square=steps**2,
        features=(index,),
        purpose=PURPOSE,
    )
    number = float(masses.sum()) if rows is None else rows - float(special.sum())
    nodes = np.array([centre, bound, max(round(number), 1), steps])
    return replace(tree, levels=(*tree.levels, Level(nodes, noisy, deviation)))


def _centre_and_bound(grid: Grid, masses: Float64, deviation: float) -> tuple[int, int]:
    """Return the cells of the centre and of the bound, by what can be seen.

    The centre is the mean; the bound is as far out as the noise is worth it.

    Parameters
    ----------
    masses
        Rows of every cell, as the tree has them.
    deviation
        Noise of the sum, in rows at the bound.
    """
    held = np.flatnonzero(masses > 0)
    values, mass = _middles(grid.edges[held], grid.edges[held + 1], grid.unit), masses[held]
    # Of the size of 1, so that no square of a far number overflows.
    values = values / max(float(np.abs(values).max()), _TINIEST)
    centre = int(np.argmin(np.abs(values - mass @ values / mass.sum())))
    away = np.abs(values - values[centre])
    order = np.argsort(away, kind="stable")
    size, mass = away[order], mass[order]
    # What is clipped at each distance: the rows beyond it, as far as they are beyond.
    beyond, above = (np.append(np.cumsum(each[::-1])[-2::-1], 0.0) for each in (mass, mass * size))
    lost = np.where(size > 0, (above - beyond * size) ** 2 + (size * deviation) ** 2, np.inf)
    return int(held[centre]), int(held[order[int(np.argmin(lost))]])


def steps_of(grid: Grid, centre: int, bound: int, steps: int) -> Int64:
    """Return what a row of each cell adds: at most `steps` either way, whatever the cell."""
    return _steps(_middles(grid.edges[:-1], grid.edges[1:], grid.unit), grid, centre, bound, steps)


def _steps(values: Float64, grid: Grid, centre: int, bound: int, steps: int) -> Int64:
    ends = np.array([centre, bound])
    # Halves, because the distance of the farthest numbers is no float.
    middle, far = (_middles(grid.edges[ends], grid.edges[ends + 1], grid.unit) / 2).tolist()
    reach = max(abs(far - middle), _TINIEST)
    away = np.clip(values / 2, middle - reach, middle + reach) - middle
    whole: Int64 = np.rint(np.clip(away / reach, -1.0, 1.0) * steps).astype(np.int64)
    return whole


def _middles(low: Float64, high: Float64, unit: float) -> Float64:
    """Return the number that stands for each cell or piece."""
    middle: Float64 = low / 2 + np.maximum(high - unit, low) / 2
    return middle


def bin_counts(shapes: Mapping[str, Shape], schema: Schema, codes: Codes) -> Int64:
    """Count synthetic rows by the bins of every shape, one shape after the other."""
    lines = [
        np.bincount(codes[:, schema.index(name)], minlength=len(shape.shares))[: len(shape.shares)]
        for name, shape in shapes.items()
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *lines])


def agreeing_shapes(shapes: Mapping[str, Shape], schema: Schema, counts: Int64) -> dict[str, Shape]:
    """Return shapes whose means agree with the clipped sums, for rows with these bins.

    Parameters
    ----------
    counts
        How many values are drawn from each bin, as `bin_counts` has it.
    """
    found, start = {}, 0
    for name, shape in shapes.items():
        line = counts[start : start + len(shape.shares)]
        found[name] = agreeing(shape, schema[name], line.astype(np.float64))
        start += len(line)
    return found


def agreeing(shape: Shape, feature: Feature, counts: Float64) -> Shape:
    """Return a shape whose values are tilted inside bins, so that their mean agrees with the sum.

    The tilt is one for all bins, exp(t x), so that wide bins at the ends move and narrow ones do
    not. It goes as far towards the sum as noise and the number of rows allow.

    Parameters
    ----------
    counts
        Rows of every bin, or their weights.
    """
    level = None if shape.source is None else shape.source.tree.clipped_sum
    number = float(counts.sum())
    if shape.source is None or level is None or number <= 0:
        return shape
    centre, bound, rows, steps = level.nodes.tolist()
    grid = shape.source.grid(feature)
    middles = _middles(shape.low, shape.high, shape.unit)
    added = _steps(middles, grid, centre, bound, steps) / steps
    parts, bins = counts / number, shape.bins
    means = np.bincount(bins, shape.parts * added, len(parts))
    squares = np.bincount(bins, shape.parts * added**2, len(parts))
    mean = float(parts @ means)
    unsure = float((_UNSURE * parts) ** 2 @ np.maximum(squares - means**2, 0.0))
    # Fewer rows than the original has are further from it by chance.
    fewer = max(1 / number - 1 / rows, 0.0) * float(parts @ (means - mean) ** 2)
    noise = (level.deviation / (steps * rows)) ** 2 + fewer
    if unsure <= 0:
        return shape
    off = float(level.counts[0]) / (steps * rows) - mean
    wanted = mean + off * unsure / (unsure + noise)
    low, high = -_MOST_TILT, _MOST_TILT
    for _ in range(_HALVINGS):
        tilt = (low + high) / 2
        if parts[bins] @ (_tilted(shape, added, tilt) * added) < wanted:
            low = tilt
        else:
            high = tilt
    return shape.with_parts(_tilted(shape, added, (low + high) / 2))


def without_sum(shape: Shape) -> Shape:
    """Return a shape for other rows than those that were added up."""
    source = shape.source
    if source is None or source.tree.clipped_sum is None:
        return shape
    tree = replace(source.tree, levels=source.tree.levels[:LEVELS])
    return replace(shape, source=replace(source, tree=tree))


def _tilted(shape: Shape, added: Float64, tilt: float) -> Float64:
    """Return the parts of every piece in its bin, tilted towards what it adds."""
    exponents = tilt * added
    highest = np.maximum.reduceat(exponents, shape.starts[:-1])
    heavy = shape.parts * np.exp(exponents - highest[shape.bins])
    found: Float64 = heavy / np.bincount(shape.bins, heavy)[shape.bins]
    return found
