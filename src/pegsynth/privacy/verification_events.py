"""The event of a question that the original answered about a release (R32)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self, get_args

from pegsynth.errors import ParameterError
from pegsynth.privacy.draw_events import Recorded
from pegsynth.privacy.noise_events import NoiseMechanism, NoisyCounts, exact_fraction, freeze


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
