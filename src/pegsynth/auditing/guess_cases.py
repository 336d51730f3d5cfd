"""Exact audit of success rates: total variation distances of shipped noise and choices (R35).

What a guess can gain from one noisy count, or one private choice, is the total variation distance
of two laws that are known exactly. It is compared with what the price of the event allows, and
a cell that is said to be told from no empty one with how often the best guess about it is right.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pegsynth.auditing.divergence import ROUNDING, Finding
from pegsynth.auditing.exact_laws import choice_law, noise_law
from pegsynth.mechanisms.bins import Noise
from pegsynth.privacy.guarantee import Guarantee
from pegsynth.privacy.guesses import TOLD, gain_of, variation_at_epsilon, variation_at_rho

GUESSES = "guesses"
_VARIANCES, _SCALES, _EPSILONS, _MOST = (1, 4, 25), (1, 2, 5), (Fraction(1, 2), Fraction(2)), 3
_SCORES = ((0, 1), (3, 2, 2, 0))

Law = Mapping[Hashable, Fraction]


@dataclass(frozen=True)
class GuessCase:
    """Two laws of one output, and the most that a guess which of them it was may gain."""

    name: str
    first: Law
    second: Law
    claimed: float

    @property
    def realised(self) -> float:
        """The total variation distance of both."""
        return float(total_variation(self.first, self.second))

    def finding(self, part: str) -> Finding:
        """Return what the audit found; both figures are distances, and no epsilon."""
        holds = self.realised <= self.claimed * (1 + ROUNDING)
        return Finding(part, self.name, "exact", self.claimed, self.realised, None, None, holds)


def total_variation(first: Law, second: Law) -> Fraction:
    """Return the largest difference that an event has under two laws."""
    outcomes = {*first, *second}
    gains = (first.get(each, Fraction(0)) - second.get(each, Fraction(0)) for each in outcomes)
    return sum((gain for gain in gains if gain > 0), Fraction(0))


def guess_cases() -> Sequence[GuessCase]:
    """Return all cases."""
    return (*_counts(), *_cells(), *_choices())


def noisy(noise: Noise, count: int) -> Law:
    """Return the law of a count with noise."""
    return {count + sign * size: p for size, p in noise_law(noise).items() for sign in (1, -1)}


def chosen(scores: Sequence[int], epsilon: Fraction) -> Law:
    """Return the law of a private choice."""
    return dict(enumerate(choice_law(scores, epsilon)))


def _counts() -> Iterable[GuessCase]:
    """Yield one noisy count with a few people more or less."""
    for people in range(1, _MOST + 1):
        for variance in _VARIANCES:
            noise = Noise.gaussian(Fraction(variance))
            claimed = variation_at_rho(people * people / (2 * variance))
            name = f"total variation, Gaussian noise of variance {variance}, {people} more"
            yield GuessCase(name, noisy(noise, 0), noisy(noise, people), claimed)
        for scale in _SCALES:
            noise = Noise.laplace(Fraction(scale))
            claimed = variation_at_epsilon(people / scale)
            name = f"total variation, Laplace noise of scale {scale}, {people} more"
            yield GuessCase(name, noisy(noise, 0), noisy(noise, people), claimed)


def _cells() -> Iterable[GuessCase]:
    """Yield the largest cell that is said to be told from no empty one."""
    for variance in _VARIANCES:
        rho = 1 / (2 * variance)
        gain = gain_of(Guarantee(kind="approximate", epsilon=1e6, delta=1e-9, rho=rho))
        people = 0 if gain is None else gain.people - 1
        noise = Noise.gaussian(Fraction(variance))
        name = f"total variation, a cell of {people} and an empty one, variance {variance}"
        yield GuessCase(name, noisy(noise, 0), noisy(noise, people), 2 * TOLD - 1)


def _choices() -> Iterable[GuessCase]:
    """Yield private choices whose first score is one larger for a neighbour."""
    for scores in _SCORES:
        for epsilon in _EPSILONS:
            raised = (scores[0] + 1, *scores[1:])
            first, second = (chosen(each, epsilon) for each in (scores, raised))
            name = f"total variation, choice among {len(scores)} at epsilon {float(epsilon):g}"
            rho = float(epsilon) ** 2 / 8
            claimed = min(variation_at_rho(rho), variation_at_epsilon(float(epsilon)))
            yield GuessCase(name, first, second, claimed)
