"""Exact laws of resumable kernels (`enumerate_words`), and how far two of them are apart."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

from pegsynth.auditing.exact_laws import enumerate_words

__all__ = ["enumerate_words", "largest_ratio", "ratio_range"]


def largest_ratio(left: dict[Hashable, Fraction], right: dict[Hashable, Fraction]) -> Fraction:
    """Largest ratio of two distributions over all outcomes, either way round."""
    assert left.keys() == right.keys()
    return max(max(left[k] / right[k], right[k] / left[k]) for k in left)


def ratio_range(left: dict[Hashable, Fraction], right: dict[Hashable, Fraction]) -> Fraction:
    """exp of the range of the log-ratio."""
    ratios = [left[k] / right[k] for k in left]
    return max(ratios) / min(ratios)
