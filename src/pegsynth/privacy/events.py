"""What was done to the confidential table, said in public parameters only.

Every crossing of the privacy boundary is one frozen event. An event knows *what happened*
(which mechanism, how often one row can influence it, with which exact alpha or noise
scale) and nothing about accounting: the accountants read events. No field may hold
anything computed from the data, such as its row count, a visit to a seen key or a hash,
unless an earlier or the same event has paid for it: what was chosen, and how many levels a
feature has after its noisy counts were looked at. Draws are in `draw_events`, noise in
`noise_events`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final, Literal, Self, TypeAlias, get_args

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.privacy.conversion import check_delta
from pegsynth.privacy.draw_events import Draws, Recorded
from pegsynth.privacy.noise_events import (
    AgreementCounts,
    NoisyCounts,
    NoisyResiduals,
    NoisySums,
    exact_fraction,
    freeze,
)


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

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(self, "delta", check_delta(self.delta) if self.delta else 0.0)


class UnitBound(Recorded, frozen=True, kw_only=True, tag="unit-bound"):
    """The loader let at most `rows_per_unit` rows of one unit in (R12)."""

    rows_per_unit: int


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

    def __post_init__(self) -> None:
        super().__post_init__()
        msgspec.structs.force_setattr(self, "l", float(self.l))
        freeze(self, "features")
        if not (math.isfinite(self.l) and self.l >= 1):
            raise ParameterError("Diversity: l must be a finite number of at least 1")
        if self.source != "confidential":
            raise ParameterError(f"Diversity: unknown source {self.source!r}")


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


class UnknownEvent(msgspec.Struct, frozen=True):
    """An event of a kind that this version does not know, kept word for word."""

    kind: str
    content: dict[str, Any]

    @property
    def label(self) -> str:
        """No words of its own."""
        return ""


KnownEvent: TypeAlias = (
    Draws
    | NoisyCounts
    | AgreementCounts
    | NoisyResiduals
    | NoisySums
    | CategoriesFound
    | Selection
    | PooledRows
    | Unspent
    | RunBegins
    | UnitBound
    | Diversity
    | NotPrivate
)
Event: TypeAlias = KnownEvent | UnknownEvent

KNOWN_KINDS: Final[frozenset[str]] = frozenset(
    event.__struct_config__.tag for event in get_args(KnownEvent)
)
