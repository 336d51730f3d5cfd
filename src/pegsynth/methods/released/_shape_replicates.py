"""Replicates of measured shapes: what other rows and other noise could have given (R21, R28).

A shape inside bins comes from a noisy tree. Rows are drawn anew from the masses that the tree
gave, fresh noise of the same law is added, and a shape is made of that as of the first tree.
Only published counts are read, so nothing is charged. Rows that are there already are weighed
by a part f of the new density over the old one (`pegsynth.inference.combining_rules`); what a
bin holds in all is left to the published tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from pegsynth.codec.bin_shape import Shape
from pegsynth.codec.clipped_sum import agreeing, steps_of
from pegsynth.codec.measured_numbers import measured_masses, shape_of
from pegsynth.codec.number_grid import Grid
from pegsynth.codec.tree import PURPOSE, Level, NumberTree
from pegsynth.inference.combining_rules import PART
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.mechanisms.noise import add_noise
from pegsynth.methods.released._replicates import split_counts
from pegsynth.methods.released._row_replicates import LEAST_WEIGHT, MOST_WEIGHT
from pegsynth.privacy import NoisyCounts
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.number_text import NumberText

Shapes = Mapping[str, Shape]

_MOST_FACTOR = 1 + (MOST_WEIGHT - 1) / PART
"""With a part of it a row counts as much as weights allow."""
_FARTHEST = 100.0
"""So many times as far as any row is the farthest that a tail is taken to be."""
_LEAST_SPREAD = 1e-9


def replicated_shapes(
    shapes: Shapes,
    schema: Schema,
    stream: RandomStream,
    *,
    count: int,
    design_effect: float = 1.0,
    beyond: bool = False,
) -> list[dict[str, Shape]]:
    """Return the shapes of a model with fresh sampling and noise, `count` times.

    Parameters
    ----------
    schema
        The settled schema.
    design_effect
        How many times the sampling variance of a count is that of independent rows; 0: noise alone.
    beyond
        Whether end bins have the tails that noise may hide beyond the numbers of a table. Such
        shapes are for weights alone: no value of theirs is certain enough to be drawn.
    """
    lines = {
        name: _replicates(shape, schema, name, stream.child(), count, design_effect, beyond)
        for name, shape in shapes.items()
    }
    return [{name: next(line) for name, line in lines.items()} for _ in range(count)]


def _replicates(
    shape: Shape,
    schema: Schema,
    name: str,
    stream: RandomStream,
    count: int,
    design_effect: float,
    beyond: bool,
) -> Iterator[Shape]:
    feature, source = schema[name], shape.source
    if source is None:
        for _ in range(count):
            yield shape
        return
    grid = source.grid(feature)
    written = None if source.bounds is None else NumberText(schema.dialect)
    masses = measured_masses(feature, source.tree, grid, written)
    words = stream.substream()
    rows = np.array([max(round(float(masses.sum())), 1)])
    expected = masses * (float(rows[0]) / max(float(masses.sum()), 1e-300))
    one_level = np.zeros(len(masses), dtype=np.int64)
    for _ in range(count):
        drawn = split_counts(rows, one_level, masses, words)
        moved = (drawn - expected) * math.sqrt(design_effect)
        tree = _perturbed(source.tree, grid, moved, stream)
        fresh = measured_masses(feature, tree, grid, written, beyond=beyond)
        opened = _opened(feature, grid, fresh) if beyond else feature
        # Its own clipped sum, which the mean of its rows agrees with (R21).
        yield replace(shape_of(opened, grid, fresh), source=replace(source, tree=tree))


def _opened(feature: Feature, grid: Grid, masses: Float64) -> Feature:
    """Return a feature whose end bins reach as far as any mass."""
    held = np.flatnonzero(masses > 0)
    low, *inner, high = feature.edges
    ends = float(grid.edges[held[0]]), float(grid.edges[held[-1] + 1])
    return feature.with_edges((min(low, ends[0]), *inner, max(high, ends[1])))


def _perturbed(tree: NumberTree, grid: Grid, moved: Float64, stream: RandomStream) -> NumberTree:
    """Return a tree whose counts have moved with other rows, and have other noise."""
    levels = []
    for number, level in enumerate(tree.levels):
        if not len(level.nodes):
            levels.append(level)
            continue
        if tree.weekday is level:
            away = np.zeros(len(level.nodes))
        elif tree.clipped_sum is level:
            centre, bound, _, steps = level.nodes.tolist()
            away = np.array([steps_of(grid, centre, bound, steps) @ moved])
        else:
            totals = np.add.reduceat(moved, grid.starts[number])
            inside = level.nodes < len(totals)
            # Nodes beyond the grid are special categories, which have no shape.
            away = np.where(inside, totals[np.minimum(level.nodes, len(totals) - 1)], 0.0)
        noise = add_noise(np.zeros(len(level.counts), dtype=np.int64), _law(tree, level), stream)
        counts = level.counts + np.rint(away).astype(np.int64) + noise
        levels.append(replace(level, counts=counts))
    return replace(tree, levels=tuple(levels))


def _law(tree: NumberTree, level: Level) -> NoisyCounts:
    if tree.laplace:
        return NoisyCounts.laplace(level.deviation / math.sqrt(2.0), cells=1, purpose=PURPOSE)
    return NoisyCounts.gaussian(level.deviation, cells=1, purpose=PURPOSE)


def reweighed(
    frame: pl.DataFrame,
    weights: Float64,
    perturbed: Float64,
    schema: Schema,
    shapes: Shapes,
    replicates: Sequence[Shapes],
) -> Float64:
    """Return weights that follow the shapes of replicates inside every bin.

    Parameters
    ----------
    frame
        Rows whose values were drawn by `shapes`.
    weights
        A line for each replicate.
    perturbed
        The same before noise: with what drawing rows again does to these rows.
    """
    found = weights.copy()
    for name, shape in shapes.items():
        column = frame.get_column(name)
        if shape.source is None or not column.dtype.is_numeric():
            continue
        values = column.cast(pl.Float64).to_numpy()
        rows = np.flatnonzero(np.isfinite(values))
        values = values[rows]
        bins = np.searchsorted(np.asarray(schema[name].edges[1:-1]), values, side="right")
        feature, count = schema[name], len(shape.shares)
        counts = np.bincount(bins, minlength=count).astype(np.float64)
        usual = densities(agreeing(shape, feature, counts), values)
        for line, before, other in zip(found, perturbed, replicates, strict=True):
            # What bins would hold with all of the noise, of which weights have a part.
            moved = np.bincount(bins, line[rows] - before[rows], count) / PART
            fresh = agreeing(other[name], feature, np.maximum(counts + moved, 0.0))
            new = densities(fresh, values)
            with np.errstate(over="ignore"):
                factors = np.divide(new, usual, out=np.ones_like(new), where=usual > 0)
            # A number with a cell of its own may have any density next to one without.
            factors = 1 + PART * (np.minimum(factors, _MOST_FACTOR) - 1)
            line[rows] *= _kept_in_bins(factors, line[rows], bins, count)
            for end, edge in {count - 1: feature.edges[-1], 0: feature.edges[0]}.items():
                inside = np.flatnonzero(bins == end)
                here = line[rows[inside]]
                factors = _reaching(fresh, end, edge, values[inside], here)
                line[rows[inside]] *= _kept_in_bins(factors, here, bins[inside], count)
    return found


def _reaching(shape: Shape, end: int, edge: float, values: Float64, weights: Float64) -> Float64:
    """Return factors by which an end bin gets the mean of a tail that none of its rows shows.

    Rows cannot have the values that lie beyond the edge. They get a part f of what these do to
    the mean of the bin, the largest most. Two moments at once would make both ends of the bin
    heavy, because within it no weights have as large a second one.

    Parameters
    ----------
    shape
        A shape whose end bins reach beyond the edge.
    values, weights
        Of the rows of the bin.
    """
    pieces = slice(shape.starts[end], shape.starts[end + 1])
    low, high, parts = shape.low[pieces], shape.high[pieces], shape.parts[pieces]
    outside = low >= edge if end else high <= edge
    scale = float(np.abs(values).max(initial=0.0))
    if not outside.any() or outside.all() or scale <= 0:
        return np.ones_like(values)
    middles = np.clip(low / 2 + high / 2, -_FARTHEST * scale, _FARTHEST * scale) / scale
    seen = float(middles[~outside] @ parts[~outside]) / float(parts[~outside].sum())
    missing = PART * (float(middles @ parts) - seen)
    centred = values / scale - float(values @ weights) / scale / float(weights.sum())
    spread = float(weights @ centred**2) / float(weights.sum())
    factors = 1 + missing * centred / max(spread, _LEAST_SPREAD)
    return np.clip(factors, LEAST_WEIGHT, MOST_WEIGHT)


def _kept_in_bins(factors: Float64, weights: Float64, bins: Int64, count: int) -> Float64:
    """Scale factors so that every bin keeps its weight, where it has any left."""
    before = np.bincount(bins, weights, count)
    after = np.bincount(bins, weights * factors, count)
    scale = np.divide(before, after, out=np.zeros(count), where=after > 0)
    kept: Float64 = np.where(after[bins] > 0, factors * scale[bins], 1.0)
    return kept


def densities(shape: Shape, values: Float64) -> Float64:
    """Return how dense values lie at numbers, as parts of the mass of their bin."""
    piece = np.maximum(np.searchsorted(shape.low, values, side="right") - 1, 0)
    inside = (values >= shape.low[piece]) & (values < shape.high[piece])
    # The density of a narrower piece would be no float; it cancels out between replicates.
    width = np.maximum(shape.high - shape.low, np.finfo(np.float64).tiny)
    found: Float64 = np.where(inside, (shape.parts / width)[piece], 0.0)
    return found
