"""What all events share: checked fields, a price in two currencies, and a sentence.

Every crossing of the privacy boundary is one frozen event. It says what happened (which
mechanism, how often one row can influence it, with which exact alpha or noise scale), what that
costs by which result, and what it means for a reader. Ledger, explanation and documents are
written from it, so that a new event is one class, its name in `events.KnownEvent`, and one audit
case. No field may hold anything computed from the data, such as its row count, a visit to a seen
key or a hash, unless an earlier or the same event has paid for it: what was chosen, and how many
levels a feature has after its noisy counts were looked at.

Prices are exact or rounded up (R15). Neighbours differ by adding or removing one unit; a unit of
up to k rows multiplies a pure price by k and a rho by k^2 (R12).

Replacing one row by another is not what is claimed. For the reader who needs it, R12 gives
the factors, pure and in rho: draws of R2 and R3 1 and 4; R4 and R5 2 and 4; imputation 1 and
1; noisy counts 2 (Laplace) and 2; noisy residuals at most 2 (Laplace) and 4.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, NamedTuple

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.privacy.conversion import Route
from pegsynth.privacy.rounding import ZERO, product_up, sum_up

LARGEST_INTEGER: Final = 2**256
HALF: Final = Decimal("0.5")
EIGHTH: Final = Decimal("0.125")
_MOST_NAMED = 6


class Claim(NamedTuple):
    """What decides whether an event is covered, besides the event itself.

    Parameters
    ----------
    delta
        The stated constant; None where the claim is pure.
    left
        What the delta' of private categories leave of it (R29); None where nothing is left.
    pure
        Whether all events of its run have a pure price.
    """

    delta: float | None
    left: float | None
    pure: bool


class Recorded(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True
):
    """Fields and checks that all events share.

    Parameters
    ----------
    label
        Free words for the reader of the ledger, such as the name of a table. Public.
    """

    label: str = ""
    price_is_settled: ClassVar[bool] = False
    """Whether the price is settled before any output is seen, whatever path a run takes (R6)."""

    def __post_init__(self) -> None:
        for name, optional in _integer_fields(type(self)):
            value = getattr(self, name)
            if value is not None or not optional:
                checked = checked_integer(type(self).__name__, name, value)
                msgspec.structs.force_setattr(self, name, checked)

    @property
    def kind(self) -> str:
        """The name of the event in ``privacy.json``."""
        return str(self.__struct_config__.tag)

    @property
    def name(self) -> str:
        """The kind, and the purpose where it has one."""
        purpose = getattr(self, "purpose", "")
        return f"{self.kind}, {purpose}" if purpose else self.kind

    def price(self, route: Route, *, rows_per_unit: int = 1) -> Decimal | None:
        """Return the epsilon ("pure") or rho ("zcdp") for a unit of so many rows, rounded up.

        None where no result covers the event, which makes the guarantee "none" and never smaller.
        """
        price = self.price_of_row(route)
        if price is None:
            return None
        # R12: k rows per unit cost k times the epsilon of one row, and k^2 times its rho, before
        # any conversion.
        times = (rows_per_unit,) if route == "pure" else (rows_per_unit, rows_per_unit)
        return product_up(*times, price)

    def price_of_row(self, route: Route) -> Decimal | None:
        """Return the price for a unit of one row."""
        return None

    def delta_taken(self, rows_per_unit: int) -> Decimal:
        """Return what the event takes out of the stated delta, rounded up (R29)."""
        return ZERO

    def why_not_covered(self, claim: Claim) -> str | None:
        """Say why no result covers the event under a claim; None where one does."""
        return None

    def described(self) -> tuple[str, str]:
        """Return what was read of the table, and what that means for its reader."""
        raise NotImplementedError

    @property
    def labelled(self) -> str:
        """The label as the end of a phrase."""
        return f" ({one_line(self.label)})" if self.label else ""


def total(route: Route, events: Iterable[Recorded], *, rows_per_unit: int = 1) -> Decimal | None:
    """Add the prices of all events (sequential composition), or None if one has none."""
    prices = [event.price(route, rows_per_unit=rows_per_unit) for event in events]
    known = [price for price in prices if price is not None]
    return sum_up(known) if len(known) == len(prices) else None


def delta_taken(events: Iterable[Recorded], *, rows_per_unit: int = 1) -> Decimal:
    """Add the delta' of all events, rounded up: what is taken out of the stated delta (R29)."""
    return sum_up(event.delta_taken(rows_per_unit) for event in events)


@lru_cache(maxsize=64)
def _integer_fields(event: type[Recorded]) -> tuple[tuple[str, bool], ...]:
    """Names of an event's whole-number fields, and whether each may be None."""
    annotations = {
        k: v for base in event.__mro__ for k, v in vars(base).get("__annotations__", {}).items()
    }
    return tuple((k, v != "int") for k, v in annotations.items() if v in ("int", "int | None"))


def checked_integer(event: str, name: str, value: object) -> int:
    """Return a field that must be a whole number, refusing everything else by name."""
    lowest = 0 if name == "restricted" else 1
    try:
        whole = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        whole = -1
    if isinstance(value, bool) or not lowest <= whole <= LARGEST_INTEGER:
        raise ParameterError(f"{event}: {name} must be a whole number of at least {lowest}")
    return whole


def freeze(event: Recorded, *names: str) -> None:
    """Turn lists that a caller gave into tuples: an event is a value."""
    for name in names:
        msgspec.structs.force_setattr(event, name, tuple(getattr(event, name)))


def exact_fraction(value: Fraction | float) -> Fraction:
    """Return a noise scale or an epsilon as the exact number that it is, if it is above 0."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ParameterError("a noise scale or a choice's epsilon must be a finite number")
    exact = Fraction(value)
    if exact <= 0:
        raise ParameterError("a noise scale or a choice's epsilon must be above 0")
    return exact


def rows_in_words(count: int) -> str:
    """Return "row" or "rows"."""
    return "row" if count == 1 else "rows"


def names_in_words(names: tuple[str, ...]) -> str:
    """List names; a long list ends with the number of those left out."""
    shown = [one_line(name) for name in names[:_MOST_NAMED]]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def one_line(text: str) -> str:
    """Collapse white space, so that no name can pose as another line."""
    return " ".join(text.split())
