"""What an event costs, in two currencies.

`PureAccountant` adds epsilons, `ZCDPAccountant` adds rhos. Both answer None for an event
they cannot price, which makes the corresponding guarantee "none" and never smaller. Every
price is exact or rounded up (R15). Neighbours differ by adding or removing one unit; a
unit of up to k rows multiplies a pure price by k and a rho by k^2 (R12).

Private categories cost a delta' besides their rho (R29): `delta_taken` adds these up, and rho is
converted at what is left of the stated delta.

Replacing one row by another is not what is claimed. For the reader who needs it, R12 gives
the factors, pure and in rho: draws of R2 and R3 1 and 4; R4 and R5 2 and 4; imputation 1 and
1; noisy counts 2 (Laplace) and 2; noisy residuals at most 2 (Laplace) and 4.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Protocol

from pegsynth.privacy.draw_events import (
    BlockDraws,
    CappedDraws,
    ContingencyDraws,
    Draws,
    ImputationDraws,
    MarginalDraws,
    PegsDraws,
    UrnDraws,
)
from pegsynth.privacy.events import (
    CategoriesFound,
    Event,
    PooledRows,
    RunBegins,
    Selection,
    UnitBound,
    Unspent,
)
from pegsynth.privacy.noise_events import (
    AgreementCounts,
    Noisy,
    NoisyCounts,
    NoisyResiduals,
    NoisySums,
)
from pegsynth.privacy.rounding import ZERO, log_one_plus_up, product_up, ratio_up, sum_up
from pegsynth.privacy.unseen_categories import unseen_delta

_EIGHTH = Decimal("0.125")
_HALF = Decimal("0.5")


class Accountant(Protocol):
    """Reads events and adds up their prices."""

    def price(self, event: Event, *, rows_per_unit: int = 1) -> Decimal | None:
        """Price of one event, rounded up; None when no result covers it."""


def total(
    accountant: Accountant, events: Iterable[Event], *, rows_per_unit: int = 1
) -> Decimal | None:
    """Add the prices of all events (sequential composition), or None if one has none."""
    prices = [accountant.price(event, rows_per_unit=rows_per_unit) for event in events]
    known = [price for price in prices if price is not None]
    return sum_up(known) if len(known) == len(prices) else None


def draw_price(numerator: int, denominator: int) -> Decimal:
    """Price of one draw, eta = log(1 + 1/a) with a = numerator/denominator, rounded up (R1)."""
    return log_one_plus_up(denominator, numerator)


class PureAccountant:
    """Epsilon of pure differential privacy."""

    def price(self, event: Event, *, rows_per_unit: int = 1) -> Decimal | None:
        """Epsilon of one event, rounded up; None when it has none."""
        match event:
            case ImputationDraws():
                # R8, R12: an imputation draw is eta-DP under any change of the table.
                return product_up(event.count, _eta(event))
            case Unspent():
                return _unspent(event, "pure")
            case PooledRows():
                # R24: R12 for the rows that a unit has in this table.
                return self.price(event.step, rows_per_unit=rows_per_unit * event.rows_per_unit)
            case (
                NoisyCounts(mechanism="discrete-gaussian")
                | AgreementCounts(mechanism="discrete-gaussian")
                | NoisyResiduals(mechanism="discrete-gaussian")
                | NoisySums(mechanism="discrete-gaussian")
                | CategoriesFound()
            ):
                return None  # R6: Gaussian noise has no pure guarantee.
            case AgreementCounts():
                # R32: a unit is in one part with all its rows, so R12 adds no factor.
                return self._of_one_row(event.noise)
            case _:
                epsilon = self._of_one_row(event)
                # R12: k rows per unit cost k times the price of one.
                return None if epsilon is None else product_up(rows_per_unit, epsilon)

    @staticmethod
    def _of_one_row(event: Event) -> Decimal | None:
        match event:
            case PegsDraws() | BlockDraws() | CappedDraws() | ContingencyDraws() | MarginalDraws():
                return product_up(event.count, _eta(event))  # R3, R4, R5, R9
            case UrnDraws():
                return _urn_epsilon(event)
            case NoisyCounts():
                # R10, R11: Laplace noise of scale b costs cells/b.
                return ratio_up(event.cells * event.scale_denominator, event.scale_numerator)
            case NoisyResiduals() | NoisySums():
                # R27: one row moves all cells together by prod 2 (C - 1). R26: max |f(x)|_1.
                most = event.largest_sum if isinstance(event, NoisySums) else event.absolute_sum
                return ratio_up(most * event.scale_denominator, event.scale_numerator)
            case Selection():
                # R10: the exponential mechanism is eps_s-DP per choice.
                return ratio_up(event.count * event.epsilon_numerator, event.epsilon_denominator)
            case _:
                return _free_or_uncovered(event)


class ZCDPAccountant:
    """Rho of zero-concentrated differential privacy."""

    def price(self, event: Event, *, rows_per_unit: int = 1) -> Decimal | None:
        """Rho of one event, rounded up; None when it has none."""
        if isinstance(event, ImputationDraws):
            # R8: eta-DP but not eta-bounded-range, so eta^2/2; R12: whatever the unit.
            return product_up(_HALF, event.count, _eta(event), _eta(event))
        if isinstance(event, Unspent):
            return _unspent(event, "zcdp")
        if isinstance(event, PooledRows):
            # R24: R12 for the rows that a unit has in this table.
            return self.price(event.step, rows_per_unit=rows_per_unit * event.rows_per_unit)
        if isinstance(event, AgreementCounts):
            return _noise_rho(event.noise)  # R32: whatever the unit
        rho = self._of_one_row(event)
        # R12: k rows per unit cost k^2 times the rho of one, before any conversion.
        return None if rho is None else product_up(rows_per_unit, rows_per_unit, rho)

    @staticmethod
    def _of_one_row(event: Event) -> Decimal | None:
        match event:
            case PegsDraws() | BlockDraws() | CappedDraws() | ContingencyDraws() | MarginalDraws():
                # R6: an eta-bounded-range draw is (eta^2/8)-zCDP.
                return product_up(_EIGHTH, event.count, _eta(event), _eta(event))
            case UrnDraws():
                return _urn_rho(event)
            case NoisyCounts() | NoisyResiduals() | NoisySums():
                return _noise_rho(event)
            case CategoriesFound():
                # R29: off a chance of delta', which `delta_taken` charges, it is R11.
                return product_up(len(event.features), _noise_rho(event.noise))
            case Selection():
                # R6, R10: eps_s^2/8 per choice.
                epsilon = ratio_up(event.epsilon_numerator, event.epsilon_denominator)
                return product_up(_EIGHTH, event.count, epsilon, epsilon)
            case _:
                return _free_or_uncovered(event)


def delta_taken(events: Iterable[Event], *, rows_per_unit: int = 1) -> Decimal:
    """Add the delta' of all events, rounded up: what is taken out of the stated delta (R29)."""
    return sum_up(
        product_up(len(event.features), _unseen(event, rows_per_unit))
        for event in events
        if isinstance(event, CategoriesFound)
    )


