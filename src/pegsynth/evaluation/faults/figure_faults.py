"""What is wrong with figures of a release, by stated rules, each fault in one sentence.

Goes in: distributions, correlations and coefficients of the original and the synthetic tables, and
records of predictions. Comes out: the faults. A figure is at fault where it is off by more than a
public tolerance *and* by more than chance explains. Chance is bounded for all comparisons of a kind
together, so that a bootstrap of the original is blamed with a probability of at most
`KIND_ALARMS`: for its numbers, for what analysts would conclude from its regressions, and for what
a model trained on it would predict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from pegsynth.evaluation.faults.fault_kinds import (
    FALSE_ALARMS,
    KIND_ALARMS,
    Fault,
    beside,
    function_allowance,
    mean_explained,
    relative,
    rows_judged,
    share_explained,
    written,
)
from pegsynth.evaluation.records import SEPARATOR, Record
from pegsynth.evaluation.utility.correlations import PairSides
from pegsynth.evaluation.utility.empirical import HEAP_SHARE, TAILS, Empirical, Sides, kolmogorov
from pegsynth.evaluation.utility.regression_records import Comparison
from pegsynth.inference.model_matrix import INTERCEPT
from pegsynth.inference.regression_fit import robust_variances
from pegsynth.inference.statistics import LEVEL, Estimate, overlap, quantile

MEAN, SD, FUNCTION, SHARE, TIMES = 0.05, 0.10, 0.05, 0.01, 2.0
CORRELATION = 0.10
NUMBER_RULE = (
    "Numbers are “off” where a figure of a numeric feature misses the original's by more than "
    f"chance explains and by more than this: a mean {MEAN:.0%} of the smaller of the mean size and "
    f"the standard deviation; a standard deviation {SD:.0%}; a distribution function, "
    f"also of dates, {FUNCTION:g}; the share of zeros, or of another number that {HEAP_SHARE:.0%} "
    f"of the rows share, {SHARE:.0%} of the rows or half; the rows beyond the original's 1% or 99% "
    f"quantile, half as many or twice as many; a correlation {CORRELATION:g}."
)
_DISTRIBUTION_TESTS = 6
_MOST_OF_TAILS = 4.0


def number_faults(
    sides: Sequence[Sides],
    pairs: Sequence[PairSides],
    moments: Sequence[Sides] = (),
    *,
    level: float = KIND_ALARMS,
) -> list[Fault]:
    """List what is off, the worst first; `level` is the chance of a false alarm in all.

    Of `moments`, which are dates and times, only the distribution function is judged: a mean
    counted from a year that nobody chose has no relative error.
    """
    comparisons = sum(_DISTRIBUTION_TESTS + len(each.heaps()) for each in sides)
    alpha = level / max(1, comparisons + len(pairs) + len(moments))
    found = [fault for each in sides for fault in _distribution(each, alpha)]
    found += [fault for each in moments for fault in _function(each, alpha)]
    found += [fault for each in pairs for fault in _correlation(each, alpha)]
    return sorted(found, key=lambda each: each.order)


def _distribution(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge mean, spread, distribution function, zeros, heaps and tails of a feature."""
    law, n, name = side.original, side.rows, side.name
    mean, tolerance = side.mean(lambda each: each.mean), MEAN * min(law.size, law.sd)
    off = abs(mean - law.mean)
    if off > tolerance and not mean_explained(law.support, law.shares, mean, n, alpha):
        words = f"the mean of {name} is {relative(mean, law.mean)} ({beside(mean, law.mean)})"
        yield Fault("numbers", _about(name, "mean"), words, _ratio(off, tolerance))
    sd = side.mean(lambda each: each.sd)
    if abs(sd - law.sd) > SD * law.sd and not _spread_explained(side, alpha):
        words = f"the standard deviation of {name} is {relative(sd, law.sd)} ({beside(sd, law.sd)})"
        yield Fault("numbers", _about(name, "sd"), words, _ratio(abs(sd - law.sd), SD * law.sd))
    yield from _function(side, alpha)
    yield from _atoms(side, alpha)
    yield from _tails(side, alpha)


