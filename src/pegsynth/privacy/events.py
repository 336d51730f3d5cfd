"""The events that are neither draws nor noise, and the list of all kinds (`KnownEvent`).

Choices (R10), categories that were found (R29), steps on a table of rows of a unit (R24), what was
left unspent (R6, R11), bounds and marks that cost nothing, and what no result covers. Draws are in
`draw_events`, noise in `noise_events`, what all events share in `recorded`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, get_args

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.privacy.conversion import Route, check_delta
from pegsynth.privacy.draw_events import Draws
from pegsynth.privacy.noise_events import (
    AgreementCounts,
    NoisyCounts,
    NoisyResiduals,
    NoisySums,
    PublishedCounts,
)
from pegsynth.privacy.recorded import (
    EIGHTH,
    Claim,
    Recorded,
    exact_fraction,
    freeze,
    names_in_words,
    one_line,
    rows_in_words,
)
from pegsynth.privacy.rounding import ZERO, display_up, product_up, ratio_up
from pegsynth.privacy.unseen_categories import unseen_delta


class Selection(Recorded, frozen=True, kw_only=True, tag="selection"):
    """Choices by the exponential mechanism with a proven sensitivity (R10).

    Parameters
    ----------
    epsilon_numerator, epsilon_denominator
        eps_s of one choice, exact.
    count
        How many such choices were made.
    purpose
        What was chosen.
    features
        Names of the features that something was chosen for.
    candidates
        How many there were to choose among; of several choices, for the first of each
        feature. None where it is not stated.
    among
        What the candidates were, in words.
    chosen
        Names of the features that were chosen: the output that this event pays for. Of a
        block the heads come first and the feature that it draws last.
    """

    epsilon_numerator: int
    epsilon_denominator: int
    count: int
    purpose: str
    features: tuple[str, ...] = ()
    candidates: int | None = None
    among: str = ""
    chosen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, "features", "chosen")

    @classmethod
    def of(cls, epsilon: Fraction | float, *, count: int, purpose: str, **about: Any) -> Self:
        """Record `count` choices of `epsilon` each; `about` are the fields that say of what."""
        exact = exact_fraction(epsilon)
        return cls(
            epsilon_numerator=exact.numerator,
            epsilon_denominator=exact.denominator,
            count=count,
            purpose=purpose,
            **about,
        )

    def price_of_row(self, route: Route) -> Decimal | None:
        """Charge every choice by the exponential mechanism."""
        if route == "pure":
            # R10: the exponential mechanism is eps_s-DP per choice.
            return ratio_up(self.count * self.epsilon_numerator, self.epsilon_denominator)
        # R6, R10: eps_s^2/8 per choice.
        epsilon = ratio_up(self.epsilon_numerator, self.epsilon_denominator)
        return product_up(EIGHTH, self.count, epsilon, epsilon)

    def described(self) -> tuple[str, str]:
        """Return what was chosen, and what that means."""
        times = "once" if self.count == 1 else f"{self.count} times"
        among = "" if self.candidates is None else f" among {self.candidates:,} candidates"
        of = f" ({one_line(self.among)})" if self.among else ""
        result = f", and the choice was {names_in_words(self.chosen)}" if self.chosen else ""
        return (
            f"The exponential mechanism chose {times}{among}{of} for the purpose "
            f"{one_line(self.purpose)!r}{result}{self.labelled}",
            "good candidates were likelier than bad ones, and one row can only shift these odds "
            "by the price",
        )


class CategoriesFound(Recorded, frozen=True, kw_only=True, tag="private-categories"):
    """Categories were found: those whose noisy counts were above a threshold (R29).

    Noise and threshold are fixed before any data is read. How many categories there were to
    look at is no part of the event: that number is not paid for.

    Parameters
    ----------
    features
        Names of the features; each costs the price of one.
    variance_numerator, variance_denominator
        sigma^2 of the discrete Gaussian noise on every count, exact.
    threshold
        A category is found if its noisy count is above this.
    """

    features: tuple[str, ...]
    variance_numerator: int
    variance_denominator: int
    threshold: int

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, "features")
        if not self.features:
            raise ParameterError("CategoriesFound: it names no feature")

    @classmethod
    def of(
        cls, standard_deviation: Fraction | float, *, threshold: int, features: tuple[str, ...]
    ) -> Self:
        """Record what was looked for, by noise of parameter sigma and a threshold."""
        variance = exact_fraction(standard_deviation) ** 2
        return cls(
            features=features,
            variance_numerator=variance.numerator,
            variance_denominator=variance.denominator,
            threshold=threshold,
        )

    @property
    def noise(self) -> NoisyCounts:
        """The noise on the counts of one feature; no number of cells is told."""
        return NoisyCounts(
            mechanism="discrete-gaussian",
            purpose="categories",
            scale_numerator=self.variance_numerator,
            scale_denominator=self.variance_denominator,
            cells=1,
        )

    def price_of_row(self, route: Route) -> Decimal | None:
        """Charge the noise on the counts of every feature."""
        price = self.noise.price_of_row(route)
        # R29: off a chance of delta', which `delta_taken` charges, it is R11.
        return None if price is None else product_up(len(self.features), price)

    def delta_taken(self, rows_per_unit: int) -> Decimal:
        """Return the delta' of every feature, added up and rounded up (R29)."""
        variance = Fraction(self.variance_numerator, self.variance_denominator)
        unseen = unseen_delta(variance, self.threshold, rows_per_unit)
        return product_up(len(self.features), unseen)

    def why_not_covered(self, claim: Claim) -> str | None:
        """Say that there is no delta to find categories with, or none left."""
        if claim.left is not None:
            return None
        if claim.delta is None:
            return (
                "categories that were found by noisy counts have no pure guarantee; state a delta"
            )
        return (
            "the chances of finding a category that only one unit has add up to no less than the "
            "stated delta; state a larger one"
        )

    def described(self) -> tuple[str, str]:
        """Return what was looked for, and what that means."""
        return (
            f"Rows were counted by every value of {names_in_words(self.features)}, "
            f"{self.noise.in_words} was added, and values with noisy counts above "
            f"{self.threshold:,} became categories{self.labelled}",
            "a value that only one unit has becomes a category with a chance of at most that "
            "delta, and the noise hides the rest",
        )


