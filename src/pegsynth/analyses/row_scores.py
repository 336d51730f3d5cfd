"""What one row adds to the score of a regression, in integers and bounded (R26).

A linear or logistic regression is scored at coefficients that were paid for: a row adds its
residual times each of its explanatory columns. The residual is clipped, and clipped further in
a row whose columns are large together, so that no row adds a longer vector than a public bound.
Most rows are nowhere near it, and the noise is as small as the bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pegsynth.arrays import Float64, Int64

SCORED = ("gaussian", "binomial")
"""Families whose regressions are scored."""
REACH, PLACES, UNITS = 8, 32, 256
"""Linear predictors of a logistic regression are told apart up to `REACH` either way, by
`PLACES` to a unit; coefficients are whole numbers of 1/`UNITS`."""
_SHORTER = 9
"""The squared bound is this part of what the largest columns and residual would come to."""
_RIDGE, _NEWTON, _MOST_ODDS = 1.0, 25, 100.0


@dataclass(frozen=True, eq=False)
class Scores:
    """What a regression is scored at, from paid output alone.

    Parameters
    ----------
    coefficients
        What the linear predictor takes of every column but that of the response, in `UNITS`.
    limit
        The residual, in steps of the response, that counts as the largest step.
    logistic
        Whether the linear predictor gives a chance.
    """

    coefficients: Int64
    limit: int
    logistic: bool

    @classmethod
    def stored(cls, numbers: Int64, family: str) -> Scores | None:
        """Return the scores that a model file holds; None where there are none."""
        if not len(numbers):
            return None
        return cls(numbers[:-1], int(numbers[-1]), family == "binomial")

    def numbers(self) -> Int64:
        """Return the coefficients, and after them the limit."""
        return np.append(self.coefficients, np.int64(self.limit))

    def residuals(self, columns: Int64, steps: int, parts: int) -> Int64:
        """Return the clipped residuals of rows, at most `steps` either way.

        Parameters
        ----------
        columns
            The columns of rows, that of the response being the second.
        parts
            The most columns but the response's that are not 0 in one row.
        """
        others = np.delete(columns, 1, axis=1)
        found = _raw(columns[:, 1], others @ self.coefficients, steps, logistic=self.logistic)
        found = np.clip(found, -self.limit, self.limit) * steps // self.limit
        square = np.maximum((others * others).sum(axis=1), 1)
        # Whole numbers below 2^52 have exact floors of their square roots.
        most = np.sqrt(bound(steps, parts) // square).astype(np.int64)
        clipped: Int64 = np.where(others[:, 0] != 0, np.clip(found, -most, most), 0)
        return clipped

    def largest(self, most: Sequence[int], steps: int, parts: int, power: int) -> int:
        """Return the most that a row adds, each sum to a power (1 or 2).

        Parameters
        ----------
        most
            The largest size of a column of the intercept and of every term.
        """
        unbounded: int = sum((steps * each) ** power for each in most)
        squared = bound(steps, parts)
        # A vector of `parts` numbers is at most sqrt(parts) times as long by its sum.
        return min(unbounded, squared if power > 1 else math.isqrt(squared * parts))


def bound(steps: int, parts: int) -> int:
    """Return the largest square of what a row adds to a score; a residual of a step always fits."""
    return max(parts * steps**4 // _SHORTER, parts * steps**2)


def _raw(response: Int64, predictor: Int64, steps: int, *, logistic: bool) -> Int64:
    """Return residuals in steps of the response."""
    if not logistic:
        return response - predictor // UNITS
    chances = _chances(steps)
    place = predictor * PLACES // (UNITS * steps) + len(chances) // 2
    return response - chances[np.clip(place, 0, len(chances) - 1)]


@lru_cache(maxsize=8)
def _chances(steps: int) -> Int64:
    """Return the chance by the linear predictor, in whole steps."""
    places = (np.arange(-REACH * PLACES, REACH * PLACES) + 0.5) / PLACES
    return np.rint(steps / (1 + np.exp(-places))).astype(np.int64)


def fitted_scores(columns: Int64, steps: int, *, tail: float, logistic: bool) -> Scores:
    """Fit a regression to synthetic rows, and say where residuals are clipped.

    Parameters
    ----------
    columns
        The columns of rows that come from paid output alone, that of the response being the
        second.
    tail
        Part of the residuals of these rows that is to be clipped; of chances none is.
    """
    kept = columns[columns[:, 0] != 0]
    response, others = kept[:, 1] / steps, np.delete(kept, 1, axis=1)
    fit = _logistic if logistic else _least_squares
    whole = np.rint(np.clip(fit(others / steps, response), -_MOST_ODDS, _MOST_ODDS) * UNITS)
    coefficients = whole.astype(np.int64)
    limit = steps
    if not logistic and len(kept):
        sizes = np.abs(_raw(kept[:, 1], others @ coefficients, steps, logistic=False))
        limit = min(max(int(np.quantile(sizes, 1 - tail)), 1), 2 * steps)
    return Scores(coefficients, limit, logistic)


def _least_squares(columns: Float64, response: Float64) -> Float64:
    ridge = np.eye(columns.shape[1]) * _RIDGE
    solved = np.linalg.solve(columns.T @ columns + ridge, columns.T @ response)
    return solved.astype(np.float64)


def _logistic(columns: Float64, response: Float64) -> Float64:
    odds = np.zeros(columns.shape[1])
    ridge = np.eye(len(odds)) * _RIDGE
    for _ in range(_NEWTON):
        chance = 1 / (1 + np.exp(-np.clip(columns @ odds, -REACH, REACH)))
        slope = columns.T @ (response - chance) - ridge @ odds
        curve = (columns * (chance * (1 - chance))[:, None]).T @ columns + ridge
        odds = np.clip(odds + np.linalg.solve(curve, slope), -_MOST_ODDS, _MOST_ODDS)
    return odds
