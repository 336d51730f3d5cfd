"""Rows of the size that was asked for, out of a weighted pool."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels import pool_loops as kernels
from pegsynth.kernels.arrays import Float64, Int64
from pegsynth.methods.released.joint_fit import JointFit
from pegsynth.methods.released.row_pool import Pool

UInt16 = NDArray[np.uint16]

_SORTED_BY = 4
_FEW_ROWS = 250_000
_LINES_AT_A_TIME = 4096


def choose_rows(fit: JointFit, rows: int) -> Int64:
    """Choose pool rows by systematic sampling along the features that were placed first.

    The number of times that a row is chosen differs from its weight by less than 1, and
    so, nearly, does that of any run of similar rows.
    """
    pool = fit.pool
    columns = [pool.columns[feature] for feature in pool.placed[:_SORTED_BY][::-1]]
    order = np.lexsort(columns) if columns else np.arange(pool.rows)
    reached = np.cumsum(pool.weights[order])
    chosen: Int64 = order[_systematic(reached, rows, pool.uniforms(1)[0])]
    return chosen


def _systematic(reached: Float64, count: int, offset: float) -> Int64:
    """Return places at equal steps along cumulated weights; none has weight 0."""
    points = (np.arange(count) + offset) * (reached[-1] / count)
    # Rounding may carry the last point to the very end, behind which rows have no weight.
    places: Int64 = np.minimum(
        np.searchsorted(reached, points, side="right"), np.searchsorted(reached, reached[-1])
    )
    return places


def exchange_rows(fit: JointFit, chosen: Int64, passes: int) -> Int64:
    """Replace rows by others of the pool where all tables together then fit better."""
    pool, rows = fit.pool, len(chosen)
    aims = fit.aims() if passes and rows else []
    if not aims:
        return chosen
    # The more rows, the less a single one matters.
    passes = min(max(round(passes * _FEW_ROWS / rows), 1), passes)
    starts = np.cumsum([0, *(len(target) for _, target in aims)])
    excess = np.concatenate([-target * (rows / target.sum()) for _, target in aims])
    lines = _lines(pool, [keys for keys, _ in aims])
    kernels.count_lines(chosen, lines, starts, excess)
    reached = np.cumsum(pool.weights)
    chosen = chosen.copy()
    for _ in range(passes):
        proposed = _systematic(reached, rows, pool.uniforms(1)[0])
        if kernels.exchange(chosen, lines, starts, excess, proposed, pool.permutation(rows)) == 0:
            break
    return chosen


def _lines(pool: Pool, tables: Sequence[UInt16]) -> UInt16:
    """Return a line for every pool row: its cell in each table."""
    lines = np.empty((pool.rows, len(tables)), dtype=np.uint16)

    def work(first: int) -> None:
        part = slice(first, first + _LINES_AT_A_TIME)
        for table, keys in enumerate(tables):
            kernels.line_up(keys[part], table, lines[part])

    pool.each(work, range(0, pool.rows, _LINES_AT_A_TIME))
    return lines
