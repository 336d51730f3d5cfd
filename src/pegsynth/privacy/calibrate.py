"""The smallest exact alpha that a budget allows a release.

alpha = p/s with integers p and s (R15). The price of a draw falls as p grows, so the
smallest p within an allowance is found by bisection on the very prices that the ledger
will charge: what is calibrated here never costs more than was allowed. R2's formula,
alpha >= 1/(exp(eps/count) - 1), in floating point says where to look, and is what the
bisection finds up to one unit of p. (The paper prints `<=` there; privacy needs `>=`.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.privacy.budget import Allowance
from pegsynth.privacy.conversion import check_epsilon
from pegsynth.privacy.draw_events import Draws, UrnDraws, draw_price
from pegsynth.privacy.rounding import fraction_down

DEFAULT_SCALE: Final = 2**20
"""Steps of alpha, s. Smallest alpha about 1e-6, so that rounding up costs less than 0.1 %
from alpha = 0.001 on; room for 4e12 rows, and for as many virtual rows, in 62 bits."""

LARGEST_TOTAL: Final = 2**62
_LARGEST_EXPONENT: Final = 700.0


def alpha_per_row(
    epsilon_per_row: float,
    *,
    features: int,
    sweeps: int = 1,
    block_size: int | None = None,
    scale: int = DEFAULT_SCALE,
    categories: int = 1,
) -> int:
    """Smallest p for the paper's convention, an epsilon per synthetic row.

    Without `block_size` alpha = 1/(exp(eps/(M S)) - 1) (R2); with it the sweeps are free
    and alpha = 1/(exp(eps B/M) - 1) (R4). Never below 1/s (R15).
    """
    check_epsilon(epsilon_per_row, name="epsilon per row")
    _check_at_least_one(features=features, sweeps=sweeps, block_size=block_size or 1, scale=scale)
    exact = Fraction(epsilon_per_row)
    draw = exact / (features * sweeps) if block_size is None else exact * block_size / features
    return _per_unit(draw, scale=scale, categories=categories)


def stated_alpha(alpha: float, *, scale: int = DEFAULT_SCALE, categories: int = 1) -> int:
    """Smallest p with p/s at least a positive `alpha` that the user stated (R15)."""
    if not (math.isfinite(alpha) and alpha > 0):
        raise BudgetError(f"alpha must be a finite number above 0; it was {alpha}")
    _check_at_least_one(scale=scale, categories=categories)
    numerator = math.ceil(Fraction(alpha) * scale)
    if numerator > _largest_numerator(categories):
        raise _overflow(scale, categories)
    return numerator


def calibrate(
    shape: Draws,
    allowance: Allowance,
    *,
    rows_per_unit: int = 1,
    scale: int = DEFAULT_SCALE,
    categories: int = 1,
) -> Draws:
    """Return draws of a shape, whatever its alpha, at the smallest that `allowance` affords."""
    _check_at_least_one(rows_per_unit=rows_per_unit, scale=scale, categories=categories)
    allowed = fraction_down(allowance.amount)

    def affordable(numerator: int) -> bool:
        price = shape.at(numerator, scale).price(allowance.route, rows_per_unit=rows_per_unit)
        return price is not None and price <= allowed

    guess = _guess(_draw_allowance(shape, allowance, rows_per_unit), scale)
    return shape.at(_smallest(affordable, scale, categories, guess), scale)


def _per_unit(draw: Fraction, *, scale: int, categories: int) -> int:
    """Smallest p with log(1 + s/p), rounded up, at most `draw`."""
    allowed = fraction_down(draw)
    guess = _guess(float(draw), scale)
    return _smallest(lambda p: draw_price(p, scale) <= allowed, scale, categories, guess)


def _draw_allowance(shape: Draws, allowance: Allowance, rows_per_unit: int) -> float:
    """Estimate what one draw may cost; it only says where to look."""
    count = shape.features * shape.visits if isinstance(shape, UrnDraws) else shape.count
    share = float(allowance.amount / count)
    if allowance.route == "pure":
        return share / rows_per_unit
    return math.sqrt(8 * share) / rows_per_unit


def _guess(draw: float, scale: int) -> float:
    """Solve log(1 + s/p) = `draw` for p in floating point (R2)."""
    if draw > _LARGEST_EXPONENT:
        return 1.0
    return scale / math.expm1(draw) if draw > 0 else math.inf


def _smallest(affordable: Callable[[int], bool], scale: int, categories: int, guess: float) -> int:
    """Find the smallest p that is affordable; every larger one is affordable too.

    The search widens from `guess` until it has one p that is affordable and the largest
    known one that is not, and then bisects; a bad guess costs time and nothing else.
    """
    largest = _largest_numerator(categories)
    start = max(1, math.ceil(min(guess, float(largest))))
    low, high, step = 1, min(start, largest), 1
    while not affordable(high):
        if high == largest:
            raise _overflow(scale, categories)
        low, high, step = high + 1, min(high + step, largest), 4 * step
    step = 1
    while low < high and affordable(max(low, high - step)):
        high, step = max(low, high - step), 4 * step
    if low < high:
        low = max(low, high - step + 1)
    while low < high:
        middle = (low + high) // 2
        if affordable(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _largest_numerator(categories: int) -> int:
    return (LARGEST_TOTAL - 1) // categories


def _overflow(scale: int, categories: int) -> BudgetError:
    return BudgetError(
        f"this budget needs more than {_largest_numerator(categories) / scale:.3g} virtual rows "
        f"per category, which does not fit in 64 bits with {categories} categories; state a larger "
        "epsilon or a delta, draw fewer rows or datasets, or use pegs-capped"
    )


def _check_at_least_one(**values: int) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{name.replace('_', ' ')} must be a whole number of at least 1")
