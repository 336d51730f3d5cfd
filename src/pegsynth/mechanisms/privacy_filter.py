"""The only way to the confidential counts: exact noise, exact choices, an event for each.

A `PrivacyFilter` is a privacy filter. Later amounts may depend on earlier output, because along
every path the prices add up to at most what was put in (R6, R11); whatever a path leaves
over is recorded as unspent and still counts. Amounts are parts of the whole: of epsilon
along the pure route (Laplace noise), of rho along the other (Gaussian noise).

Every event says which features it is about and how large its table is. Levels and
candidates may depend on earlier output of the privacy filter, and what was chosen is the output of
the choice itself: all of it is paid for, and none of it is looked up in the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TypeAlias, TypeVar

import msgspec
import numpy as np

from pegsynth.errors import BudgetError, escaped
from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms import answers
from pegsynth.mechanisms.residuals import residual_of
from pegsynth.privacy import (
    Allowance,
    CategoriesFound,
    Event,
    NoisyCounts,
    NoisyResiduals,
    NoisySums,
    Selection,
    Unspent,
)
from pegsynth.privacy.noise_events import (
    Noisy,
    residual_absolute_sum,
    residual_squared_length,
)
from pegsynth.privacy.unseen_categories import smallest_threshold
from pegsynth.random import RandomStream

Features = tuple[int, ...]
Search: TypeAlias = Callable[[Int64], Int64]
_Part = TypeVar("_Part")
_Noise = TypeVar("_Noise", bound=Noisy)

_SLACK = Fraction(1, 10**12)
CHOICE_BITS = 40


@dataclass(frozen=True)
class Price:
    """What a part of an allowance buys.

    Parameters
    ----------
    allowance
        The whole, and its currency.
    rows_per_unit
        The most rows of a unit in the table (R12).
    """

    allowance: Allowance
    rows_per_unit: int = 1

    def deviation(self, share: float) -> float:
        """Return the standard deviation of the noise that a part of the whole pays for."""
        amount = share * float(self.allowance.amount)
        if self.allowance.route == "pure":
            return math.sqrt(2.0) * self.rows_per_unit / amount
        return self.rows_per_unit / math.sqrt(2.0 * amount)

    def choice_noise(self, share: float) -> float:
        """Return the scale of the noise that a choice adds to scores of sensitivity 1 (R10)."""
        amount = share * float(self.allowance.amount)
        pure = self.allowance.route == "pure"
        return 2 * self.rows_per_unit / (amount if pure else math.sqrt(8 * amount))

    def residual_noise(self, share: float, levels: Sequence[int]) -> float:
        """Return b or s of the noise on a cell of a residual that a part of the whole buys."""
        amount = share * float(self.allowance.amount)
        if self.allowance.route == "pure":
            return self.rows_per_unit * residual_absolute_sum(levels) / amount
        return self.rows_per_unit * math.sqrt(residual_squared_length(levels) / (2.0 * amount))

    def residual_deviation(self, share: float, levels: Sequence[int]) -> float:
        """Return the standard deviation of that noise."""
        times = math.sqrt(2.0) if self.allowance.route == "pure" else 1.0
        return times * self.residual_noise(share, levels)


class PrivacyFilter:
    """A budget that can be spent in parts, and not beyond.

    Parameters
    ----------
    allowance
        What may be spent in all, and in which currency.
    rows_per_unit
        The most rows of a unit in the table (R12).
    names
        Names of the features, for the events; numbers stand in for those it lacks.
    rest
        Whether the allowance is what an earlier filter left of the same budget, which has kept
        something back for rounding: what this one keeps back is then unspent like the rest, so
        that both together come to the same on every path.
    """

    def __init__(
        self,
        allowance: Allowance,
        stream: RandomStream,
        *,
        rows_per_unit: int = 1,
        threads: int = 1,
        names: Sequence[str] = (),
        rest: bool = False,
    ) -> None:
        self.price = Price(allowance, rows_per_unit)
        self.route = allowance.route
        self._whole = allowance.amount
        # Prices are rounded up in the last of many digits; the slack keeps them inside.
        self._left = allowance.amount * (1 - _SLACK)
        self._kept_back = allowance.amount - self._left if rest else Fraction(0)
        self._unit = rows_per_unit
        self._stream = stream
        self._words = stream.substream()
        self._threads = threads
        self._names = tuple(map(escaped, names))
        self._events: list[Event] = []

    @property
    def events(self) -> tuple[Event, ...]:
        """What was done, and what was left unspent."""
        left = self._left + self._kept_back
        return (*self._events, *((Unspent.of(left, route=self.route),) if left > 0 else ()))

    @property
    def done(self) -> tuple[Event, ...]:
        """What was done so far."""
        return tuple(self._events)

    @property
    def spent(self) -> Allowance:
        """What was spent so far, and what rounding may have cost."""
        return Allowance(self.route, self._whole - self._left)

    @property
    def left(self) -> float:
        """The part of the whole that is left."""
        return float(self._left / self._whole)

    def deviation(self, share: float) -> float:
        """Return the standard deviation of the noise that a part of the whole pays for."""
        return self.price.deviation(share)

    def measure(
        self,
        counts: Int64,
        share: float,
        *,
        purpose: str,
        features: Features = (),
        levels: Sequence[int] = (),
    ) -> tuple[Int64, float]:
        """Return counts with noise, and the noise's standard deviation.

        One row may change one of the counts by 1; all cells of a public table are there.

        Parameters
        ----------
        features, levels
            The features of the table, and how many levels each has; both from the schema
            or from earlier output.
        """
        amount = share * float(self._whole)
        size = self._unit / (amount if self.route == "pure" else math.sqrt(2.0 * amount))
        # All cells of the table are counted, so their number tells nothing of the rows.
        event = self._sized(NoisyCounts)(
            size,
            cells=1,
            purpose=purpose,
            features=self._named(features),
            levels=tuple(levels),
            table_cells=len(counts),
        )
        return self._paid(counts, event, size)

    def measure_sums(
        self,
        sums: Int64,
        share: float,
        *,
        largest_sum: int,
        largest_square: int,
        features: Features = (),
        purpose: str = "analysis",
    ) -> tuple[Int64, float]:
        """Return sums over all rows with noise, and the noise's standard deviation (R21, R26).

        Parameters
        ----------
        largest_sum, largest_square
            The most that one row of the public domain adds to all sums: absolute values, and
            their squares, added up.
        """
        amount = share * float(self._whole)
        moved = largest_sum / amount
        if self.route != "pure":
            moved = math.sqrt(largest_square / (2.0 * amount))
        size = self._unit * moved
        event = self._sized(NoisySums)(
            size,
            largest_sum=largest_sum,
            largest_square=largest_square,
            sums=len(sums),
            features=self._named(features),
            purpose=purpose,
        )
        return self._paid(sums, event, size)

    def measure_residual(
        self,
        counts: Int64,
        share: float,
        *,
        purpose: str,
        features: Features,
        levels: Sequence[int],
    ) -> tuple[Int64, float]:
        """Return the residual of a table with noise, and the noise's standard deviation (R27).

        Parameters
        ----------
        counts
            Counts of all cells of the table, its last feature varying fastest.
        features, levels
            The features of the table, and how many levels each has, at least 2; both from the
            schema or from earlier output.
        """
        size = self.price.residual_noise(share, levels)
        named = self._named(features)
        event = self._sized(NoisyResiduals)(
            size, purpose=purpose, features=named, levels=tuple(levels)
        )
        return self._paid(residual_of(counts, levels), event, size)

    def _sized(self, kind: type[_Noise]) -> Callable[..., _Noise]:
        """Return what makes an event of noise of a size: b of Laplace noise, or sigma."""
        return kind.laplace if self.route == "pure" else kind.gaussian

    def _paid(self, numbers: Int64, event: Noisy, size: float) -> tuple[Int64, float]:
        """Pay for noise; return the numbers with it, and its standard deviation."""
        self._pay(event)
        return self._noisy(numbers, event), (math.sqrt(2.0) if self.route == "pure" else 1.0) * size

    def search(self, share: float, *, delta: Fraction, features: Features = ()) -> Search:
        """Pay for a search: return what keeps counts that are above a threshold with noise (R29).

        It takes counts of values that occur, each of at least 1, in as many parts as one likes,
        and returns them with noise, or 0 where that does not pass. A unit may change as many
        of them as it has rows, and brings a value to light that nobody else has with a
        chance of at most `delta`.

        Parameters
        ----------
        delta
            What it may take of the stated delta, which was set aside when the whole was made.
        """
        if self.route == "pure":
            raise BudgetError("private categories have no pure price; state a delta")
        deviation = self.deviation(share)
        variance = Fraction(deviation) ** 2
        event = CategoriesFound.of(
            deviation,
            threshold=smallest_threshold(variance, delta, self._unit),
            features=self._named(features),
        )
        self._pay(event)
        return partial(self._passing, event)

    def candidates(self, parts: Iterable[_Part]) -> Iterable[_Part]:
        """Return the values that the searches paid for so far may look at (R29)."""
        searches = [event for event in self._events if isinstance(event, CategoriesFound)]
        return answers.candidates(parts, searches, self._stream)

    def choose(
        self,
        scores: Sequence[int],
        share: float,
        *,
        purpose: str,
        among: str = "",
        features_of: Callable[[int], Features] = lambda _: (),
    ) -> int:
        """Choose an index by the exponential mechanism; scores have sensitivity 1 (R10).

        Parameters
        ----------
        among
            What the candidates are, in words.
        features_of
            The features of a candidate, for the event: what was chosen is paid output.
        """
        amount = share * float(self._whole)
        exact = amount / self._unit if self.route == "pure" else math.sqrt(8 * amount) / self._unit
        epsilon = Fraction(math.floor(exact * (1 << CHOICE_BITS)), 1 << CHOICE_BITS)
        if epsilon <= 0:
            raise BudgetError("epsilon is too small to choose anything privately; raise it")
        paid = Selection.of(epsilon, count=1, purpose=purpose, candidates=len(scores), among=among)
        self._pay(paid)
        index = self._chosen(scores, paid)
        chosen = self._named(features_of(index))
        self._events[-1] = msgspec.structs.replace(paid, chosen=chosen)
        return index

    def _named(self, features: Features) -> tuple[str, ...]:
        known = self._names
        return tuple(known[i] if i < len(known) else f"feature {i + 1}" for i in features)

    def _noisy(self, counts: Int64, event: answers.NoiseEvent) -> Int64:
        """Add the noise of an event that was paid for; audits replace this step."""
        return answers.noisy(counts, event, self._stream, threads=self._threads)

    def _passing(self, event: CategoriesFound, counts: Int64) -> Int64:
        """Add the noise of a search that was paid for, and compare."""
        noisy = self._noisy(counts, event)
        return np.where(noisy > event.threshold, noisy, 0)

    def _chosen(self, scores: Sequence[int], event: Selection) -> int:
        """Make a choice that was paid for; audits replace this step."""
        return answers.chosen(scores, event, self._stream, self._words)

    def _pay(self, event: Event) -> None:
        price = event.price(self.route, rows_per_unit=self._unit)
        if price is None or Fraction(price) > self._left:
            raise BudgetError("a part of the release would cost more than what is left of epsilon")
        self._left -= Fraction(price)
        self._events.append(event)
