"""What whole runs on one table cost, one by one, so that they add up (R6, R12, R29).

The ledger of several runs marks where each of them begins. A run within one epsilon counts as a
single item of that epsilon, and so of epsilon^2/2 in rho: on another path it might have spent all
of it at once, so neither its parts nor what it left unspent may be converted one by one. Only
where all amounts were settled before any output was seen do the parts keep their own rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from pegsynth.privacy.accountant import PureAccountant, ZCDPAccountant, delta_taken, total
from pegsynth.privacy.draw_events import DRAWS
from pegsynth.privacy.events import Diversity, Event, RunBegins, UnitBound
from pegsynth.privacy.noise_events import AgreementCounts
from pegsynth.privacy.rounding import product_up

_HALF = Decimal("0.5")
_FIXED = (*DRAWS, AgreementCounts, RunBegins, UnitBound, Diversity)


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


def all_delta_taken(events: Sequence[Event]) -> list[Decimal]:
    """Return the delta' of every run (R29)."""
    return [delta_taken(run, rows_per_unit=bound_of(run)) for run in runs_of(events)]


def parts_added(run: Sequence[Event]) -> RunPrice:
    """Add up the parts of a run."""
    unit = bound_of(run)
    return RunPrice(
        total(PureAccountant(), run, rows_per_unit=unit),
        total(ZCDPAccountant(), run, rows_per_unit=unit),
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
    at_once = product_up(_HALF, price.pure, price.pure)
    if not stated and not all(isinstance(event, _FIXED) for event in run):
        # It may have been a filter of epsilon: what its parts come to in rho depends on the path.
        return price._replace(rho=at_once)
    return price._replace(rho=at_once if price.rho is None else min(price.rho, at_once))
