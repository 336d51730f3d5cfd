"""The cells of a model as arrays of its file: keys, categories and counts of every feature.

The model file ``*.pegs``: a container with the counts of a fit as arrays.

The manifest holds the schema, the plan and the ledger so far; what of a fit is stored is the
method's affair. Every number is checked against the schema before it is used.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from pegsynth.codec.bin_shape import Shape, ShapeSource
from pegsynth.codec.number_grid import LEVELS, Grid
from pegsynth.codec.tree import SUM_NODES, Level, NumberTree
from pegsynth.errors import ModelError, ParameterError, PegsynthError, SchemaError
from pegsynth.mechanisms.marginals import stored_marginals
from pegsynth.methods import get
from pegsynth.methods.base import Model, Plan
from pegsynth.methods.session import Session, Spent
from pegsynth.methods.stored_model import ROWS, Arrays, Cells, StoredModel, taken_rows
from pegsynth.methods.stored_model import StoredPlan as PlanParts
from pegsynth.options import PAPER_METHOD, Order, PriorKind
from pegsynth.privacy import Budget, Ledger
from pegsynth.privacy.calibrate import DEFAULT_SCALE
from pegsynth.privacy.noise_events import PublishedCounts
from pegsynth.privacy.privacy_json import event_from_builtins, event_to_builtins
from pegsynth.random import RandomStream
from pegsynth.schema import Feature, Schema
from pegsynth.schema.dtypes import dtype_name, polars_dtype
from pegsynth.schema.toml import dumps, loads
from pegsynth.storage.spending import adopt_spent, locked, write_spent
from pegsynth.tables.caller_frames import FrameKind
from pegsynth.tables.container import (
    Container,
    ContainerError,
    OtherFormatError,
    decoded,
    read_container,
    save_container,
)

NOTICE = "CONFIDENTIAL: exact counts, and perhaps rows, of a confidential table; not for release"
SHAREABLE = (
    "SHAREABLE: noisy counts of released blocks, paid for by the events in this file; rows may be "
    "drawn from it without limit"
)
PUBLIC_TABLES = (
    "SHAREABLE: made of published tables and of nothing else; it may go wherever these may, and "
    "has no guarantee of its own"
)
UNCOVERED = (
    "CONFIDENTIAL: noisy counts of released blocks that no guarantee covers; not for release"
)


class StoredPlan(msgspec.Struct, frozen=True):
    """A settled plan; its events are enough to recompute the guarantee."""

    draw: dict[str, Any]
    budget: dict[str, Any]
    events: str
    order: Order = "public"
    prior: PriorKind = "uniform"
    seed_pool: str = "uniform"
    numerator: int = 0
    scale: int = DEFAULT_SCALE


class Manifest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model file says about itself; its format is told by the container."""

    format: int = 0

    identity: str
    schema: str
    columns: list[str]
    dtypes: dict[str, str]
    heads: list[list[int]]
    tail_bits: int
    ledger: msgspec.Raw
    shares: list[list[float]] = []
    total: float
    recipe: StoredPlan | None = None
    frame: FrameKind | None = None


_PLAIN = ("order", "prior", "seed_pool", "numerator", "scale")
"""What a plan is stored with as it is."""


def notice_of(model: Model) -> str:
    """Say what may be done with the file of a model."""
    if not get(model.method).released or model.plan is None:
        return NOTICE
    events = (*model.ledger.events, *model.plan.events)
    if any(isinstance(event, PublishedCounts) for event in events):
        return PUBLIC_TABLES
    covered = Ledger(events, delta=model.plan.budget.delta or 0.0).guarantee.epsilon is not None
    return SHAREABLE if covered else UNCOVERED