def _function(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge the distribution function of a feature."""
    apart = side.mean(partial(kolmogorov, side.original))
    if apart > FUNCTION and apart > function_allowance(side.rows, alpha):
        words = f"values of {side.name} lie elsewhere (Kolmogorov distance {apart:.2g})"
        yield Fault("numbers", _about(side.name, "distribution"), words, apart / FUNCTION)


def _spread_explained(side: Sides, alpha: float) -> bool:
    """Say whether chance explains the second moment about the original's mean."""
    law = side.original
    found = side.mean(lambda each: each.moment(2) + np.square(each.mean - law.mean))
    squares = (law.support - law.mean) ** 2
    return mean_explained(squares, law.shares, found, side.rows, alpha)


def _atoms(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge the share of zeros and of numbers at which rows heap up."""
    ours = set(side.original.heaps().tolist())
    for number in (0.0, *side.heaps()):
        share = side.original.share(number)
        released = side.mean(partial(Empirical.share, number=number))
        if max(share, released) < HEAP_SHARE:
            continue
        off, tolerance = abs(released - share), min(SHARE, share / TIMES) or SHARE
        explained = share_explained(share, released, side.rows, alpha)
        if number != 0 and number not in ours:
            # Found among all numbers of the release, so that the bound must hold for them all.
            explained = off <= 2 * function_allowance(side.rows, alpha)
        if off > tolerance and not explained:
            what = "zeros" if number == 0 else "rows heaped at one number"
            yield Fault(
                "numbers",
                _about(side.name, "zeros" if number == 0 else f"heap at {number:.15g}"),
                f"{what} of {side.name} {_fate(share, released)} "
                f"({released:.2%} of the rows, originally {share:.2%})",
                off / tolerance,
            )


def _tails(side: Sides, alpha: float) -> Iterable[Fault]:
    """Judge the share of rows beyond quantiles of the original."""
    for where, level in TAILS:
        bound = float(side.original.quantile(level))
        beyond = partial(Empirical.beyond, where=where, bound=bound)
        share, released = beyond(side.original), side.mean(beyond)
        if not share or 1 / TIMES <= released / share <= TIMES:
            continue
        if not share_explained(share, released, side.rows, alpha):
            end = "upper" if where == "above" else "lower"
            fate = "is cut" if released < share else "is too heavy"
            least = 1 / side.rows
            times = max(released, least) / share
            yield Fault(
                "numbers",
                _about(side.name, f"{end} tail"),
                f"the {end} tail of {side.name} {fate} ({released:.2%} of the rows lie {where} "
                f"the original's {level:.0%} quantile, originally {share:.2%})",
                # However much of a tail is gone, it is a small part of the rows.
                min(max(times, 1 / times) / TIMES, _MOST_OF_TAILS),
            )


def _correlation(pair: PairSides, alpha: float) -> Iterable[Fault]:
    off = abs(pair.value - pair.original.value)
    if off > CORRELATION and off > pair.original.allowance(pair.rows, alpha):
        which = pair.name.partition("_")[0].title()
        words = (
            f"{pair.pair[0]} and {pair.pair[1]} do not go together as they did ({which} "
            f"correlation {pair.value:.2f}, originally {pair.original.value:.2f})"
        )
        yield Fault(
            "numbers", f"{', '.join(pair.pair)}{SEPARATOR}{which}", words, off / CORRELATION
        )


def _about(name: str, figure: str) -> str:
    return f"{name}{SEPARATOR}{figure}"


def _ratio(off: float, tolerance: float) -> float:
    return off / tolerance if tolerance > 0 else 1 / FALSE_ALARMS


def _fate(share: float, released: float) -> str:
    if released == 0:
        return "vanish"
    if share == 0:
        return "appear"
    return "become rarer" if released < share else "become more common"


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
    robust = cache(
        partial(robust_variances, found.fits[0], found.sample, found.columns, found.formula.kind)
    )
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
