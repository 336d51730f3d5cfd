"""What is wrong with figures of a release, by stated rules, each problem in one sentence.

Goes in: distributions, correlations and coefficients of the original and the synthetic tables, and
records of predictions. Comes out: the problems. A figure is flagged where it is off by more than a
public tolerance *and* by more than chance explains. Chance is bounded for all comparisons of a kind
together, so that a bootstrap of the original is flagged with a probability of at most
`KIND_ALARMS`: for its numbers, for what analysts would conclude from its regressions, and for what
a model trained on it would predict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from pegsynth.evaluation.problems import (
    FALSE_ALARMS,
    KIND_ALARMS,
    Problem,
    beside,
    function_allowance,
    mean_explained,
    relative,
    rows_judged,
    share_explained,
    written,
)
from pegsynth.evaluation.records import SEPARATOR, Record
from pegsynth.evaluation.utility.empirical import (
    HEAP_SHARE,
    TAILS,
    Correlation,
    Empirical,
    Sides,
    heaps_of,
    kolmogorov,
)
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
_DISTRIBUTION_TESTS = 6
_MOST_OF_TAILS = 4.0


def number_problems(
    sides: Sequence[Sides[Empirical]],
    pairs: Sequence[Sides[Correlation]],
    moments: Sequence[Sides[Empirical]] = (),
    *,
    level: float = KIND_ALARMS,
) -> list[Problem]:
    """List what is off, the worst first; `level` is the chance of a false alarm in all.

    Of `moments`, which are dates and times, only the distribution function is compared: a mean
    counted from a year that nobody chose has no relative error.
    """
    comparisons = sum(_DISTRIBUTION_TESTS + len(heaps_of(each)) for each in sides)
    alpha = level / max(1, comparisons + len(pairs) + len(moments))
    checks = (_moments, _function, _atoms, _tails)
    with np.errstate(all="ignore"):
        found = [
            (each.name, off) for each in sides for check in checks for off in check(each, alpha)
        ]
        found += [(each.name, off) for each in moments for off in _function(each, alpha)]
        found += [(each.name, off) for each in pairs for off in _correlation(each, alpha)]
    problems = [
        Problem("numbers", f"{name}{SEPARATOR}{figure}", words, times)
        for name, (figure, words, times) in found
    ]
    return sorted(problems, key=lambda each: each.order)


_Off = Iterable[tuple[str, str, float]]
"""Figures that are off: which one, in words, and by how many tolerances."""


def _moments(side: Sides[Empirical], alpha: float) -> _Off:
    """Check mean and standard deviation of a feature."""
    law, name = side.original, side.name
    mean, sd = side.mean(lambda each: each.mean), side.mean(lambda each: each.sd)
    tolerance, off = MEAN * min(law.size, law.sd), abs(mean - law.mean)
    explained = partial(mean_explained, n=side.rows, alpha=alpha)
    if off > tolerance and not explained(law.support, law.shares, mean):
        words = f"the mean of {name} is {relative(mean, law.mean)} ({beside(mean, law.mean)})"
        yield "mean", words, off / tolerance if tolerance > 0 else 1 / FALSE_ALARMS
    tolerance, off = SD * law.sd, abs(sd - law.sd)
    # Chance is that of the second moment about the original's mean.
    squares = (law.support - law.mean) ** 2
    second = side.mean(lambda each: each.moment(2) + np.square(each.mean - law.mean))
    if off > tolerance and not explained(squares, law.shares, second):
        words = f"the standard deviation of {name} is {relative(sd, law.sd)} ({beside(sd, law.sd)})"
        yield "sd", words, off / tolerance if tolerance > 0 else 1 / FALSE_ALARMS


def _function(side: Sides[Empirical], alpha: float) -> _Off:
    """Check the distribution function of a feature."""
    apart = side.mean(partial(kolmogorov, side.original))
    if apart > FUNCTION and apart > function_allowance(side.rows, alpha):
        words = f"values of {side.name} lie elsewhere (Kolmogorov distance {apart:.2g})"
        yield "distribution", words, apart / FUNCTION


def _atoms(side: Sides[Empirical], alpha: float) -> _Off:
    """Check the share of zeros and of numbers at which rows heap up."""
    ours = set(side.original.heaps().tolist())
    for number in (0.0, *heaps_of(side)):
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
            fate = "become rarer" if released < share else "become more common"
            if released == 0 or share == 0:
                fate = "appear" if released else "vanish"
            what = "zeros" if number == 0 else "rows heaped at one number"
            words = (
                f"{what} of {side.name} {fate} ({released:.2%} of the rows, originally {share:.2%})"
            )
            yield "zeros" if number == 0 else f"heap at {number:.15g}", words, off / tolerance


def _tails(side: Sides[Empirical], alpha: float) -> _Off:
    """Check the share of rows beyond quantiles of the original."""
    for where, level in TAILS:
        bound = float(side.original.quantile(level))
        beyond = partial(Empirical.beyond, where=where, bound=bound)
        share, released = beyond(side.original), side.mean(beyond)
        if not share or 1 / TIMES <= released / share <= TIMES:
            continue
        if not share_explained(share, released, side.rows, alpha):
            end = "upper" if where == "above" else "lower"
            times = max(released, 1 / side.rows) / share
            words = (
                f"the {end} tail of {side.name} {'is cut' if released < share else 'is too heavy'} "
                f"({released:.2%} of the rows lie {where} the original's {level:.0%} quantile, "
                f"originally {share:.2%})"
            )
            # However much of a tail is gone, it is a small part of the rows.
            yield f"{end} tail", words, min(max(times, 1 / times) / TIMES, _MOST_OF_TAILS)


def _correlation(pair: Sides[Correlation], alpha: float) -> _Off:
    value, original = pair.mean(lambda each: each.value), pair.original
    off = abs(value - original.value)
    if off > CORRELATION and off > original.allowance(pair.rows, alpha):
        which = pair.measure.partition("_")[0].title()
        words = (
            f"{pair.names[0]} and {pair.names[1]} do not go together as they did ({which} "
            f"correlation {value:.2f}, originally {original.value:.2f})"
        )
        yield which, words, off / CORRELATION


@dataclass(frozen=True)
class CoefficientSides:
    """One coefficient of the original and of the synthetic tables.

    Parameters
    ----------
    found, term
        A regression, and which coefficient of it.
    original, synthetic
        The original's estimate, and that of the synthetic tables.
    robust
        Gives the variances of the original's estimates, by name, whatever the distribution of the
        errors; called for a coefficient that is far off.
    """

    found: Comparison
    term: str
    original: Estimate
    synthetic: Estimate
    robust: Callable[[], dict[str, float]]

    @property
    def off(self) -> float:
        """How far the estimate of the synthetic tables is off."""
        return abs(self.synthetic.value - self.original.value)

    @property
    def variance(self) -> float:
        """The larger of the two variances of the original's estimate."""
        return max(self.original.variance, self.robust().get(self.term, 0.0))

    @property
    def deviation(self) -> float:
        """Standard deviation of the estimate of a fresh sample as large as the release."""
        rows = self.found.fits[0].rows
        return math.sqrt(self.variance * rows / rows_judged(rows, self.found.rows))

    def allowance(self, alpha: float) -> float:
        """Return how far a fresh sample as large as the release may be off, for many rows."""
        from scipy.special import ndtri

        return float(-ndtri(alpha / 2)) * self.deviation


