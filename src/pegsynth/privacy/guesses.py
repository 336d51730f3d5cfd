"""What an attacker gains by a release, as a success rate and as a size of cells (R35).

Goes in: a guarantee, and the delta' that private categories took of it. Comes out: how often a
guess whether somebody is in the table can be right, and the fewest people of whom a release can
tell whether a cell has them or is empty. Everything is rounded towards a stronger attacker.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pegsynth.privacy.guarantee import Guarantee
    from pegsynth.privacy.ledger import Ledger

TOLD: Final = 0.95
"""A cell is told from an empty one where a guess about it can be right more often than this."""

_SLACK: Final = 1e-12
_LARGEST_EXPONENT: Final = 700.0
_MOST: Final = 1 << 40


class Gain(NamedTuple):
    """What an attacker gains.

    Parameters
    ----------
    success
        How often a guess is right at most, of somebody who is in the table with chance 1/2.
    people
        A cell with fewer of them cannot be told from an empty one; 1: there is no such cell.
    """

    success: float
    people: int

    @property
    def percent(self) -> str:
        """The success rate in per cent, rounded up."""
        tenth = Decimal(100 * self.success).quantize(Decimal("0.1"), rounding=ROUND_CEILING)
        return f"{tenth:f}"


def variation_at_rho(rho: float) -> float:
    """Return the largest total variation distance that `rho`-zCDP allows, rounded up (R35).

    It is the t with t log((1 + t)/(1 - t)) = rho.
    """
    low, high, wanted = 0.0, 1.0, rho * (1 + _SLACK)
    while low < (middle := (low + high) / 2) < high:
        if middle * (math.log1p(middle) - math.log1p(-middle)) < wanted:
            low = middle
        else:
            high = middle
    return high


def variation_at_epsilon(epsilon: float, *, delta: float = 0.0) -> float:
    """Return the largest total variation distance at (epsilon, delta), rounded up (R35)."""
    epsilon = min(epsilon, _LARGEST_EXPONENT)
    exact = math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(epsilon))
    return min(1.0, exact * (1 + _SLACK))


def gain_of(guarantee: Guarantee, *, delta_taken: float = 0.0) -> Gain | None:
    """Return what an attacker gains by the tightest bound that holds; None without a guarantee.

    Parameters
    ----------
    delta_taken
        The delta' of private categories (R29), which the rho does not hold.
    """
    epsilon, delta, rho = guarantee.epsilon, guarantee.delta or 0.0, guarantee.rho
    if epsilon is None:
        return None

    def by_epsilon(people: int) -> float:
        whole = people * epsilon
        if not delta or people == 1:
            return variation_at_epsilon(whole, delta=delta)
        if whole > _LARGEST_EXPONENT:
            return 1.0
        # A group: delta (1 + e^epsilon + e^(2 epsilon) + ..), one term for each of them.
        group = delta * math.expm1(whole) / math.expm1(epsilon)
        return variation_at_epsilon(whole, delta=group)

    def by_rho(people: int) -> float:
        if rho is None or (people > 1 and delta_taken):
            return 1.0
        return min(1.0, variation_at_rho(people * people * rho) + delta_taken)

    def untold(bound: Callable[[int], float]) -> int:
        """Return the most people of whom nothing can be told, by a bound that rises."""
        return _largest(lambda people: (1 + bound(people)) / 2 <= TOLD)

    variation = min(by_epsilon(1), by_rho(1))
    return Gain((1 + variation) / 2, 1 + max(untold(by_epsilon), untold(by_rho)))


def gain_of_ledger(ledger: Ledger) -> Gain | None:
    """Return what an attacker gains by a release with this ledger."""
    from pegsynth.privacy.guarantee import all_delta_taken
    from pegsynth.privacy.rounding import float_up

    return gain_of(ledger.guarantee, delta_taken=float_up(all_delta_taken(ledger.events)))


def _largest(holds: Callable[[int], bool]) -> int:
    """Return the largest whole number for which a condition holds that fails from some point on."""
    if not holds(1):
        return 0
    low, high = 1, 2
    while high < _MOST and holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
