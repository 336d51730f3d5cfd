"""What a model file holds of a fit and of its plan, in plain parts that every method shares.

A method says which parts it needs. What every file may hold, rows and paid marginals, is checked
against the schema here, once for all methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pegsynth.errors import ModelError
from pegsynth.options import Order, PriorKind
from pegsynth.privacy.calibrate import DEFAULT_SCALE

if TYPE_CHECKING:
    from pegsynth.kernels.arrays import Codes
    from pegsynth.mechanisms.marginals import Marginals
    from pegsynth.privacy import Budget, Event
    from pegsynth.schema import Schema

Arrays: TypeAlias = dict[str, NDArray[Any]]
Cells: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

ROWS = "original rows"


@dataclass(frozen=True)
class StoredModel:
    """A fit in plain parts.

    Parameters
    ----------
    heads, tail_bits
        The keys of the cells.
    cells
        For each feature: keys, categories and counts.
    marginals
        Paid marginals.
    rows
        The original rows.
    arrays
        Everything else.
    """

    heads: tuple[tuple[int, ...], ...] = ()
    tail_bits: int = 0
    cells: Sequence[Cells] = ()
    marginals: Marginals | None = None
    rows: Codes | None = None
    arrays: Arrays = field(default_factory=dict)

    def under(self, prefix: str) -> Arrays:
        """Return the arrays of one part of a fit, by their names within it."""
        return {n.removeprefix(prefix): a for n, a in self.arrays.items() if n.startswith(prefix)}


@dataclass(frozen=True)
class StoredPlan:
    """A settled plan in plain parts: what was stated, what is charged, and what draws need.

    Parameters
    ----------
    order, prior, seed_pool
        Where heads, virtual rows and seed rows come from, for methods that have them.
    numerator, scale
        alpha, for methods that have one.
    """

    options: Any
    budget: Budget
    events: tuple[Event, ...]
    order: Order = "public"
    prior: PriorKind = "uniform"
    seed_pool: str = "uniform"
    numerator: int = 0
    scale: int = DEFAULT_SCALE


def taken_rows(arrays: Arrays, schema: Schema) -> Codes | None:
    """Take the original rows out of the arrays of a file, checked against the schema."""
    rows = arrays.pop(ROWS, None)
    if rows is None:
        return None
    counts = np.array(schema.category_counts)
    fits = rows.ndim == 2 and rows.shape[1] == len(counts) and rows.dtype.kind == "u"
    if not fits or (len(rows) and (rows.max(axis=0) >= counts).any()):
        raise ModelError("its rows do not fit its schema")
    return rows


def missing_part() -> ModelError:
    """Return the error for a file without something that its method cannot do without."""
    return ModelError("it does not hold what its method needs")
