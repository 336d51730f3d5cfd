"""The released rows nearest to a person's row, by the number of features that differ.

A search compares every released row with every target. Where these are too many, the
targets are a random part of theirs, as many as `COMPARISONS` codes allow, at least
`FEWEST`; how many were searched for is part of every record.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pegsynth.arrays import Codes, Int64

COMPARISONS = 50_000_000_000
FEWEST = 500


@dataclass(frozen=True)
class Nearest:
    """What was found for each target.

    Parameters
    ----------
    distance
        Features in which the nearest released row differs.
    ties
        Released rows at that distance.
    hits
        Those among them that carry the target's own tag.
    """

    distance: Int64
    ties: Int64
    hits: Int64


def searchable(released: Codes) -> int:
    """Most targets of one search; `released` has one feature a row."""
    return max(FEWEST, COMPARISONS // max(released.size, 1))


def nearest(
    released: Codes, tags: Int64, targets: Codes, target_tags: Int64, *, threads: int
) -> Nearest:
    """Find the nearest released rows of every target.

    Parameters
    ----------
    released, targets
        Codes with one feature a row, the same features in both.
    tags, target_tags
        A number for every released row and every target, compared at the nearest rows.
    threads
        Parts searched at a time; the result does not depend on it.
    """
    from pegsynth.kernels.nearest import nearest_rows

    features, count = targets.shape
    narrow = np.dtype(np.uint8) if features < 255 else np.dtype(np.uint16)
    # Codes as narrow as they can be: more of them fit into one instruction.
    codes = np.min_scalar_type(int(max(released.max(initial=0), targets.max(initial=0))))
    released, targets = (np.ascontiguousarray(table, dtype=codes) for table in (released, targets))
    distance: NDArray[np.unsignedinteger] = np.zeros(count, dtype=narrow)
    ties, hits = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)

    def search(part: slice) -> None:
        nearest_rows(
            released,
            tags,
            np.ascontiguousarray(targets[:, part]),
            target_tags[part],
            distance[part],
            ties[part],
            hits[part],
        )

    edges = np.linspace(0, count, threads + 1).astype(int).tolist()
    parts = [slice(a, b) for a, b in pairwise(edges) if a < b]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(search, parts))
    return Nearest(distance.astype(np.int64), ties, hits)