def _unseen(event: CategoriesFound, rows_per_unit: int) -> Decimal:
    variance = Fraction(event.variance_numerator, event.variance_denominator)
    return unseen_delta(variance, event.threshold, rows_per_unit)


def _eta(event: Draws) -> Decimal:
    return draw_price(event.alpha_numerator, event.alpha_denominator)


def _urn_range(event: UrnDraws) -> Decimal:
    """Range of T visits to one urn: log(1 + T/a) (R17)."""
    return log_one_plus_up(event.visits * event.alpha_denominator, event.alpha_numerator)


def _urn_epsilon(event: UrnDraws) -> Decimal:
    telescoped = product_up(event.features - event.restricted, _urn_range(event))  # R17
    in_full = product_up(event.restricted, event.visits, _eta(event))  # R17, R18
    return product_up(event.urns, sum_up((telescoped, in_full)))


def _urn_rho(event: UrnDraws) -> Decimal:
    eta, width = _eta(event), _urn_range(event)
    each_draw = product_up(_EIGHTH, event.visits, eta, eta)
    at_once = product_up(_EIGHTH, width, width)
    # R17: min(T eta^2/8, log^2(1 + T/a)/8) per urn; T eta^2/8 where a rule restricts.
    telescoped = product_up(event.features - event.restricted, min(each_draw, at_once))
    in_full = product_up(event.restricted, each_draw)
    return product_up(event.urns, sum_up((telescoped, in_full)))


def _noise_rho(event: Noisy) -> Decimal:
    inverse = ratio_up(event.scale_denominator, event.scale_numerator)
    # R10, R11: a count moves by 1. R27: squared moves add up to prod C (C - 1). R26: to max |f|^2.
    match event:
        case NoisyResiduals():
            moved = event.squared_length
        case NoisySums():
            moved = event.largest_square
        case _:
            moved = event.cells
    if event.mechanism == "discrete-gaussian":
        return product_up(_HALF, moved, inverse)  # moved/(2 sigma^2)
    return product_up(_HALF, moved, inverse, inverse)  # moved/(2 b^2)


def _unspent(event: Unspent, route: str) -> Decimal | None:
    # An amount left over in one currency bounds nothing in the other: a path that spent it
    # differently might have cost more there.
    if event.route != route:
        return None
    return ratio_up(event.amount_numerator, event.amount_denominator)


def _free_or_uncovered(event: Event) -> Decimal | None:
    match event:
        case UnitBound() | RunBegins():
            return ZERO
        case _:
            return None  # R10 and R7: no claim at all
