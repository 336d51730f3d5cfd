"""Measured shapes as a model file holds them: plain arrays, checked against the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError, PegsynthError
from pegsynth.numbers import Shape
from pegsynth.schema import Schema

_PREFIX = "shape of feature "
_PARTS = ("low", "high", "reached", "shares", "unit")


def shape_arrays(shapes: Mapping[str, Shape]) -> dict[str, NDArray[Any]]:
    """Return shapes as arrays; features are told by their place among the shapes' names."""
    found: dict[str, NDArray[Any]] = {}
    for name, shape in shapes.items():
        parts = {**shape.arrays(), "unit": np.array([shape.header()["unit"]], dtype=np.float64)}
        found |= {f"{_PREFIX}{name}: {part}": array for part, array in parts.items()}
    return found


def stored_shapes(arrays: Mapping[str, NDArray[Any]], schema: Schema) -> dict[str, Shape]:
    """Rebuild shapes, checked against the schema."""
    found: dict[str, Shape] = {}
    for name in schema.names:
        held = {part: arrays.get(f"{_PREFIX}{name}: {part}") for part in _PARTS}
        if all(array is None for array in held.values()):
            continue
        found[name] = _checked(schema, name, held)
    return found


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
