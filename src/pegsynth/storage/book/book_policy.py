"""What whole runs cost in one currency, so that pure and approximate ones add up (R6, R29).

The currency is rho, with the delta' of private categories beside it. A run whose amounts are
parts of one epsilon is a single item of that epsilon (`privacy/guarantee.py`). Pure runs carry
their epsilon too, for books that add these.

What may be spent on a table, by whom, and whether a further run fits.

A limit holds for all runs together however each was chosen by looking at the output of those
before: along every path their rhos, and their delta', stay below fixed amounts (R6, R29).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

import msgspec

from pegsynth.errors import BudgetError, ParameterError
from pegsynth.privacy import Allowance, Budget, Event, Ledger
from pegsynth.privacy.conversion import check_delta, check_epsilon, epsilon_at
from pegsynth.privacy.guarantee import runs_of, whole_run
from pegsynth.privacy.rounding import (
    ZERO,
    display_up,
    float_down,
    float_up,
    fraction_down,
    product_up,
    ratio_up,
    sum_up,
)

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


def spent_elsewhere(
    *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
) -> Cost:
    """Price what another tool says that it has spent on the table.

    An (epsilon, delta) mechanism is, on any two neighbours, an epsilon mechanism but for a chance
    of delta (Kairouz, Oh and Viswanath, 2015). That chance is taken out of the book's delta like
    the delta' of private categories (R29).
    """
    if (epsilon is None) == (rho is None) or (delta is not None and epsilon is None):
        raise ParameterError(
            "state what was spent: --epsilon E, with or without --delta D, or --rho R alone"
        )
    if rho is not None:
        check_epsilon(rho)
        return _written(Decimal(rho), ZERO, None)
    amount = Decimal(check_epsilon(epsilon or 0.0))
    taken = ZERO if not delta else Decimal(check_delta(delta))
    return _written(product_up(_HALF, amount, amount), taken, None if delta else amount)


SET_ASIDE = Fraction(1, 10)
"""The part of delta that private categories may take, as a release sets aside too (R29)."""


TYPED = 1e-12
"""How far a limit may be passed: amounts are typed in decimals and kept as binary fractions."""


def shown(epsilon: float) -> str:
    """Write an epsilon for a reader, rounded up but for what typing it has cost."""
    return display_up(epsilon * (1 - TYPED))


class BookPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of a book; fixed when it is made.

    Parameters
    ----------
    epsilon
        For everything together; None: no such limit.
    epsilon_per_year
        For everything reserved in one calendar year (UTC); None: no such limit.
    delta
        What rho is converted at; 0 for a book that adds epsilons and takes pure runs alone.
    unit
        The unit column that every run must protect; empty for rows.
    private_categories
        Whether a tenth of delta is set aside for categories that are found (R29).
    spenders
        Accounts that may spend; empty: whoever may write the file.
    """

    epsilon: float | None = None
    epsilon_per_year: float | None = None
    delta: float = 0.0
    unit: str = ""
    private_categories: bool = False
    spenders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        limits = [each for each in (self.epsilon, self.epsilon_per_year) if each is not None]
        if not limits:
            raise BudgetError("a book needs a limit: state --epsilon, --epsilon-per-year or both")
        for each in limits:
            check_epsilon(each)
        if self.delta:
            check_delta(self.delta)
        elif self.private_categories:
            raise ParameterError(
                "--private-categories needs a --delta: such categories have no pure price"
            )

    @property
    def delta_for_rho(self) -> float:
        """The part of delta that rho is converted at."""
        if not self.private_categories:
            return self.delta
        return float_down(fraction_down(Fraction(self.delta) * (1 - SET_ASIDE)))

    def epsilon_of(self, cost: Cost) -> float | None:
        """Return the epsilon of a cost at the book's delta, rounded up; None if it has none.

        Either way of adding is a limit of its own, and a path that keeps to one of the two is
        covered: epsilons take nothing of delta (R6).
        """
        found = [] if cost.epsilon is None else [float_up(cost.epsilon)]
        if self.delta:
            found.append(epsilon_at(cost.rho, delta=self.delta_for_rho))
        return min(found, default=None)

    def why_not(self, whole: Cost, year: Cost) -> str:
        """Say why all runs together, or those of a year, are too much; empty if they are not.

        Parameters
        ----------
        whole, year
            What was spent, with the further run: in all, and in this year.
        """
        aside = Fraction(self.delta) - Fraction(self.delta_for_rho)
        if Fraction(whole.delta_taken) > (aside if self.private_categories else 0):
            if not self.private_categories:
                return (
                    "it sets nothing of delta aside for private categories; list the categories "
                    "in the schema, or make a book with --private-categories"
                )
            return "private categories would take more than the tenth of delta set aside for them"
        for limit, cost, when in (
            (self.epsilon, whole, "in all"),
            (self.epsilon_per_year, year, "in this year"),
        ):
            if limit is None:
                continue
            reached = self.epsilon_of(cost)
            if reached is None:
                return "it takes pure runs only (it has no delta); leave --delta out of the run"
            if reached > limit * (1 + TYPED):
                return (
                    f"with this run epsilon = {shown(reached)} would be spent {when}, and "
                    f"{limit:g} is allowed"
                )
        return ""
