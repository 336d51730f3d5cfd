"""From rows to keys: heads in clear, tail bits by XOR, and how heads are chosen."""

from pegsynth.hashing.order import heads_by_score, public_heads
from pegsynth.hashing.pairs import PairCounter, PairCounts, count_pairs, mutual_information
from pegsynth.hashing.spec import HashSpec, tail_codes

__all__ = [
    "HashSpec",
    "PairCounter",
    "PairCounts",
    "count_pairs",
    "heads_by_score",
    "mutual_information",
    "public_heads",
    "tail_codes",
]
