"""Released blocks as a model file holds them: noisy counts and public structure, in arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pegsynth.arrays import Int64
from pegsynth.errors import ModelError
from pegsynth.methods.released_details import details_of
from pegsynth.methods.stored_model import Arrays, StoredModel
from pegsynth.released.details import Detail
from pegsynth.released.published import NoisyTable, Released

if TYPE_CHECKING:
    from pegsynth.schema import Schema

PREFIX = "released: "
_TYPES: dict[str, type] = {
    "deviations": np.float64,
    "public": np.bool_,
    "loud": np.bool_,
    "ordered": np.bool_,
}


def released_arrays(released: Released) -> Arrays:
    """Return released blocks as arrays: noisy counts and public structure only."""
    tables = (*released.one_ways, *released.blocks, *released.extra)
    kinds = [0] * len(released.one_ways) + [1] * len(released.blocks) + [2] * len(released.extra)
    return {
        "total": np.array([released.total[0]], dtype=np.int64),
        "deviations": np.array([released.total[1], *(t.deviation for t in tables)]),
        "kinds": np.array(kinds, dtype=np.int64),
        "widths": np.array([len(t.features) for t in tables], dtype=np.int64),
        "features": np.array([f for t in tables for f in t.features], dtype=np.int64),
        "counts": np.concatenate([t.counts for t in tables]),
        "public": np.array(released.public, dtype=np.bool_),
        "loud": np.array([released.loud], dtype=np.bool_),
        "ordered": np.array(released.ordered, dtype=np.bool_),
        "levels": np.concatenate(released.levels),
        "order": np.array(released.order, dtype=np.int64),
    }


def stored_released(released: Released) -> StoredModel:
    """Return what a model file holds of released blocks."""
    held = released_arrays(released)
    return StoredModel(arrays={PREFIX + name: array for name, array in held.items()})


def loaded_released(stored: StoredModel, schema: Schema) -> Released:
    """Rebuild released blocks, checked against the schema."""
    held = stored.under(PREFIX)
    if not held:
        raise ModelError("it does not hold what its method needs")
    try:
        return _checked_released(held, schema)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError):
        raise ModelError("its released blocks do not fit its schema") from None


def _checked_released(held: Arrays, schema: Schema) -> Released:
    """Raise ValueError for anything that a release could not have written."""
    for name, array in held.items():
        _require(array.ndim == 1 and array.dtype == _TYPES.get(name, np.int64))
    counts = schema.category_counts
    levels = tuple(np.split(held["levels"].astype(np.int64), np.cumsum(counts)[:-1]))
    for line, count in zip(levels, counts, strict=True):
        found = np.unique(line)
        _require(len(line) == count and np.array_equal(found, np.arange(len(found))))
    sizes = [int(line.max()) + 1 for line in levels]
    _require(max(sizes) < 1 << 16)
    features = [
        tuple(part.tolist()) for part in np.split(held["features"], np.cumsum(held["widths"])[:-1])
    ]
    deviations = held["deviations"].astype(np.float64)
    _require(len(deviations) == len(features) + 1 == len(held["kinds"]) + 1)
    _require(bool(((deviations > 1e-140) & (deviations < 1e140)).all()))
    tables: tuple[list[NoisyTable], ...] = ([], [], [])
    start, noisy = 0, held["counts"].astype(np.int64)
    for names, kind, deviation in zip(
        features, held["kinds"].tolist(), deviations[1:], strict=True
    ):
        _require(len(set(names)) == len(names) > 0 and all(0 <= f < len(counts) for f in names))
        cells = math.prod((counts if kind == 0 else sizes)[f] for f in names)
        _require(start + cells <= len(noisy))
        tables[kind].append(NoisyTable(names, noisy[start : start + cells], float(deviation)))
        start += cells
    order = tuple(held["order"].tolist())
    placed = {feature: place for place, feature in enumerate(order)}
    _require(start == len(noisy) and sorted(order) == list(range(len(counts))))
    _require([t.features for t in tables[0]] == [(f,) for f in range(len(counts))])
    drawn = [t.features[-1] for t in tables[1]]
    _require(len(set(drawn)) == len(drawn))
    _require(all(placed[h] < placed[t.features[-1]] for t in tables[1] for h in t.features[:-1]))
    _require(len(held["ordered"]) == len(held["public"]) == len(counts))
    _require(len(held["total"]) == len(held["loud"]) == 1)
    return Released(
        (int(held["total"][0]), float(deviations[0])),
        tuple(tables[0]),
        tuple(bool(flag) for flag in held["public"]),
        tuple(bool(flag) for flag in held["ordered"]),
        bool(held["loud"][0]),
        levels,
        order,
        tuple(tables[1]),
        tuple(tables[2]),
        _details(schema, levels, placed),
    )


def _details(
    schema: Schema, levels: tuple[Int64, ...], placed: Mapping[int, int]
) -> tuple[Detail, ...]:
    """Return the details of a schema on merged levels, none of which crosses its parent."""
    found = []
    for each in details_of(schema):
        line = levels[each.feature]
        on_levels = each.on_levels(line)
        _require(bool((on_levels.allowed[:, line] == each.allowed).all()))
        _require(len(np.unique(levels[each.parent])) == len(levels[each.parent]))
        _require(placed[each.parent] < placed[each.feature])
        found.append(on_levels)
    return tuple(found)


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError
