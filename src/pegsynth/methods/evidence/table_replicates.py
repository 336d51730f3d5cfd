"""Replicates of rows that were made of published tables: errors and rows redrawn (R28, R36).

Every replicate redraws the error of every cell: a rounded or suppressed count lies anywhere between
its bounds, an estimate is off by its standard error. Each table is followed as closely as its own
error allows, tables of one feature, which rows are drawn by, more closely.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.methods.evidence.table_fit import MetTable, TableFit
from pegsynth.methods.released._row_pool import Features, UInt16, cell_keys
from pegsynth.methods.released._row_replicates import (
    OF_ONE_WAYS,
    OF_TABLES,
    Cells,
    Measurement,
    Replicates,
    Rows,
)
from pegsynth.random import RandomStream

Words = NDArray[np.uint64]
_SHARPEST = 0.3
"""Rows: no cell is held closer, so that exact tables leave room for drawing rows again."""
_VAGUEST = 1e3


def replicates_of_fit(
    fit: TableFit,
    codes: Codes,
    stream: RandomStream,
    *,
    count: int,
    rows: int,
    design_effect: float,
    threads: int = 1,
) -> Replicates:
    """Return the potentials of K replicates, by some rows of a fit."""
    words = stream.substream()
    used = [each for each in fit.met if each.table.features]
    errors = [_deviations(each) for each in used]
    # Closeness is stated in usual errors: one for all tables, of which each has its own.
    usual = float(np.median([float(np.median(np.sqrt(error))) for error in errors]))
    measurements = [
        Measurement(
            _cells_of(each.table.features, fit.pool.sizes),
            len(error),
            np.sqrt(error) * usual,
            _noise(each, error, words.take(count * len(error))),
            closeness=OF_ONE_WAYS if len(each.table.features) == 1 else OF_TABLES,
        )
        for each, error in zip(used, errors, strict=True)
    ]
    return Replicates.of(
        measurements,
        codes,
        stream,
        total=fit.total,
        design_effect=design_effect,
        count=count,
        rows=rows,
        threads=threads,
    )


def _deviations(each: MetTable) -> Float64:
    """Return the standard error of every cell."""
    spread = np.sqrt(each.table.spread)
    return np.clip(np.where(np.isfinite(spread), spread, _VAGUEST), _SHARPEST, _VAGUEST)


def _noise(each: MetTable, error: Float64, words: Words) -> Float64:
    """Return fresh errors, a line for every replicate; none where a cell is exact or not known."""
    from scipy.special import ndtri

    table = each.table
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    told = np.isfinite(table.high) & (table.spread > 0)
    noise: Float64 = np.where(told, ndtri(uniform).reshape(-1, len(error)) * error, 0.0)
    return noise


def _cells_of(features: Features, sizes: tuple[int, ...]) -> Cells:
    """Return how to find the cell of rows."""
    own = tuple(sizes[feature] for feature in features)

    def keys(codes: Rows) -> UInt16:
        columns = np.stack([codes[:, each].astype(np.uint16) for each in features])
        return cell_keys(columns, tuple(range(len(features))), own)

    return keys
