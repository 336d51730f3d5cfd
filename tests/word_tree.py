"""The exact distribution of a resumable kernel, by feeding it every word of a few bits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from fractions import Fraction

import numpy as np

Run = Callable[[np.ndarray], tuple[bool, Hashable, Hashable]]


def enumerate_words(run: Run, bits: int) -> dict[Hashable, Fraction]:
    """Probability of every outcome of `run`, rejection included, as exact fractions.

    `run(words)` starts afresh and returns whether it finished, how far it came (a rejected
    word leaves that where it was) and what it has drawn.
    """
    probability: dict[Hashable, Fraction] = defaultdict(Fraction)
    _, start, _ = run(np.zeros(0, dtype=np.uint64))
    paths = [([], start, Fraction(1))]
    while paths:
        prefix, before, mass = paths.pop()
        reached: Counter[Hashable] = Counter()
        word_for = {}
        for word in range(1 << bits):
            found = run(np.array([*prefix, word], dtype=np.uint64))
            if found[0] or found[1] != before:
                reached[found] += 1
                word_for[found] = word
        for found, count in reached.items():
            share = mass * Fraction(count, sum(reached.values()))
            if found[0]:
                probability[found[2]] += share
            else:
                paths.append(([*prefix, word_for[found]], found[1], share))
    return dict(probability)


def largest_ratio(left: dict[Hashable, Fraction], right: dict[Hashable, Fraction]) -> Fraction:
    """Largest ratio of two distributions over all outcomes, either way round."""
    assert left.keys() == right.keys()
    return max(max(left[k] / right[k], right[k] / left[k]) for k in left)


def ratio_range(left: dict[Hashable, Fraction], right: dict[Hashable, Fraction]) -> Fraction:
    """exp of the range of the log-ratio."""
    ratios = [left[k] / right[k] for k in left]
    return max(ratios) / min(ratios)
