"""Code rows as columns, which is how the kernels count them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[np.unsignedinteger[Any]]

_BLOCK_CELLS = 1 << 16


def column_major(batch: Columns) -> Columns:
    """Return a matrix of rows as one contiguous line per feature.

    Blocks that fit in the processor's cache are turned one by one, so that the cost of a
    cell does not grow with the number of features.
    """
    if batch.T.flags.c_contiguous:
        return batch.T
    rows, features = batch.shape
    turned = np.empty((features, rows), dtype=batch.dtype)
    step = max(1, _BLOCK_CELLS // max(features, 1))
    for start in range(0, rows, step):
        turned[:, start : start + step] = batch[start : start + step].T
    return turned
