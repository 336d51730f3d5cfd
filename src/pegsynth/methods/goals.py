"""The epsilon that meets a goal: pairs as close as wanted, or a guess right as seldom (R35).

Goes in: the forecast for any epsilon, and the goal. Comes out: an epsilon with three digits, or a
refusal that says what can be reached. The predicted error is the formula of `pegs plan`, so an
epsilon for pairs is a prediction; one for a success rate holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.methods.forecast import Forecast
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.guesses import gain_of

LEAST, MOST = 0.01, 100.0
_STEPS, _DIGITS, _HALF = 10, 3, 0.5


def epsilon_for(
    at: Callable[[float], Forecast],
    *,
    delta: float | None,
    pairs_off: float | None = None,
    risk: float | None = None,
) -> float:
    """Return the epsilon that meets a goal.

    Parameters
    ----------
    at
        The forecast for an epsilon, all else the same.
    pairs_off
        The largest share of rows out of place in pair tables: the smallest epsilon whose best
        method is predicted to reach it.
    risk
        By how much more often than half of the time a guess whether somebody is in the table may
        be right: the largest epsilon that allows no more. With `pairs_off` a limit.

    Raises
    ------
    BudgetError
        The goal cannot be reached, or not both.
    ParameterError
        A goal is outside (0, 1), a risk outside (0, 0.5).
    """
    _check("--pairs-off", pairs_off, 1.0)
    _check("--risk", risk, _HALF)
    allowed = MOST if risk is None else min(MOST, _allowed(at, risk, delta))
    if pairs_off is None:
        return allowed
    found = _close_enough(at, pairs_off)
    if found > allowed:
        raise BudgetError(
            f"--pairs-off {pairs_off:g} takes epsilon {found:g}, and --risk {risk:g} allows at "
            f"most {allowed:g}. State a larger one of the two, or more original rows (--rows-in)"
        )
    return found


def _check(flag: str, goal: float | None, most: float) -> None:
    if goal is not None and not 0 < goal < most:
        raise ParameterError(
            f"{flag} must lie between 0 and {most:g}, such as 0.02; it was {goal:g}"
        )


def _allowed(at: Callable[[float], Forecast], risk: float, delta: float | None) -> float:
    """Return the largest epsilon at which no guess is right more often than 1/2 + risk (R35)."""
    variation = 2 * risk - (delta or 0.0)
    if variation <= 0:
        raise BudgetError(f"--risk {risk:g} is below delta; state a smaller --delta")
    log_odds = math.log1p(variation) - math.log1p(-variation)
    pure = _rounded(log_odds, ROUND_FLOOR)
    if delta is None:
        return pure
    # The price may be counted in rho, as that of noisy counts is, or in epsilon alone.
    larger = _rounded(epsilon_at(variation * log_odds, delta=delta), ROUND_FLOOR)
    best = at(larger).best if larger > pure else None
    gain = None if best is None else gain_of(best.stated, delta_taken=delta)
    return larger if gain is not None and gain.success <= _HALF + risk else pure


def _close_enough(at: Callable[[float], Forecast], pairs_off: float) -> float:
    """Return the smallest epsilon whose best method is predicted to be that close."""

    def error(epsilon: float) -> float:
        best = at(epsilon).best
        return math.inf if best is None else best.error

    low, high = math.log(LEAST), math.log(MOST)
    reached = error(MOST)
    if reached > pairs_off:
        said = f"at epsilon {MOST:g} they are still off by {reached:.2%}"
        said = said if math.isfinite(reached) else f"no method can meet epsilon {MOST:g}"
        raise BudgetError(
            f"--pairs-off {pairs_off:g} cannot be reached: {said}. State a larger one, more rows "
            "(--rows, --rows-in), or fewer and coarser columns"
        )
    if error(LEAST) <= pairs_off:
        return LEAST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if error(math.exp(middle)) <= pairs_off else (middle, high)
    return _rounded(math.exp(high), ROUND_CEILING)


def _rounded(epsilon: float, rounding: str) -> float:
    """Return an epsilon with three digits, on the side that keeps the goal."""
    return float(Context(prec=_DIGITS, rounding=rounding).plus(Decimal(epsilon)))
