"""The one seam that every paid answer passes through.

A paid step states the confidential numbers, the event that pays for it, and a random stream. What
comes back may be published. A plain stream adds exact noise, chooses exactly, and lets draws read
the counts. An `AnsweringStream`, which only audits make, answers by itself and records what it was
asked. Which of the two happens follows from the type of the stream, which every caller passes
along; there is no switch that a run could leave on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from pegsynth.kernels.arrays import Int64
from pegsynth.mechanisms.noise import add_noise, choose
from pegsynth.privacy import CategoriesFound, Selection
from pegsynth.privacy.noise_events import Noisy
from pegsynth.random import RandomStream, Words

_Held = TypeVar("_Held")
NoiseEvent = Noisy | CategoriesFound


class AnsweringStream(RandomStream, ABC):
    """A random stream that answers every paid step by itself; only audits make one."""

    @abstractmethod
    def noisy(self, counts: Int64, event: NoiseEvent) -> Int64:
        """Answer a step that adds noise."""

    @abstractmethod
    def chosen(self, scores: Sequence[int], event: Selection) -> int:
        """Answer a choice."""

    @abstractmethod
    def candidates(self, parts: Iterable[Any], events: Sequence[CategoriesFound]) -> Iterable[Any]:
        """Return the values that searches for categories look at."""

    @abstractmethod
    def drawn_from(self, held: object, nothing: object, rows: int) -> Any:
        """Return what draws read: the counts, or those of an empty table."""


def noisy(counts: Int64, event: NoiseEvent, stream: RandomStream, *, threads: int = 1) -> Int64:
    """Return counts with the noise of an event that was paid for (R11)."""
    if isinstance(stream, AnsweringStream):
        return stream.noisy(counts, event)
    own = event.noise if isinstance(event, CategoriesFound) else event
    return add_noise(counts, own, stream, threads=threads)


def chosen(scores: Sequence[int], event: Selection, stream: RandomStream, words: Words) -> int:
    """Return the index of a choice that was paid for; scores have sensitivity 1 (R10)."""
    if isinstance(stream, AnsweringStream):
        return stream.chosen(scores, event)
    return choose(scores, Fraction(event.epsilon_numerator, event.epsilon_denominator), words)


def candidates(
    parts: Iterable[_Held], events: Sequence[CategoriesFound], stream: RandomStream
) -> Iterable[_Held]:
    """Return the values of the table that searches look at, once they are paid for (R29)."""
    return stream.candidates(parts, events) if isinstance(stream, AnsweringStream) else parts


def drawn_from(
    held: _Held, nothing: Callable[[], _Held], stream: RandomStream, *, rows: int
) -> _Held:
    """Return the counts that draws read; where the draws are the paid mechanism (R1, R8, R9, R17).

    Parameters
    ----------
    nothing
        Makes the same for a table without rows, for audits.
    rows
        How many rows are drawn.
    """
    if isinstance(stream, AnsweringStream):
        answered: _Held = stream.drawn_from(held, nothing(), rows)
        return answered
    return held
