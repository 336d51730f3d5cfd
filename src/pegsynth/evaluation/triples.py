"""Which three-way tables are compared: a fixed public choice, the same for any data."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from itertools import combinations, count

from pegsynth.evaluation.tabulation import CELL_LIMIT

Triple = tuple[int, int, int]

MOST_TRIPLES = 100
RULE = (
    f"all triples of features, or {MOST_TRIPLES} of them drawn by a fixed public rule: draw d = 0, "
    '1, .. is the SHA-256 of "pegsynth triple d", whose first three 8-byte numbers modulo the '
    "number of features name a triple; draws with a repeated feature or an earlier triple are "
    "passed over, and so are triples of 2^63 cells or more"
)
_WORD = 8
# Only triples that are too large to number can exhaust the draws; then fewer are compared.
_MOST_DRAWS = 10_000


def triples(category_counts: Sequence[int]) -> list[Triple]:
    """Choose the triples of features whose tables are compared, by `RULE`."""
    features = len(category_counts)
    source = (
        iter(combinations(range(features), 3))
        if math.comb(features, 3) <= MOST_TRIPLES
        else _drawn(features)
    )
    chosen: dict[Triple, None] = {}
    for triple in source:
        if math.prod(category_counts[i] for i in triple) < CELL_LIMIT:
            chosen[triple] = None
        if len(chosen) == MOST_TRIPLES:
            break
    return sorted(chosen)


def _drawn(features: int) -> Iterator[Triple]:
    for draw in count():
        if draw == _MOST_DRAWS:
            return
        digest = hashlib.sha256(f"pegsynth triple {draw}".encode()).digest()
        words = (digest[start : start + _WORD] for start in range(0, 3 * _WORD, _WORD))
        first, second, third = sorted(int.from_bytes(word, "big") % features for word in words)
        if first < second < third:
            yield first, second, third
