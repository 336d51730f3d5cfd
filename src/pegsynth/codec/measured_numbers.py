"""Measure the numbers of a feature: a noisy tree, then one clipped sum (R21).

`measure` is the only way from the exact counts of a grid to anything that may be published.

Edges and shapes out of noisy trees: a schema with private edges becomes one with bins.

All of it is post-processing of what was paid for, and of public figures (R21). Bins hold
about the same number of rows each; a number that is as frequent as a whole bin, such as
zero, gets a bin of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pegsynth.codec.bin_shape import Shape, ShapeSource
from pegsynth.codec.clipped_sum import STEPS, SUM_PART, with_sum
from pegsynth.codec.encoding import special_numbers
from pegsynth.codec.estimate import cell_masses
from pegsynth.codec.levels import merged_rare
from pegsynth.codec.number_grid import Grid, grid_of, kept_highest
from pegsynth.codec.tree import Filter, NumberTree, measure_tree
from pegsynth.errors import ParameterError, escaped
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.schema.calendar_units import TEMPORAL
from pegsynth.schema.date_text import DateText
from pegsynth.schema.feature import Feature
from pegsynth.schema.number_text import NumberText
from pegsynth.schema.schema import Schema


def has_sum(feature: Feature) -> bool:
    """Whether a clipped sum is measured of a feature."""
    return feature.kind == "numeric" and feature.inside != "uniform"


def measure(
    counts: Int64,
    feature: Feature,
    budget_filter: Filter,
    share: float,
    *,
    index: int = 0,
    rows: float | None = None,
    sum_part: float = SUM_PART,
    steps: int = STEPS,
) -> NumberTree:
    """Measure the numbers of a feature with a part of a budget.

    Parameters
    ----------
    counts
        Exact counts of the cells of the feature's grid, then of its special categories.
    budget_filter
        The privacy filter that adds the noise and writes an event for every step.
    share
        The most of the whole that may be spent; what is not spent stays in the privacy filter.
    index
        Position of the feature, for the events.
    rows
        Number of rows, public or paid for before; None where neither is known.
    sum_part
        The part of it that the clipped sum takes, where there is one.
    steps
        Steps between the centre and the bound of a clipped sum; audits take few.
    """
    part = sum_part * share if has_sum(feature) else 0.0
    tree = measure_tree(counts, feature, budget_filter, share - part, index=index)
    if not part:
        return tree
    return with_sum(tree, counts, feature, budget_filter, part, index=index, rows=rows, steps=steps)


FEWEST_BINS, MOST_BINS = 6, 24
_USUAL_BINS, _USUAL_SIGNAL, _GROWTH = 12, 30_000.0, 0.18
_VALUES_FACTOR = 2


@dataclass(frozen=True)
class Settled:
    """A schema with public edges, and the shape inside the bins of every measured feature."""

    schema: Schema
    shapes: Mapping[str, Shape]


def bins_for(rows: float, deviation: float, *, model: bool = True) -> int:
    """Return how many bins to make, from public figures or paid output.

    Parameters
    ----------
    rows
        Number of rows, public or noisy.
    deviation
        Standard deviation of the noise that the whole budget of the release would put on
        one table of counts.
    model
        Whether values inside bins follow a model of the other features. Without one it
        takes twice as many bins to keep what numbers have to do with each other.
    """
    signal = max(rows, 1.0) / max(deviation, 1e-9)
    wanted = _USUAL_BINS * (signal / _USUAL_SIGNAL) ** _GROWTH
    bins: int = round(min(max(wanted, FEWEST_BINS), MOST_BINS))
    return bins if model else bins * _VALUES_FACTOR


def settle(schema: Schema, trees: Mapping[str, NumberTree], bins: int) -> Settled:
    """Return the schema with the edges that trees give, and the shapes inside all bins.

    Parameters
    ----------
    schema
        The schema that was measured; features with public edges keep them.
    trees
        The tree of every feature that wants a shape.
    bins
        Bins of a feature that does not say how many it wants.
    """
    shapes: dict[str, Shape] = {}
    columns = []
    for column in schema.columns:
        if not column.wants_shape or not column.modelled:
            columns.append(column)
            continue
        if column.name not in trees:
            raise ParameterError(f"feature {column.name!r} was not measured")
        if not column.binned:
            (level,) = trees[column.name].levels
            columns.append(merged_rare(column, level.counts, level.deviation))
            continue
        highest = kept_highest(column, schema) if column.private_edges else column.highest
        settled, shapes[column.name] = _settled(
            column, trees[column.name], column.bins or bins, highest, NumberText(schema.dialect)
        )
        columns.append(settled)
    return Settled(schema.with_columns(columns), shapes)


def constant_numbers(schema: Schema) -> tuple[str, ...]:
    """Say which numbers of a settled schema have one value, and what may be done about it.

    Edges are public or were paid for, so that this tells nothing more.
    """
    found = []
    for feature in schema.features:
        if feature.kind != "numeric" or feature.bin_count != 1 or not feature.edges:
            continue
        low, high = feature.edges
        unit = 1.0 if feature.integer else 10.0 ** -(feature.decimals or 400)
        if high <= max(low + 1.5 * unit, float(np.nextafter(low, np.inf))):
            found.append(
                f"{escaped(feature.name)} came out constant: the budget cannot carry it, unless it "
                "is constant. Measure fewer columns, or raise --epsilon."
            )
    return tuple(found)


def provisional(schema: Schema, bins: int) -> Schema:
    """Return the schema with as many bins as there will be, and edges that mean nothing.

    It says how large tables become, so that a release can be settled before edges are known.
    """
    columns = tuple(
        column.with_edges(map(float, range((column.bins or bins) + 1)))
        if column.private_edges
        else column
        for column in schema.columns
    )
    return schema.with_columns(columns)


def _settled(
    feature: Feature, tree: NumberTree, bins: int, highest: float | None, written: NumberText
) -> tuple[Feature, Shape]:
    grid = grid_of(feature)
    masses = measured_masses(feature, tree, grid, written if feature.private_edges else None)
    edges = feature.edges
    if feature.private_edges:
        edges = _edges(grid.edges, masses, bins, grid.unit)
    settled = feature.with_edges(edges, highest=highest)
    shape = shape_of(settled, grid, masses)
    if feature.inside == "uniform":
        return settled, Shape.uniform(edges, grid.unit, shape.shares)
    if not feature.calendar and tree.noisy:
        ends = float(grid.edges[0]), float(grid.edges[-1])
        shape = replace(shape, source=ShapeSource(tree, ends if feature.private_edges else None))
    return settled, shape


def measured_masses(
    feature: Feature,
    tree: NumberTree,
    grid: Grid,
    written: NumberText | None,
    *,
    beyond: bool = False,
) -> Float64:
    """Return the rows that a tree puts into every finest cell of its grid.

    Where edges are private, `written` says how texts spell the numbers that mean "missing".
    `beyond` is as for `cell_masses`.
    """
    masses, _ = cell_masses(tree, grid, beyond=beyond)
    return masses if written is None else _without_taken(feature, grid, masses, written)


def shape_of(feature: Feature, grid: Grid, masses: Float64) -> Shape:
    """Return the shape inside the bins of a settled feature."""
    return Shape.of(feature.edges, grid.edges, masses, grid.unit)


def _without_taken(feature: Feature, grid: Grid, masses: Float64, written: NumberText) -> Float64:
    """Leave out cells of numbers that mean "missing": rows that have them are not here."""
    if feature.after is not None:
        return masses
    read = DateText(feature) if feature.kind in TEMPORAL else written
    taken = [*special_numbers(feature, read)]
    low, high = grid.edges[:-1], grid.edges[1:]
    single = np.isin(low, taken) & (high - low <= max(grid.unit, 0.0) * 1.5)
    kept: Float64 = np.where(single, 0.0, masses)
    return kept


def _edges(cells: Float64, masses: Float64, bins: int, unit: float) -> tuple[float, ...]:
    """Return edges of about equal masses, all at edges of cells that hold any mass."""
    seen = np.flatnonzero(masses > 0)
    if not len(seen):
        return float(cells[0]), float(cells[-1])
    low, high, mass = cells[seen], cells[seen + 1], masses[seen]
    single = high - low <= 1.5 * unit if unit else high == np.nextafter(low, np.inf)
    edges = [float(low[0])]
    left, open_mass = float(mass.sum()), 0.0
    to_make = bins
    for place, here in enumerate(mass.tolist()):
        wanted = left / max(to_make, 1)
        heavy = here >= wanted
        # A bin ends before a cell if it is nearer to its wanted mass without it.
        full = open_mass > 0 and (heavy or open_mass + here / 2 > wanted)
        # Better an edge at a round number than just after it.
        after = place > 0 and single[place - 1] and not single[place]
        if full and to_make > 1 and low[place] > edges[-1] and (heavy or not after):
            edges.append(float(low[place]))
            left -= open_mass
            open_mass, to_make = 0.0, to_make - 1
        open_mass += here
        if heavy and to_make > 1 and place + 1 < len(mass):
            edges.append(float(low[place + 1]))
            left -= open_mass
            open_mass, to_make = 0.0, to_make - 1
    edges.append(float(high[-1]))
    return tuple(edges)
