"""What every table of a model should hold, by projection alone (R28).

A plain target is a function of published counts only: it does not look at a pool, nor at
what other tables lead to expect. So the same function serves the published counts and
their replicates, and where no count is near zero it is linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from pegsynth.kernels.arrays import Float64
from pegsynth.mechanisms.residuals import centred
from pegsynth.methods.released._estimates import (
    Axes,
    Margins,
    fitted_to,
    measured_products,
    on_simplex,
    says_something,
    standard_scores,
    tilted,
)
from pegsynth.methods.released._pairs import PAIR, PairEstimates, cell_noise, projected
from pegsynth.methods.released._values import NoisyTable, Released
from pegsynth.methods.released.row_pool import Features, cell_count

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
    scores = standard_scores(released.levels, released.ordered, margins)
    products = measured_products(released, margins, scores)
    for table in (*released.blocks, *released.extra):
        projected = on_simplex(table.counts.astype(np.float64), table.deviation**2, margins.total)
        if len(table.features) <= _LARGEST_FITTED:
            shape = [margins.sizes[feature] for feature in table.features]
            wanted = _known_margins(table, known, margins)
            alone = projected.reshape(shape)
            fitted = fitted_to(alone, wanted)
            # Pairs that other tables know better may leave nothing of it.
            fitted = fitted if says_something(fitted) else alone
            projected = tilted(fitted, table.features, products, scores, wanted).ravel()
        known.append((table, projected))
    ones: list[Target] = [
        ((feature,), margins.counts(feature)) for feature in range(len(margins.sizes))
    ]
    tables = [(table.features, counts) for table, counts in known]
    return [*tables, *_by_residuals(released, margins), *ones]


def _by_residuals(released: Released, margins: Margins) -> Iterator[Target]:
    """Yield what residuals tell together with one-way counts (R27); triples need pairs too."""
    pairs = PairEstimates.of(released.residuals, margins.sizes).tables(margins, shrink=False)
    yield from ((pair, table.ravel()) for pair, table in pairs.items())
    for table in released.residuals:
        if len(table.features) > PAIR:
            yield table.features, _by_parts(table, pairs, margins)


def _by_parts(table: NoisyTable, pairs: Mapping[Features, Float64], margins: Margins) -> Float64:
    """Add a residual to what pairs tell of its table, and project."""
    features = table.features
    levels = [margins.sizes[feature] for feature in features]
    wanted: dict[tuple[int, ...], Float64] = {}
    for places in combinations(range(len(features)), PAIR):
        first, second = (features[place] for place in places)
        alone = np.outer(margins.counts(first), margins.shares[second])
        wanted[places] = pairs.get((first, second), alone)
    told = _without_residual(wanted, levels, margins.total)
    noisy = told.ravel() + projected(table, levels)
    cells = on_simplex(noisy, cell_noise(table.deviation, levels) ** 2, margins.total)
    for start in (cells.reshape(levels), np.ones(levels)):
        fitted = fitted_to(start, wanted)
        if says_something(fitted):
            return fitted.ravel()
    # Loud noise may leave no cell that all pairs allow; such a residual says nothing.
    return np.full(len(cells), margins.total / len(cells))


def _without_residual(
    pairs: Mapping[tuple[int, ...], Float64], levels: Sequence[int], total: float
) -> Float64:
    """Return the table with these pair tables that has no residual: a sum of their parts."""
    told = np.full(levels, total / np.prod(levels))
    places = range(len(levels))
    for place in places:
        pair = next(each for each in pairs if place in each)
        line = pairs[pair].sum(axis=1 - pair.index(place))
        others = tuple(other for other in places if other != place)
        told += np.expand_dims(line - line.mean(), others) * (levels[place] / np.prod(levels))
    for pair, table in pairs.items():
        shape = [levels[place] for place in pair]
        others = tuple(other for other in places if other not in pair)
        part = centred(table.ravel(), shape).reshape(shape)
        told += np.expand_dims(part, others) * (np.prod(shape) / np.prod(levels))
    return told


_LARGEST_FITTED = 3


def _known_margins(
    table: NoisyTable, known: Sequence[tuple[NoisyTable, Float64]], margins: Margins
) -> dict[Axes, Float64]:
    """Return the one-way counts of a table, and pairs that another table knows better."""
    places = range(len(table.features))
    wanted: dict[Axes, Float64] = {
        (place,): margins.counts(table.features[place]) for place in places
    }
    for pair in combinations(places, 2) if len(places) > 2 else ():
        features = (table.features[pair[0]], table.features[pair[1]])
        better = _better_known(features, table, known, margins.sizes)
        if better is not None:
            wanted[pair] = better
    return wanted


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
