"""The cells of a model as arrays of its file: keys, categories and counts of every feature.

The model file ``*.pegs``: a container with the counts of a fit as arrays.

The manifest holds the schema, the plan and the ledger so far; what of a fit is stored is the
method's affair. Every number is checked against the schema before it is used.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pegsynth.errors import ModelError, ParameterError, SchemaError
from pegsynth.mechanisms.marginals import stored_marginals
from pegsynth.methods import get
from pegsynth.methods.base import Model
from pegsynth.methods.session import Session, Spent
from pegsynth.methods.stored_model import ROWS, Arrays, Cells, StoredModel, taken_rows
from pegsynth.options import PAPER_METHOD
from pegsynth.privacy import Ledger
from pegsynth.random import RandomStream
from pegsynth.schema import Schema
from pegsynth.schema.dtypes import dtype_name, polars_dtype
from pegsynth.schema.toml import dumps, loads
from pegsynth.storage.model_manifest import Manifest, notice_of, restored_plan, stored_plan
from pegsynth.storage.shapes import shape_arrays, stored_shapes
from pegsynth.storage.spending import adopt_spent, locked, write_spent
from pegsynth.tables.container import (
    Container,
    ContainerError,
    OtherFormatError,
    decoded,
    read_container,
    save_container,
)

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
    with _unused(path):
        save_container(
            path,
            content,
            before=lambda: _open_account(model, path, identity, spent, replacing=replacing),
        )
    if replacing:
        adopt_spent(path)


def read_manifest(path: str | Path) -> Manifest:
    """Read what a model file says about itself, without its counts."""
    return _read(Path(path), with_arrays=False)[0]


def load_model(path: str | Path) -> Model:
    """Read a model; every number is checked against its schema."""
    manifest, arrays = _read(Path(path))
    schema, ledger = _public_part(manifest, path)
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
        return replace(decoded(found, Manifest), format=found.format), dict(found.arrays)
    except OtherFormatError as error:
        raise ModelError(error.message(path, KIND, FORMAT)) from None
    except OSError:
        raise _foreign(path, "this file cannot be read") from None
    except ContainerError as error:
        raise _foreign(path, str(error)) from None


def _unused(path: str | Path) -> AbstractContextManager[None]:
    """Wait until nobody samples the model that is about to be replaced, if there is one."""
    there = Path(path).is_file() and os.access(path, os.R_OK)
    return locked(path) if there else nullcontext()


def _open_account(
    model: Model, path: str | Path, identity: str, spent: Spent | None, *, replacing: bool
) -> None:
    """Write the record of a budgeted model before the model becomes visible."""
    if model.plan is not None and not get(model.method).released:
        session = Session(model, model.plan, RandomStream(), spent=spent)
        write_spent(path, identity, session.spent, replacing=replacing)


def _public_part(manifest: Manifest, path: str | Path) -> tuple[Schema, Ledger]:
    try:
        schema = loads(manifest.schema, source=f"the schema inside {path}")
        return schema, Ledger.from_json(bytes(manifest.ledger), source=f"{path}")
    except (SchemaError, ParameterError) as error:
        raise _foreign(path, f"its manifest is damaged ({error})") from None


def _foreign(path: str | Path, why: str) -> ModelError:
    return ModelError(f"{path}: {why}; make the model again with pegs fit")
