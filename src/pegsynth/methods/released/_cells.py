"""One table of the joint fit, and arithmetic on its cells, all other tables given (R11).

The potentials at its turn, how likely it is under a closeness of the pool, and measurements of the
same table put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pegsynth.kernels.arrays import Float64
from pegsynth.methods.released._row_pool import Features, UInt16
from pegsynth.methods.released._values import NoisyTable

CLOSENESS = np.geomspace(2.0**-24, 2.0**8, 33)
"""Values of c that likelihoods are taken for."""
_NEXT_TO_NOTHING = -30.0


@dataclass(eq=False)
class FittedTable:
    """A table that weights should meet, and the potentials of its cells.

    Parameters
    ----------
    features, keys
        What it is about, and the cell of every row in it.
    noisy, variance
        What was measured, and the variance of the noise on its cells.
    potentials
        Logarithms of the factors by which it scales the weights of its cells.
    likelihoods
        How likely its distance from the pool is under every `CLOSENESS`.
    residual
        What its residual was measured as, in rows (R27). It says nothing of margins, so what a
        pair should meet is made of it and of the one-way counts of the weights, and a triple of
        it and of the margins that the weights give it.
    products
        The product of scores in every cell of a pair, where a sum of products is met and not a
        table; it has one potential.
    """

    features: Features
    keys: UInt16
    noisy: Float64
    variance: Float64
    potentials: Float64
    likelihoods: Float64
    residual: Float64 | None = None
    products: Float64 | None = None

    def by_cell(self, potentials: Float64) -> Float64:
        """Return potentials of all cells; that of a sum of products is multiplied out."""
        return potentials if self.products is None else potentials[0] * self.products


def soft_potentials(
    sums: Float64, potentials: Float64, noisy: Float64, softness: Float64, most: float
) -> Float64:
    """Return the potentials that the cells of one table have at the minimum, all others given.

    With s the sum of weights in a cell without its own potential p, and softness c v,
    p + (s exp(p) - y)/(c v) = 0. Cells without any weight keep theirs.

    Parameters
    ----------
    most
        How far a potential may move.
    """
    from scipy.special import wrightomega

    some = sums > 0
    apart = np.log(np.where(some, sums, 1.0)) - potentials - np.log(softness)
    reached = apart + noisy / softness
    # Wright's omega z of x solves z + log z = x; far below 0 it is exp(x), which may be no number.
    root = np.log(np.maximum(wrightomega(np.maximum(reached, _NEXT_TO_NOTHING)), 1e-300))
    wanted = np.where(reached < _NEXT_TO_NOTHING, reached, root) - apart
    within = np.clip(wanted, potentials - most, potentials + most)
    found: Float64 = np.where(some, within, potentials)
    return found


def likely_closeness(noisy: Float64, expected: Float64, variance: Float64) -> Float64:
    """Return the log-likelihood of a table under every `CLOSENESS` of the pool.

    A cell is off by the noise and by what the pool does not know, whose variance is the
    expected number of rows over c.
    """
    squared = (noisy - expected) ** 2
    found = np.empty(len(CLOSENESS))
    for place, closeness in enumerate(CLOSENESS):
        whole = variance + expected / closeness
        found[place] = -0.5 * float((squared / whole + np.log(whole)).sum())
    return found


def highest(likelihoods: Float64) -> float:
    """Return the closeness at the top, between two values of the grid by a parabola."""
    top = int(np.argmax(likelihoods))
    logs = np.log(CLOSENESS)
    if not 0 < top < len(likelihoods) - 1:
        return float(CLOSENESS[top])
    left, middle, right = likelihoods[top - 1 : top + 2]
    bend = left - 2 * middle + right
    shift = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(np.exp(logs[top] + shift * (logs[1] - logs[0])))


def average(
    first: Float64, variance: Float64, second: Float64, other: Float64
) -> tuple[Float64, Float64]:
    """Return the mean of two measurements by precision, and its variance."""
    together = 1 / (1 / variance + 1 / other)
    mean: Float64 = together * (first / variance + second / other)
    return mean, together


def with_margins(residual: Float64, margins: Sequence[Float64]) -> Float64:
    """Return the table of a pair that has a residual and margins of the same total."""
    rows, columns = margins
    told = rows[:, None] / len(columns) + columns / len(rows)
    told -= rows.sum() / (len(rows) * len(columns))
    table: Float64 = told.ravel() + residual
    return table


def in_order(table: NoisyTable, sizes: Sequence[int]) -> tuple[Features, Float64]:
    """Return a table with its features in the order of the schema."""
    order = sorted(range(len(table.features)), key=table.features.__getitem__)
    cells = table.counts.reshape([sizes[feature] for feature in table.features])
    features = tuple(table.features[place] for place in order)
    return features, cells.transpose(order).astype(np.float64).ravel()
