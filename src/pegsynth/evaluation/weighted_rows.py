"""A weighted table as one of plain rows, for measures that count rows.

Goes in: rows and their weights (R28). Comes out: as many rows, each as often as its share of the
weights, rounded along the running sum. Nothing is drawn, so the same table gives the same rows,
and no share of any group is further off than one row at each end of every run of its rows.
"""

from __future__ import annotations

import numpy as np

from pegsynth.arrays import Codes, Float64, Int64


def repeats(weights: Float64) -> Int64:
    """Return how often each row stands in a table of as many rows.

    >>> repeats(np.array([2.0, 0.0, 0.5, 0.5, 1.0])).tolist()
    [3, 0, 0, 1, 1]
    """
    total = float(weights.sum())
    if not total > 0:
        return np.ones(len(weights), dtype=np.int64)
    ends = np.round(np.cumsum(weights) * (len(weights) / total)).astype(np.int64)
    ends[-1] = len(weights)
    return np.diff(ends, prepend=0)


def plain_rows(codes: Codes, weights: Float64 | None, every: int = 1) -> Codes:
    """Return the rows of a table, repeated by their weights where it has some.

    Parameters
    ----------
    codes
        Rows by features.
    weights
        One for each `every`-th row; None where all rows count alike.
    """
    if weights is None:
        return codes
    kept = codes[::every]
    return np.asarray(np.repeat(kept, repeats(weights), axis=0))
