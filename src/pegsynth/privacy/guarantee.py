"""The one claim that a list of events supports, and what whole runs on one table cost.

Goes in: events and the stated delta. Comes out: a `Guarantee`, and a line for every event
that no result covers. Without a delta the claim is pure; with one it is approximate, at
the smaller of the pure epsilon and the epsilon of the summed rho (R6), which is converted at
what private categories leave of the delta (R29).

The ledger of several runs marks where each of them begins, and runs add up one by one (R6, R12,
R29). A run within one epsilon counts as a single item of that epsilon, and so of epsilon^2/2 in
rho: on another path it might have spent all of it at once, so neither its parts nor what it left
unspent may be converted one by one. Only where all amounts were settled before any output was
seen do the parts keep their own rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from pegsynth.privacy.conversion import epsilon_at
from pegsynth.privacy.draw_events import DETAILS, DRAWS, Draws
from pegsynth.privacy.events import Diversity, Event, RunBegins, UnitBound
from pegsynth.privacy.recorded import HALF, Claim, delta_taken, total
from pegsynth.privacy.rounding import float_down, float_up, fraction_down, product_up, sum_up

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
        from pegsynth.privacy.statement import guarantee_frame

        return guarantee_frame(self)

    def _repr_html_(self) -> str:
        from pegsynth.privacy.statement import guarantee_card

        return guarantee_card(self)


class RunPrice(NamedTuple):
    """What a run costs, rounded up.

    Parameters
    ----------
    pure, rho
        Its epsilon and its rho; None where it has none.
    delta_taken
        The delta' of private categories (R29).
    """

    pure: Decimal | None
    rho: Decimal | None
    delta_taken: Decimal


def runs_of(events: Sequence[Event]) -> list[Sequence[Event]]:
    """Cut events where a run begins; those of one run come back whole."""
    starts = [place for place, event in enumerate(events) if isinstance(event, RunBegins) and place]
    return [events[a:b] for a, b in zip([0, *starts], [*starts, len(events)], strict=True)]


def bound_of(run: Sequence[Event]) -> int:
    """Return the most rows of a unit in a run (R12)."""
    return max((event.rows_per_unit for event in run if isinstance(event, UnitBound)), default=1)


def all_delta_taken(events: Sequence[Event]) -> Decimal:
    """Add the delta' of every run (R29)."""
    return sum_up(delta_taken(run, rows_per_unit=bound_of(run)) for run in runs_of(events))


def parts_added(run: Sequence[Event]) -> RunPrice:
    """Add up the parts of a run."""
    unit = bound_of(run)
    return RunPrice(
        total("pure", run, rows_per_unit=unit),
        total("zcdp", run, rows_per_unit=unit),
        delta_taken(run, rows_per_unit=unit),
    )


def whole_run(run: Sequence[Event], *, delta: float) -> RunPrice:
    """Price a run as one of several on the table.

    Parameters
    ----------
    delta
        What it stated; 0 for a pure one. What stands where it begins counts more.
    """
    stated = run[0].delta if run and isinstance(run[0], RunBegins) else delta
    price = parts_added(run)
    if price.pure is None:
        return price
    at_once = product_up(HALF, price.pure, price.pure)
    if price.rho is None or not (stated or all(event.price_is_settled for event in run)):
        # It may have been a filter of epsilon: what its parts come to in rho depends on the path.
        return price._replace(rho=at_once)
    return price._replace(rho=min(price.rho, at_once))


def guarantee_of(events: Sequence[Event], *, delta: float | None) -> Guarantee:
    """Work out the claim that `events` support at the stated `delta`."""
    bounded = any(isinstance(event, UnitBound) for event in events)
    unit: Literal["row", "unit"] = "unit" if bounded else "row"
    rows_per_unit = bound_of(events)
    kind = _kind(events, delta)
    if kind in ("none", "l-diversity"):
        levels = [event.l for event in events if isinstance(event, Diversity)]
        return Guarantee(
            kind=kind,
            delta=delta,
            unit=unit,
            rows_per_unit=rows_per_unit,
            l=min(levels) if kind == "l-diversity" else None,
        )
    runs = runs_of(events)
    prices = (
        [parts_added(events)]
        if len(runs) == 1
        else [whole_run(run, delta=delta or 0.0) for run in runs]
    )
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


def _added(prices: Sequence[Decimal | None]) -> Decimal | None:
    known = [price for price in prices if price is not None]
    return sum_up(known) if len(known) == len(prices) else None


def not_covered(events: Sequence[Event], *, delta: float | None) -> tuple[str, ...]:
    """One line for each event that no result covers: which it is, and why."""
    return tuple(
        f"event {place + 1} ({events[place].name}): {reason}"
        for place, reason in uncovered_places(events, delta=delta).items()
    )


def uncovered_places(events: Sequence[Event], *, delta: float | None) -> dict[int, str]:
    """Return where the events stand that no result covers, and why each is not covered."""
    left = delta_left(events, delta)
    reasons = (
        event.why_not_covered(claim)
        for run in runs_of(events)
        for claim in (Claim(delta, left, total("pure", run) is not None),)
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
    price = _added([each.price_per_row() for each in draws])
    return None if price is None else float_up(price)


def _size(event: Draws) -> tuple[object, ...]:
    """Return what the parts of one release have in common: kind, rows, datasets, blocks."""
    sizes = (getattr(event, name, None) for name in ("rows", "datasets", "block_size"))
    return type(event), *sizes


def _kind(events: Sequence[Event], delta: float | None) -> GuaranteeKind:
    failing = [events[place] for place in uncovered_places(events, delta=delta)]
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
    taken = all_delta_taken(events)
    if not taken:
        return delta
    left = float_down(fraction_down(Fraction(delta) - Fraction(taken)))
    return left if left > 0 else None


def _epsilon(pure: Decimal | None, rho: Decimal | None, delta: float | None) -> float | None:
    candidates = [] if pure is None else [float_up(pure)]
    if delta is not None and rho is not None:
        candidates.append(epsilon_at(rho, delta=delta))  # R6
    return min(candidates, default=None)
