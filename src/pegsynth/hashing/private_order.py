"""Private choice of heads by the exponential mechanism (R10).

For a target i and a candidate j the score is the distance between their true pair table
and the table that independence would give, `sum |n_xy - mu_xy|`. The reference mu comes
from marginals already paid for, so one row changes the score by at most 1. What
independence itself would give by chance, and what cells cost, is subtracted from public
numbers alone and changes no sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from pegsynth.hashing.pairs import PairCounts

Choose = Callable[[Sequence[int]], int]

_MEAN_ABSOLUTE_NORMAL = float(np.sqrt(2 / np.pi))


def pair_scores(
    pairs: PairCounts, shares: Sequence[NDArray[np.float64]], total: float
) -> NDArray[np.int64]:
    """Return the symmetric matrix of scores, whole numbers of sensitivity 1."""
    features = len(pairs.category_counts)
    scores = np.zeros((features, features), dtype=np.int64)
    for (left, right), table in pairs.tables.items():
        reference = np.rint(np.outer(total * shares[left], shares[right])).astype(np.int64)
        chance = _by_chance(shares[left], shares[right], total)
        score = int(np.abs(table - reference).sum()) - chance
        scores[left, right] = scores[right, left] = score
    for (left, right), cells in pairs.cells.items():
        score = _sparse_score(cells, shares[left], shares[right], total)
        scores[left, right] = scores[right, left] = score
    return scores


def _sparse_score(
    cells: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    total: float,
) -> int:
    """Return the score of a pair too large to tabulate: cells that occur, and the rest."""
    rows, columns, counts = cells
    reference = np.rint(total * left[rows] * right[columns]).astype(np.int64)
    seen = int(np.abs(counts - reference).sum())
    # Cells that do not occur contribute their reference; the sum over all cells is public.
    everything = sum(int(np.rint(total * share * right).sum()) for share in left)
    return seen + everything - int(reference.sum()) - _by_chance(left, right, total)


def _by_chance(left: NDArray[np.float64], right: NDArray[np.float64], total: float) -> int:
    """Return what independent features would score on average, from paid numbers alone."""
    roots = np.sqrt(left).sum() * np.sqrt(right).sum()
    return int(_MEAN_ABSOLUTE_NORMAL * np.sqrt(total) * roots)


def heads_by_choice(
    scores: NDArray[np.int64], heads: int, choose: Choose
) -> tuple[tuple[int, ...], ...]:
    """Choose m heads for every target, one private choice each."""
    features = len(scores)
    chosen = []
    for target in range(features):
        others = [index for index in range(features) if index != target]
        taken: list[int] = []
        for _ in range(heads):
            index = choose([int(scores[target, other]) for other in others])
            taken.append(others.pop(index))
        chosen.append(tuple(taken))
    return tuple(chosen)