def stored_plan(plan: Plan) -> StoredPlan:
    """Return a plan as the manifest holds it."""
    stated = ("epsilon", "delta", "epsilon_per_row", "l", "alpha")
    options = {each.name: getattr(plan.options, each.name) for each in fields(plan.options)}
    plain = {name: str(v) if isinstance(v, Path) else v for name, v in options.items()}
    parts = get(plan.method).store_plan(plan)
    return StoredPlan(
        draw={"method": plan.method, **plain},
        budget={name: getattr(plan.budget, name) for name in stated},
        events=json.dumps([event_to_builtins(event) for event in parts.events]),
        **{name: getattr(parts, name) for name in _PLAIN},
    )


def restored_plan(stored: StoredPlan, schema: Schema, model: StoredModel) -> Plan:
    """Rebuild a plan."""
    try:
        method = get(stored.draw["method"])
        options = method.options(**{n: v for n, v in stored.draw.items() if n != "method"})
        parts = PlanParts(
            options,
            Budget(**stored.budget),
            tuple(event_from_builtins(event) for event in json.loads(stored.events)),
            **{name: getattr(stored, name) for name in _PLAIN},
        )
    except (PegsynthError, KeyError, TypeError, ValueError, RecursionError):
        raise ModelError("its recipe is damaged") from None
    try:
        plan: Plan = method.load_plan(parts, schema, model)
    except ModelError:
        raise
    except (PegsynthError, TypeError, ValueError):
        raise ModelError("its recipe does not fit its events") from None
    return plan


_PREFIX = "cells of feature "
_PARTS = {"keys": np.int64, "categories": np.uint32, "counts": np.int64}


def cell_arrays(cells: Sequence[Cells]) -> Arrays:
    """Return the cells as arrays; features are told by their numbers."""
    found: Arrays = {}
    for feature, parts in enumerate(cells):
        if len(parts[0]):
            held = zip(_PARTS.items(), parts, strict=True)
            found |= {
                _name(feature, part): line.astype(kind, copy=False) for (part, kind), line in held
            }
    return found


def taken_cells(arrays: Arrays, features: int) -> list[Cells]:
    """Take the cells of every feature out of the arrays of a file, checked for their form."""
    found = [_cells([arrays.pop(_name(f, part), None) for part in _PARTS]) for f in range(features)]
    if any(name.startswith(_PREFIX) for name in arrays):
        raise ModelError("it holds cells of features that its schema does not have")
    return found


def _name(feature: int, part: str) -> str:
    return f"{_PREFIX}{feature}: {part}"


def _cells(lines: Sequence[NDArray[Any] | None]) -> Cells:
    if all(line is None for line in lines):
        lines = [np.empty(0, dtype=kind) for kind in _PARTS.values()]
    held = [line for line in lines if line is not None]
    fits = [
        line.ndim == 1 and line.dtype == kind and len(line) == len(held[0])
        for line, kind in zip(held, _PARTS.values(), strict=False)
    ]
    if len(held) != len(_PARTS) or not all(fits):
        raise ModelError("its cells are not those of a model")
    keys, categories, counts = (line.astype(np.int64, copy=False) for line in held)
    return keys, categories, counts


KIND = "model"
FORMAT = 3


