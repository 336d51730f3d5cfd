"""The one claim that a list of events supports.

Goes in: events and the stated delta. Comes out: a `Guarantee`, and a line for every event
that no result covers. Without a delta the claim is pure; with one it is approximate, at
the smaller of the pure epsilon and the epsilon of the summed rho (R6), which is converted at
what private categories leave of the delta (R29). Several runs add up as wholes (`runs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from pegsynth.privacy.accountant import PureAccountant, draw_price, total
from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.draw_events import (
    DETAILS,
    DRAWS,
    BlockDraws,
    ContingencyDraws,
    Draws,
    ImputationDraws,
    MarginalDraws,
    PegsDraws,
)
from pegsynth.privacy.events import (
    CategoriesFound,
    Diversity,
    Event,
    NotPrivate,
    PooledRows,
    UnitBound,
    UnknownEvent,
    Unspent,
)
from pegsynth.privacy.noise_events import AgreementCounts, NoisyCounts, NoisyResiduals, NoisySums
from pegsynth.privacy.rounding import (
    float_down,
    float_up,
    fraction_down,
    product_up,
    ratio_up,
    sum_up,
)
from pegsynth.privacy.runs import RunPrice, all_delta_taken, parts_added, runs_of, whole_run

if TYPE_CHECKING:
    import polars as pl

GuaranteeKind: TypeAlias = Literal["pure", "approximate", "l-diversity", "none"]


class Guarantee(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is promised, as ``privacy.json`` writes it.

    Parameters
    ----------
    kind
        "pure", "approximate", "l-diversity" (no differential privacy) or "none".
    epsilon, rho
        For the whole release, rounded up; None unless `kind` is pure or approximate.
    delta
        As stated; 0 for a pure guarantee. It stays when `kind` is "none", where it
        promises nothing, because which events are not covered can depend on it.
    epsilon_per_row
        Pure price of the draws per synthetic row and per original *row*, which is how the
        paper counts; None when there is no such figure (a visit cap, urns, several runs).
    neighbours
        Tables that differ by adding or removing one unit.
    unit, rows_per_unit
        What is protected, and its most rows (k, R12).
    l
        The smallest l of entropy l-diversity, when it holds.
    """

    kind: GuaranteeKind
    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    epsilon_per_row: float | None = None
    neighbours: Literal["add-remove"] = "add-remove"
    unit: Literal["row", "unit"] = "row"
    rows_per_unit: int = 1
    l: float | None = None  # noqa: E741

    def to_frame(self) -> pl.DataFrame:
        """Return the promise as one line (Polars)."""
        from pegsynth.privacy.ledger_views import guarantee_frame

        return guarantee_frame(self)

    def _repr_html_(self) -> str:
        from pegsynth.privacy.ledger_views import guarantee_card

        return guarantee_card(self)


def guarantee_of(events: Sequence[Event], *, delta: float | None) -> Guarantee:
    """Work out the claim that `events` support at the stated `delta`."""
    bounds = [event.rows_per_unit for event in events if isinstance(event, UnitBound)]
    rows_per_unit = max(bounds, default=1)
    unit: Literal["row", "unit"] = "unit" if bounds else "row"
    smallest_l = min((event.l for event in events if isinstance(event, Diversity)), default=None)
    kind = _kind(events, delta)
    if kind in ("none", "l-diversity"):
        return Guarantee(
            kind=kind,
            delta=delta,
            unit=unit,
            rows_per_unit=rows_per_unit,
            l=smallest_l if kind == "l-diversity" else None,
        )
    prices = _prices(events, delta)
    pure = _added([price.pure for price in prices])
    rho = _added([price.rho for price in prices])
    return Guarantee(
        kind=kind,
        epsilon=_epsilon(pure, rho, delta_left(events, delta)),
        delta=0.0 if delta is None else delta,
        rho=None if rho is None else float_up(rho),
        epsilon_per_row=epsilon_per_row(events),
        unit=unit,
        rows_per_unit=rows_per_unit,
    )


def _prices(events: Sequence[Event], delta: float | None) -> list[RunPrice]:
    """Price every run; one that stands alone is what its parts add up to."""
    runs = runs_of(events)
    if len(runs) == 1:
        return [parts_added(runs[0])]
    return [whole_run(run, delta=delta or 0.0) for run in runs]


def _added(prices: Sequence[Decimal | None]) -> Decimal | None:
    known = [price for price in prices if price is not None]
    return sum_up(known) if len(known) == len(prices) else None


def not_covered(events: Sequence[Event], *, delta: float | None) -> tuple[str, ...]:
    """One line for each event that no result covers: which it is, and why."""
    return tuple(
        f"event {place + 1} ({_name(events[place])}): {reason}"
        for place, reason in uncovered_places(events, delta=delta).items()
    )


def uncovered_places(events: Sequence[Event], *, delta: float | None) -> dict[int, str]:
    """Return where the events stand that no result covers, and why each is not covered."""
    left = delta_left(events, delta)
    reasons = (
        _why_not_covered(event, delta, pure=pure, left=left)
        for run in runs_of(events)
        for pure in (_has_pure_price(run),)
        for event in run
    )
    return {place: reason for place, reason in enumerate(reasons) if reason}


