"""Everything that was done with a table, and the one honest claim that follows.

A `Ledger` is a value: adding an event gives another ledger. It never sees data. The claim
is worked out from the events each time and cannot be set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from pegsynth.errors import ParameterError
from pegsynth.privacy.assumptions import Assumption
from pegsynth.privacy.conversion import check_delta
from pegsynth.privacy.events import Diversity, Event, NotPrivate, RunBegins, UnitBound
from pegsynth.privacy.guarantee import (
    Guarantee,
    all_delta_taken,
    delta_left,
    guarantee_of,
    not_covered,
    runs_of,
    whole_run,
)
from pegsynth.privacy.program import Program
from pegsynth.privacy.rounding import float_up, sum_up
from pegsynth.privacy.statement import (
    LARGEST_USUAL_DELTA,
    explanation,
    ledger_card,
    ledger_frame,
    ledger_picture,
    promise,
    statement,
)

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.views import Picture

_Kept = TypeVar("_Kept")


@dataclass(frozen=True, repr=False)
class Ledger:
    """Events, assumptions, a stated delta, and the programs that took part.

    Parameters
    ----------
    events
        What was done, in order.
    assumptions
        What was declared to be public.
    delta
        The constant the user stated; 0 (or None) for a pure guarantee. Never computed from
        the data (R6).
    programs
        Those that looked at the data or drew rows, in order. The claim does not depend on
        them.
    """

    events: tuple[Event, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    delta: float = 0.0
    programs: tuple[Program, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", tuple(self.events))
        object.__setattr__(self, "assumptions", tuple(self.assumptions))
        object.__setattr__(self, "delta", check_delta(self.delta) if self.delta else 0.0)
        object.__setattr__(self, "programs", _once(self.programs))

    def add(self, *events: Event) -> Ledger:
        """Return this ledger with further events."""
        return replace(self, events=self.events + events)

    def assume(self, *assumptions: Assumption) -> Ledger:
        """Return this ledger with further assumptions; a repeated one is kept once."""
        return replace(self, assumptions=_once((*self.assumptions, *assumptions)))

    def made_by(self, *programs: Program) -> Ledger:
        """Return this ledger with further programs that took part; each is kept once."""
        return replace(self, programs=(*self.programs, *programs))

    @cached_property
    def guarantee(self) -> Guarantee:
        """The claim that the events support."""
        return guarantee_of(self.events, delta=self.delta or None)

    @property
    def epsilon(self) -> float | None:
        """Epsilon of the whole release, rounded up; None without differential privacy."""
        return self.guarantee.epsilon

    @property
    def rho(self) -> float | None:
        """Rho of the whole release, rounded up; None without differential privacy."""
        return self.guarantee.rho

    @cached_property
    def not_covered(self) -> tuple[str, ...]:
        """One line for each event that no result covers."""
        return not_covered(self.events, delta=self.delta or None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a careful reader should notice although the claim is true."""
        if self.delta <= LARGEST_USUAL_DELTA:
            return ()
        return (
            f"delta = {self.delta:g} is larger than {LARGEST_USUAL_DELTA:g}: with delta near one "
            "over the number of people, revealing somebody outright would satisfy the definition",
        )

    def covered_part(self) -> Ledger:
        """Return the ledger without the events that no result covers.

        Its epsilon is what the other parts cost. It is a figure for studies and planning,
        not a claim about the release.
        """
        delta = self.delta or None
        covered = [event for event in self.events if not not_covered((event,), delta=delta)]
        return replace(self, events=tuple(covered))

    def statement(self) -> str:
        """Say in plain words what is promised, to whom, and what is not covered."""
        return statement(self)

    def explain(self) -> str:
        """Say in one sentence for each event what was read, what it cost and what it means."""
        return explanation(self)

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each event: its kind, price, sentence, and whether it is covered."""
        return ledger_frame(self)

    def plot(self) -> Picture:
        """Draw which share of the price each kind of event has."""
        return ledger_picture(self)

    def __repr__(self) -> str:
        return f"Ledger({len(self.events)} events: {promise(self.guarantee)})"

    def _repr_html_(self) -> str:
        return ledger_card(self)

    def to_json(self) -> str:
        """Write ``privacy.json``."""
        from pegsynth.privacy.privacy_json import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes, *, source: str = "the ledger") -> Ledger:
        """Read ``privacy.json``; the claim is recomputed from its events."""
        from pegsynth.privacy.privacy_json import from_json

        return from_json(text, source=source)

    def to_dp_event(self) -> Any:
        """Return the release as an event of ``dp_accounting``, to be composed with other tools'.

        Each run is one item of its rho, an upper bound however it was spent (R6). Neighbours
        differ by adding or removing one unit.
        """
        try:
            accounting = import_module("dp_accounting")
        except ImportError:
            raise ParameterError(
                "to_dp_event needs dp_accounting; install it: pip install dp-accounting"
            ) from None
        if self.guarantee.kind not in ("pure", "approximate"):
            return accounting.NonPrivateDpEvent()
        if all_delta_taken(self.events):
            raise ParameterError(
                "categories were found under a delta of their own (R29), which no event of "
                "dp_accounting describes; add the ledger to a budget book instead"
            )
        prices = [whole_run(run, delta=self.delta).rho for run in runs_of(self.events)]
        return accounting.ComposedDpEvent(
            [accounting.ZCDpEvent(float_up(rho)) for rho in prices if rho is not None]
        )

    def __add__(self, other: Ledger) -> Ledger:
        """Return what two runs on the same table promise together."""
        return Ledger.combine([self, other])

    @classmethod
    def combine(cls, ledgers: Sequence[Ledger]) -> Ledger:
        """Add several runs on the same table.

        Pure epsilons and rhos of whole runs add (sequential composition); each begins with an
        event that says so. A run that stated no delta is a single item of its epsilon, whatever
        path it took, as a budget book has it (R6). A
        sum of rhos may be converted at any delta; the largest stated one is taken, which is
        no weaker than what one of the runs already promises by itself. Where categories were
        found, rhos are converted at the largest that these leave of a delta, and the sum of all
        delta' comes on top (R29).

        Notes
        -----
        Runs that bound the rows of a unit do not add up with runs that do not, and
        l-diversity does not compose: both are recorded as not private.
        """
        if not ledgers:
            raise ParameterError("there is no ledger to combine")
        if len(ledgers) == 1:
            return ledgers[0]
        events = [event for ledger in ledgers for event in _marked(ledger)]
        return cls(
            events=(*events, *_obstacles(ledgers)),
            assumptions=_once(a for ledger in ledgers for a in ledger.assumptions),
            delta=_delta_together(ledgers, events),
            programs=tuple(program for ledger in ledgers for program in ledger.programs),
        )


def _once(items: Iterable[_Kept]) -> tuple[_Kept, ...]:
    kept: list[_Kept] = []
    for item in items:
        if item not in kept:
            kept.append(item)
    return tuple(kept)


def _delta_together(ledgers: Sequence[Ledger], events: Sequence[Event]) -> float:
    """Return the delta of several runs together: with private categories it grows (R29)."""
    largest = max(ledger.delta for ledger in ledgers)
    taken = all_delta_taken(events)
    if not taken or not largest:
        return largest
    left = max(delta_left(ledger.events, ledger.delta or None) or 0.0 for ledger in ledgers)
    together = float_up(sum_up((Decimal(left), taken)))
    return together if 0 < together < 1 else largest


def _marked(ledger: Ledger) -> tuple[Event, ...]:
    """Return the events of a run, or of several, with where each begins."""
    if ledger.events and isinstance(ledger.events[0], RunBegins):
        return ledger.events
    return (RunBegins(delta=ledger.delta), *ledger.events)


def _has(ledger: Ledger, kind: type[Event]) -> bool:
    return any(isinstance(event, kind) for event in ledger.events)


def _units(ledger: Ledger) -> frozenset[str]:
    """Name what a run protects: its unit columns, or nothing for single rows."""
    return frozenset(event.label for event in ledger.events if isinstance(event, UnitBound))


def _obstacles(ledgers: Sequence[Ledger]) -> list[NotPrivate]:
    """Name what stops the runs from adding up."""
    obstacles = []
    if len({_units(ledger) for ledger in ledgers}) > 1:
        text = "the runs do not protect the same kind of unit"
        obstacles.append(NotPrivate(code="mixed-units", text=text))
    if any(_has(ledger, Diversity) for ledger in ledgers):
        text = "l-diversity of several runs together is not known to hold"
        obstacles.append(NotPrivate(code="l-diversity-does-not-add", text=text))
    return obstacles
