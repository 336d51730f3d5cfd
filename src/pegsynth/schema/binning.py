"""Bin edges for a numeric feature that has none yet.

In go the range of a column, or its quantiles; out come strictly increasing finite edges.
Equal-width edges are round numbers, which a reviewer can take for public figures; edges
at quantiles are values of the data.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from pegsynth.errors import SchemaError
from pegsynth.schema.keys import needed, optional

MAX_BINS = 100_000
MOST_PRIVATE_BINS = 1_000

_ROUND_STEPS = (Fraction(1), Fraction(2), Fraction(5, 2), Fraction(5))
_INTEGER_TYPE = re.compile(r"(u?)int(\d+)")
_PUBLIC = "declared public by `reviewed`"


@dataclass(frozen=True)
class EqualWidth:
    """Bins of equal width, as ``bins`` of a feature states them."""

    lowest: float = field(metadata=needed("0", "Lowest edge.", _PUBLIC))
    highest: float = field(metadata=needed("100", "Highest edge.", _PUBLIC))
    count: int | None = optional(None, "20", "How many bins.", _PUBLIC, left_out="or `width`")
    width: float | None = optional(None, "5", "Width of each bin.", _PUBLIC, left_out="or `count`")

    def __post_init__(self) -> None:
        ends = (self.lowest, self.highest)
        if None in ends or (self.count is None) == (self.width is None):
            raise SchemaError("give lowest, highest and one of count and width")
        if self.lowest >= self.highest:
            raise SchemaError("lowest must be less than highest")

    @property
    def edges(self) -> tuple[float, ...]:
        """The edges of the bins, at exact multiples of the width."""
        lowest, highest = exact(self.lowest), exact(self.highest)
        count = Fraction(self.count or 0)
        if self.width is not None:
            if self.width <= 0:
                raise SchemaError("width must be greater than 0")
            count = (highest - lowest) / exact(self.width)
            if count.denominator != 1:
                raise SchemaError("width does not divide highest - lowest; change one of the three")
        if not 1 <= count <= MAX_BINS:
            raise SchemaError(f"there must be from 1 to {MAX_BINS:,} bins; change count or width")
        step = (highest - lowest) / count
        # Division of whole numbers rounds once, as that of fractions does, and is much faster.
        whole = lowest.denominator * step.denominator
        first, more = lowest.numerator * step.denominator, step.numerator * lowest.denominator
        return tuple((first + index * more) / whole for index in range(int(count) + 1))


def exact(value: float) -> Fraction:
    """Return the number that a text of it spells, so that steps of 0.1 are tenths."""
    return Fraction(repr(value))


def round_edges(lowest: float, highest: float, bins: int, *, whole: bool) -> tuple[float, ...]:
    """Edges at multiples of a round step that cover a range in at most `bins` bins.

    Parameters
    ----------
    lowest, highest
        The range, finite.
    bins
        The most bins wanted, at least 1.
    whole
        Whether the edges must be whole numbers.
    """
    low, high = Fraction(lowest), Fraction(highest)
    exponent = _exponent(lowest, highest, bins)
    while True:
        for mantissa in _ROUND_STEPS:
            step = mantissa * Fraction(10) ** exponent
            if whole and step.denominator != 1:
                continue
            first, last = math.floor(low / step), math.ceil(high / step)
            last = max(last, first + 1)
            if last - first <= bins or (bins == 1 and first == -1 and last == 1):
                # A range across zero needs two bins at any step; one bin spans both.
                multiples = (first, last) if bins == 1 else range(first, last + 1)
                return increasing(as_float(k * step) for k in multiples)
        exponent += 1


def quantile_edges(
    lowest: float, inner: Iterable[float], highest: float, *, whole: bool
) -> tuple[float, ...]:
    """Edges at given quantiles, equal ones merged."""
    if lowest == highest:
        return round_edges(lowest, highest, 1, whole=whole)
    return increasing((lowest, *inner, highest))


def within_type(edges: tuple[float, ...], dtype: str) -> tuple[float, ...]:
    """Edges held inside the range of an integer type, so that every drawn value fits it."""
    match = _INTEGER_TYPE.fullmatch(dtype)
    if not match:
        return edges
    bits = int(match[2]) - (not match[1])
    floor = 0.0 if match[1] else -(2.0**bits)
    ceiling = 2.0**bits - 1 if bits <= 53 else math.nextafter(2.0**bits, 0)
    return increasing(min(max(edge, floor), ceiling) for edge in edges)


def increasing(edges: Iterable[float]) -> tuple[float, ...]:
    """Sorted distinct edges, at least two."""
    distinct = sorted(set(edges))
    if len(distinct) == 1:
        distinct.append(math.nextafter(distinct[0], math.inf))
    return tuple(distinct)


def _exponent(lowest: float, highest: float, bins: int) -> int:
    # Divided first: the difference of two floats can overflow.
    width = highest / bins - lowest / bins
    if width > 0:
        return math.floor(math.log10(width))
    size = max(abs(lowest), abs(highest))
    return max(0, math.floor(math.log10(size)) - 14) if size >= 1 else 0


def as_float(value: Fraction | int) -> float:
    """Return the nearest finite float."""
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max
