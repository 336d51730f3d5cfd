"""From rho to (epsilon, delta) and back.

With t = lambda - 1 the bound of R6 reads

    log delta = t ((1 + t) rho - epsilon) + t log t - (1 + t) log(1 + t).

Any t > 0 is valid, so t is found in floating point and the result is then evaluated with
50 digits and rounded towards more privacy. For the Gaussian mechanism the epsilon found
here lies above the exact one by at most 13 % where delta <= 1e-6 and 0.01 <= epsilon <= 100.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Literal, TypeAlias

from pegsynth.errors import BudgetError
from pegsynth.privacy.rounding import float_down, float_up

Route: TypeAlias = Literal["pure", "zcdp"]
"""The currency of a price: an epsilon, or a rho."""

_EXACT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_SLACK = Decimal("1e-45")
# Signs and sums written as operators would be rounded to the digits of the thread's own context.
_FARTHEST = 300.0


SMALLEST_EPSILON = 1e-9
LARGEST_EPSILON = 1e9


def check_epsilon(epsilon: float, *, name: str = "epsilon") -> float:
    """Refuse an epsilon that is not a positive finite number, or beyond all meaning."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise BudgetError(f"{name} must be a finite number above 0, such as 1; it was {epsilon}")
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise BudgetError(
            f"{name} must lie between {SMALLEST_EPSILON:g} and {LARGEST_EPSILON:g}; "
            f"it was {epsilon}"
        )
    return float(epsilon)


def check_delta(delta: float) -> float:
    """Refuse a delta outside (0, 1)."""
    if not (math.isfinite(delta) and 0 < delta < 1):
        raise BudgetError(
            f"delta must lie strictly between 0 and 1, such as 1e-9; it was {delta}. "
            "Leave it out for a pure guarantee"
        )
    return float(delta)


def epsilon_at(rho: Decimal | float, *, delta: float) -> float:
    """Epsilon that `rho`-zCDP gives at `delta`, rounded up (R6)."""
    exact_rho = Decimal(rho)
    if exact_rho <= 0:
        return 0.0
    approximate, surprise = float_up(exact_rho), -math.log(check_delta(delta))
    # The derivative in t has the sign of rho t^2 + log(1 + t) - log(1/delta).
    t = _root(lambda t: approximate * t * t + math.log1p(t) - surprise)
    exact_t = Decimal(t)
    terms = (
        _EXACT.multiply(_EXACT.add(Decimal(1), exact_t), exact_rho),
        _EXACT.divide(_EXACT.ln(Decimal(delta)).copy_negate(), exact_t),
        *_shape_terms(exact_t),
    )
    return max(0.0, float_up(_sum_with_slack(terms, sign=1)))


def rho_at(epsilon: float, *, delta: float) -> float:
    """Return the largest rho that stays within `epsilon` at `delta`, rounded down (R6).

    `epsilon_at` of the result never exceeds `epsilon`.
    """
    check_epsilon(epsilon)
    surprise = -math.log(check_delta(delta))
    t = _root(
        # rho t^2 = log(1/delta) - log(1 + t) as in `epsilon_at`, with rho as a function of t.
        lambda t: t * (t * (epsilon - _shape(t)) - surprise) - (1 + t) * (surprise - math.log1p(t))
    )
    exact_t = Decimal(t)
    terms = (
        Decimal(epsilon),
        _EXACT.divide(_EXACT.ln(Decimal(delta)), exact_t),
        *(term.copy_negate() for term in _shape_terms(exact_t)),
    )
    whole = _EXACT.add(Decimal(1), exact_t)
    rho = float_down(_EXACT.divide(_sum_with_slack(terms, sign=-1), whole))
    # The two searches may stop at slightly different t; a hair less rho settles it, for
    # this rho and for any sum of parts below it.
    shrink = 1e-13
    rho *= 1 - shrink
    while epsilon_at(rho, delta=delta) > epsilon:
        rho *= 1 - shrink
        shrink *= 2
    return rho


def _shape(t: float) -> float:
    """Evaluate log t - (1 + 1/t) log(1 + t), without cancellation for large t."""
    if t > 1:
        return -math.log1p(1 / t) - math.log1p(t) / t
    return math.log(t) - (1 + 1 / t) * math.log1p(t)


def _shape_terms(t: Decimal) -> tuple[Decimal, Decimal]:
    weight = _EXACT.add(Decimal(1), _EXACT.divide(Decimal(1), t))
    product = _EXACT.multiply(weight, _EXACT.ln(_EXACT.add(Decimal(1), t)))
    return _EXACT.ln(t), product.copy_negate()


def _sum_with_slack(terms: tuple[Decimal, ...], *, sign: int) -> Decimal:
    """Add terms and move the sum outwards by far more than 60-digit rounding can err."""
    total = magnitude = Decimal(0)
    for term in terms:
        total = _EXACT.add(total, term)
        magnitude = _EXACT.add(magnitude, term.copy_abs())
    slack = _EXACT.multiply(magnitude, _SLACK)
    return _EXACT.add(total, slack if sign > 0 else slack.copy_negate())


def _root(rising: Callable[[float], float]) -> float:
    """Return t = exp(u) near the sign change of a function that goes from minus to plus."""
    low, high = -_FARTHEST, _FARTHEST
    while high - low > 1e-12:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)
