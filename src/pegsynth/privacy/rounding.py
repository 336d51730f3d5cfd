"""Arithmetic that only ever rounds against us.

A price that goes into a ledger may be a little too large and never too small (R15: the
plain floating formula fell below the exact value for half of all budgets tried). Sums and
products are decimals of 200 digits rounded towards plus infinity, so that an ordinary
double and a terminating fraction pass through unchanged; logarithms carry 50 digits and
are then moved up by one unit. Only the last step makes a float, the next one above.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
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

ZERO = Decimal(0)
DISPLAYED_DIGITS = 6

_UP = Context(prec=200, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_DOWN = Context(prec=200, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_LOGARITHM = Context(prec=50, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_SHORT = Context(prec=DISPLAYED_DIGITS, rounding=ROUND_CEILING)


def ratio_up(numerator: int, denominator: int) -> Decimal:
    """Return `numerator`/`denominator`, rounded up."""
    return _UP.divide(Decimal(numerator), Decimal(denominator))


def product_up(*factors: Decimal | int) -> Decimal:
    """Multiply non-negative numbers, rounded up at every step."""
    product = Decimal(1)
    for factor in factors:
        product = _UP.multiply(product, Decimal(factor))
    return product


def sum_up(terms: Iterable[Decimal]) -> Decimal:
    """Add numbers, rounded up at every step."""
    total = ZERO
    for term in terms:
        total = _UP.add(total, term)
    return total


@lru_cache(maxsize=4096)
def log_one_plus_up(numerator: int, denominator: int) -> Decimal:
    """Return log(1 + numerator/denominator) for positive integers, rounded up.

    The argument is rounded up, and the logarithm rises with it; `Decimal.ln` is rounded to
    nearest whatever the context's rounding, so the next number above its result is an upper
    bound. The argument carries 200 digits, of which a ratio as small as 2**-256 takes 77, so
    the result is good to 49 digits even there.
    """
    argument = _UP.divide(Decimal(numerator + denominator), Decimal(denominator))
    return _LOGARITHM.next_plus(_LOGARITHM.ln(argument))


def float_up(value: Decimal) -> float:
    """Return the smallest float that is not below `value`."""
    nearest = float(value)
    return nearest if Decimal(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Decimal) -> float:
    """Return the largest float that is not above `value`."""
    nearest = float(value)
    return nearest if Decimal(nearest) <= value else math.nextafter(nearest, -math.inf)


def fraction_down(value: Fraction) -> Decimal:
    """Return a fraction as a decimal, rounded down."""
    return _DOWN.divide(Decimal(value.numerator), Decimal(value.denominator))


def display_up(value: float) -> str:
    """Write a number with six significant digits for a reader, rounded up."""
    if value == 0:
        return "0"
    short = _SHORT.plus(Decimal(repr(value))).normalize()
    exponent = short.adjusted()
    if -5 < exponent < 9:
        return f"{short:f}"
    return f"{short:e}".replace("e+", "e")
