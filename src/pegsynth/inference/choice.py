"""Which rule fits, and with which row counts, read off a ledger.

The ledger records how the datasets were made; that decides the rule (R16). Where it is
not clear whether datasets share a parameter draw, the wider rule is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pegsynth.inference.rules import Rule
from pegsynth.privacy import Ledger
from pegsynth.privacy.draws import DRAWS, Draws, UrnDraws
from pegsynth.privacy.events import NotPrivate, UnknownEvent, Unspent


@dataclass(frozen=True)
class Choice:
    """A rule and the reason for it, in half a sentence."""

    rule: Rule
    reason: str


def rule_for(ledger: Ledger, datasets: int) -> Choice:
    """Choose the rule for K datasets of a release."""
    events = ledger.events
    if any(isinstance(event, NotPrivate) and event.code == "kept-columns" for event in events):
        return Choice("partial", "some columns hold original values")
    if any(isinstance(event, UrnDraws) and not _apart(event, datasets) for event in events):
        return Choice("shared-urn", "the datasets were dealt from shared urns")
    if any(isinstance(event, UrnDraws) for event in events):
        return Choice("plug-in", "every dataset has urns of its own")
    if from_released_blocks(ledger):
        return Choice("plug-in", "all datasets were drawn from the same released counts")
    if any(isinstance(event, UnknownEvent) for event in events):
        return Choice("plug-in", "the ledger names no other, but holds events of a newer version")
    return Choice("plug-in", "the datasets do not share a drawn parameter")


def from_released_blocks(ledger: Ledger) -> bool:
    """Whether rows come from noisy counts that were released once (R11).

    Their tables vary little, so that b is smaller than v, and the noise is in all of them.
    """
    return any(isinstance(event, Unspent) for event in ledger.events)


def _apart(event: UrnDraws, datasets: int) -> bool:
    """Whether every dataset has an urn of its own; more urns may be chains that all share."""
    return event.urns == event.datasets >= datasets


def rows_of(ledger: Ledger, datasets: int) -> int | None:
    """Return n as the draws record it, or the options of the run; None where they do not tell.

    A ledger of fewer than K datasets may count the rows of all of them as one. Rows of
    released blocks cost nothing, so that no event of theirs counts them.
    """
    draws = [event for event in ledger.events if isinstance(event, DRAWS)]
    if draws:
        return _only(_rows(event, datasets) for event in draws)
    stated = [a.parameters for a in ledger.assumptions if a.code == "public-options"]
    told = [each.get("rows") for each in stated if each.get("datasets") == datasets]
    return _only(value if type(value) is int and value > 0 else None for value in told)


def _rows(event: Draws, datasets: int) -> int | None:
    return event.rows if event.datasets >= datasets else None


def rows_in_of(ledger: Ledger) -> int | None:
    """Return N as it was stated to be public; None where it was not."""
    stated = [a.parameters.get("rows_in") for a in ledger.assumptions if a.code == "rows-in"]
    return _only(value if type(value) is int and value > 0 else None for value in stated)


def _only(values: Iterable[int | None]) -> int | None:
    """Return the value that all agree on."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
