"""Measured shapes as a model file holds them: plain arrays, checked against the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.bin_shape import Shape, ShapeSource
from pegsynth.codec.number_grid import LEVELS, Grid
from pegsynth.codec.tree import FORMAT as TREE_FORMAT
from pegsynth.codec.tree import SUM_NODES, Level, NumberTree
from pegsynth.errors import ModelError, PegsynthError
from pegsynth.schema import Feature, Schema

_PREFIX = "shape of feature "
_PARTS = ("low", "high", "reached", "shares", "unit")
_TREE = "tree"
"""Deviations of its levels, whether they are Laplace noise's, whether edges were private, and the
ends of the grid if they were."""
_MOST_LEVELS, _MOST_ROWS, _MOST_SUM = 8, 1 << 53, 1 << 60


def shape_arrays(shapes: Mapping[str, Shape]) -> dict[str, NDArray[Any]]:
    """Return shapes as arrays; features are told by their place among the shapes' names."""
    found: dict[str, NDArray[Any]] = {}
    for name, shape in shapes.items():
        parts = {**shape.arrays(), "unit": np.array([shape.header()["unit"]], dtype=np.float64)}
        if shape.source is not None:
            parts |= _source_arrays(shape.source)
        found |= {f"{_PREFIX}{name}: {part}": array for part, array in parts.items()}
    return found


def _source_arrays(source: ShapeSource) -> dict[str, NDArray[Any]]:
    tree = source.tree
    deviations = [level.deviation for level in tree.levels]
    about = [float(tree.laplace), float(source.bounds is not None), *(source.bounds or (0.0, 0.0))]
    # A level at which nothing was looked at has a deviation of 0 and no arrays.
    levels = {f"tree {part}": array for part, array in tree.arrays().items() if len(array)}
    return {_TREE: np.array([*deviations, *about]), **levels}


def stored_shapes(arrays: Mapping[str, NDArray[Any]], schema: Schema) -> dict[str, Shape]:
    """Rebuild shapes, checked against the schema."""
    found: dict[str, Shape] = {}
    for name in schema.names:
        held = {part: arrays.get(f"{_PREFIX}{name}: {part}") for part in _PARTS}
        if all(array is None for array in held.values()):
            continue
        shape = _checked(schema, name, held)
        mine = {
            part: arrays[key]
            for part in (_TREE, *_tree_parts())
            if (key := f"{_PREFIX}{name}: {part}") in arrays
        }
        if mine:
            shape = replace(shape, source=_source(schema[name], mine))
        found[name] = shape
    return found


def _tree_parts() -> list[str]:
    return [f"tree {part}{level}" for level in range(_MOST_LEVELS) for part in ("nodes", "counts")]


def _source(feature: Feature, held: Mapping[str, NDArray[Any]]) -> ShapeSource:
    """Rebuild the tree of a shape, checked against its grid."""
    damaged = ModelError(f"the tree of feature {feature.name!r} does not fit the schema")
    wanted = {part: np.float64 if part == _TREE else np.int64 for part in held}
    if any(array.dtype != wanted[part] or array.ndim != 1 for part, array in held.items()):
        raise damaged
    try:
        *deviations, laplace, private, low, high = held[_TREE].tolist()
        nothing = np.zeros(0, dtype=np.int64)
        arrays = {
            f"{part}{level}": held[f"tree {part}{level}"] if deviation else nothing
            for level, deviation in enumerate(deviations)
            for part in ("nodes", "counts")
        }
        # Edges were made of the grid, so they lie in it.
        inside = low <= feature.edges[0] < feature.edges[-1] <= high
        if laplace not in (0.0, 1.0) or private not in (0.0, 1.0) or (private and not inside):
            raise damaged
        header = {
            "format": TREE_FORMAT,
            "name": feature.name,
            "deviations": deviations,
            "laplace": laplace,
        }
        bounds = (low, high) if private else None
        source = ShapeSource(NumberTree.restored(header, arrays), bounds)
        grid = source.grid(feature)
    except (PegsynthError, ValueError, IndexError, TypeError, KeyError):
        raise damaged from None
    fits = len(source.tree.levels) >= LEVELS and all(
        len(level.nodes) == len(level.counts)
        and 0 <= level.deviation < np.inf
        and (level.nodes >= 0).all()
        and (level.counts > -_MOST_ROWS).all()
        and (level.counts < _MOST_ROWS).all()
        and (number == 0 or (level.nodes < grid.nodes(number)).all())
        for number, level in enumerate(source.tree.levels[:LEVELS])
    )
    first, sums = source.tree.levels[0], source.tree.levels[LEVELS:]
    fits &= all(_is_sum(each, grid) for each in sums)
    if not (fits and source.tree.noisy and len(first.nodes) >= grid.nodes(0)):
        raise damaged
    return source


def _is_sum(level: Level, grid: Grid) -> bool:
    """Whether a level is a clipped sum on a grid (R21)."""
    if len(level.nodes) != SUM_NODES or len(level.counts) != 1 or not 0 < level.deviation < np.inf:
        return False
    centre, bound, rows, steps = level.nodes.tolist()
    inside = 0 <= min(centre, bound) < max(centre, bound) < grid.cells
    return inside and min(rows, steps) > 0 and abs(int(level.counts[0])) < _MOST_SUM


def _checked(schema: Schema, name: str, held: Mapping[str, Any]) -> Shape:
    damaged = ModelError(f"the shape of feature {name!r} does not fit the schema")
    lines = [held[part] for part in _PARTS]
    if any(line is None or line.dtype != np.float64 or line.ndim != 1 for line in lines):
        raise damaged
    low, high, reached, shares, unit = lines
    feature = schema[name]
    if len(unit) != 1 or not np.isfinite(np.concatenate(lines)).all() or not feature.binned:
        raise damaged
    try:
        shape = Shape.restored(
            {"unit": float(unit[0])},
            {"low": low, "high": high, "reached": reached, "shares": shares},
        )
    except (PegsynthError, ValueError, IndexError, TypeError):
        raise damaged from None
    if len(shares) != feature.bin_count:
        raise damaged
    return shape
