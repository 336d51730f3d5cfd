"""Arrays that a model holds beside its counts: fitted conditionals, and rows it needs.

An array is stored as its raw bytes; type and shape stand in the manifest and are believed
only if they account for every byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError
from pegsynth.once.released import NoisyTable, Released
from pegsynth.options import IMPUTATION_METHODS

if TYPE_CHECKING:
    from pegsynth.sampling.conditional import ConditionalModel
    from pegsynth.schema import Schema
    from pegsynth.synthesizers.model import Codes, Model

Arrays = dict[str, NDArray[Any]]

_ROWS = "original rows"
_FITTED = "conditionals: "
_RELEASED = "released: "
_RELEASED_TYPES: dict[str, type] = {
    "deviations": np.float64,
    "public": np.bool_,
    "loud": np.bool_,
    "ordered": np.bool_,
}
_TYPES = ("|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8", "|b1", "|i1", "<i2")


class StoredArray(msgspec.Struct, frozen=True):
    """Name, type and shape of one array."""

    name: str
    dtype: str
    shape: list[int]


def arrays_of(model: Model) -> Arrays:
    """Return the arrays that a model needs to draw; confidential."""
    found: Arrays = {}
    if model.originals is not None:
        found[_ROWS] = model.originals
    if model.conditionals is not None:
        held = model.conditionals.arrays()  # type: ignore[attr-defined]
        found |= {_FITTED + name: array for name, array in held.items()}
    if model.released is not None:
        found |= {_RELEASED + name: array for name, array in released_arrays(model).items()}
    return found


def released_arrays(model: Model) -> Arrays:
    """Return released blocks as arrays: noisy counts and public structure only."""
    released = model.released
    if released is None:
        return {}
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


def released_of(arrays: Arrays, schema: Schema) -> Released | None:
    """Rebuild released blocks among the arrays, checked against the schema."""
    held = {n.removeprefix(_RELEASED): a for n, a in arrays.items() if n.startswith(_RELEASED)}
    if not held:
        return None
    try:
        return _checked_released(held, schema)
    except (KeyError, IndexError, ValueError, TypeError, OverflowError):
        raise ModelError("its released blocks do not fit its schema") from None


def _checked_released(held: Arrays, schema: Schema) -> Released:
    """Raise ValueError for anything that a release could not have written."""
    for name, array in held.items():
        _require(array.ndim == 1 and array.dtype == _RELEASED_TYPES.get(name, np.int64))
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
    )


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError


def described(arrays: Arrays) -> list[StoredArray]:
    """Return what the manifest says of the arrays."""
    return [StoredArray(name, a.dtype.str, list(a.shape)) for name, a in arrays.items()]


def restored(stored: list[StoredArray], contents: Mapping[str, bytes]) -> Arrays:
    """Return the arrays, refusing any whose bytes are not what was said of them."""
    if len({each.name for each in stored}) != len(stored) or len(stored) != len(contents):
        raise ModelError("its arrays are incomplete")
    found: Arrays = {}
    for each in stored:
        content = contents.get(each.name)
        known = each.dtype in _TYPES and all(0 <= size <= 1 << 40 for size in each.shape)
        if content is None or not known:
            raise ModelError("its arrays are damaged")
        dtype = np.dtype(each.dtype)
        if math.prod(each.shape) * dtype.itemsize != len(content):
            raise ModelError("its arrays are damaged")
        found[each.name] = np.frombuffer(content, dtype=dtype).reshape(each.shape).copy()
    return found


def rows_of(arrays: Arrays, schema: Schema) -> Codes | None:
    """Return the original rows among the arrays, checked against the schema."""
    rows = arrays.get(_ROWS)
    if rows is None:
        return None
    counts = np.array(schema.category_counts)
    if rows.ndim != 2 or rows.shape[1] != len(counts) or rows.dtype.kind != "u":
        raise ModelError("its rows do not fit its schema")
    if len(rows) and (rows.max(axis=0) >= counts).any():
        raise ModelError("its rows do not fit its schema")
    return rows


def conditionals_of(arrays: Arrays, method: str | None, schema: Schema) -> ConditionalModel | None:
    """Rebuild the fitted conditionals among the arrays."""
    held = {n.removeprefix(_FITTED): a for n, a in arrays.items() if n.startswith(_FITTED)}
    if not held or method not in IMPUTATION_METHODS:
        return None
    from pegsynth.imputation import GlmModel, TreeModel

    kind = GlmModel if method in ("mi", "pmi") else TreeModel
    model: ConditionalModel = kind.from_arrays(held, schema)
    return model
