"""What a model file holds of a fit: cells, marginals and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError

if TYPE_CHECKING:
    from pegsynth.methods.base import Codes
    from pegsynth.schema import Schema

Arrays: TypeAlias = dict[str, NDArray[Any]]
Cells: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

_ROWS = "original rows"


@dataclass(frozen=True)
class StoredModel:
    """A fit in plain parts; each method says which of them it needs.

    Parameters
    ----------
    heads, tail_bits
        The keys of the cells.
    cells
        For each feature: keys, categories and counts.
    shares, total
        Paid marginals.
    arrays
        Everything else.
    """

    heads: tuple[tuple[int, ...], ...] = ()
    tail_bits: int = 0
    cells: Sequence[Cells] = ()
    shares: list[list[float]] = field(default_factory=list)
    total: float = 1.0
    arrays: Arrays = field(default_factory=dict)

    def under(self, prefix: str) -> Arrays:
        """Return the arrays of one part of a fit, by their names within it."""
        return {n.removeprefix(prefix): a for n, a in self.arrays.items() if n.startswith(prefix)}


def with_rows(arrays: Arrays, rows: Codes | None) -> Arrays:
    """Return the arrays with the original rows among them, if there are any."""
    return arrays if rows is None else {_ROWS: rows, **arrays}


def stored_rows(arrays: Arrays, schema: Schema) -> Codes | None:
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