def save_model(model: Model, path: str | Path, *, spent: Spent | None = None) -> None:
    """Write a model, readable by its owner only, whole or not at all.

    A model with a budget gets its record of what was spent first, beside it.

    Parameters
    ----------
    spent
        What was drawn from it before; None: nothing.
    """
    method = get(model.method)
    stored = method.store(model.content)
    # The same noisy numbers give the same file, byte for byte.
    identity = "0" * 32 if method.released else secrets.token_hex(16)
    marginals = stored.marginals
    manifest = Manifest(
        identity=identity,
        schema=dumps(model.schema),
        columns=list(model.columns),
        dtypes={name: dtype_name(dtype) for name, dtype in model.dtypes.items()},
        heads=[list(line) for line in stored.heads or ((),) * len(model.schema.features)],
        tail_bits=stored.tail_bits,
        ledger=msgspec.Raw(model.ledger.to_json().encode()),
        shares=[line.tolist() for line in marginals.shares] if marginals else [],
        total=marginals.total if marginals else 1.0,
        recipe=stored_plan(model.plan) if model.plan else None,
        frame=model.frame,
    )
    rows = {} if stored.rows is None else {ROWS: stored.rows}
    arrays = {**cell_arrays(stored.cells), **rows, **stored.arrays, **shape_arrays(model.shapes)}
    content = Container(notice_of(model), KIND, FORMAT, msgspec.json.encode(manifest), arrays)
    replacing = Path(path).exists()

    def open_account() -> None:
        """Write the record of a budgeted model before the model becomes visible."""
        if model.plan is not None and not method.released:
            session = Session(model, model.plan, RandomStream(), spent=spent)
            write_spent(path, identity, session.spent, replacing=replacing)

    there = Path(path).is_file() and os.access(path, os.R_OK)
    # Nobody samples a model while it is replaced.
    with locked(path) if there else nullcontext():
        save_container(path, content, before=open_account)
    if replacing:
        adopt_spent(path)


def read_manifest(path: str | Path) -> Manifest:
    """Read what a model file says about itself, without its counts."""
    return _read(Path(path), with_arrays=False)[0]


def load_model(path: str | Path) -> Model:
    """Read a model; every number is checked against its schema."""
    manifest, arrays = _read(Path(path))
    try:
        schema = loads(manifest.schema, source=f"the schema inside {path}")
        ledger = Ledger.from_json(bytes(manifest.ledger), source=f"{path}")
    except (SchemaError, ParameterError) as error:
        raise _foreign(path, f"its manifest is damaged ({error})") from None
    dtypes = {name: polars_dtype(dtype) for name, dtype in manifest.dtypes.items() if dtype}
    if any(dtype is None for dtype in dtypes.values()):
        raise _foreign(path, "it names a column type that is not known")
    try:
        cells = taken_cells(arrays, len(schema.features))
        stored = StoredModel(
            tuple(tuple(line) for line in manifest.heads),
            manifest.tail_bits,
            cells,
            stored_marginals(manifest.shares, manifest.total, schema.category_counts),
            taken_rows(arrays, schema),
            arrays,
        )
        plan = restored_plan(manifest.recipe, schema, stored) if manifest.recipe else None
        method = get(plan.method if plan else PAPER_METHOD)
        content = method.load(stored, schema, plan)
        shapes = stored_shapes(stored.arrays, schema)
    except ModelError as error:
        raise _foreign(path, str(error)) from None
    columns = tuple(manifest.columns)
    return Model(
        schema, method.name, content, ledger, plan, columns, dtypes, shapes, frame=manifest.frame
    )


def _read(path: Path, *, with_arrays: bool = True) -> tuple[Manifest, Arrays]:
    """Return the manifest and the arrays."""
    if path.is_dir():
        raise ModelError(f"{path}: this is a folder; give a model file that pegs fit wrote")
    if not path.is_file():
        raise ModelError(f"{path}: there is no such model file; check the name")
    try:
        with path.open("rb") as handle:
            found = read_container(handle, kind=KIND, format_=FORMAT, with_arrays=with_arrays)
        return msgspec.structs.replace(decoded(found, Manifest), format=found.format), dict(
            found.arrays
        )
    except OtherFormatError as error:
        raise ModelError(error.message(path, KIND, FORMAT)) from None
    except OSError:
        raise _foreign(path, "this file cannot be read") from None
    except ContainerError as error:
        raise _foreign(path, str(error)) from None


def _foreign(path: str | Path, why: str) -> ModelError:
    return ModelError(f"{path}: {why}; make the model again with pegs fit")


_SHAPE = "shape of feature "
_SHAPE_PARTS = ("low", "high", "reached", "shares", "unit")
_TREE = "tree"
"""Deviations of its levels, whether they are Laplace noise's, whether edges were private, and the
ends of the grid if they were."""
_MOST_LEVELS, _MOST_ROWS, _MOST_SUM = 8, 1 << 53, 1 << 60


