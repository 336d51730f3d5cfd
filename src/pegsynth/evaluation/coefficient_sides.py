"""Coefficients of a regression in the original and in the release, ready to be judged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from pegsynth.evaluation.chance import rows_judged
from pegsynth.evaluation.model_matrix import INTERCEPT, Column, Sample
from pegsynth.evaluation.regression_records import Comparison
from pegsynth.evaluation.statistics import Estimate


@dataclass(frozen=True)
class CoefficientSides:
    """One coefficient of the original and of the synthetic tables.

    Parameters
    ----------
    formula, term
        Which regression, and which coefficient of it.
    original, synthetic
        The original's estimate, and that of the synthetic tables.
    robust
        Gives the variances of the original's estimates, by name, whatever the law of the errors;
        called for a coefficient that is far off.
    rows, released
        Rows of the original and of the smallest synthetic table.
    """

    formula: str
    term: str
    original: Estimate
    synthetic: Estimate
    robust: Callable[[], dict[str, float]]
    rows: int
    released: int

    @property
    def value(self) -> float:
        """The estimate of the synthetic tables."""
        return self.synthetic.value

    @property
    def variance(self) -> float:
        """The larger of the two variances of the original's estimate."""
        return max(self.original.variance, self.robust().get(self.term, 0.0))

    def allowance(self, alpha: float) -> float:
        """Return how far a fresh sample as large as the release may be off, for many rows."""
        from scipy.special import ndtri

        return float(-ndtri(alpha / 2)) * self.deviation

    @property
    def deviation(self) -> float:
        """Standard deviation of the estimate of a fresh sample as large as the release."""
        return math.sqrt(self.variance * self.rows / rows_judged(self.rows, self.released))


def coefficient_sides(found: Comparison) -> list[CoefficientSides]:
    """Return what is needed to judge every coefficient of a comparison but the intercept."""
    if found.sample is None:
        return []
    robust = cache(partial(_sandwich, found, found.sample, found.columns))
    sides = []
    for name in found.names:
        first, second = found.original[name], found.synthetic[name]
        if name == INTERCEPT or first is None or second is None:
            continue
        sides.append(
            CoefficientSides(
                found.formula.text,
                name,
                first,
                second,
                robust,
                found.fits[0].rows,
                found.rows,
            )
        )
    return sides


def _sandwich(found: Comparison, sample: Sample, columns: Sequence[Column]) -> dict[str, float]:
    """Return the variances of the original's coefficients that hold whatever the errors' law.

    Notes
    -----
    White (1980), A heteroskedasticity-consistent covariance matrix estimator, Econometrica
    48(4), 817-838, doi:10.2307/1912934; it is the variance of a bootstrap of rows.
    """
    estimates = found.fits[0].estimates
    kept = [column for column in columns if column.name in estimates]
    names = [INTERCEPT, *(column.name for column in kept)]
    if not estimates or any(name not in estimates for name in names):
        return {}
    matrix = sample.matrix(kept)
    scores = matrix @ np.array([estimates[name].value for name in names])
    if found.formula.kind == "linear":
        errors, curve = sample.response - scores, np.ones(len(scores))
    else:
        chances = 1 / (1 + np.exp(-scores))
        errors, curve = sample.response - chances, chances * (1 - chances)
    scale = np.abs(matrix).max(axis=0)
    scale[scale == 0] = 1.0
    matrix = matrix / scale
    bread = np.linalg.pinv(matrix.T @ (matrix * (sample.counts * curve)[:, np.newaxis]))
    meat = matrix.T @ (matrix * (sample.counts * errors * errors)[:, np.newaxis])
    variances = np.diag(bread @ meat @ bread) / scale**2
    known = dict(zip(names, variances.tolist(), strict=True))
    return {name: each for name, each in known.items() if math.isfinite(each)}
