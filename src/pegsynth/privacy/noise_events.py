"""Events of integer noise: on counts (R10, R11), sums (R26), and residuals of tables (R27).

The event of a question that the original answered about a release (R32).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias, get_args

import msgspec

from pegsynth.errors import ParameterError
from pegsynth.privacy.draw_events import Recorded, checked_integer

NoiseMechanism: TypeAlias = Literal["discrete-laplace", "discrete-gaussian"]


class NoisyCounts(Recorded, frozen=True, kw_only=True, tag="noisy-counts"):
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
        freeze(self, "features", "levels")
        if self.mechanism not in get_args(NoiseMechanism):
            raise ParameterError(f"NoisyCounts: unknown mechanism {self.mechanism!r}")
        if self.levels and len(self.levels) != len(self.features):
            raise ParameterError("NoisyCounts: levels must have one figure for each feature")
        levels = tuple(checked_integer("NoisyCounts", "levels", count) for count in self.levels)
        msgspec.structs.force_setattr(self, "levels", levels)

    @classmethod
    def laplace(cls, scale: Fraction | float, *, cells: int, purpose: str, **about: Any) -> Self:
        """Record discrete Laplace noise of scale b; `about` are the fields that say on what."""
        return cls._exact("discrete-laplace", exact_fraction(scale), cells, purpose, about)

    @classmethod
    def gaussian(
        cls, standard_deviation: Fraction | float, *, cells: int, purpose: str, **about: Any
    ) -> Self:
        """Record discrete Gaussian noise of parameter sigma; `about` as in `laplace`."""
        variance = exact_fraction(standard_deviation) ** 2
        return cls._exact("discrete-gaussian", variance, cells, purpose, about)

    @classmethod
    def _exact(
        cls,
        mechanism: NoiseMechanism,
        scale: Fraction,
        cells: int,
        purpose: str,
        about: Mapping[str, Any],
    ) -> Self:
        return cls(
            mechanism=mechanism,
            purpose=purpose,
            scale_numerator=scale.numerator,
            scale_denominator=scale.denominator,
            cells=cells,
            **about,
        )


class NoisyResiduals(Recorded, frozen=True, kw_only=True, tag="noisy-residuals"):
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
        freeze(self, "features", "levels")
        if self.mechanism not in get_args(NoiseMechanism):
            raise ParameterError(f"NoisyResiduals: unknown mechanism {self.mechanism!r}")
        if not self.levels or len(self.levels) != len(self.features):
            raise ParameterError("NoisyResiduals: levels must have one figure for each feature")
        levels = tuple(checked_integer("NoisyResiduals", "levels", count) for count in self.levels)
        if min(levels) < 2:
            raise ParameterError("NoisyResiduals: a feature of one level has no residual")
        msgspec.structs.force_setattr(self, "levels", levels)

    @classmethod
    def laplace(
        cls,
        scale: Fraction | float,
        *,
        purpose: str,
        features: tuple[str, ...],
        levels: tuple[int, ...],
    ) -> Self:
        """Record discrete Laplace noise of scale b."""
        return cls._exact("discrete-laplace", exact_fraction(scale), purpose, features, levels)

    @classmethod
    def gaussian(
        cls,
        standard_deviation: Fraction | float,
        *,
        purpose: str,
        features: tuple[str, ...],
        levels: tuple[int, ...],
    ) -> Self:
        """Record discrete Gaussian noise of parameter s."""
        variance = exact_fraction(standard_deviation) ** 2
        return cls._exact("discrete-gaussian", variance, purpose, features, levels)

    @classmethod
    def _exact(
        cls,
        mechanism: NoiseMechanism,
        scale: Fraction,
        purpose: str,
        features: tuple[str, ...],
        levels: tuple[int, ...],
    ) -> Self:
        return cls(
            mechanism=mechanism,
            purpose=purpose,
            scale_numerator=scale.numerator,
            scale_denominator=scale.denominator,
            features=features,
            levels=levels,
        )

    @property
    def squared_length(self) -> int:
        """By how much one row moves the residual, squared and summed over its cells (R27)."""
        return residual_squared_length(self.levels)

    @property
    def absolute_sum(self) -> int:
        """By how much one row moves the residual, summed over its cells (R27)."""
        return residual_absolute_sum(self.levels)


class NoisySums(Recorded, frozen=True, kw_only=True, tag="noisy-sums"):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, "features")
        if self.mechanism not in get_args(NoiseMechanism):
            raise ParameterError(f"NoisySums: unknown mechanism {self.mechanism!r}")

    @classmethod
    def of(cls, mechanism: NoiseMechanism, size: Fraction | float, **about: Any) -> Self:
        """Record noise of scale b, or of parameter sigma; `about` are the other fields."""
        exact = exact_fraction(size)
        scale = exact**2 if mechanism == "discrete-gaussian" else exact
        return cls(
            mechanism=mechanism,
            scale_numerator=scale.numerator,
            scale_denominator=scale.denominator,
            **about,
        )


def residual_squared_length(levels: Iterable[int]) -> int:
    """Return the squared length of every column of Q: the product of C (C - 1) (R27)."""
    return math.prod(count * (count - 1) for count in levels)


def residual_absolute_sum(levels: Iterable[int]) -> int:
    """Return the absolute sum of every column of Q: the product of 2 (C - 1) (R27)."""
    return math.prod(2 * (count - 1) for count in levels)


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


Noisy: TypeAlias = NoisyCounts | NoisyResiduals | NoisySums


class AgreementCounts(Recorded, frozen=True, kw_only=True, tag="verification"):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        freeze(self, "terms")
        if self.mechanism not in get_args(NoiseMechanism):
            raise ParameterError(f"AgreementCounts: unknown mechanism {self.mechanism!r}")
        if not self.terms:
            raise ParameterError("AgreementCounts: it names no coefficient")

    @classmethod
    def of(
        cls, mechanism: NoiseMechanism, scale: Fraction | float, *, formula: str, **about: Any
    ) -> Self:
        """Record noise of scale b, or of variance sigma^2."""
        exact = exact_fraction(scale)
        return cls(
            mechanism=mechanism,
            scale_numerator=exact.numerator,
            scale_denominator=exact.denominator,
            formula=formula,
            **about,
        )

    @property
    def noise(self) -> NoisyCounts:
        """The noise on the counts."""
        return NoisyCounts(
            mechanism=self.mechanism,
            purpose="verification",
            scale_numerator=self.scale_numerator,
            scale_denominator=self.scale_denominator,
            cells=len(self.terms),
        )