def shape_arrays(shapes: Mapping[str, Shape]) -> dict[str, NDArray[Any]]:
    """Return shapes as arrays; features are told by their place among the shapes' names."""
    found: dict[str, NDArray[Any]] = {}
    for name, shape in shapes.items():
        parts: dict[str, NDArray[Any]] = {
            **shape.arrays(),
            "unit": np.array([shape.unit], dtype=np.float64),
        }
        if shape.source is not None:
            tree, bounds = shape.source.tree, shape.source.bounds
            about = [float(tree.laplace), float(bounds is not None), *(bounds or (0.0, 0.0))]
            parts[_TREE] = np.array([*(level.deviation for level in tree.levels), *about])
            # A level at which nothing was looked at has a deviation of 0 and no arrays.
            parts |= {f"tree {part}": array for part, array in tree.arrays().items() if len(array)}
        found |= {f"{_SHAPE}{name}: {part}": array for part, array in parts.items()}
    return found


def stored_shapes(arrays: Mapping[str, NDArray[Any]], schema: Schema) -> dict[str, Shape]:
    """Rebuild shapes, checked against the schema."""
    found: dict[str, Shape] = {}
    tree_parts = [f"tree {part}{n}" for n in range(_MOST_LEVELS) for part in ("nodes", "counts")]
    for name in schema.names:
        held = {part: arrays.get(f"{_SHAPE}{name}: {part}") for part in _SHAPE_PARTS}
        if all(array is None for array in held.values()):
            continue
        shape = _checked_shape(schema, name, held)
        mine = {
            part: arrays[key]
            for part in (_TREE, *tree_parts)
            if (key := f"{_SHAPE}{name}: {part}") in arrays
        }
        if mine:
            shape = replace(shape, source=_checked_source(schema[name], mine))
        found[name] = shape
    return found


def _checked_source(feature: Feature, held: Mapping[str, NDArray[Any]]) -> ShapeSource:
    """Rebuild the tree of a shape, checked against its grid."""
    damaged = ModelError(f"the tree of feature {feature.name!r} does not fit the schema")
    wanted = {part: np.float64 if part == _TREE else np.int64 for part in held}
    if any(array.dtype != wanted[part] or array.ndim != 1 for part, array in held.items()):
        raise damaged
    try:
        *deviations, laplace, private, low, high = held[_TREE].tolist()
        nothing = np.zeros(0, dtype=np.int64)
        levels = tuple(
            Level(held[f"tree nodes{number}"], held[f"tree counts{number}"], deviation)
            if deviation
            else Level(nothing, nothing, 0.0)
            for number, deviation in enumerate(deviations)
        )
        # Edges were made of the grid, so they lie in it.
        inside = low <= feature.edges[0] < feature.edges[-1] <= high
        if laplace not in (0.0, 1.0) or private not in (0.0, 1.0) or (private and not inside):
            raise damaged
        bounds = (low, high) if private else None
        source = ShapeSource(NumberTree(feature.name, levels, bool(laplace)), bounds)
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


def _checked_shape(schema: Schema, name: str, held: Mapping[str, Any]) -> Shape:
    damaged = ModelError(f"the shape of feature {name!r} does not fit the schema")
    lines = [held[part] for part in _SHAPE_PARTS]
    if any(line is None or line.dtype != np.float64 or line.ndim != 1 for line in lines):
        raise damaged
    low, high, reached, shares, unit = lines
    feature = schema[name]
    if len(unit) != 1 or not np.isfinite(np.concatenate(lines)).all() or not feature.binned:
        raise damaged
    try:
        shape = Shape(low, high, reached, float(unit[0]), shares)
    except (PegsynthError, ValueError, IndexError, TypeError):
        raise damaged from None
    if len(shares) != feature.bin_count:
        raise damaged
    return shape
