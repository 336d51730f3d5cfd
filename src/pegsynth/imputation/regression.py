"""One regression: rows, objective and descent, on the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Float64
from pegsynth.interruptible import Stop
from pegsynth.kernels.logistic import (
    Layout,
    Rows,
    cell_table,
    descend,
    gathered_softmax,
    observed_counts,
)

_MOST_SWEEPS = 1_000


@dataclass(frozen=True)
class Problem:
    """Rows of one regression: predictors, outcome, weights, observed (cell, class) weights.

    `stop` ends its descents when the caller no longer waits for the result.
    """

    columns: NDArray[np.int32]
    layout: Layout
    outcome: NDArray[np.int64]
    weights: Float64
    counts: Float64
    stop: Stop

    @classmethod
    def make(
        cls,
        columns: NDArray[np.int32],
        layout: Layout,
        outcome: NDArray[np.int64],
        weights: Float64,
        classes: int,
        stop: Stop,
    ) -> Problem:
        """Count the (cell, class) weights and bundle everything."""
        counts = np.empty((int(layout.cell_start[-1]), classes))
        observed_counts(columns, layout, outcome, weights, counts)
        return cls(columns, layout, outcome, weights, counts, stop)

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Problem:
        """Return the problem on some of its rows."""
        columns = np.ascontiguousarray(self.columns[:, chosen])
        return Problem.make(
            columns,
            self.layout,
            self.outcome[chosen],
            self.weights[chosen],
            self.counts.shape[1],
            self.stop,
        )

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.weights.sum())

    def start(self) -> Float64:
        """Return coefficients of the model without predictors."""
        classes = self.counts.shape[1]
        held = np.zeros((len(self.layout.first_cell) - 1, classes))
        mass = np.bincount(self.outcome, self.weights, minlength=classes)
        smooth = 0.0 if (mass > 0).all() else 0.5
        held[-1] = np.log((mass + smooth) / (self.total + smooth * classes))
        return held

    def largest_penalty(self, mixing: float) -> float:
        """Return the penalty from which on every coefficient is zero."""
        shares = np.exp(self.start()[-1])
        surplus = self.counts.sum(axis=1)[:, None] * shares - self.counts
        surplus *= self.layout.values[:, None]
        slopes = np.add.reduceat(surplus, self.layout.first_cell[:-1], axis=0)[:-1]
        return float(np.abs(slopes).max(initial=0.0)) / (mixing * self.total)

    def descend(self, coefficients: Float64, penalty: float, mixing: float, close: float) -> float:
        """Improve coefficients in place; return the objective per unit of weight."""
        scale = penalty * self.total
        value, _ = descend(
            Rows(self.columns, self.outcome, self.weights, self.counts),
            self.layout,
            scale * mixing,
            scale * (1.0 - mixing),
            coefficients,
            close,
            _MOST_SWEEPS,
            self.stop.flag,
        )
        self.stop.check()
        return float(value) / self.total

    def log_loss(self, coefficients: Float64, floor: float) -> float:
        """Return the weighted sum of -log P(outcome), no probability counted below `floor`."""
        table = np.empty((int(self.layout.cell_start[-1]), coefficients.shape[1]))
        cell_table(self.layout, coefficients, table)
        out = np.empty((len(self.outcome), coefficients.shape[1]))
        gathered_softmax(self.columns, self.layout.cell_start, self.layout.order, table, out)
        held = out[np.arange(len(out)), self.outcome]
        return float(-self.weights @ np.log(np.maximum(held, floor)))