class Unspent(Recorded, frozen=True, kw_only=True, tag="unspent"):
    """What a release that chooses its amounts as it goes left over (R6, R11).

    Another outcome might have spent it, so it counts like everything that was spent.

    Parameters
    ----------
    route
        "pure": the amount is an epsilon. "zcdp": it is a rho.
    amount_numerator, amount_denominator
        The amount, exact, for a unit with all its rows.
    """

    route: Literal["pure", "zcdp"]
    amount_numerator: int
    amount_denominator: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.route not in ("pure", "zcdp"):
            raise ParameterError(f"Unspent: unknown route {self.route!r}")

    @classmethod
    def of(cls, amount: Fraction, *, route: Literal["pure", "zcdp"], label: str = "") -> Self:
        """Record an amount; a long fraction is rounded up to one of moderate length."""
        exact = amount
        if amount.denominator > _UNSPENT_UNITS:
            units = -(-amount.numerator * _UNSPENT_UNITS // amount.denominator)
            exact = Fraction(max(units, 1), _UNSPENT_UNITS)
        return cls(
            route=route,
            amount_numerator=exact.numerator,
            amount_denominator=exact.denominator,
            label=label,
        )

    def price(self, route: Route, *, rows_per_unit: int = 1) -> Decimal | None:
        """Return the amount, which is for a unit with all its rows."""
        # An amount left over in one currency bounds nothing in the other: a path that spent it
        # differently might have cost more there.
        if self.route != route:
            return None
        return ratio_up(self.amount_numerator, self.amount_denominator)

    def why_not_covered(self, claim: Claim) -> str | None:
        """Say that the amount does not add up with the other parts."""
        if self.route == "zcdp" and claim.delta is None:
            return "an amount of rho was left over, which is no pure guarantee; state a delta"
        if self.route == "pure" and claim.delta is not None and not claim.pure:
            return (
                "an amount of epsilon was left over, which does not add up with parts that have "
                "no pure price; report the runs one by one"
            )
        return None

    def described(self) -> tuple[str, str]:
        """Return that something was left over, and what that means."""
        return (
            "A part of the budget was set aside and not used",
            "it counts as spent, because with another table it might have been used",
        )


_UNSPENT_UNITS: Final = 10**30


class RunBegins(Recorded, frozen=True, kw_only=True, tag="run"):
    """One of several runs on the table begins: its events are those up to the next (R6).

    Runs add up as wholes. A run that is one of several has its price as such, whatever path it
    took.

    Parameters
    ----------
    delta
        The constant that the run stated; 0 for a pure one.
    """

    delta: float = 0.0
    price_is_settled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(self, "delta", check_delta(self.delta) if self.delta else 0.0)

    def price_of_row(self, route: Route) -> Decimal:
        """Cost nothing."""
        return ZERO

    def described(self) -> tuple[str, str]:
        """Return what the run stated, and what that means."""
        stated = f"delta = {display_up(self.delta)}" if self.delta else "no delta"
        return (
            f"A run on the table begins, which stated {stated}",
            "its events are those up to the next run, and it adds up with the others as a whole",
        )


class UnitBound(Recorded, frozen=True, kw_only=True, tag="unit-bound"):
    """The loader let at most `rows_per_unit` rows of one unit in (R12)."""

    rows_per_unit: int
    price_is_settled: ClassVar[bool] = True

    def price_of_row(self, route: Route) -> Decimal:
        """Cost nothing."""
        return ZERO

    def described(self) -> tuple[str, str]:
        """Return the bound, and what it means."""
        return (
            f"At most {self.rows_per_unit} {rows_in_words(self.rows_per_unit)} of each unit were "
            "read",
            "the promise is made to a unit with all its rows, and every other price here is for "
            "that many rows",
        )


class Diversity(Recorded, frozen=True, kw_only=True, tag="l-diversity"):
    """Entries made entropy l-diverse (R7).

    Parameters
    ----------
    l
        The smallest l over the features.
    features
        Names of the features concerned.
    source
        "confidential": alpha was chosen by looking at true counts, which carries no
        differential privacy.
    """

    l: float  # noqa: E741
    features: tuple[str, ...]
    source: Literal["confidential"] = "confidential"
    price_is_settled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(self, "l", float(self.l))
        freeze(self, "features")
        if not (math.isfinite(self.l) and self.l >= 1):
            raise ParameterError("Diversity: l must be a finite number of at least 1")
        if self.source != "confidential":
            raise ParameterError(f"Diversity: unknown source {self.source!r}")

    def why_not_covered(self, claim: Claim) -> str:
        """Say that it is no differential privacy (R7)."""
        return (
            "virtual rows were chosen entry by entry from the data to reach l-diversity, which is "
            "not differential privacy"
        )

    def described(self) -> tuple[str, str]:
        """Return what was made diverse, and what that means."""
        where = names_in_words(self.features) if self.features else "all features"
        return (
            f"Virtual rows were added by true counts until {where} had l-diversity with "
            f"l = {self.l:g}",
            "no value can be told from its entry with much certainty, but this is not differential "
            "privacy",
        )


class PooledRows(Recorded, frozen=True, kw_only=True, tag="pooled-rows"):
    """A step on a table in which every unit has up to `rows_per_unit` rows (R24).

    Other steps of the same release may be on tables that have one row for each unit.

    Parameters
    ----------
    rows_per_unit
        The most rows of a unit in the table. This is priced.
    step
        What was done with that table.
    """

    rows_per_unit: int
    step: NoisyCounts | NoisyResiduals | Selection

    @property
    def name(self) -> str:
        """The kind, and the name of the step."""
        return f"{self.kind}, {self.step.name}"

    def price(self, route: Route, *, rows_per_unit: int = 1) -> Decimal | None:
        """Return the price of the step for all rows that a unit has in its table."""
        # R24: R12 for the rows that a unit has in this table.
        return self.step.price(route, rows_per_unit=rows_per_unit * self.rows_per_unit)

    def why_not_covered(self, claim: Claim) -> str | None:
        """Say why the step is not covered."""
        return self.step.why_not_covered(claim)

    def described(self) -> tuple[str, str]:
        """Return what the step read, and what that means."""
        read, means = self.step.described()
        return (
            "In a table of steps from one row of a unit to its next, at most "
            f"{self.rows_per_unit} of each unit: {read[0].lower()}{read[1:]}",
            f"{means}; the price is for all {self.rows_per_unit} rows of a unit in that table, "
            "which may be alike",
        )


REASONS: Final[Mapping[str, str]] = {
    "seeded": "the random numbers came from a seed, so whoever knows it can repeat every draw",
    "data-order": "the order of the head features was read off the data and not paid for",
    "data-prior": "the prior was read off the data and not paid for",
    "data-tuning": "a parameter was chosen by looking at the data",
    "unreviewed-schema": "nobody has declared the schema's categories and edges to be public",
    "original-seed-pool": "chains start from rows of the original table",
    "unperturbed": "values were drawn from counts without virtual rows (alpha = 0)",
    "query-not-rowwise": "the query that read the table does more than select rows one by one, so "
    "one row of the database may change several of its rows",
    "view-not-rowwise": "the table was read through a view, whose query is not known to select "
    "rows one by one and was not declared to (--query-is-rowwise), so one row of the database may "
    "change several of its rows",
    "kept-columns": "some columns hold original values",
    "unit-not-bounded": "the number of rows per unit was not bounded when the table was read",
    "no-proof": "no privacy result is known for this method",
    "unfinished": "a command that was to replace the table was stopped before it ended, and no "
    "ledger of the table was found",
}


class NotPrivate(Recorded, frozen=True, kw_only=True, tag="not-private"):
    """Something that no result covers; the guarantee is then "none" (R10)."""

    code: str
    text: str

    @classmethod
    def because(cls, code: str, *, detail: str = "") -> Self:
        """Record one of the known `REASONS`, with public detail if there is any."""
        if code not in REASONS:
            raise ParameterError(f"unknown reason {code!r}; known are {', '.join(REASONS)}")
        return cls(code=code, text=f"{REASONS[code]} ({detail})" if detail else REASONS[code])

    @property
    def name(self) -> str:
        """The reason in short."""
        return self.code

    def why_not_covered(self, claim: Claim) -> str:
        """Say the reason."""
        return self.text

    def described(self) -> tuple[str, str]:
        """Return the reason, and what it means."""
        return (
            f"Something was done that no result covers: {one_line(self.text)}",
            "because of it the whole release carries no guarantee",
        )


class UnknownEvent(Recorded, frozen=True, tag=False):
    """An event of a kind that this version does not know, kept word for word."""

    kind: str
    content: dict[str, Any]

    def why_not_covered(self, claim: Claim) -> str:
        """Say that it counts as not private."""
        return "this version does not know such an event, so it counts as not private"

    def described(self) -> tuple[str, str]:
        """Return that it was recorded, and what that means."""
        return (
            f"An event of the kind {one_line(self.kind)!r} was recorded by another version",
            "this version cannot price it, so the whole release carries no guarantee; update "
            "pegsynth to read it",
        )


KnownEvent: TypeAlias = (
    Draws
    | NoisyCounts
    | AgreementCounts
    | NoisyResiduals
    | NoisySums
    | PublishedCounts
    | CategoriesFound
    | Selection
    | PooledRows
    | Unspent
    | RunBegins
    | UnitBound
    | Diversity
    | NotPrivate
)
Event: TypeAlias = Recorded

KNOWN_KINDS: Final[frozenset[str]] = frozenset(
    event.__struct_config__.tag for event in get_args(KnownEvent)
)
