"""Probability functions of noise and choices to 60 digits, and the law of code that draws.

`follow` runs a draw on every path of random integers it may ask for, until little mass is
left, and returns what it found; `agrees` compares that with a probability function. Both
leave nothing to chance: what was not followed is the only doubt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from decimal import Context, Decimal
from fractions import Fraction

REJECTED = "rejected"
"""Outcome of a round that came to nothing; the next one is like it."""

_SIXTY = Context(prec=60)


def exponential(exponent: Fraction) -> Fraction:
    """exp(-exponent), to 60 digits."""
    ratio = _SIXTY.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    return Fraction(_SIXTY.exp(_SIXTY.minus(ratio)))


def shares(weights: Mapping[Hashable, Fraction]) -> dict[Hashable, Fraction]:
    """Weights as shares of their sum."""
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def laplace(scale: float, most: int | None = None) -> dict[int, Fraction]:
    """Discrete Laplace probabilities, up to 1e-50 or so."""
    reach = int(115 * scale) + 2 if most is None else most
    return _symmetric(lambda k: k / Fraction(scale), reach)


def gaussian(sigma: float, most: int | None = None) -> dict[int, Fraction]:
    """Discrete Gaussian probabilities, up to 1e-50 or so."""
    reach = int(16 * sigma) + 2 if most is None else most
    return _symmetric(lambda k: k * k / (2 * Fraction(sigma) ** 2), reach)


def _symmetric(exponent: Callable[[int], Fraction], reach: int) -> dict[int, Fraction]:
    half = [exponential(exponent(k)) for k in range(reach + 1)]
    return shares({k: half[abs(k)] for k in range(-reach, reach + 1)})


def choices(scores: list[Fraction], epsilon: Fraction) -> dict[int, Fraction]:
    """Probabilities of the exponential mechanism."""
    best = max(scores)
    return shares({j: exponential(epsilon * (best - q) / 2) for j, q in enumerate(scores)})


class AskedError(Exception):
    """The draw wants an integer that nobody has answered yet."""

    def __init__(self, bound: int) -> None:
        super().__init__(bound)
        self.bound = bound


class Answers:
    """A source of integers whose answers are given."""

    def __init__(self, answers: tuple[int, ...], then: Answers | None = None) -> None:
        self._left = iter(answers)
        self._then = then

    def below(self, bound: int) -> int:
        answer = next(self._left, None)
        if answer is not None:
            return answer
        if self._then is None:
            raise AskedError(bound)
        return self._then.below(bound)


def follow(
    draw: Callable[[Answers], Hashable],
    cutoff: float,
    ways: dict[Hashable, tuple[int, ...]] | None = None,
) -> tuple[Counter[Hashable], Fraction]:
    """Mass of every outcome of one round, and the mass of paths too rare to follow.

    `ways` is filled with answers that lead to each outcome.
    """
    found: Counter[Hashable] = Counter()
    rest = Fraction(0)
    paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while paths:
        answers, mass = paths.pop()
        try:
            outcome = draw(Answers(answers))
            found[outcome] += mass
            if ways is not None:
                ways[outcome] = answers
        except AskedError as question:
            if mass < cutoff:
                rest += mass
            else:
                each = mass / question.bound
                paths += [((*answers, value), each) for value in range(question.bound)]
    return found, rest


def bounds(found: Counter[Hashable], rest: Fraction) -> dict[Hashable, tuple[Fraction, Fraction]]:
    """Least and largest probability of every outcome that is not a rejection."""
    kept = sum(mass for outcome, mass in found.items() if outcome != REJECTED)
    return {
        outcome: (mass / (kept + rest), (mass + rest) / (kept + rest))
        for outcome, mass in found.items()
        if outcome != REJECTED
    }


def agrees(found: Counter[Hashable], rest: Fraction, expected: Mapping[Hashable, Fraction]) -> bool:
    """Whether every probability is one that the mass found so far allows."""
    allowed = bounds(found, rest)
    most = {outcome: high for outcome, (_, high) in allowed.items()}
    spare = rest / (sum(found.values()) - found[REJECTED] + rest)
    return (
        all(
            allowed.get(key, (Fraction(0),))[0] <= share <= most.get(key, spare)
            for key, share in expected.items()
        )
        and most.keys() <= expected.keys()
    )
