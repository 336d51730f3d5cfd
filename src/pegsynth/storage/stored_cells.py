"""The cells of a model as arrays of its file: keys, categories and counts of every feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError
from pegsynth.methods.stored_model import Arrays, Cells

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
