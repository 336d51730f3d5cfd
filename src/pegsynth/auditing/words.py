"""The exact law of any resumable draw, by trying every word, or every integer, it may get.

`enumerate_words` feeds a kernel every word of a few bits; `enumerate_integers` answers a
draw that asks for integers of any size. Probabilities are fractions, rejection included.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pegsynth.mechanisms.noise import Below

Run = Callable[[NDArray[np.uint64]], tuple[bool, Hashable, Hashable]]


def enumerate_words(run: Run, bits: int) -> dict[Hashable, Fraction]:
    """Return the probability of every outcome of `run`.

    `run(words)` starts afresh and returns whether it finished, how far it came (a rejected
    word leaves that where it was) and what it has drawn.
    """
    probability: dict[Hashable, Fraction] = defaultdict(Fraction)
    _, start, _ = run(np.zeros(0, dtype=np.uint64))
    paths: list[tuple[list[int], Hashable, Fraction]] = [([], start, Fraction(1))]
    while paths:
        prefix, before, mass = paths.pop()
        reached: Counter[tuple[bool, Hashable, Hashable]] = Counter()
        word_for: dict[tuple[bool, Hashable, Hashable], int] = {}
        for word in range(1 << bits):
            found = run(np.array([*prefix, word], dtype=np.uint64))
            if found[0] or found[1] != before:
                reached[found] += 1
                # Words with the same outcome lead on alike; one stands for all.
                word_for[found] = word
        for found, count in reached.items():
            share = mass * Fraction(count, reached.total())
            if found[0]:
                probability[found[2]] += share
            else:
                paths.append(([*prefix, word_for[found]], found[1], share))
    return dict(probability)


def enumerate_integers(run: Callable[[Below], Hashable], asked: int) -> dict[Hashable, Fraction]:
    """Return the law of what `run` draws, given that it asks for `asked` integers.

    A draw that starts over after a rejection has the same law whenever it ends, so the
    paths that ask for more say nothing new and are left out.
    """
    mass: dict[Hashable, Fraction] = defaultdict(Fraction)
    paths: list[tuple[tuple[int, ...], Fraction]] = [((), Fraction(1))]
    while paths:
        prefix, share = paths.pop()
        source = _Answers(prefix)
        try:
            mass[run(source)] += share
        except _AskedError as question:
            if len(prefix) < asked:
                each = share / question.bound
                paths += [((*prefix, value), each) for value in range(question.bound)]
    total = sum(mass.values())
    return {outcome: share / total for outcome, share in mass.items()}


class _AskedError(Exception):
    """The draw wants an integer that nobody has answered yet."""

    def __init__(self, bound: int) -> None:
        super().__init__(bound)
        self.bound = bound


class _Answers:
    """A source of exact integers whose answers are given."""

    def __init__(self, answers: tuple[int, ...]) -> None:
        self._left = list(answers)

    def below(self, bound: int) -> int:
        """Return the next answer."""
        if not self._left:
            raise _AskedError(bound)
        return self._left.pop(0)
