"""Replicates of rows that were made of published tables: errors redrawn, rows drawn again (R28, R35).

Every replicate redraws the error of every cell: a rounded or suppressed count lies anywhere between
its bounds, an estimate is off by its standard error. How far the rows follow is decided as in the
fit: little where all other tables know the cell better.
"""

from __future__ import annotations

import numpy as np

from pegsynth.kernels.arrays import Codes, Float64
from pegsynth.methods.evidence.table_fit import MetTable, TableFit
from pegsynth.methods.released.row_pool import Features, cell_keys
from pegsynth.methods.released.row_replicates import Measurement, Replicates
from pegsynth.random import RandomStream

_SHARPEST = 0.3
"""Rows: no cell is held closer, so that exact tables leave room for drawing rows again."""
_VAGUEST = 1e6


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
    measurements = [
        _measurement(each, fit.pool.sizes, words.take(count * len(each.potentials)), count)
        for each in fit.met
        if each.table.features
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


def _measurement(
    each: MetTable, sizes: tuple[int, ...], words: np.ndarray, count: int
) -> Measurement:
    from scipy.special import ndtri

    table = each.table
    deviation = np.sqrt(np.minimum(each.measured[1], _VAGUEST))
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    # What stands for a cell between bounds has their variance, or more where they say little.
    noise: Float64 = ndtri(uniform).reshape(count, -1) * deviation
    exact = (table.low == table.high) & (table.variance == 0)
    return Measurement(
        _cells_of(table.features, sizes),
        len(table.low),
        np.maximum(deviation, _SHARPEST),
        np.where(exact, 0.0, noise),
    )


def _cells_of(features: Features, sizes: tuple[int, ...]):  # type: ignore[no-untyped-def]
    own = tuple(sizes[feature] for feature in features)

    def keys(codes: Codes) -> np.ndarray:
        columns = np.stack([codes[:, each].astype(np.uint16) for each in features])
        return cell_keys(columns, tuple(range(len(features))), own)

    return keys
