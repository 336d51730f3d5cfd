"""A ledger in words that a data-protection officer can read.

The statement says what a ledger promises as a whole; the explanation says where the price comes
from, one sentence for each event: what was read, what it cost, what it means. They hold nothing
that the events do not hold: a ledger is public, and so are its words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from pegsynth.privacy.events import Diversity, UnitBound
from pegsynth.privacy.guarantee import Guarantee, bound_of, runs_of, uncovered_places
from pegsynth.privacy.recorded import one_line
from pegsynth.privacy.rounding import display_up, float_up

if TYPE_CHECKING:
    from pegsynth.privacy.ledger import Ledger

WEAK_EPSILON = 10.0
_LARGEST_EXPONENT = 300.0


def statement(ledger: Ledger) -> str:
    """Say what is promised, to whom, what it assumes and what it does not cover."""
    guarantee = ledger.guarantee
    paragraphs = [
        " ".join((*_claim(ledger), *_per_row(guarantee))),
        _unit(guarantee, rows_folded(ledger)),
        _list("Not covered:", ledger.not_covered),
        _list("Assumed:", _assumed(ledger)),
        _list("Note:", ledger.warnings),
        _made_by(ledger),
    ]
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph) + "\n"


def _claim(ledger: Ledger) -> list[str]:
    guarantee = ledger.guarantee
    if guarantee.kind == "none":
        return [
            "This release carries no privacy guarantee.",
            "What stands in the way is listed below as not covered.",
        ]
    if guarantee.kind == "l-diversity":
        return [
            f"This release is not differentially private. {_diversity(ledger)}",
            "It limits how surely a value can be told from the entry it was drawn from, and "
            "says nothing about what else an outsider may know.",
        ]
    return [_differential(guarantee), _odds(guarantee)]


def _differential(guarantee: Guarantee) -> str:
    epsilon = display_up(guarantee.epsilon or 0.0)
    if guarantee.kind == "pure":
        return (
            f"This release as a whole is differentially private with epsilon = {epsilon} "
            "(delta = 0)."
        )
    return (
        f"This release as a whole is differentially private with epsilon = {epsilon} at "
        f"delta = {display_up(guarantee.delta or 0.0)}."
    )


def _odds(guarantee: Guarantee) -> str:
    epsilon = guarantee.epsilon or 0.0
    extra = f", give or take a chance of {display_up(guarantee.delta)}" if guarantee.delta else ""
    weak = (
        f" An epsilon above {WEAK_EPSILON:g} is a weak promise." if epsilon > WEAK_EPSILON else ""
    )
    return (
        f"In plain words: whatever an outsider knows already, no outcome of this release is more "
        f"than exp(epsilon) = {factor_text(epsilon)} times as likely with a given {guarantee.unit} "
        f"in the original table as without it, or the other way round{extra}; the odds that it was "
        f"there cannot change by more.{weak}"
    )


def factor_text(epsilon: float) -> str:
    """Return exp(epsilon) for a reader, rounded up."""
    if epsilon > _LARGEST_EXPONENT:
        return "1e130 or more (no limit in practice)"
    return display_up(math.nextafter(math.exp(epsilon), math.inf))


def _per_row(guarantee: Guarantee) -> list[str]:
    if guarantee.epsilon_per_row is None:
        return []
    return [
        f"The draws cost {display_up(guarantee.epsilon_per_row)} per synthetic row, which is how "
        "the original paper counts epsilon; the figure for the whole release is the one above."
    ]


def _diversity(ledger: Ledger) -> str:
    events = [event for event in ledger.events if isinstance(event, Diversity)]
    parts = [
        f"l = {event.l:g} for {', '.join(event.features) or 'all features'}" for event in events
    ]
    return f"Every distribution drawn from has entropy of at least log l: {'; '.join(parts)}."


def rows_folded(ledger: Ledger) -> int | None:
    """Return how many rows of a unit were folded into one at most; None where none were (R24)."""
    stated = [each.parameters.get("most") for each in ledger.assumptions if each.code == "panel"]
    return max((most for most in stated if isinstance(most, int)), default=None)


def rows_counted(ledger: Ledger) -> int:
    """Return how many rows of a unit count at most, folded into one or not."""
    return rows_folded(ledger) or ledger.guarantee.rows_per_unit


def _unit(guarantee: Guarantee, folded: int | None = None) -> str:
    if guarantee.kind not in ("pure", "approximate"):
        return ""
    if guarantee.unit == "row":
        return (
            "Protected is one row of the original table: the promise compares the table with the "
            "table that has one row more or less. A person with several rows is protected less."
        )
    if folded is not None and guarantee.rows_per_unit == 1:
        return (
            f"Protected is one unit with all its rows, of which at most {folded} count: they were "
            "folded into one row when the table was read, and the promise compares the table with "
            "the table that has one unit more or less."
        )
    return (
        f"Protected is one unit with all its rows, at most {guarantee.rows_per_unit}, a limit that "
        "was enforced when the table was read: the promise compares the table with the table that "
        "has one unit more or less."
    )


def _assumed(ledger: Ledger) -> list[str]:
    """Return the assumptions as sentences; runs that are added may make the same ones."""
    return list(dict.fromkeys(assumption.text for assumption in ledger.assumptions))


def _made_by(ledger: Ledger) -> str:
    return f"Made by {', '.join(map(str, ledger.programs))}." if ledger.programs else ""


def _list(heading: str, lines: Sequence[str]) -> str:
    """Write lines as a list; white space is collapsed, so that none can pose as a paragraph."""
    return "\n".join((heading, *(f"- {one_line(line)}" for line in lines))) if lines else ""


class Explained(NamedTuple):
    """One event as a line of a table.

    Parameters
    ----------
    kind
        The name of the event in ``privacy.json``.
    epsilon, rho
        Its price in both currencies, rounded up, for a unit with all its rows; None where it
        has no price.
    covered
        Whether a result covers it under the delta that the ledger states.
    sentence
        The event in words.
    """

    kind: str
    epsilon: float | None
    rho: float | None
    covered: bool
    sentence: str


def explanation(ledger: Ledger) -> str:
    """Write one numbered sentence for each event."""
    lines = [f"{place}. {line.sentence}" for place, line in enumerate(explained(ledger), start=1)]
    return "\n".join(lines or ["Nothing has been done with the table."]) + "\n"


def explained(ledger: Ledger) -> list[Explained]:
    """Return every event with its price and its sentence."""
    folded = rows_folded(ledger)
    uncovered = uncovered_places(ledger.events, delta=ledger.delta or None)
    bounds = [bound_of(run) for run in runs_of(ledger.events) for _ in run]
    lines = []
    for place, (event, unit) in enumerate(zip(ledger.events, bounds, strict=True)):
        epsilon = _shown(event.price("pure", rows_per_unit=unit))
        rho = _shown(event.price("zcdp", rows_per_unit=unit))
        read, means = event.described()
        if folded is not None and isinstance(event, UnitBound):
            read = f"The rows of each unit, at most {folded}, were folded into one"
            means = "the promise is made to a unit with all its rows, at the price of one row"
        cost = _cost(epsilon, rho, float_up(event.delta_taken(unit)))
        sentence = f"{read}; {cost}; {means}."
        lines.append(Explained(event.kind, epsilon, rho, place not in uncovered, sentence))
    return lines


def _shown(price: Decimal | None) -> float | None:
    return None if price is None else float_up(price)


def _cost(epsilon: float | None, rho: float | None, delta: float) -> str:
    if epsilon == 0 and rho == 0:
        return "it cost nothing"
    prices = (("epsilon", epsilon), ("rho", rho))
    known = [f"{name} = {display_up(price)}" for name, price in prices if price is not None]
    besides = f" and {display_up(delta)} of delta" if delta else ""
    return f"it cost {' or '.join(known)}{besides}" if known else "it has no price"
