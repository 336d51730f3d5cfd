"""The chance that a category which only one unit has is found: delta' of private categories (R29).

A category is found when its count plus discrete Gaussian noise is above a threshold. In go the
variance, the threshold and the most rows of a unit; out comes a bound on the chance that the
rows of one unit alone bring any category to light, or the smallest threshold that keeps the
chance within a given delta'. Every figure is rounded against us: tails up, thresholds up.
"""

from __future__ import annotations

from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
)
from fractions import Fraction
from functools import lru_cache

from pegsynth.errors import ParameterError
from pegsynth.privacy.rounding import fraction_down

_DIGITS = 60
_UP = Context(prec=_DIGITS, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_DOWN = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_NEAREST = Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_PI_DOWN = Decimal("3.14159265358979323846264338327950288419716939937510")
_ONE = Decimal(1)
_TERMS = 64
"""Terms of a tail that are added one by one; the rest is bounded by a geometric series."""


@lru_cache(maxsize=1024)
def unseen_delta(variance: Fraction, threshold: int, rows_per_unit: int = 1) -> Decimal:
    """Bound the chance that a unit alone brings a category to light, rounded up (R29).

    With p(n) the chance that a count of n passes, the worst way to deal k rows to categories
    that nobody else has puts each into its own or all into one: max(k p(1), p(k)).
    """
    if rows_per_unit > threshold:
        # Counts of one unit may pass without any noise; p is not convex up to there.
        return _ONE
    apart = _UP.multiply(Decimal(rows_per_unit), passing(variance, threshold, 1))
    return min(_ONE, max(apart, passing(variance, threshold, rows_per_unit)))


def smallest_threshold(variance: Fraction, delta: Fraction, rows_per_unit: int = 1) -> int:
    """Return the smallest threshold for which `unseen_delta` is at most `delta`."""
    if not 0 < delta < 1:
        raise ParameterError("the delta' of private categories must lie between 0 and 1")
    allowed = fraction_down(delta)
    low = rows_per_unit
    high = 2 * rows_per_unit
    while unseen_delta(variance, high, rows_per_unit) > allowed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if unseen_delta(variance, middle, rows_per_unit) > allowed:
            low = middle
        else:
            high = middle
    return high if unseen_delta(variance, low, rows_per_unit) > allowed else low


def passing(variance: Fraction, threshold: int, count: int) -> Decimal:
    """Return the chance that a count with noise is above the threshold, rounded up."""
    return gaussian_tail(variance, threshold - count + 1)


def gaussian_tail(variance: Fraction, least: int) -> Decimal:
    """Return P(Z >= `least`) of the discrete Gaussian, rounded up; `least` is at least 1."""
    if least < 1:
        return _ONE
    terms = [_weight(variance, each, _UP) for each in range(least, least + _TERMS)]
    end = least + _TERMS
    # Each further term is at most this many times the one before.
    ratio = _exp(Fraction(2 * end + 1) / (2 * variance), _UP)
    fall = _DOWN.subtract(_ONE, ratio)
    if fall <= 0:
        # The variance is beyond the digits that are carried.
        return _ONE
    total = Decimal(0)
    for term in (*terms, _UP.divide(_weight(variance, end, _UP), fall)):
        total = _UP.add(total, term)
    return min(_ONE, _UP.divide(total, _whole_weight(variance)))


@lru_cache(maxsize=64)
def _whole_weight(variance: Fraction) -> Decimal:
    """Return the sum of all weights exp(-z^2/(2 sigma^2)), rounded down.

    By Poisson's summation it is the root of 2 pi sigma^2 times a factor above 1, which is a good
    bound where sigma is large; the first terms themselves are one where sigma is small.
    """
    exact = _DOWN.divide(Decimal(2 * variance.numerator), Decimal(variance.denominator))
    # The square root is rounded to nearest whatever the context says.
    smooth = _NEAREST.next_minus(_NEAREST.sqrt(_DOWN.multiply(exact, _PI_DOWN)))
    first = _ONE
    for each in range(1, 17):
        first = _DOWN.add(first, _DOWN.multiply(Decimal(2), _weight(variance, each, _DOWN)))
    return max(smooth, first)


def _weight(variance: Fraction, value: int, context: Context) -> Decimal:
    return _exp(Fraction(value * value) / (2 * variance), context)


def _exp(negated: Fraction, context: Context) -> Decimal:
    """Return exp(-x), rounded as the context says."""
    up = context is _UP
    # A smaller x gives a larger power. `Decimal.exp` rounds to nearest whatever the context.
    other = _DOWN if up else _UP
    argument = other.divide(Decimal(negated.numerator), Decimal(negated.denominator))
    # A minus sign in front would round to the digits of the thread's own context.
    power = _NEAREST.exp(argument.copy_negate())
    return _NEAREST.next_plus(power) if up else max(Decimal(0), _NEAREST.next_minus(power))
