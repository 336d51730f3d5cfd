"""The colour of a promise, by public thresholds.

They are the tiers of Ponomareva et al., How to DP-fy ML (2023): conventions, and no law.

A ledger and its promise to look at: dataframes, a picture, cards for a notebook.

Prices are shown as the statement shows them: rounded up. A ledger is public.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from pegsynth.privacy.events import PooledRows
from pegsynth.privacy.ledger import LARGEST_USUAL_DELTA
from pegsynth.privacy.rounding import display_up
from pegsynth.privacy.statement import WEAK_EPSILON, explained
from pegsynth.views import Picture, card, table

if TYPE_CHECKING:
    import polars as pl

    from pegsynth.privacy.guarantee import Guarantee
    from pegsynth.privacy.ledger import Ledger


AMBER_ABOVE: Final = 1.0
RED_ABOVE: Final = WEAK_EPSILON
Level = Literal["green", "amber", "red", "none"]


def level(kind: str, epsilon: float | None, delta: float | None) -> Level:
    """Return green, amber or red; none without differential privacy."""
    if kind not in ("pure", "approximate") or epsilon is None:
        return "none"
    if epsilon > RED_ABOVE:
        return "red"
    amber = epsilon > AMBER_ABOVE or (delta or 0.0) > LARGEST_USUAL_DELTA
    return "amber" if amber else "green"


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
    rows = [(name, _shown(value)) for name, value in stated if value is not None]
    return card(f"Promised: {promise(guarantee)}", table=table(("part", "value"), rows))


def _price(price: float | None) -> str:
    return "" if price is None else display_up(price)


def _shown(value: Any) -> str:
    return display_up(value) if isinstance(value, float) else str(value)
