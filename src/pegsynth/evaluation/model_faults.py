"""What analysts would conclude wrongly: coefficients and predictions that do not hold.

Goes in: coefficients of the original and the release, and records of predictions. Comes out: the
faults.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pegsynth.evaluation.coefficient_sides import CoefficientSides
from pegsynth.evaluation.fault_kinds import (
    KIND_ALARMS,
    SEPARATOR,
    Fault,
    beside,
    relative,
    written,
)
from pegsynth.evaluation.records import Record
from pegsynth.evaluation.statistics import LEVEL, overlap, quantile

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
