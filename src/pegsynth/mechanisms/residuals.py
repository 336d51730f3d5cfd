"""Residuals of tables of counts, in whole numbers: what the margins do not tell (R27).

The residual of counts n on features of C_1 .. C_d levels is Q n, Q the Kronecker product of
the matrices C_i I - J. Every margin of it is 0. Together with the counts of fewer features it
says what n says: n = Q n/(C_1 .. C_d) + what the margins tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Float64, Int64

T = TypeVar("T", np.int64, np.float64)


def residual_of(counts: Int64, levels: Sequence[int]) -> Int64:
    """Return Q n for the counts of all cells of a table, exactly.

    Raises
    ------
    OverflowError
        The public number of cells is so large that a residual might not fit into 64 bits.
    """
    _check_room(levels)
    return _times(counts, levels)


def centred(cells: Float64, levels: Sequence[int]) -> Float64:
    """Return the part of a table that its margins do not tell: Q n/(C_1 .. C_d)."""
    return _times(cells, levels) / float(np.prod(levels))


def _times(cells: NDArray[T], levels: Sequence[int]) -> NDArray[T]:
    table = cells.reshape(tuple(levels))
    for axis, count in enumerate(levels):
        table = table * table.dtype.type(count) - table.sum(axis=axis, keepdims=True)
    return table.ravel()


_MOST_ROWS_BITS = 40
"""Tables of up to 2**40 rows have residuals that fit into 64 bits."""


def _check_room(levels: Sequence[int]) -> None:
    """Refuse tables so wide that sums on the way might overflow, whatever they hold."""
    most = 1
    for count in levels:
        most *= 2 * count
    if most >= 1 << (63 - _MOST_ROWS_BITS):
        raise OverflowError("a table of so many cells has no residual in 64 bits")