def coefficient_sides(found: Comparison) -> list[CoefficientSides]:
    """Return what is needed to check every coefficient of a comparison but the intercept."""
    robust = cache(
        partial(robust_variances, found.fits[0], found.sample, found.columns, found.formula.kind)
    )
    pairs = ((name, found.original[name], found.synthetic[name]) for name in found.names)
    return [
        CoefficientSides(found, name, first, second, robust)
        for name, first, second in pairs
        if name != INTERCEPT and first is not None and second is not None
    ]


def regression_problems(
    comparisons: Iterable[Comparison], *, level: float = KIND_ALARMS
) -> list[Problem]:
    """List coefficients and formulas whose conclusions change."""
    formulas: dict[str, list[CoefficientSides]] = {}
    for found in comparisons:
        formulas.setdefault(found.formula.text, []).extend(coefficient_sides(found))
    alpha = level / max(1, 2 * sum(map(len, formulas.values())))
    single = [p for ours in formulas.values() for e in ours for p in _coefficient(e, alpha)]
    return [*single, *(p for text, ours in formulas.items() for p in _overlap(text, ours, alpha))]


def _coefficient(each: CoefficientSides, alpha: float) -> Iterable[Problem]:
    if not (each.original.low > 0 or each.original.high < 0):
        return
    value, original = each.synthetic.value, each.original.value
    times = each.off / (COEFFICIENT * abs(original))
    moved = times > 1 and each.off > each.allowance(alpha)
    # A fresh sample that would keep the coefficient significant with all but a small chance.
    firm = abs(original) > quantile(LEVEL) * each.deviation + each.allowance(alpha)
    if each.synthetic.low <= 0 <= each.synthetic.high and firm:
        fate, times = "loses its significance", max(times, _SIGNS / 2)
    elif moved and value * original < 0:
        fate, times = "changes its sign", max(times, _SIGNS)
    elif moved:
        fate = f"is {relative(value, original)}"
    else:
        return
    formula = each.found.formula.text
    words = f"in {formula} the coefficient of {each.term} {fate} ({beside(value, original)})"
    yield Problem("regressions", f"{formula}{SEPARATOR}{each.term}", words, times)


def _overlap(formula: str, ours: Sequence[CoefficientSides], alpha: float) -> Iterable[Problem]:
    mean = sum(overlap(each.original, each.synthetic) for each in ours) / max(1, len(ours))
    if not ours or mean >= OVERLAP or all(each.off <= each.allowance(alpha) for each in ours):
        return
    words = f"in {formula} the intervals of coefficients hardly overlap (by {mean:.2f} on average)"
    yield Problem("regressions", f"{formula}{SEPARATOR}overlap", words, OVERLAP / max(mean, 0.1))


def prediction_problems(
    records: Sequence[Record], *, level: float = KIND_ALARMS
) -> Iterable[Problem]:
    """Yield targets that a model trained on the release predicts worse than a real one."""
    real = {record.subject: record for record in records if record.name == "auc_real"}
    found = [each for each in records if each.name == "auc_synthetic" and each.subject in real]
    for ours in found:
        theirs = real[ours.subject]
        if ours.value is None or theirs.value is None or theirs.value <= _GUESSING:
            continue
        lost, tolerance = theirs.value - ours.value, LOST * (theirs.value - _GUESSING)
        deviation = math.hypot(
            *(((r.high or 0.0) - (r.low or 0.0)) / (2 * quantile(LEVEL)) for r in (ours, theirs))
        )
        if lost > tolerance and lost > quantile(1 - level / len(found)) * deviation:
            fate = "worse than guessing" if ours.value < _GUESSING else "worse"
            words = (
                f"{ours.subject} is predicted {fate} (area under the curve {written(ours.value)}, "
                f"trained on real rows {written(theirs.value)})"
            )
            yield Problem("predictions", ours.subject, words, lost / tolerance)
