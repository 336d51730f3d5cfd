"""Nearest rows by the number of features that differ.

`columns` is an (M, n) matrix of codes, one contiguous row per feature; `targets` holds one
target a column. Distances are counted a stretch of rows at a time, one feature after the
other, so that the compiler compares many codes in one instruction and the stretch stays
in the cache for all targets.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from pegsynth.kernels.arrays import Codes

_STRETCH = 4096


@njit(cache=True, nogil=True)
def nearest_rows(columns: Codes, targets: Codes, distance: Codes) -> None:
    """Write for each target the number of features in which its nearest row differs.

    `distance` is of a type that holds one more than the number of features.
    """
    features, rows = columns.shape
    differing = np.zeros(_STRETCH, dtype=distance.dtype)
    distance[:] = features + 1
    for start in range(0, rows, _STRETCH):
        part = differing[: min(_STRETCH, rows - start)]
        for target in range(targets.shape[1]):
            part[:] = 0
            for feature in range(features):
                _add_differing(
                    columns[feature, start : start + len(part)], targets[feature, target], part
                )
            smallest = distance[target]
            for row in range(len(part)):
                smallest = part[row] if part[row] < smallest else smallest
            distance[target] = smallest


@njit(cache=True, nogil=True)
def _add_differing(column: Codes, code: int, differing: Codes) -> None:
    for row in range(len(differing)):
        # Numba would widen a plain sum to 64 bits, and with it every lane.
        differing[row] += np.uint8(column[row] != code)
