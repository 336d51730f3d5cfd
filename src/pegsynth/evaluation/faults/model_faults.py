"""Coefficients of a regression in the original and in the release, ready to be judged.

What analysts would conclude wrongly: coefficients and predictions that do not hold.

Goes in: coefficients of the original and the release, and records of predictions. Comes out: the
faults.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from pegsynth.evaluation.faults.fault_kinds import (
    KIND_ALARMS,
    SEPARATOR,
    Fault,
    beside,
    relative,
    rows_judged,
    written,
)
from pegsynth.evaluation.records import Record
from pegsynth.evaluation.utility.regression_records import Comparison
from pegsynth.inference.model_matrix import INTERCEPT, Column, Sample
from pegsynth.inference.statistics import LEVEL, Estimate, overlap, quantile


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


COEFFICIENT, OVERLAP, LOST = 0.20, 0.5, 0.2
REGRESSION_RULE = (
    "Regressions change where a coefficient that is not 0 by the original's interval changes its "
    "sign, loses its significance (the release's interval holds 0), or is off by "
    f"{COEFFICIENT:.0%}; or where the intervals of a formula overlap by less than "
    f"{OVERLAP:g} on average; and chance, by the normal law for many rows, does not explain it."
)
PREDICTION_RULE = (
    f"Predictions change where a model trained on the release loses {LOST:.0%} of what the area "
    "under the curve of one trained on as many real rows has above guessing, and more than the "
    "test rows explain; how much training itself varies is not bounded."
)
_SIGNS, _GUESSING = 4.0, 0.5


def regression_faults(
    coefficients: Sequence[CoefficientSides], *, level: float = KIND_ALARMS
) -> list[Fault]:
    """List coefficients and formulas whose conclusions change."""
    alpha = level / max(1, 2 * len(coefficients))
    found = [fault for each in coefficients for fault in _coefficient(each, alpha)]
    for formula in dict.fromkeys(each.formula for each in coefficients):
        ours = [each for each in coefficients if each.formula == formula]
        found += _overlap(formula, ours, alpha)
    return found


def _coefficient(each: CoefficientSides, alpha: float) -> Iterable[Fault]:
    if not (each.original.low > 0 or each.original.high < 0):
        return
    value, original = each.value, each.original.value
    tolerance = COEFFICIENT * abs(original)
    off = abs(value - original)
    moved = off > tolerance and off > each.allowance(alpha)
    # A fresh sample that would keep the coefficient significant with all but a small chance.
    firm = abs(original) > quantile(LEVEL) * each.deviation + each.allowance(alpha)
    lost = each.synthetic.low <= 0 <= each.synthetic.high and firm
    times = off / tolerance
    if lost:
        fate, times = "loses its significance", max(times, _SIGNS / 2)
    elif moved and value * original < 0:
        fate, times = "changes its sign", max(times, _SIGNS)
    elif moved:
        fate = f"is {relative(value, original)}"
    else:
        return
    words = f"in {each.formula} the coefficient of {each.term} {fate} ({beside(value, original)})"
    yield Fault("regressions", f"{each.formula}{SEPARATOR}{each.term}", words, times)


def _overlap(formula: str, ours: Sequence[CoefficientSides], alpha: float) -> Iterable[Fault]:
    mean = sum(overlap(each.original, each.synthetic) for each in ours) / len(ours)
    if mean >= OVERLAP or all(abs(e.value - e.original.value) <= e.allowance(alpha) for e in ours):
        return
    words = f"in {formula} the intervals of coefficients hardly overlap (by {mean:.2f} on average)"
    yield Fault("regressions", f"{formula}{SEPARATOR}overlap", words, OVERLAP / max(mean, 0.1))


def prediction_faults(records: Sequence[Record], *, level: float = KIND_ALARMS) -> list[Fault]:
    """List targets that a model trained on the release predicts worse than a real one."""
    real = {record.subject: record for record in records if record.name == "auc_real"}
    pairs = [
        (record, real[record.subject])
        for record in records
        if record.name == "auc_synthetic" and record.subject in real
    ]
    alpha = level / max(1, len(pairs))
    return [fault for pair in pairs for fault in _prediction(*pair, alpha)]


def _prediction(found: Record, real: Record, alpha: float) -> Iterable[Fault]:
    if found.value is None or real.value is None or real.value <= _GUESSING:
        return
    lost, gain = real.value - found.value, real.value - _GUESSING
    deviation = math.hypot(_deviation(found), _deviation(real))
    if lost <= LOST * gain or lost <= quantile(1 - alpha) * deviation:
        return
    fate = "worse than guessing" if found.value < _GUESSING else "worse"
    words = (
        f"{found.subject} is predicted {fate} (area under the curve {written(found.value)}, "
        f"trained on real rows {written(real.value)})"
    )
    yield Fault("predictions", found.subject, words, lost / (LOST * gain))


def _deviation(record: Record) -> float:
    if record.low is None or record.high is None:
        return 0.0
    return (record.high - record.low) / (2 * quantile(LEVEL))
