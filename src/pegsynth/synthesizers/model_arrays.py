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
from pegsynth.synthesizers.options import IMPUTATION_METHODS

if TYPE_CHECKING:
    from pegsynth.sampling.conditional import ConditionalModel
    from pegsynth.schema import Schema
    from pegsynth.synthesizers.model import Codes, Model

Arrays = dict[str, NDArray[Any]]

_ROWS = "original rows"
_FITTED = "conditionals: "
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
    return found


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
