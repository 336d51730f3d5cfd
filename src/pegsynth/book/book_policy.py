"""What may be spent on a table, by whom, and whether a further run fits.

A limit holds for all runs together however each was chosen by looking at the output of those
before: along every path their rhos, and their delta', stay below fixed amounts (R6, R29).
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

from pegsynth.book.costs import Cost
from pegsynth.errors import BudgetError, ParameterError
from pegsynth.privacy.conversion import check_delta, check_epsilon, epsilon_at
from pegsynth.privacy.rounding import display_up, float_down, float_up, fraction_down

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

    @property
    def delta_for_categories(self) -> Fraction:
        """The part of delta that private categories may take, all runs together."""
        if not self.private_categories:
            return Fraction(0)
        return Fraction(self.delta) - Fraction(self.delta_for_rho)

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
        if Fraction(whole.delta_taken) > self.delta_for_categories:
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
