"""From a noisy tree to the mass of every cell: post-processing of paid numbers (R21).

Least squares up and down the tree make parents and children agree; masses below zero are
projected away. Octaves beyond those that stand out of the noise are continued (`tails`),
and a node that was not divided gets the shape that its neighbours suggest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.number_grid import LEVELS, Grid
from pegsynth.codec.tails import FALSE_OCTAVES, Seen, continued, standing_out, visible_masses
from pegsynth.codec.tree import Level, NumberTree
from pegsynth.kernels.arrays import Float64, Int64

_ENDED_BELOW, _VISIBLE_ABOVE = 2.0, 6.0
"""An octave ends early if its last eighth is below, and its mean eighth above, so much noise."""
_ROUGHNESS = 1.0
"""How far a child may be from its expected mass, relative to it, before noise is looked at."""
_STEEPEST = 4.0
_LEAST_WEEKDAY = 1e-6


def cell_masses(tree: NumberTree, grid: Grid, *, beyond: bool = False) -> tuple[Float64, Float64]:
    """Return estimated rows in every finest cell, and in every special category.

    Parameters
    ----------
    beyond
        Whether tails go on beyond the sizes that surely occur, as their law has it: what a table
        may not show, because no size of it is certain, but what may be there all the same.
    """
    estimates, variances = _upwards(tree, grid)
    top = tree.levels[0]
    octaves = grid.nodes(0)
    special = np.maximum(top.counts[octaves:].astype(np.float64), 0.0)
    sides = grid.sides()
    visible = visible_masses(
        estimates[0],
        top.deviation,
        sides,
        _sizes(*grid.bounds(0), grid) if not grid.calendar else np.ones(octaves),
        laplace=tree.laplace,
        bounded=grid.calendar,
    )
    cells = _dealt(visible, estimates, variances, grid, tree)
    if grid.calendar:
        # Years beyond those that can be seen hold nothing: dates have no tails.
        return cells, special
    ends = _end_densities(tree, grid)
    allowed = np.ones(grid.cells, dtype=bool) if beyond else _allowed(tree, grid, visible, sides)
    masses = _with_tails(visible, estimates[0], top.deviation, cells, sides, ends, grid, allowed)
    return _within(_dealt(masses, estimates, variances, grid, tree), allowed, grid), special


def _allowed(tree: NumberTree, grid: Grid, visible: Float64, sides: Int64) -> NDArray[np.bool_]:
    """Return the cells that hold no size beyond twice one that surely occurs, of either sign.

    The nearest size of the last octave that stands out surely occurs, or of the last part of it
    beyond which the counts of its parts stand out.
    """
    octave = np.searchsorted(grid.starts[0], np.arange(grid.cells), side="right") - 1
    sizes = _sizes(grid.edges[:-1], grid.edges[1:], grid)
    allowed = np.zeros(grid.cells, dtype=bool)
    for side in (-1, 0, 1):
        held = np.flatnonzero((sides == side) & (visible > 0))
        if len(held):
            last = int(held[-1] if side >= 0 else held[0])
            reach = max(_reach(tree, grid, last, side), float(sizes[octave == last].min()))
            allowed |= (sides[octave] == side) & (sizes < max(2 * reach, grid.unit))
            allowed |= octave == last
    return allowed


def _sizes(low: Float64, high: Float64, grid: Grid) -> Float64:
    """Return the least size of the numbers of cells; 0 for those that hold zero."""
    sizes: Float64 = np.maximum(np.maximum(low, grid.unit - high), 0.0)
    return sizes


def _reach(tree: NumberTree, grid: Grid, octave: int, side: int) -> float:
    """Return a size that parts of an octave reach, beyond what noise might have made of them."""
    level = tree.levels[1]
    mine = np.flatnonzero(grid.parents(1)[level.nodes] == octave)
    if not len(mine):
        return 0.0
    outer = np.cumsum(level.counts[mine][:: -side or 1]) / np.sqrt(np.arange(len(mine)) + 1.0)
    enough = standing_out(len(mine), level.deviation, laplace=tree.laplace, chance=FALSE_OCTAVES)
    out = np.flatnonzero(outer > enough)
    if not len(out):
        return 0.0
    low, high = (each[level.nodes[mine[:: -side or 1][out[0]]]] for each in grid.bounds(1))
    return float(min(abs(low), abs(high)))


def _within(cells: Float64, allowed: NDArray[np.bool_], grid: Grid) -> Float64:
    """Move what lies beyond the cells that are allowed to the rest of its octave."""
    octave = np.searchsorted(grid.starts[0], np.arange(grid.cells), side="right") - 1
    whole = np.bincount(octave, cells)
    kept = np.where(allowed, cells, 0.0)
    inside = np.bincount(octave, kept)
    scale = np.divide(whole, inside, out=np.zeros_like(whole), where=inside > 0)
    return kept * scale[octave]


def _dealt(
    masses: Float64,
    estimates: list[Float64],
    variances: list[Float64],
    grid: Grid,
    tree: NumberTree,
) -> Float64:
    """Deal the masses of octaves to the finest cells."""
    slopes = _slopes(masses, grid)
    for level in range(1, LEVELS):
        weights = _weights(tree, grid, slopes, level)
        masses = _downwards(
            masses, weights, estimates[level], variances[level], grid, level, laplace=tree.laplace
        )
    return masses


def _with_tails(
    visible: Float64,
    noisy: Float64,
    deviation: float,
    cells: Float64,
    sides: Int64,
    ends: tuple[Float64, Float64],
    grid: Grid,
    allowed: NDArray[np.bool_],
) -> Float64:
    """Continue the masses that can be seen, on both sides of zero and in both directions."""
    masses = visible.copy()
    low, high = grid.bounds(0)
    octave = np.searchsorted(grid.starts[0], np.arange(grid.cells), side="right") - 1
    open_octaves = np.bincount(octave, allowed) > 0
    for side in (-1, 1):
        held = np.flatnonzero((sides == side) & (visible > 0))
        if not len(held):
            continue
        sizes = (low, high) if side > 0 else (-high, -low)
        mine = (sides[octave] == side) & (cells > 0)
        edges = (grid.edges[:-1][mine], grid.edges[1:][mine])
        near, far = edges if side > 0 else (-edges[1], -edges[0])
        seen = Seen(cells[mine], near, far)
        for step, last in ((1, held[-1]), (-1, held[0])):
            if ends[step > 0][last] <= 0:
                continue
            run = np.arange(last, len(noisy) if step > 0 else -1, step)
            run = run[(sides[run] == side) & open_octaves[run]]
            continued(masses, noisy, deviation, sizes, run, seen, outwards=step == side)
    return masses


def _upwards(tree: NumberTree, grid: Grid) -> tuple[list[Float64], list[Float64]]:
    """Combine what was measured of every node with the sum of its children, by variance."""
    estimates = [np.zeros(grid.nodes(level)) for level in range(LEVELS)]
    variances = [np.full(grid.nodes(level), np.inf) for level in range(LEVELS)]
    for level in reversed(range(LEVELS)):
        measured = tree.levels[level]
        inside = measured.nodes < grid.nodes(level)
        nodes = measured.nodes[inside]
        own, spread = np.zeros(grid.nodes(level)), np.full(grid.nodes(level), np.inf)
        own[nodes], spread[nodes] = measured.counts[inside], max(measured.deviation, 1e-9) ** 2
        if level + 1 < LEVELS:
            starts = np.searchsorted(grid.parents(level + 1), np.arange(grid.nodes(level)))
            below = np.add.reduceat(estimates[level + 1], starts)
            noise = np.add.reduceat(variances[level + 1], starts)
        else:
            below, noise = np.zeros_like(own), np.full_like(own, np.inf)
        precision = 1 / spread + 1 / noise
        known = precision > 0
        combined = own / spread + np.where(np.isinf(noise), 0.0, below / noise)
        estimates[level][known] = combined[known] / precision[known]
        variances[level][known] = 1 / precision[known]
    return estimates, variances


def _end_densities(tree: NumberTree, grid: Grid) -> tuple[Float64, Float64]:
    """Return 0 for the ends of octaves that hold nothing while the octave does, else 1."""
    low, high = np.ones(grid.nodes(0)), np.ones(grid.nodes(0))
    level: Level = tree.levels[1]
    if not len(level.nodes):
        return low, high
    counts = level.counts.astype(np.float64)
    parents = grid.parents(1)[level.nodes]
    starts = np.flatnonzero(np.diff(parents, prepend=-1))
    sums, number = np.add.reduceat(counts, starts), np.diff(np.append(starts, len(counts)))
    for found, ends in ((low, starts), (high, starts + number - 1)):
        ended = counts[ends] <= _ENDED_BELOW * level.deviation
        visible = sums / number > _VISIBLE_ABOVE * level.deviation
        found[parents[starts]] = np.where(ended & visible, 0.0, 1.0)
    return low, high


def _slopes(masses: Float64, grid: Grid) -> Float64:
    """Return the slope of the log density against the log of the number, in every octave.

    Both neighbours count, as far as they have the same sign and any mass.
    """
    low, high = grid.bounds(0)
    side = grid.sides()
    usable = (masses > 0) & (side != 0)
    density = np.log(np.where(usable, masses, 1.0) / np.where(usable, high - low, 1.0))
    centre = np.log(np.where(usable, np.abs(low / 2 + high / 2), 1.0))
    total, number = np.zeros(len(masses)), np.zeros(len(masses))
    pairs = np.flatnonzero(usable[:-1] & usable[1:] & (side[:-1] == side[1:]))
    rise = (density[pairs + 1] - density[pairs]) / (centre[pairs + 1] - centre[pairs])
    for place in (pairs, pairs + 1):
        total[place] += rise
        number[place] += 1
    return np.clip(total / np.maximum(number, 1), -_STEEPEST, _STEEPEST)


def _downwards(
    masses: Float64,
    weights: Float64,
    estimates: Float64,
    variances: Float64,
    grid: Grid,
    level: int,
    *,
    laplace: bool,
) -> Float64:
    """Deal the masses of a level to its children: as they were measured, or by their shape."""
    parents = grid.parents(level)
    whole = np.bincount(parents, weights=weights, minlength=len(masses))
    dealt: Float64 = masses[parents] * (weights / whole[parents])
    measured = np.flatnonzero(np.isfinite(variances))
    outstanding = standing_out(max(len(measured), 1), 1.0, laplace=laplace)
    groups = np.split(measured, np.flatnonzero(np.diff(parents[measured])) + 1)
    for children in groups:
        if len(children):
            total = float(masses[parents[children[0]]])
            expected = (_ROUGHNESS * dealt[children]) ** 2
            # A value at which rows heap up has a cell far too narrow for its mass: what stands
            # out of the noise is believed, however little the shape of its octave expects there.
            more = estimates[children] - dealt[children]
            heaped = more > outstanding * np.sqrt(variances[children])
            expected = np.where(heaped, np.maximum(expected, more**2), expected)
            weight = expected / (expected + variances[children])
            pulled = dealt[children] + weight * (estimates[children] - dealt[children])
            dealt[children] = _projected(pulled, weight * variances[children], total)
    return dealt


def _weights(tree: NumberTree, grid: Grid, slopes: Float64, level: int) -> Float64:
    """Return how the mass of a node that was not divided is dealt to its children."""
    if tree.weekday is not None and grid.weekdays is not None:
        counts = np.maximum(tree.weekday.counts.astype(np.float64), 0.0)
        shares = np.maximum(counts / max(float(counts.sum()), 1.0), _LEAST_WEEKDAY)
        finest = np.diff(grid.edges) * shares[grid.weekdays]
        return np.add.reduceat(finest, grid.starts[level])
    octave = np.searchsorted(grid.starts[0], grid.starts[level], side="right") - 1
    # The mass of a density x^slope in every cell, near enough.
    low, high = grid.bounds(level)
    width, centre = high - low, np.abs(low / 2 + high / 2)
    with np.errstate(divide="ignore", over="ignore"):
        weights = width * np.where(centre > 0, centre, 1.0) ** slopes[octave]
    return np.where(np.isfinite(weights) & (weights > 0), weights, width)


def _projected(estimates: Float64, variances: Float64, total: float) -> Float64:
    """Return non-negative masses of this total, each moved in proportion to its variance."""
    kept, tiny = np.ones(len(estimates), dtype=bool), np.finfo(np.float64).tiny
    masses = np.zeros(len(estimates))
    while kept.any():
        spread = variances[kept] + tiny
        excess = (estimates[kept].sum() - total) / spread.sum()
        masses[kept] = estimates[kept] - excess * spread
        below = kept & (masses < 0)
        if not below.any():
            break
        masses[below] = 0.0
        kept &= ~below
    whole = masses.sum()
    return masses * (total / whole) if whole > 0 else np.full(len(masses), total / len(masses))
