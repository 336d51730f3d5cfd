"""What whole runs cost in one currency, so that pure and approximate ones add up (R6, R29).

The currency is rho, with the delta' of private categories beside it. A run whose amounts are
parts of one epsilon is a single item of that epsilon (`privacy/runs.py`). Pure runs carry their
epsilon too, for books that add these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import msgspec

from pegsynth.privacy import Allowance, Budget, Event, Ledger
from pegsynth.privacy.rounding import ZERO, product_up, ratio_up, sum_up
from pegsynth.privacy.runs import runs_of, whole_run

_HALF = Decimal("0.5")
_WRITTEN = Context(prec=40, rounding=ROUND_CEILING)


class Cost(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one run costs, rounded up.

    Parameters
    ----------
    rho
        Zero-concentrated differential privacy of the whole run, off a chance of `delta_taken`.
    delta_taken
        The delta' of private categories (R29).
    epsilon
        Pure epsilon of the whole run; None where it has none.
    """

    rho: Decimal
    delta_taken: Decimal = ZERO
    epsilon: Decimal | None = None

    def __post_init__(self) -> None:
        amounts = (self.rho, self.delta_taken, ZERO if self.epsilon is None else self.epsilon)
        if not all(amount.is_finite() and amount >= 0 for amount in amounts):
            raise ValueError("an amount is negative or no number")

    def within(self, other: Cost) -> bool:
        """Whether nothing of it is more than of another."""
        pure = other.epsilon is None or (self.epsilon is not None and self.epsilon <= other.epsilon)
        return pure and self.rho <= other.rho and self.delta_taken <= other.delta_taken


FREE = Cost(rho=ZERO, epsilon=ZERO)


def cost_of(events: Sequence[Event], *, delta: float) -> Cost | None:
    """Price the events of a run, or of several; None if they carry no differential privacy.

    Parameters
    ----------
    delta
        What the run stated; 0 for a pure one.
    """
    if Ledger(tuple(events), (), delta).guarantee.kind not in ("pure", "approximate"):
        return None
    prices = [whole_run(run, delta=delta) for run in runs_of(events)]
    costs = [
        Cost(rho=price.rho, delta_taken=price.delta_taken, epsilon=price.pure)
        for price in prices
        if price.rho is not None
    ]
    return added(costs) if len(costs) == len(prices) else None


def whole_cost(budget: Budget, paid: Allowance) -> Cost:
    """Price a whole budget that is spent step by step, in the currency of what was paid first."""
    whole = replace(budget, paid=None).whole(paid.route).amount
    amount = ratio_up(whole.numerator, whole.denominator)
    if paid.route == "pure":
        return _written(product_up(_HALF, amount, amount), ZERO, amount)
    taken = Fraction(budget.delta_taken)
    return _written(amount, ratio_up(taken.numerator, taken.denominator) if taken else ZERO, None)


def added(costs: Iterable[Cost]) -> Cost:
    """Add whole runs: rho and delta' add up (R6, R29), and epsilon where all have one."""
    several = list(costs)
    pure = [cost.epsilon for cost in several if cost.epsilon is not None]
    return _written(
        sum_up(cost.rho for cost in several),
        sum_up(cost.delta_taken for cost in several),
        sum_up(pure) if len(pure) == len(several) else None,
    )


def _written(rho: Decimal, taken: Decimal, epsilon: Decimal | None) -> Cost:
    """Round up to as many digits as a book shows; delta' may be all that is set aside, exactly."""
    return Cost(
        rho=_WRITTEN.plus(rho),
        delta_taken=taken,
        epsilon=None if epsilon is None else _WRITTEN.plus(epsilon),
    )
