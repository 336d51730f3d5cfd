"""Share of rows that are alone with their values of the quasi-identifiers.

Two tables of different size cannot be compared directly: the smaller one has more unique
rows by its size alone. The larger is therefore judged by the share expected in a random
part of it, as large as the smaller one; the expectation is exact, nothing is drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64
from pegsynth.errors import ParameterError
from pegsynth.evaluation.statistics import jackknife, lumped_share

TOO_FEW = "no power: of so few rows nearly all would be counted in the original as well"


def expected_uniqueness(group_sizes: NDArray[np.int64], *, rows: int) -> float:
    """Share of unique rows expected in a random part of a table.

    Parameters
    ----------
    group_sizes
        Rows of every combination of quasi-identifiers that occurs in the table, sum N.
    rows
        Rows n of the part, drawn without replacement; N gives the table's own share.

    Notes
    -----
    A row whose combination has c rows is unique in the part when none of the other c - 1 is
    drawn: the product over t < c - 1 of (N - n - t)/(N - 1 - t).
    """
    total = int(group_sizes.sum())
    if not 1 <= rows <= total:
        raise ParameterError(f"uniqueness at {rows} rows needs a table of at least as many")
    groups = np.bincount(group_sizes)
    sizes = np.flatnonzero(groups)
    return float(np.sum(groups[sizes] * sizes * _alone(sizes, total, rows)) / total)


def uniqueness_variance(group_sizes: NDArray[np.int64], *, rows: int) -> float:
    """Jackknife variance of `expected_uniqueness` over draws of the table.

    Without one of its rows a group of c rows has c - 1; the chances to be alone stay.
    """
    total = int(group_sizes.sum())
    groups = np.bincount(group_sizes)
    sizes = np.flatnonzero(groups)
    sizes = sizes[sizes > 0]
    change = (sizes - 1) * _alone(np.maximum(sizes - 1, 1), total, rows)
    change -= sizes * _alone(sizes, total, rows)
    found = zip(change.tolist(), (groups[sizes] * sizes).tolist(), strict=True)
    return jackknife(found, rows=total) / total**2


def crowded(original: float, rows: int, *, lump: float, level: float) -> str:
    """Say that a share of the original is so near 1 that nothing could lie clearly above it.

    Parameters
    ----------
    original
        Share of its rows that are counted.
    rows, lump
        Released rows, and how many of them change sides together.
    """
    most = lumped_share(1.0, rows, 0.0, lump=lump, level=level).low
    return "" if original < most else TOO_FEW


def _alone(sizes: NDArray[np.int64], total: int, rows: int) -> Float64:
    """Return the chance of a row to be alone in the part, by the rows of its group."""
    others = np.arange(min(int(sizes.max()) - 1, total - rows), dtype=np.float64)
    alone = np.cumprod((total - rows - others) / (total - 1 - others))
    # Groups so large that another of their rows is always drawn are never unique.
    chances = np.concatenate(([1.0], alone, [0.0]))
    return np.asarray(chances[np.minimum(sizes - 1, len(alone) + 1)], dtype=np.float64)