def epsilon_per_row(events: Sequence[Event]) -> float | None:
    """Pure price of the draws per synthetic row, as the paper counts it (R2, R4, R8, R9)."""
    draws = [event for event in events if isinstance(event, DRAWS)]
    parts = [event for event in draws if event.label == DETAILS]
    if (
        len(runs_of(events)) > 1
        or len(draws) - len(parts) != 1
        or len({_size(each) for each in draws}) > 1
    ):
        return None
    prices = [_price_per_row(each) for each in draws]
    known = [price for price in prices if price is not None]
    return float_up(sum_up(known)) if len(known) == len(prices) else None


def _size(event: Draws) -> tuple[object, ...]:
    """Return what the parts of one release have in common: kind, rows, datasets, blocks."""
    sizes = (getattr(event, name, None) for name in ("rows", "datasets", "block_size"))
    return type(event), *sizes


def _price_per_row(event: Draws) -> Decimal | None:
    eta = draw_price(event.alpha_numerator, event.alpha_denominator)
    match event:
        case PegsDraws() | ImputationDraws() | ContingencyDraws() | MarginalDraws():
            return product_up(event.draws_per_row, eta)
        case BlockDraws():
            # R4: a block of B rows costs M eta, so one row counts for M eta / B.
            return product_up(ratio_up(event.features, event.block_size), eta)
        case _:
            return None


def _kind(events: Sequence[Event], delta: float | None) -> GuaranteeKind:
    places = uncovered_places(events, delta=delta)
    failing = [events[place] for place in places]
    if not failing:
        return "pure" if delta is None else "approximate"
    # R7: l-diversity of true counts stands alone, beside nothing that is not covered.
    return "l-diversity" if all(isinstance(event, Diversity) for event in failing) else "none"


def delta_left(events: Sequence[Event], delta: float | None) -> float | None:
    """Return what the delta' of private categories leave of a delta, rounded down (R29).

    None where nothing was stated or nothing is left.
    """
    if delta is None:
        return None
    taken = sum_up(all_delta_taken(events))
    if not taken:
        return delta
    left = float_down(fraction_down(Fraction(delta) - Fraction(taken)))
    return left if left > 0 else None


def _epsilon(pure: Decimal | None, rho: Decimal | None, delta: float | None) -> float | None:
    candidates = [] if pure is None else [float_up(pure)]
    if delta is not None and rho is not None:
        candidates.append(epsilon_at(rho, delta=delta))  # R6
    return min(candidates, default=None)


def _has_pure_price(events: Sequence[Event]) -> bool:
    return total(PureAccountant(), events) is not None


def _why_not_covered(
    event: Event, delta: float | None, *, pure: bool, left: float | None
) -> str | None:
    if isinstance(event, PooledRows):
        event = event.step
    match event:
        case NotPrivate():
            return event.text
        case UnknownEvent():
            return "this version does not know such an event, so it counts as not private"
        case Diversity():
            return (
                "virtual rows were chosen entry by entry from the data to reach l-diversity, "
                "which is not differential privacy"
            )
        case (
            NoisyCounts(mechanism="discrete-gaussian")
            | AgreementCounts(mechanism="discrete-gaussian")
            | NoisyResiduals(mechanism="discrete-gaussian")
            | NoisySums(mechanism="discrete-gaussian")
        ) if delta is None:
            return "Gaussian noise has no pure guarantee; state a delta"
        case CategoriesFound() | Unspent():
            return _why_amount_fails(event, delta, pure=pure, left=left)
        case _:
            return None


def _why_amount_fails(
    event: CategoriesFound | Unspent, delta: float | None, *, pure: bool, left: float | None
) -> str | None:
    if isinstance(event, Unspent):
        return _why_unspent_fails(event, delta, pure=pure)
    if left is not None:
        return None
    if delta is None:
        return "categories that were found by noisy counts have no pure guarantee; state a delta"
    return (
        "the chances of finding a category that only one unit has add up to no less than the "
        "stated delta; state a larger one"
    )


def _why_unspent_fails(event: Unspent, delta: float | None, *, pure: bool) -> str | None:
    if event.route == "zcdp" and delta is None:
        return "an amount of rho was left over, which is no pure guarantee; state a delta"
    if event.route == "pure" and delta is not None and not pure:
        return (
            "an amount of epsilon was left over, which does not add up with parts that have no "
            "pure price; report the runs one by one"
        )
    return None


def _name(event: Event) -> str:
    if isinstance(event, UnknownEvent):
        return event.kind
    tag = str(event.__struct_config__.tag)
    match event:
        case NotPrivate():
            return event.code
        case NoisyCounts() | NoisyResiduals() | NoisySums():
            return f"{tag}, {event.purpose}"
        case PooledRows():
            return f"{tag}, {_name(event.step)}"
        case _:
            return tag
