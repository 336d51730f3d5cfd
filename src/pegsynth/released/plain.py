"""What every table of a model should hold, by projection alone (R28).

A plain target is a function of published counts only: it does not look at a pool, nor at
what other tables lead to expect. So the same function serves the published counts and
their replicates, and where no count is near zero it is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from pegsynth.arrays import Float64
from pegsynth.released.margins import Margins
from pegsynth.released.published import NoisyTable, Released
from pegsynth.released.row_pool import Features, cell_count
from pegsynth.released.smoothing import fitted_to, on_simplex

Target = tuple[Features, Float64]


def plain_targets(released: Released, margins: Margins) -> list[Target]:
    """Return the tables that weights should meet, in the order in which they are raked.

    One-way counts come last, because they are known best.

    Parameters
    ----------
    margins
        One-way counts that every published table has improved.
    """
    known: list[tuple[NoisyTable, Float64]] = []
    for table in (*released.blocks, *released.extra):
        projected = on_simplex(table.counts.astype(np.float64), table.deviation**2, margins.total)
        if len(table.features) <= _LARGEST_FITTED:
            projected = _consistent(table, projected, known, margins)
        known.append((table, projected))
    ones: list[Target] = [
        ((feature,), margins.counts(feature)) for feature in range(len(margins.sizes))
    ]
    return [*((table.features, counts) for table, counts in known), *ones]


_LARGEST_FITTED = 3


def _consistent(
    table: NoisyTable,
    projected: Float64,
    known: Sequence[tuple[NoisyTable, Float64]],
    margins: Margins,
) -> Float64:
    """Fit a table to the one-way counts, and to pairs that another table knows better."""
    shape = [margins.sizes[feature] for feature in table.features]
    places = range(len(shape))
    wanted: dict[tuple[int, ...], Float64] = {
        (place,): margins.counts(table.features[place]) for place in places
    }
    for pair in combinations(places, 2) if len(shape) > 2 else ():
        features = (table.features[pair[0]], table.features[pair[1]])
        better = _better_known(features, table, known, margins.sizes)
        if better is not None:
            wanted[pair] = better
    return fitted_to(projected.reshape(shape), wanted).ravel()


def _better_known(
    pair: Features,
    table: NoisyTable,
    known: Sequence[tuple[NoisyTable, Float64]],
    sizes: Sequence[int],
) -> Float64 | None:
    """Return a pair as the least noisy table before this one has it; None if none is better."""
    best, found = _noise(table, pair, sizes), None
    for other, counts in known:
        if set(pair) <= set(other.features) and _noise(other, pair, sizes) < best:
            best = _noise(other, pair, sizes)
            cells = counts.reshape([sizes[feature] for feature in other.features])
            axes = [other.features.index(feature) for feature in pair]
            gone = tuple(axis for axis in range(cells.ndim) if axis not in axes)
            found = cells.sum(axis=gone)
            if axes[0] > axes[1]:
                found = found.T
    return found


def _noise(table: NoisyTable, features: Features, sizes: Sequence[int]) -> float:
    """Return the variance of the noise on a cell of these features, summed from a table."""
    return table.deviation**2 * (len(table.counts) / cell_count(features, sizes))
