"""Events of integer noise: on counts (R10, R11), sums (R26), and residuals of tables (R27).

The event of a question that the original answered about a release (R32), and that of counts that
somebody else published (R36).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.privacy.conversion import Route
from pegsynth.privacy.recorded import (
    HALF,
    Claim,
    Recorded,
    checked_integer,
    exact_fraction,
    freeze,
    names_in_words,
    one_line,
)
from pegsynth.privacy.rounding import product_up, ratio_up

NoiseMechanism: TypeAlias = Literal["discrete-laplace", "discrete-gaussian"]


class Noisy(Recorded, frozen=True, kw_only=True):
    """Integer noise of one size on numbers that one row moves by a public amount."""

    if TYPE_CHECKING:
        # Each kind declares these fields itself: they stand in a place of its own in a ledger.
        mechanism: NoiseMechanism
        scale_numerator: int
        scale_denominator: int

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, *({"features", "levels", "terms"} & set(self.__struct_fields__)))
        if self.mechanism not in get_args(NoiseMechanism):
            raise ParameterError(f"{type(self).__name__}: unknown mechanism {self.mechanism!r}")

    @classmethod
    def laplace(cls, scale: Fraction | float, **about: Any) -> Self:
        """Record discrete Laplace noise of scale b; `about` are the fields that say on what."""
        return cls._exact("discrete-laplace", exact_fraction(scale), about)

    @classmethod
    def gaussian(cls, standard_deviation: Fraction | float, **about: Any) -> Self:
        """Record discrete Gaussian noise of parameter sigma; `about` as in `laplace`."""
        return cls._exact("discrete-gaussian", exact_fraction(standard_deviation) ** 2, about)

    @classmethod
    def _exact(cls, mechanism: NoiseMechanism, scale: Fraction, about: dict[str, Any]) -> Self:
        return cls(
            mechanism=mechanism,
            scale_numerator=scale.numerator,
            scale_denominator=scale.denominator,
            **about,
        )

    @property
    def moves(self) -> tuple[int, int]:
        """By how much one row moves the numbers at most: in all, and their squares in all."""
        raise NotImplementedError

    @property
    def in_words(self) -> str:
        """The noise in words."""
        scale = Fraction(self.scale_numerator, self.scale_denominator)
        if self.mechanism == "discrete-laplace":
            return f"discrete Laplace noise of scale {float(scale):.6g}"
        return f"discrete Gaussian noise of variance {float(scale):.6g}"

    def price_of_row(self, route: Route) -> Decimal | None:
        """Charge what one row moves against the size of the noise (R10, R11, R26, R27)."""
        absolute, square = self.moves
        inverse = ratio_up(self.scale_denominator, self.scale_numerator)
        if self.mechanism == "discrete-gaussian":
            # R6: Gaussian noise has no pure guarantee. R11: moved^2/(2 sigma^2).
            return None if route == "pure" else product_up(HALF, square, inverse)
        if route == "pure":
            # R10, R11: Laplace noise of scale b costs moved/b.
            return ratio_up(absolute * self.scale_denominator, self.scale_numerator)
        return product_up(HALF, square, inverse, inverse)  # moved^2/(2 b^2)

    def why_not_covered(self, claim: Claim) -> str | None:
        """Say that Gaussian noise needs a delta, where none is stated."""
        if self.mechanism == "discrete-gaussian" and claim.delta is None:
            return "Gaussian noise has no pure guarantee; state a delta"
        return None


class NoisyCounts(Noisy, frozen=True, kw_only=True, tag="noisy-counts"):
    """Integer noise on every cell of a public key space, zeros included (R10, R11).

    Parameters
    ----------
    mechanism
        Noise of the discrete Laplace or the discrete Gaussian distribution.
    purpose
        What the counts are for: order, marginals, blocks, total, ..
    scale_numerator, scale_denominator
        The scale b of Laplace noise or the *variance* sigma^2 of Gaussian noise, exact.
    cells
        Cells that one row changes, each by 1. This is priced.
    features
        Names of the features that are counted; empty for the number of rows.
    levels
        How many levels each of them has in these counts. Categories that noise would drown
        may have been merged into one level, by noisy counts that were paid for before.
    table_cells
        Cells that got noise, in all: the product of the levels for one table, their sum
        for a table of each feature. None where it is not stated.
    """

    mechanism: NoiseMechanism
    purpose: str
    scale_numerator: int
    scale_denominator: int
    cells: int
    features: tuple[str, ...] = ()
    levels: tuple[int, ...] = ()
    table_cells: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.levels and len(self.levels) != len(self.features):
            raise ParameterError("NoisyCounts: levels must have one figure for each feature")
        _check_levels(self)

    @property
    def moves(self) -> tuple[int, int]:
        """One row moves so many counts by 1 (R10, R11)."""
        return self.cells, self.cells

    def described(self) -> tuple[str, str]:
        """Return what was counted, and what that means."""
        what = f"({one_line(self.purpose)})"
        if self.features:
            what = f"by {names_in_words(self.features)}"
        cells = "" if self.table_cells is None else f", all {self.table_cells:,} of them"
        touched = "1 count" if self.cells == 1 else f"{self.cells} counts"
        return (
            f"Rows were counted {what} and {self.in_words} was added to every count{cells}"
            f"{self.labelled}",
            f"one row changes {touched}, and the noise hides which table gave them, so the noisy "
            "counts may be used again at no further cost",
        )


class NoisyResiduals(Noisy, frozen=True, kw_only=True, tag="noisy-residuals"):
    """Integer noise on every cell of a table's residual: what its margins do not tell (R27).

    The residual of a table of counts is Q n, Q the Kronecker product of C I - J over its
    features, C the levels of each. The price follows from the levels and the noise alone.

    Parameters
    ----------
    mechanism
        Noise of the discrete Laplace or the discrete Gaussian distribution.
    purpose
        What the residual is for.
    scale_numerator, scale_denominator
        The scale b of Laplace noise or the *variance* s^2 of Gaussian noise on a cell of Q n,
        exact.
    features
        Names of the features of the table.
    levels
        How many levels each of them has in it, at least 2.
    """

    mechanism: NoiseMechanism
    purpose: str
    scale_numerator: int
    scale_denominator: int
    features: tuple[str, ...]
    levels: tuple[int, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.levels or len(self.levels) != len(self.features):
            raise ParameterError("NoisyResiduals: levels must have one figure for each feature")
        _check_levels(self)
        if min(self.levels) < 2:
            raise ParameterError("NoisyResiduals: a feature of one level has no residual")

    @property
    def moves(self) -> tuple[int, int]:
        """One row moves all cells of the residual together (R27)."""
        return residual_absolute_sum(self.levels), residual_squared_length(self.levels)

    def described(self) -> tuple[str, str]:
        """Return what was measured, and what that means."""
        absolute, square = self.moves
        return (
            f"Of the rows counted by {names_in_words(self.features)} what the counts of fewer "
            f"features do not tell was taken, in whole numbers, and {self.in_words} was added to "
            f"every cell, all {math.prod(self.levels):,} of them{self.labelled}",
            f"one row moves these numbers by {absolute:,} in all, their squares by {square:,}, and "
            "the noise hides which table gave them, so they may be used again at no further cost",
        )


class NoisySums(Noisy, frozen=True, kw_only=True, tag="noisy-sums"):
    """Integer noise on sums over all rows of a public integer function of a row (R26).

    Parameters
    ----------
    mechanism, scale_numerator, scale_denominator
        As in `NoisyCounts`; the noise of every sum is of the same size.
    largest_sum, largest_square
        The largest sum of absolute values, and of squares, that one row of the public domain
        adds. These are priced.
    sums
        How many sums got noise.
    features
        Names of the features that they are about.
    purpose
        What they are for.
    """

    mechanism: NoiseMechanism
    scale_numerator: int
    scale_denominator: int
    largest_sum: int
    largest_square: int
    sums: int
    features: tuple[str, ...] = ()
    purpose: str = "analysis"

    @property
    def moves(self) -> tuple[int, int]:
        """One row adds no more than the largest of the public domain (R26)."""
        return self.largest_sum, self.largest_square

    def described(self) -> tuple[str, str]:
        """Return what was added up, and what that means."""
        what = f"{self.sums:,} sums of products of clipped and scaled values of"
        if self.purpose == "edges":
            what = "Sums of clipped and scaled values of"
        return (
            f"{what} {names_in_words(self.features)} were taken over all rows and {self.in_words} "
            f"was added to each{self.labelled}",
            f"whatever its values, one row adds at most {self.largest_sum:,} to all of them "
            f"together ({self.largest_square:,} in squares), by bounds that are public or were "
            "paid for before",
        )


class AgreementCounts(Noisy, frozen=True, kw_only=True, tag="verification"):
    """Parts of the table that agreed with a release were counted, with noise (R32).

    All rows of a unit are in one part, so a unit of any size changes every count by at most 1.

    Parameters
    ----------
    mechanism
        Noise of the discrete Laplace or the discrete Gaussian distribution.
    scale_numerator, scale_denominator
        The scale b of Laplace noise or the *variance* sigma^2 of Gaussian noise, exact.
    formula
        The analysis that was asked for.
    terms
        The coefficients that were compared; there is a count for each. This is priced.
    parts
        Parts that the units were dealt to, each by a draw of its own.
    """

    mechanism: NoiseMechanism
    scale_numerator: int
    scale_denominator: int
    formula: str
    terms: tuple[str, ...]
    parts: int
    price_is_settled: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.terms:
            raise ParameterError("AgreementCounts: it names no coefficient")

    @property
    def moves(self) -> tuple[int, int]:
        """One unit moves the count of each coefficient by 1 (R32)."""
        return len(self.terms), len(self.terms)

    def price(self, route: Route, *, rows_per_unit: int = 1) -> Decimal | None:
        """Return the price, which is the same for a unit of any size.

        R32: a unit is in one part with all its rows, so R12 adds no factor.
        """
        return self.price_of_row(route)

    def described(self) -> tuple[str, str]:
        """Return what was asked, and what that means."""
        return (
            f"The table was dealt to {self.parts:,} parts, {one_line(self.formula)!r} was fitted "
            "to each, and the parts that agree with a release were counted for "
            f"{names_in_words(self.terms)}; {self.in_words} was added to every count"
            f"{self.labelled}",
            "a unit is in one part with all its rows, so it changes every count by 1 at most, and "
            "the noise hides that",
        )


def residual_squared_length(levels: Iterable[int]) -> int:
    """Return the squared length of every column of Q: the product of C (C - 1) (R27)."""
    return math.prod(count * (count - 1) for count in levels)


def residual_absolute_sum(levels: Iterable[int]) -> int:
    """Return the absolute sum of every column of Q: the product of 2 (C - 1) (R27)."""
    return math.prod(2 * (count - 1) for count in levels)


def _check_levels(event: NoisyCounts | NoisyResiduals) -> None:
    kind = type(event).__name__
    levels = tuple(checked_integer(kind, "levels", count) for count in event.levels)
    msgspec.structs.force_setattr(event, "levels", levels)


class PublishedCounts(Recorded, frozen=True, kw_only=True, tag="published-counts"):
    """A table of counts that was published before, by whomever, and was read (R36).

    No confidential table is looked at, so nothing is charged and nothing is promised. What those
    who made the table promise of it holds for everything made of it; that is their statement.

    Parameters
    ----------
    file
        The name of its file.
    sha256
        SHA-256 of that file.
    features
        Names of the features that it counts rows by.
    levels
        How many categories each of them has.
    error
        What is known of the error of its cells, in words.
    guarantee
        What is promised of the table by those who made it; empty where nothing was stated.
    by
        Who says so.
    """

    file: str
    sha256: str
    features: tuple[str, ...]
    levels: tuple[int, ...]
    error: str
    guarantee: str = ""
    by: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, "features", "levels")

    @property
    def name(self) -> str:
        """The kind, and the file."""
        return f"{self.kind}, {one_line(self.file)}"

    def why_not_covered(self, claim: Claim) -> str:
        """Say that the guarantee of a table, if it has one, is not ours."""
        stated = "; of that table nothing was stated"
        if self.guarantee:
            by = one_line(self.by) or "those who made it"
            stated = f"; of that table {by} state: {one_line(self.guarantee)}"
        return (
            "rows that are made of published tables have no guarantee of their own, and what those "
            f"who made the tables promise holds by post-processing (R36){stated}"
        )

    def described(self) -> tuple[str, str]:
        """Return which table was read, and what that means."""
        return (
            f"The published table {one_line(self.file)} was read, of "
            f"{names_in_words(self.features)} ({one_line(self.error)}; SHA-256 {self.sha256})",
            "no confidential table was looked at; what the table discloses, rows made of it "
            "disclose as well, and nothing more",
        )
