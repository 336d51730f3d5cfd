"""What the user is willing to spend, checked as soon as it is stated.

Exactly one of: an epsilon for the whole release (with or without delta), an epsilon per
synthetic row (the paper's convention), an l, or alpha itself. The messages are what a
user of the command line reads.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, TypeAlias

from pegsynth.errors import BudgetError
from pegsynth.privacy.conversion import Route, check_delta, check_epsilon, rho_at
from pegsynth.privacy.rounding import float_down, fraction_down

BudgetKind: TypeAlias = Literal["total", "per-row", "l-diversity", "alpha"]

_KINDS: dict[str, BudgetKind] = {
    "epsilon": "total",
    "epsilon_per_row": "per-row",
    "l": "l-diversity",
    "alpha": "alpha",
}


@dataclass(frozen=True)
class Shares:
    """How a total is split over the parts of a release.

    Parameters
    ----------
    order, marginals, draws
        Shares of epsilon (pure) or of rho (approximate), each in [0, 1], together at most
        1. A part that a release does not need leaves its share to the draws.
    """

    order: float = 0.1
    marginals: float = 0.1
    draws: float = 0.8

    def __post_init__(self) -> None:
        for name in ("order", "marginals", "draws"):
            share = getattr(self, name)
            if not (math.isfinite(share) and 0 <= share <= 1):
                raise BudgetError(f"the share of {name} must lie between 0 and 1; it was {share}")
        if sum(map(self.exact, ("order", "marginals", "draws"))) > 1:
            raise BudgetError("the shares of order, marginals and draws add up to more than 1")

    def exact(self, part: str) -> Fraction:
        """Return a share as the decimal fraction that was written, not its nearest double."""
        return Fraction(repr(float(getattr(self, part))))

    def used(self, parts: Collection[str]) -> dict[str, Fraction]:
        """Return the shares of the `parts` that a release pays for, and of its draws."""
        unknown = sorted(set(parts) - {"order", "marginals", "draws"})
        if unknown:
            raise BudgetError(f"there is no share named {unknown[0]!r}")
        paid = {part: self.exact(part) for part in ("order", "marginals") if part in parts}
        idle = sum((self.exact(p) for p in ("order", "marginals") if p not in parts), Fraction(0))
        empty = [part for part, share in paid.items() if share == 0]
        if empty:
            raise BudgetError(f"this release pays for {empty[0]}, so its share must be above 0")
        return {**paid, "draws": self.exact("draws") + idle}


@dataclass(frozen=True)
class Allowance:
    """What one part of a release may cost, in one currency.

    Parameters
    ----------
    route
        "pure": `amount` is an epsilon. "zcdp": it is a rho.
    amount
        The most that may be spent, exact.
    """

    route: Route
    amount: Fraction


@dataclass(frozen=True)
class Budget:
    """A stated budget.

    Parameters
    ----------
    epsilon, delta
        For the whole release; `delta` may stand beside `epsilon` only.
    epsilon_per_row
        For each synthetic row, as the paper counts.
    l
        Entropy l-diversity instead of differential privacy (R7).
    alpha
        Virtual rows per category, taken as they are; 0 means unperturbed.
    shares
        How `epsilon` is split over order, marginals and draws.
    paid
        What was spent before, of the same total: for a codec that is itself measured (R21).
        Everything else is then paid along the same route.
    delta_taken
        The part of delta that private categories take, fixed before any data is read; rho is
        converted at the rest (R29).
    """

    epsilon: float | None = None
    delta: float | None = None
    epsilon_per_row: float | None = None
    l: float | None = None  # noqa: E741
    alpha: float | None = None
    shares: Shares = field(default_factory=Shares)
    paid: Allowance | None = None
    delta_taken: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        self._check_choice()
        if self.delta is not None and self.epsilon is None:
            raise BudgetError("delta requires epsilon, the figure for the whole release; add it")
        if self.epsilon is not None:
            check_epsilon(self.epsilon)
        if self.epsilon_per_row is not None:
            check_epsilon(self.epsilon_per_row, name="epsilon per row")
        if self.delta is not None:
            check_delta(self.delta)
        if self.l is not None and not (math.isfinite(self.l) and self.l >= 1):
            raise BudgetError(
                f"l must be a finite number of at least 1, such as 2; it was {self.l}"
            )
        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise BudgetError(
                "alpha must be a finite number of at least 0 (0: unperturbed, no guarantee); "
                f"it was {self.alpha}"
            )

    def _check_choice(self) -> None:
        given = [name for name in _KINDS if getattr(self, name) is not None]
        if len(given) == 1:
            return
        choice = "exactly one of epsilon (with or without delta), epsilon per row, l and alpha"
        if not given:
            raise BudgetError(f"a budget is missing: state {choice}")
        names = " and ".join(name.replace("_", " ") for name in given)
        raise BudgetError(f"{names} cannot be stated together: state {choice}")

    @property
    def kind(self) -> BudgetKind:
        """Which of the four ways of stating a budget this is."""
        return next(kind for name, kind in _KINDS.items() if getattr(self, name) is not None)

    @property
    def routes(self) -> tuple[Route, ...]:
        """Currencies in which a total may be paid; zCDP needs a delta (R6)."""
        if self.paid is not None:
            return (self.paid.route,)
        return ("pure",) if self.delta is None else ("pure", "zcdp")

    def whole(self, route: Route) -> Allowance:
        """Return the whole of epsilon, or the largest rho that stays within it at delta."""
        if self.epsilon is None:
            raise BudgetError("only an epsilon for the whole release can be split into parts")
        if route not in self.routes:
            raise BudgetError("state a delta: without one only pure prices add up")
        before = Fraction(0) if self.paid is None else self.paid.amount
        if route == "pure":
            return Allowance(route, Fraction(self.epsilon) - before)
        delta = self.delta or 0.0
        if self.delta_taken:
            delta = float_down(fraction_down(Fraction(delta) - self.delta_taken))
        rho = rho_at(self.epsilon, delta=delta)
        return Allowance(route, Fraction(rho) - before)

    def parts(self, parts: Collection[str], *, route: Route) -> dict[str, Allowance]:
        """Split the whole over order, marginals and draws.

        All parts of a release must be paid along the same route: pure prices add to an
        epsilon and rhos add to a rho, but a mixture of both adds to neither.
        """
        whole = self.whole(route)
        shares = self.shares.used(parts)
        return {part: Allowance(route, share * whole.amount) for part, share in shares.items()}
