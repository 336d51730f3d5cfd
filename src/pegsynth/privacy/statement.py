"""A ledger in words that a data-protection officer can read, as dataframes, a picture and cards.

The statement says what a ledger promises as a whole; the explanation says where the price comes
from, one sentence for each event: what was read, what it cost, what it means. All hold nothing
that the events do not hold: a ledger is public, and so are its words. Prices are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from pegsynth.privacy.events import Diversity, PooledRows, UnitBound
from pegsynth.privacy.guarantee import Guarantee, bound_of, runs_of, uncovered_places
from pegsynth.privacy.guesses import TOLD, Gain, gain_of_ledger
from pegsynth.privacy.recorded import one_line
from pegsynth.privacy.rounding import display_up, float_up
from pegsynth.views import Picture, card, table

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.privacy.ledger import Ledger

LARGEST_USUAL_DELTA: Final = 1e-6
AMBER_ABOVE: Final = 1.0
RED_ABOVE: Final = 10.0
"""The tiers of Ponomareva et al., How to DP-fy ML (2023): conventions, and no law."""
Level = Literal["green", "amber", "red", "none"]
_LARGEST_EXPONENT = 300.0


def level(kind: str, epsilon: float | None, delta: float | None) -> Level:
    """Return green, amber or red, by public thresholds; none without differential privacy."""
    if kind not in ("pure", "approximate") or epsilon is None:
        return "none"
    if epsilon > RED_ABOVE:
        return "red"
    amber = epsilon > AMBER_ABOVE or (delta or 0.0) > LARGEST_USUAL_DELTA
    return "amber" if amber else "green"


def statement(ledger: Ledger) -> str:
    """Say what is promised, to whom, what it assumes and what it does not cover."""
    guarantee = ledger.guarantee
    paragraphs = [
        " ".join((*_claim(ledger), *_per_row(guarantee))),
        _unit(guarantee, rows_folded(ledger)),
        _list("Not covered:", ledger.not_covered),
        # Runs that are added may make the same assumptions.
        _list("Assumed:", list(dict.fromkeys(each.text for each in ledger.assumptions))),
        _list("Note:", ledger.warnings),
        f"Made by {', '.join(map(str, ledger.programs))}." if ledger.programs else "",
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
    return [_differential(guarantee), *attacker_gains(guarantee, gain_of_ledger(ledger))]


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


def attacker_gains(guarantee: Guarantee, gain: Gain | None) -> list[str]:
    """Say what an attacker gains: the worst case, the success rate, the smallest cell (R35)."""
    if gain is None:
        return []
    told = f"{TOLD:.0%}"
    cell = (
        f"A cell with fewer than {gain.people:,} {guarantee.unit}s cannot be told from an empty "
        f"one: a guess which of the two it is, right half of the time without the release, is "
        f"right at most {told} of the time."
        if gain.people > 1
        else f"No cell is so small that it cannot be told from an empty one: of a single "
        f"{guarantee.unit} a guess may be right more than {told} of the time."
    )
    return [
        _odds(guarantee),
        f"A guess whether a given {guarantee.unit} is in the table, right half of the time "
        f"without the release, is right at most {gain.percent}% of the time with it.",
        cell,
    ]


def _odds(guarantee: Guarantee) -> str:
    epsilon = guarantee.epsilon or 0.0
    extra = f", give or take a chance of {display_up(guarantee.delta)}" if guarantee.delta else ""
    weak = f" An epsilon above {RED_ABOVE:g} is a weak promise." if epsilon > RED_ABOVE else ""
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


def ledger_frame(ledger: Ledger) -> pl.DataFrame:
    """Return one line for each event, in order."""
    import polars as pl

    kinds = {
        "event": pl.Int64,
        "kind": pl.String,
        "epsilon": pl.Float64,
        "rho": pl.Float64,
        "covered": pl.Boolean,
        "explanation": pl.String,
    }
    lines = [(place, *line) for place, line in enumerate(explained(ledger), start=1)]
    return pl.DataFrame(lines, schema=kinds, orient="row")


def ledger_picture(ledger: Ledger) -> Picture:
    """Draw the share of the price that each kind of event has, by purpose.

    In epsilon where every event has one, and else in rho. Without any price there is
    nothing to draw.
    """
    lines = explained(ledger)
    pure = all(line.epsilon is not None for line in lines)
    prices: dict[str, float] = {}
    for event, line in zip(ledger.events, lines, strict=True):
        price = line.epsilon if pure else line.rho
        if price:
            name = event.kind if isinstance(event, PooledRows) else event.name
            prices[name] = prices.get(name, 0.0) + price
    whole = sum(prices.values())
    currency = "epsilon" if pure else "rho"
    rows = [
        {"category": name, "value": price / whole, "series": ""} for name, price in prices.items()
    ]
    title = f"share of {currency} by what it was spent on"
    return Picture("histograms", rows, title, {"y_title": f"Share of {currency}", "width": 560})


def ledger_card(ledger: Ledger) -> str:
    """Return the promise in a line, and the events with their prices."""
    rows = [
        (place, line.kind, _price(line.epsilon), _price(line.rho), "yes" if line.covered else "NO")
        for place, line in enumerate(explained(ledger), start=1)
    ]
    claim = ledger.statement().split("\n", maxsplit=1)[0]
    note = "explain() says what each event means; statement() says what is promised."
    header = ("event", "kind", "epsilon", "rho", "covered")
    title = f"Ledger of {len(rows):,} events: {promise(ledger.guarantee)}"
    return card(title, [claim, note], table=table(header, rows))


def promise(guarantee: Guarantee) -> str:
    """Say in a few words what is promised."""
    match guarantee.kind:
        case "pure":
            return f"epsilon = {display_up(guarantee.epsilon or 0.0)}"
        case "approximate":
            epsilon, delta = guarantee.epsilon or 0.0, guarantee.delta or 0.0
            return f"epsilon = {display_up(epsilon)} at delta = {display_up(delta)}"
        case "l-diversity":
            return f"l-diversity with l = {guarantee.l:g}, no differential privacy"
        case _:
            return "no guarantee"


def guarantee_frame(guarantee: Guarantee) -> pl.DataFrame:
    """Return the promise as one line; what is not promised is null."""
    import polars as pl

    parts = msgspec.structs.asdict(guarantee)
    floats = ("epsilon", "delta", "rho", "epsilon_per_row", "l")
    return pl.DataFrame([parts], schema_overrides=dict.fromkeys(floats, pl.Float64))


def guarantee_card(guarantee: Guarantee) -> str:
    """Return the parts of the promise that are stated."""
    stated = msgspec.structs.asdict(guarantee).items()
    rows = [(name, _told(value)) for name, value in stated if value is not None]
    return card(f"Promised: {promise(guarantee)}", table=table(("part", "value"), rows))


def _price(price: float | None) -> str:
    return "" if price is None else display_up(price)


def _told(value: object) -> str:
    return display_up(value) if isinstance(value, float) else str(value)
