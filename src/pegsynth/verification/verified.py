"""The answer to a question about the original: noisy counts, and what they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pegsynth.privacy import Ledger
from pegsynth.verification.agreement import Agreement
from pegsynth.verification.regions import LEVEL, Asked

if TYPE_CHECKING:
    import polars as pl

Verdict = Literal["agrees", "does not agree", "cannot be told"]

_LOUD = 0.25
"""Noise of more than this share of the parts hides the answer."""
_DEVIATIONS = 2.0
_MEANINGS: Final = {
    "agrees": "as many parts of the original agree as would if the release were right",
    "does not agree": "fewer parts of the original agree than would if the release were right",
    "cannot be told": "the noise is too large for so few parts; state a larger epsilon",
}


@dataclass(frozen=True)
class VerifiedTerm:
    """What was found out about one coefficient.

    Parameters
    ----------
    estimate, low, high
        The release's estimate, and the region that parts must lie in to agree.
    agreeing
        Parts that agree, with noise; it may lie below 0 or above their number.
    parts
        All parts.
    deviation
        Standard deviation of the noise.
    """

    term: str
    estimate: float
    low: float
    high: float
    agreeing: int
    parts: int
    deviation: float

    @property
    def expected(self) -> float:
        """Parts that would agree if the release were right."""
        return LEVEL * self.parts

    @property
    def verdict(self) -> Verdict:
        """What the count says; two deviations of noise and chance are allowed for."""
        if self.deviation > _LOUD * self.parts:
            return "cannot be told"
        chance = math.hypot(self.deviation, math.sqrt(self.expected * (1 - LEVEL)))
        enough = self.agreeing >= self.expected - _DEVIATIONS * chance
        return "agrees" if enough else "does not agree"

    def __str__(self) -> str:
        return (
            f"{self.term}: {self.verdict}; {self.agreeing} of {self.parts} parts (noise "
            f"{self.deviation:.3g}, about {self.expected:.3g} expected); the release says "
            f"{self.estimate:.6g}, a part agrees from {self.low:.6g} to {self.high:.6g}"
        )


@dataclass(frozen=True)
class Verification:
    """The answer, and what it cost.

    Parameters
    ----------
    formula
        The analysis that was asked for.
    terms
        One for each coefficient.
    ledger
        What all questions so far cost together.
    """

    formula: str
    terms: tuple[VerifiedTerm, ...]
    ledger: Ledger

    @classmethod
    def of(cls, asked: Asked, found: Agreement, ledger: Ledger) -> Verification:
        """Put a question and its paid answer together."""
        terms = tuple(
            VerifiedTerm(
                region.term,
                region.estimate,
                region.estimate - region.half_width,
                region.estimate + region.half_width,
                int(count),
                asked.parts,
                found.deviation,
            )
            for region, count in zip(asked.regions, found.counts, strict=True)
        )
        return cls(asked.formula.text, terms, ledger)

    def to_frame(self) -> pl.DataFrame:
        """Return one line for each coefficient (Polars)."""
        import polars as pl

        names = ("term", "estimate", "low", "high", "agreeing", "parts", "deviation", "verdict")
        return pl.DataFrame({name: [getattr(each, name) for each in self.terms] for name in names})

    def __str__(self) -> str:
        verdicts = dict.fromkeys(each.verdict for each in self.terms)
        return "\n".join(
            (
                f"{self.formula}: parts of the original that agree with the release",
                *(f"  {each}" for each in self.terms),
                *(f"{verdict}: {_MEANINGS[verdict]}" for verdict in verdicts),
                "differences that are small against these regions are not noticed",
            )
        )
