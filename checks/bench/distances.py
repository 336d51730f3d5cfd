"""Mean total variation distances of code matrices, for benchmarks that need no other measure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np

from pegsynth.codec.tabulation import align, column_major, count_cells
from pegsynth.evaluation import total_variation
from pegsynth.evaluation.utility.distances import triples
from pegsynth.kernels.arrays import Codes


def tvd1(original: Codes, synthetic: Codes, category_counts: Sequence[int]) -> float:
    """Mean total variation distance over all features."""
    subsets = combinations(range(len(category_counts)), 1)
    return _mean_distance(original, synthetic, category_counts, subsets, 1)


def tvd2(
    original: Codes, synthetic: Codes, category_counts: Sequence[int], *, threads: int = 2
) -> float:
    """Mean total variation distance over all pairs of features; NaN when there is none."""
    subsets = combinations(range(len(category_counts)), 2)
    return _mean_distance(original, synthetic, category_counts, subsets, threads)


def tvd3(
    original: Codes, synthetic: Codes, category_counts: Sequence[int], *, threads: int = 2
) -> float:
    """Mean total variation distance over the triples of `triples`; NaN when there is none."""
    return _mean_distance(original, synthetic, category_counts, triples(category_counts), threads)


def _mean_distance(
    original: Codes,
    synthetic: Codes,
    category_counts: Sequence[int],
    subsets: Iterable[Sequence[int]],
    threads: int,
) -> float:
    tables = [column_major(each, category_counts, what="a table") for each in (original, synthetic)]

    def distance(subset: Sequence[int]) -> float:
        sizes = [category_counts[i] for i in subset]
        first, second = (count_cells(table[list(subset)], sizes) for table in tables)
        return total_variation(*align(first, second)[1:])

    with ThreadPoolExecutor(threads) as pool:
        found = list(pool.map(distance, subsets))
    return float(np.mean(found)) if found else math.nan
